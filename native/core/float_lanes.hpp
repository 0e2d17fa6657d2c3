// The vector registers of the level this file is compiled for, of floats; see simd.hpp for doubles.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/table.hpp"

namespace sixfold {

#if defined(__AVX512F__)
inline constexpr Index kFloatLanes = 16;
#elif defined(__AVX__)
inline constexpr Index kFloatLanes = 8;
#else
inline constexpr Index kFloatLanes = 4;
#endif

using FloatLanes = float __attribute__((vector_size(kFloatLanes * sizeof(float))));
using LooseFloatLanes =
    float __attribute__((vector_size(kFloatLanes * sizeof(float)), aligned(sizeof(float)), may_alias));

inline FloatLanes load_floats(const float* from) { return *reinterpret_cast<const LooseFloatLanes*>(from); }
inline void store_floats(float* to, FloatLanes value) { *reinterpret_cast<LooseFloatLanes*>(to) = value; }

using IntLanes = std::int32_t __attribute__((vector_size(kFloatLanes * sizeof(std::int32_t))));
using LooseIntLanes =
    std::int32_t __attribute__((vector_size(kFloatLanes * sizeof(std::int32_t)), aligned(4), may_alias));

inline IntLanes load_ints(const std::int32_t* from) { return *reinterpret_cast<const LooseIntLanes*>(from); }
inline void store_ints(std::int32_t* to, IntLanes value) { *reinterpret_cast<LooseIntLanes*>(to) = value; }

// Bit l is set where lane l of `value` is at least that of `least`. The compiler has no operator that makes
// bits of lanes.
inline std::uint32_t at_least(FloatLanes value, FloatLanes least) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(value, least, _CMP_GE_OQ);
#elif defined(__AVX__)
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(value, least, _CMP_GE_OQ)));
#elif defined(__SSE2__)
  return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_cmpge_ps(value, least)));
#else
  std::uint32_t bits = 0;
  for (Index l = 0; l < kFloatLanes; ++l) bits |= static_cast<std::uint32_t>(value[l] >= least[l]) << l;
  return bits;
#endif
}
inline std::uint32_t at_least(FloatLanes value, float least) { return at_least(value, least - FloatLanes{}); }

// Writes the lanes of both whose bits are set, one after the other; up to kFloatLanes of either may be
// overwritten. Returns how many there are.
inline Index keep_lanes(std::uint32_t bits, FloatLanes values, IntLanes numbers, float* kept,
                        std::int32_t* kept_numbers) {
#if defined(__AVX512F__)
  const auto mask = static_cast<__mmask16>(bits);
  store_floats(kept, _mm512_maskz_compress_ps(mask, values));
  store_ints(kept_numbers, reinterpret_cast<IntLanes>(
                               _mm512_maskz_compress_epi32(mask, reinterpret_cast<__m512i>(numbers))));
  return std::popcount(bits);
#else
  Index count = 0;
  for (; bits != 0; bits &= bits - 1, ++count) {
    const int lane = std::countr_zero(bits);
    kept[count] = values[lane];
    kept_numbers[count] = numbers[lane];
  }
  return count;
#endif
}

inline float sum_of_lanes(FloatLanes value) {
  float halves[kFloatLanes];
  store_floats(halves, value);
  for (Index half = kFloatLanes / 2; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) halves[l] += halves[l + half];
  return halves[0];
}

}  // namespace sixfold
