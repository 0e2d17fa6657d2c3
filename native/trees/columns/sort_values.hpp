// Sorts records by a double: byte by byte from the lowest one (Knuth 1998, 5.2.5), few of them by comparing.
//
// A double is ordered like its bits, with the sign bit turned around for positive and all bits for negative
// numbers. Bytes in which all values agree are left out: whole numbers and single precision take half as
// long.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/table.hpp"

namespace sixfold {

inline std::uint64_t ordered_bits(double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  // Without a branch, which signs in no order would have guessed wrong.
  const std::uint64_t all_if_negative = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> 63);
  return bits ^ (all_if_negative | std::uint64_t{1} << 63);
}

// By the field `value`, none of which is NaN; `room` is used as it needs.
template <class Record>
void sort_by_value(std::vector<Record>& records, std::vector<Record>& room) {
  constexpr std::size_t kFew = 512;  // from here on bytes are faster
  if (records.size() < kFew) {
    std::sort(records.begin(), records.end(),
              [](const Record& a, const Record& b) { return a.value < b.value; });
    return;
  }
  std::array<std::array<Index, 256>, 8> counts{};
  for (const Record& record : records) {
    const std::uint64_t bits = ordered_bits(record.value);
    for (int byte = 0; byte < 8; ++byte) ++counts[byte][bits >> 8 * byte & 255];
  }
  room.resize(records.size());
  const std::uint64_t any = ordered_bits(records[0].value);
  for (int byte = 0; byte < 8; ++byte) {
    std::array<Index, 256>& places = counts[byte];
    if (places[any >> 8 * byte & 255] == static_cast<Index>(records.size())) continue;
    Index place = 0;
    for (Index& count : places) place += std::exchange(count, place);
    for (const Record& record : records)
      room[places[ordered_bits(record.value) >> 8 * byte & 255]++] = record;
    records.swap(room);
  }
}

}  // namespace sixfold
