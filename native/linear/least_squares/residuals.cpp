// Residuals and their slope in double-double arithmetic: what iterative refinement needs to win back the
// digits that the factorisation lost.
//
//   r_i = y_i - b - w.x_i        slope = sum_i weight_i r_i (x_i, 1)        square = sum_i weight_i r_i^2
//
// Chunks depend on the number of rows alone and are added in order: same result for any number of threads.
#include "linear/least_squares/residuals.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/double_double.hpp"
#include "core/threads.hpp"

namespace sixfold {
namespace {
constexpr Index kChunkRows = 1024;
constexpr Index kMostChunks = 16;
}  // namespace

template <class T>
bool residual_slope(const Table<T>& X, const T* y, Index y_stride, const double* weight, const double* w,
                    double b, double* slope, double* square, Stop& stop) {
  const Index n = X.rows, d = X.columns, width = d + 2;
  const Index chunks = std::clamp<Index>(n / kChunkRows, 1, kMostChunks);
  std::vector<DoubleDouble> sums(static_cast<std::size_t>(chunks * width));
  std::atomic<bool> stopped{stop.now()};

#pragma omp parallel for schedule(dynamic) num_threads(team_size(chunks, 4.0 * n * d))
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    DoubleDouble* sum = sums.data() + chunk * width;
    for (Index i = cut(n, chunks, chunk); i < cut(n, chunks, chunk + 1) && !stopped; ++i) {
      const T* x = X.row(i);
      DoubleDouble residual{static_cast<double>(y[i * y_stride]), 0.0};
      residual.add(-b);
      for (Index j = 0; j < d; ++j) residual.add_product(-w[j], static_cast<double>(x[j * X.column_stride]));
      const double scale = weight == nullptr ? 1.0 : weight[i];
      // Both halves of the residual count: r is often far smaller than the terms it is made of.
      const double hi = residual.hi + residual.lo, lo = residual.lo - (hi - residual.hi);
      const double scaled = scale * hi, rest = std::fma(scale, hi, -scaled) + scale * lo;
      for (Index j = 0; j < d; ++j) {
        const double value = static_cast<double>(x[j * X.column_stride]);
        sum[j].add_product(scaled, value);
        sum[j].lo += rest * value;
      }
      sum[d].add(scaled);
      sum[d].lo += rest;
      sum[d + 1].add_product(scaled, hi);
      if (i % 256 == 0 && omp_get_thread_num() == 0 && stop.now()) stopped = true;
    }
  }
  for (Index chunk = 1; chunk < chunks; ++chunk)
    for (Index j = 0; j < width; ++j) sums[j].add(sums[chunk * width + j]);
  for (Index j = 0; j <= d; ++j) slope[j] = sums[j].value();
  *square = sums[d + 1].value();
  return !stopped;
}

template bool residual_slope(const Table<double>&, const double*, Index, const double*, const double*, double,
                             double*, double*, Stop&);
template bool residual_slope(const Table<float>&, const float*, Index, const double*, const double*, double,
                             double*, double*, Stop&);

}  // namespace sixfold
