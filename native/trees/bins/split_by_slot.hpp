// Rows of a node, and the codes of these rows, that go to its children in their order.
//
// With AVX-512 16 row numbers are compressed at once into those of the left child and those of the right one,
// and 64 bytes where the processor has VBMI2 (Zen 4, Ice Lake), which no level asks for: bytes take 3 to 8 ns
// where one after the other takes 24 to 27, the less the smaller the node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/table.hpp"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace sixfold {

inline constexpr std::size_t kSplitAtOnce = 64;  // so much more than there are may be written to `room`

#if defined(__AVX512BW__)
// Which of 16 slots are not 0.
inline std::uint64_t right_of_16(const std::int32_t* slots) {
  const __m512i some = _mm512_loadu_si512(slots);
  return _mm512_test_epi32_mask(some, some);
}

// Both return how many of the first `count` items, a multiple of 64, are left. What is written beyond those
// of the left has been read.
inline std::size_t compress(std::int32_t* rows, const std::int32_t* slots, std::size_t count,
                            std::int32_t* right) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < count; i += 16) {
    const std::uint64_t is_right = right_of_16(slots + i);
    const __m512i all = _mm512_loadu_si512(rows + i);
    _mm512_storeu_si512(rows + left, _mm512_maskz_compress_epi32(static_cast<__mmask16>(~is_right), all));
    _mm512_storeu_si512(right + i - left, _mm512_maskz_compress_epi32(static_cast<__mmask16>(is_right), all));
    left += 16 - static_cast<std::size_t>(__builtin_popcountll(is_right));
  }
  return left;
}

__attribute__((target("avx512vbmi2"))) inline std::size_t compress(std::uint8_t* codes,
                                                                   const std::int32_t* slots,
                                                                   std::size_t count, std::uint8_t* right) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < count; i += 64) {
    std::uint64_t is_right = 0;
    for (int part = 0; part < 4; ++part) is_right |= right_of_16(slots + i + 16 * part) << 16 * part;
    const __m512i all = _mm512_loadu_si512(codes + i);
    _mm512_storeu_si512(codes + left, _mm512_maskz_compress_epi8(~is_right, all));
    _mm512_storeu_si512(right + i - left, _mm512_maskz_compress_epi8(is_right, all));
    left += 64 - static_cast<std::size_t>(__builtin_popcountll(is_right));
  }
  return left;
}
#endif

// The same of all items: those with slot 0 come first, then those with slot 1.
template <class Item>
void split_in_two(Item* items, std::span<const std::int32_t> slots, Item* room) {
  std::size_t i = 0, left = 0;
#if defined(__AVX512BW__)
  static const bool can_compress = sizeof(Item) > 1 || __builtin_cpu_supports("avx512vbmi2");
  if (can_compress) {
    i = slots.size() / kSplitAtOnce * kSplitAtOnce;
    left = compress(items, slots.data(), i, room);
  }
#endif
  for (; i < slots.size(); ++i) {  // without a branch, which would be guessed wrong too often
    const Item item = items[i];
    items[left] = room[i - left] = item;
    left += slots[i] == 0;
  }
  std::copy_n(room, slots.size() - left, items + left);
}

// slots[i] is the child of the i-th item, ends[s] is where child s ends.
template <class Items>
void split_by_slot(typename Items::value_type* items, std::span<const std::int32_t> slots,
                   std::span<const Index> ends, Items& room) {
  room.resize(std::max(room.size(), slots.size() + kSplitAtOnce));
  if (ends.size() == 2) return split_in_two(items, slots, room.data());
  std::copy_n(items, slots.size(), room.data());
  std::vector<Index> to(ends.size(), 0);  // where the next item of each child goes
  for (std::size_t s = 1; s < ends.size(); ++s) to[s] = ends[s - 1];
  for (std::size_t i = 0; i < slots.size(); ++i) items[to[slots[i]]++] = room[i];
}

}  // namespace sixfold
