// Sums of absolute differences of bytes, eight at a time: the instruction psadbw, or a loop where it is not.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/simd.hpp"
#include "core/table.hpp"

namespace sixfold {

using Words = std::uint64_t __attribute__((vector_size(kLanes * sizeof(std::uint64_t))));

// In lane l: sum of |x_j - y_j| over the bytes 8 l, ..., 8 l + 7.
inline Words eight_sums(Words x, Words y) {
#if defined(__AVX512BW__)
  return reinterpret_cast<Words>(_mm512_sad_epu8(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(y)));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(_mm256_sad_epu8(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y)));
#elif defined(__SSE2__) && !defined(__AVX__)
  return reinterpret_cast<Words>(_mm_sad_epu8(reinterpret_cast<__m128i>(x), reinterpret_cast<__m128i>(y)));
#else
  Words sums{};
  for (Index lane = 0; lane < kLanes; ++lane)
    for (int shift = 0; shift < 64; shift += 8) {
      const std::uint64_t a = x[lane] >> shift & 255, b = y[lane] >> shift & 255;
      sums[lane] += a > b ? a - b : b - a;
    }
  return sums;
#endif
}

// Bit l is set where lane l is at most the limit, which is below 2^63.
inline std::uint32_t at_most(Words sums, std::uint64_t limit) {
#if defined(__AVX512BW__)
  return _mm512_cmple_epu64_mask(reinterpret_cast<__m512i>(sums),
                                 _mm512_set1_epi64(static_cast<long long>(limit)));
#elif defined(__AVX2__)
  const auto above =
      _mm256_cmpgt_epi64(reinterpret_cast<__m256i>(sums), _mm256_set1_epi64x(static_cast<long long>(limit)));
  return 15 ^ static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(above)));
#else
  std::uint32_t bits = 0;
  for (Index lane = 0; lane < kLanes; ++lane) bits |= std::uint32_t{sums[lane] <= limit} << lane;
  return bits;
#endif
}

inline Words load_words(const std::uint8_t* from) {
  Words words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}

// Eight bytes in every lane.
inline Words repeat_word(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return Words{} + word;
}

// sum_j |x_j - y_j|.
inline std::int64_t byte_distance(const std::uint8_t* x, const std::uint8_t* y, Index columns) {
  constexpr Index kStep = kLanes * 8;
  Words a{}, b{};
  Index j = 0;
  for (; j + 2 * kStep <= columns; j += 2 * kStep) {
    a += eight_sums(load_words(x + j), load_words(y + j));
    b += eight_sums(load_words(x + j + kStep), load_words(y + j + kStep));
  }
  if (j + kStep <= columns) {
    a += eight_sums(load_words(x + j), load_words(y + j));
    j += kStep;
  }
  if (j < columns) {  // zeros behind the last ones
    std::uint8_t last_x[kStep] = {}, last_y[kStep] = {};
    std::memcpy(last_x, x + j, static_cast<std::size_t>(columns - j));
    std::memcpy(last_y, y + j, static_cast<std::size_t>(columns - j));
    b += eight_sums(load_words(last_x), load_words(last_y));
  }
  a += b;
  std::uint64_t sum = 0;
  for (Index lane = 0; lane < kLanes; ++lane) sum += a[lane];
  return static_cast<std::int64_t>(sum);
}

}  // namespace sixfold
