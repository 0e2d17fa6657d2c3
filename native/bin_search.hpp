// The bin of each of many values: how many of 255 sorted tops are below it.
//
// A binary search in eight steps without branches. With AVX-512 the first steps look their tops up in two
// registers, for 8 or 16 values at a time, which leaves four or three of them. (Gathering the tops of those
// too took longer than one value after the other.)
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "table.hpp"

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
  for (Index i = 0; i < count; ++i) codes[i] = find_bin<128>(tops, values[i], 0);
}

#if defined(__AVX512F__)

template <>
inline void find_bins(const double* tops, const double* values, Index count, std::uint8_t* codes) {
  double coarse[16];
  for (Index k = 0; k < 16; ++k) coarse[k] = tops[16 * k + 15];
  const __m512d low = _mm512_loadu_pd(coarse), high = _mm512_loadu_pd(coarse + 8);
  Index i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m512d value = _mm512_loadu_pd(values + i);
    __m512i at = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int step = 8; step > 0; step /= 2) {
      const __m512i asked = _mm512_add_epi64(at, _mm512_set1_epi64(step - 1));
      const __m512d top = _mm512_permutex2var_pd(low, asked, high);
      at = _mm512_mask_add_epi64(at, _mm512_cmp_pd_mask(top, value, _CMP_LT_OQ), at, _mm512_set1_epi64(step));
    }
    alignas(64) std::int64_t first[8];
    _mm512_store_si512(first, at);
    for (Index k = 0; k < 8; ++k) codes[i + k] = find_bin<8>(tops, values[i + k], 16 * first[k]);
  }
  for (; i < count; ++i) codes[i] = find_bin<128>(tops, values[i], 0);
}

template <>
inline void find_bins(const float* tops, const float* values, Index count, std::uint8_t* codes) {
  float coarse[32];
  for (Index k = 0; k < 32; ++k) coarse[k] = tops[8 * k + 7];
  const __m512 low = _mm512_loadu_ps(coarse), high = _mm512_loadu_ps(coarse + 16);
  Index i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512 value = _mm512_loadu_ps(values + i);
    __m512i at = _mm512_setzero_si512();
#pragma GCC unroll 5
    for (int step = 16; step > 0; step /= 2) {
      const __m512i asked = _mm512_add_epi32(at, _mm512_set1_epi32(step - 1));
      const __m512 top = _mm512_permutex2var_ps(low, asked, high);
      at = _mm512_mask_add_epi32(at, _mm512_cmp_ps_mask(top, value, _CMP_LT_OQ), at, _mm512_set1_epi32(step));
    }
    alignas(64) std::int32_t first[16];
    _mm512_store_si512(first, at);
    for (Index k = 0; k < 16; ++k) codes[i + k] = find_bin<4>(tops, values[i + k], 8 * first[k]);
  }
  for (; i < count; ++i) codes[i] = find_bin<128>(tops, values[i], 0);
}

#endif

}  // namespace sixfold
