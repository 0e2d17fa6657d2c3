// Writes past the caches, for results that are larger than these and not read again soon.
//
// An ordinary store fetches the line it writes to from memory first. Two threads that filled rows of 400 MB
// wrote 19 GB/s so, runs of 96 floats in row after row 10 GB/s, and 48 GB/s of either without the fetch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/aligned_memory.hpp"
#include "core/table.hpp"

namespace sixfold {

inline constexpr Index kNonTemporalBytes = 32 << 20;  // of a result that no cache would hold anyway

// One line, to where a line begins.
inline void store_line(const void* from, void* to) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__SSE2__)
  for (Index part = 0; part < 4; ++part)
    _mm_stream_si128(static_cast<__m128i*>(to) + part,
                     _mm_loadu_si128(static_cast<const __m128i*>(from) + part));
#else
  std::memcpy(to, from, kLineBytes);
#endif
}

// Copies numbers that do not overlap: whole lines go past the caches, what is before and after them is stored
// as usual.
template <class T>
void copy_non_temporal(const T* from, Index count, T* to) {
  constexpr Index kLine = kLineBytes / static_cast<Index>(sizeof(T));
  const Index past = static_cast<Index>(reinterpret_cast<std::uintptr_t>(to) % kLineBytes / sizeof(T));
  const Index head = std::min(count, (kLine - past) % kLine);
  Index i = 0;
  for (; i < head; ++i) to[i] = from[i];
  for (; i + kLine <= count; i += kLine) store_line(from + i, to + i);
  for (; i < count; ++i) to[i] = from[i];
}

// To be called by a thread that has copied so, before others read what it wrote.
inline void non_temporal_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace sixfold
