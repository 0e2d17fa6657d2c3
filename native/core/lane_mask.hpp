// Which lanes of a vector pass a test, as bits, and lanes chosen by bits: the one thing the compiler's vector
// types do not offer.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>

#include "core/simd.hpp"

namespace sixfold {

// Bit k is set where a[k] <= b[k].
inline unsigned at_most(Lanes a, Lanes b) {
#if defined(__AVX512F__)
  return _mm512_cmp_pd_mask(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), _CMP_LE_OQ);
#elif defined(__AVX__)
  return static_cast<unsigned>(_mm256_movemask_pd(
      _mm256_cmp_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b), _CMP_LE_OQ)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(
      _mm_movemask_pd(_mm_cmple_pd(reinterpret_cast<__m128d>(a), reinterpret_cast<__m128d>(b))));
#else
  unsigned bits = 0;
  for (Index k = 0; k < kLanes; ++k) bits |= static_cast<unsigned>(a[k] <= b[k]) << k;
  return bits;
#endif
}

// Lane k of a where bit k is set, else of b.
inline Lanes chosen(unsigned bits, Lanes a, Lanes b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm512_mask_blend_pd(
      static_cast<__mmask8>(bits), reinterpret_cast<__m512d>(b), reinterpret_cast<__m512d>(a)));
#else
  using Bits [[gnu::vector_size(kLanes * sizeof(std::int64_t))]] = std::int64_t;
  Bits each;
  for (Index k = 0; k < kLanes; ++k) each[k] = std::int64_t{1} << k;
  return ((Bits{} + static_cast<std::int64_t>(bits)) & each) != 0 ? a : b;
#endif
}

}  // namespace sixfold
