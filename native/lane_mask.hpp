// Which lanes of a vector pass a test, as bits: the one thing the compiler's vector types do not offer.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "simd.hpp"

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

}  // namespace sixfold
