// Sorts records by a number: some thousand by spreading them over buckets (Neubert 1998), more of them byte
// by byte from the lowest one (Knuth 1998, 5.2.5).
//
// Bytes: a double is ordered like its bits, with the sign bit turned around for positive and all bits for
// negative numbers. Bytes in which all values agree are left out: whole numbers and single precision take
// half as long.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/table.hpp"

namespace sixfold {

// The least and the greatest of some values, in lanes of their own.
template <class T>
std::pair<double, double> range_of(const T* values, Index count) {
  if (count == 0) return {0.0, 0.0};
  constexpr Index kAbreast = 8;
  T low[kAbreast], high[kAbreast];
  std::fill_n(low, kAbreast, values[0]);
  std::fill_n(high, kAbreast, values[0]);
  Index i = 0;
  for (; i + kAbreast <= count; i += kAbreast)
    for (Index k = 0; k < kAbreast; ++k) {
      low[k] = values[i + k] < low[k] ? values[i + k] : low[k];
      high[k] = values[i + k] > high[k] ? values[i + k] : high[k];
    }
  for (; i < count; ++i) {
    low[0] = std::min(low[0], values[i]);
    high[0] = std::max(high[0], values[i]);
  }
  return {static_cast<double>(*std::min_element(low, low + kAbreast)),
          static_cast<double>(*std::max_element(high, high + kAbreast))};
}

// Room for the buckets of a sort.
struct Buckets {
  std::vector<std::int32_t> of_values, ends;
};

// Writes record(i) of each of these values to `to`, in the order of values, which value(record) says again.
// Two buckets a record, evenly spaced between the least and the greatest value, then insertion. All steps
// that find a bucket round monotonically, so buckets keep the order of values whatever these are. Three times
// as fast as std::sort, which does the rest where values crowd in a bucket.
template <class T, class Record, class Make, class Value>
void sort_in_buckets(const T* values, Index count, Buckets& room, Record* to, const Make& record,
                     const Value& value) {
  constexpr std::int32_t kCrowd = 16;
  const auto before = [&](const Record& a, const Record& b) { return value(a) < value(b); };
  const auto [low, high] = range_of(values, count);
  const Index buckets = 2 * count;
  const double scale = static_cast<double>(buckets - 1) / (0.5 * high - 0.5 * low);
  if (!std::isfinite(scale)) {  // one value, or nearly
    for (Index i = 0; i < count; ++i) to[i] = record(i);
    return std::sort(to, to + count, before);
  }
  room.of_values.resize(std::max(room.of_values.size(), static_cast<std::size_t>(count)));
  room.ends.assign(static_cast<std::size_t>(buckets + 1), 0);
  std::int32_t *bucket = room.of_values.data(), *ends = room.ends.data();
  for (Index i = 0; i < count; ++i)
    bucket[i] = static_cast<std::int32_t>((0.5 * static_cast<double>(values[i]) - 0.5 * low) * scale);
  for (Index i = 0; i < count; ++i) ++ends[bucket[i] + 1];
  std::int32_t most = 0;
  for (Index b = 0; b < buckets; ++b) {
    most = std::max(most, ends[b + 1]);
    ends[b + 1] += ends[b];
  }
  for (Index i = 0; i < count; ++i) to[ends[bucket[i]]++] = record(i);
  if (most > kCrowd)
    for (Index b = 0, from = 0; b < buckets; from = ends[b++])
      if (ends[b] - from > kCrowd) std::sort(to + from, to + ends[b], before);
  for (Index i = 1; i < count; ++i) {
    const Record own = to[i];
    Index at = i;
    for (; at > 0 && before(own, to[at - 1]); --at) to[at] = to[at - 1];
    to[at] = own;
  }
}

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
