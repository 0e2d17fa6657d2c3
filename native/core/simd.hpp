// The vector registers of the level this file is compiled for, as the compiler's own vector type: arithmetic
// operators work on it, and it compiles on every processor (two doubles where nothing is known).
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <utility>

#include "core/table.hpp"

namespace sixfold {

#if defined(__AVX512F__)
inline constexpr Index kLanes = 8;
#elif defined(__AVX__)
inline constexpr Index kLanes = 4;
#else
inline constexpr Index kLanes = 2;
#endif

using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using LooseLanes =
    double __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double)), may_alias));

inline Lanes load(const double* from) { return *reinterpret_cast<const LooseLanes*>(from); }
// Converts on the way.
inline Lanes load(const float* from) {
  Lanes value;
  for (Index k = 0; k < kLanes; ++k) value[k] = static_cast<double>(from[k]);
  return value;
}
inline void store(double* to, Lanes value) { *reinterpret_cast<LooseLanes*>(to) = value; }

// The first `count` lanes, and zeros: nothing beyond them is read.
inline Lanes load_first(const double* from, Index count) {
#if defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), from));
#elif defined(__AVX__)
  using Bits [[gnu::vector_size(kLanes * sizeof(std::int64_t))]] = std::int64_t;
  const Bits mask = Bits{0, 1, 2, 3} < count;
  return reinterpret_cast<Lanes>(_mm256_maskload_pd(from, reinterpret_cast<__m256i>(mask)));
#else
  if (count >= kLanes) return load(from);
  Lanes value{};
  for (Index k = 0; k < count; ++k) value[k] = from[k];
  return value;
#endif
}
inline Lanes load_first(const float* from, Index count) {
#if defined(__AVX512VL__)
  const auto mask = static_cast<__mmask8>((1u << count) - 1);
  return reinterpret_cast<Lanes>(_mm512_maskz_cvtps_pd(mask, _mm256_maskz_loadu_ps(mask, from)));
#else
  if (count >= kLanes) return load(from);
  Lanes value{};
  for (Index k = 0; k < count; ++k) value[k] = static_cast<double>(from[k]);
  return value;
#endif
}

// Swaps the off-diagonal quarters of every 2 kStep x 2 kStep square that rows a and b take part in.
template <Index kStep, Index... k>
inline void exchange(Lanes& a, Lanes& b, std::integer_sequence<Index, k...>) {
  const Lanes upper = __builtin_shufflevector(a, b, (k / kStep % 2 == 0 ? k : kLanes + k - kStep)...);
  const Lanes lower = __builtin_shufflevector(a, b, (k / kStep % 2 == 0 ? k + kStep : kLanes + k)...);
  a = upper;
  b = lower;
}

// Transposes a square of kLanes vectors (Eklundh 1972): squares of side 2, 4, ... in turn.
template <Index kStep = 1>
inline void transpose(Lanes (&rows)[kLanes]) {
  if constexpr (kStep < kLanes) {
#pragma GCC unroll 8
    for (Index i = 0; i < kLanes; ++i)
      if (i / kStep % 2 == 0)
        exchange<kStep>(rows[i], rows[i + kStep], std::make_integer_sequence<Index, kLanes>());
    transpose<2 * kStep>(rows);
  }
}

// Lane k is the sum of the lanes of rows[k]: a fifth of the operations of as many sums one by one.
inline Lanes sums_of(Lanes (&rows)[kLanes]) {
  transpose(rows);
#pragma GCC unroll 3
  for (Index half = kLanes / 2; half > 0; half /= 2)
#pragma GCC unroll 4
    for (Index k = 0; k < half; ++k) rows[k] += rows[k + half];
  return rows[0];
}

}  // namespace sixfold
