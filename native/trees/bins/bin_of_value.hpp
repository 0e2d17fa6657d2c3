// The bin of each of many values: how many of 255 sorted tops are below it.
//
// A binary search in eight steps without branches. With AVX-512 the first steps look their tops up in two
// registers, for 8 or 16 values at a time, which leaves four or three of them. (Gathering the tops of those
// too took longer than one value after the other.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/table.hpp"

namespace sixfold {

// What is left of the search after the first steps: `at` counts tops below the value, up to 2 * kStep - 1
// less than there are.
template <int kStep, class T>
inline std::uint8_t find_bin(const T* tops, T value, Index at) {
#pragma GCC unroll 8
  for (int step = kStep; step > 0; step /= 2) at += static_cast<Index>(tops[at + step - 1] < value) * step;
  return value == value ? static_cast<std::uint8_t>(at) : 255;
}

// tops has 256 entries, infinity at the end; an unknown value (NaN) has the code 255.
template <class T>
inline void find_bins(const T* tops, const T* values, Index count, std::uint8_t* codes) {
  Index i = 0;
#if defined(__AVX512F__)
  using Count = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  typedef T Values __attribute__((vector_size(64)));  // `using` loses the size of a type yet to be known
  typedef Count Counts __attribute__((vector_size(64)));
  const auto load = [](const T* from) {
    Values all;
    std::memcpy(&all, from, sizeof(all));
    return all;
  };
  constexpr int kValues = 64 / sizeof(T),
                kFine = 256 / (2 * kValues);  // two registers hold every kFine-th top
  T coarse[2 * kValues];
  for (int k = 0; k < 2 * kValues; ++k) coarse[k] = tops[kFine * k + kFine - 1];
  const Values low = load(coarse), high = load(coarse + kValues);
  for (; i + kValues <= count; i += kValues) {
    const Values value = load(values + i);
    Counts at = {};
#pragma GCC unroll 5
    for (Count step = kValues; step > 0; step /= 2)
      at += (__builtin_shuffle(low, high, at + (step - 1)) < value) & step;
    for (int k = 0; k < kValues; ++k) codes[i + k] = find_bin<kFine / 2>(tops, values[i + k], kFine * at[k]);
  }
#endif
  for (; i < count; ++i) codes[i] = find_bin<128>(tops, values[i], 0);
}

}  // namespace sixfold
