// The innermost product of a Gram matrix: c += a' b for two panels of packed columns.
//
// A panel holds kPanel columns of a block of rows, row after row, so that both panels are read straight
// through. A tile of kPanel x kStrip sums stays in registers for the whole block (24 of the 32 of AVX-512):
// per row, three loads and kStrip broadcasts feed 3 kStrip multiply-adds, which is within 5% of what the
// processor can do.
#pragma once

#include "core/simd.hpp"

namespace sixfold {

inline constexpr Index kPanel = 3 * kLanes;
inline constexpr Index kStrip = kLanes;

// c[j * stride + i] += sum_k a[k][i] b[k][j] for i < kVectors * kLanes, j < kStrip.
template <int kVectors>
[[gnu::noinline]] void add_tile(const double* __restrict a, const double* __restrict b, Index rows,
                                double* __restrict c, Index stride) {
  Lanes sum[kVectors][kStrip] = {};
  for (Index k = 0; k < rows; ++k, a += kPanel, b += kPanel) {
    Lanes column[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) column[v] = load(a + v * kLanes);
#pragma GCC unroll 8
    for (Index j = 0; j < kStrip; ++j) {
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) sum[v][j] += column[v] * b[j];
    }
  }
#pragma GCC unroll 8
  for (Index j = 0; j < kStrip; ++j) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      double* to = c + j * stride + v * kLanes;
      store(to, load(to) + sum[v][j]);
    }
  }
}

// Adds the product of panel a and one strip of panel b; of panel a only vectors [first, last).
inline void add_vectors(const double* a, const double* b, Index rows, double* c, Index stride, Index first,
                        Index last) {
  a += first * kLanes;
  c += first * kLanes;
  switch (last - first) {
    case 3:
      return add_tile<3>(a, b, rows, c, stride);
    case 2:
      return add_tile<2>(a, b, rows, c, stride);
    default:
      return add_tile<1>(a, b, rows, c, stride);
  }
}

}  // namespace sixfold
