// Residuals and their slope in double-double arithmetic: what iterative refinement needs to win back the
// digits that the factorisation lost, and what a certificate is made of.
//
//   r_i = y_i - b - w.x_i        slope = sum_i weight_i r_i (x_i, 1)        square = sum_i weight_i r_i^2
//
// A few rows at a time are copied next to each other, whatever their layout, and go through vector registers
// twice: 20 operations an entry, which takes as long as reading it from memory does. (One number after the
// other, each sum waiting for the one before, took six times as long.)
//
// Chunks depend on the number of rows alone and are added in order: same result for any number of threads.
#include "linear/least_squares/residuals.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/double_double.hpp"
#include "core/threads.hpp"

namespace sixfold {
namespace {

constexpr Index kChunkRows = 1024;
constexpr Index kMostChunks = 16;
constexpr Index kGroup = 8;  // rows that stay in the L1 cache between the two times

using DoubledLanes = Doubled<Lanes>;

// Rows [first, first + count) as doubles, each filled up with zeros to `stride`.
template <class T>
void copy_rows(const Table<T>& X, Index first, Index count, Index stride, double* out) {
  if (X.column_stride == 1) {
    for (Index k = 0; k < count; ++k) {
      const T* x = X.row(first + k);
      for (Index j = 0; j < X.columns; ++j) out[k * stride + j] = static_cast<double>(x[j]);
    }
    return;
  }
  for (Index j = 0; j < X.columns; ++j) {
    const T* x = X.row(first) + j * X.column_stride;
    for (Index k = 0; k < count; ++k) out[k * stride + j] = static_cast<double>(x[k * X.row_stride]);
  }
}

// start - w.x
DoubleDouble residual(DoubleDouble start, const double* w, const double* x, Index stride) {
  DoubledLanes sum;
  for (Index j = 0; j < stride; j += kLanes) sum.add_product(-load(w + j), load(x + j));
  for (Index k = 0; k < kLanes; ++k) start.add(DoubleDouble{sum.hi[k], sum.lo[k]});
  return start;
}

// slope += sum_k (scaled_k + rest_k) x_k over the rows of a group
void add_slopes(const double* scaled, const double* rest, Index count, const double* rows, Index stride,
                double* high, double* low) {
  for (Index j = 0; j < stride; j += kLanes) {
    DoubledLanes sum{load(high + j), load(low + j)};
    for (Index k = 0; k < count; ++k) {
      const Lanes x = load(rows + k * stride + j);
      sum.add_product(scaled[k] - Lanes{}, x);
      sum.lo += rest[k] * x;
    }
    store(high + j, sum.hi);
    store(low + j, sum.lo);
  }
}

}  // namespace

template <class T>
bool residual_slope(const Table<T>& X, const T* y, Index y_stride, const double* weight, const double* w,
                    double b, double* slope, double* square, Stop& stop) {
  const Index n = X.rows, d = X.columns, stride = (d + kLanes - 1) / kLanes * kLanes;
  const Index chunks = std::clamp<Index>(n / kChunkRows, 1, kMostChunks);
  const int team = team_size(chunks, 4.0 * n * d);
  const AlignedArray<double> sums = aligned_zeros(chunks * 2 * stride);
  const AlignedArray<double> buffers = aligned_zeros(team * kGroup * stride);
  const AlignedArray<double> padded = aligned_zeros(stride);
  std::copy(w, w + d, padded.data());
  std::vector<DoubleDouble> totals(static_cast<std::size_t>(2 * chunks));  // of weight r, and of weight r^2
  std::atomic<bool> stopped{stop.now()};

#pragma omp parallel for schedule(dynamic) num_threads(team)
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    double* rows = buffers.data() + omp_get_thread_num() * kGroup * stride;
    double* high = sums.data() + chunk * 2 * stride;
    DoubleDouble* total = totals.data() + 2 * chunk;
    const Index end = cut(n, chunks, chunk + 1);
    for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += kGroup) {
      const Index count = std::min(kGroup, end - first);
      double scaled[kGroup], rest[kGroup];
      copy_rows(X, first, count, stride, rows);
      for (Index k = 0; k < count; ++k) {
        DoubleDouble start{static_cast<double>(y[(first + k) * y_stride]), 0.0};
        start.add(-b);
        const DoubleDouble r = residual(start, padded.data(), rows + k * stride, stride);
        const double scale = weight == nullptr ? 1.0 : weight[first + k];
        // Both halves of the residual count: r is often far smaller than the terms it is made of.
        const double hi = r.hi + r.lo, lo = r.lo - (hi - r.hi);
        scaled[k] = scale * hi;
        rest[k] = std::fma(scale, hi, -scaled[k]) + scale * lo;
        total[0].add(scaled[k]);
        total[0].lo += rest[k];
        total[1].add_product(scaled[k], hi);
      }
      add_slopes(scaled, rest, count, rows, stride, high, high + stride);
      if (first % 512 == 0 && omp_get_thread_num() == 0 && stop.now()) stopped = true;
    }
  }
  for (Index j = 0; j < d; ++j) {
    DoubleDouble sum;
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      const double* high = sums.data() + chunk * 2 * stride + j;
      sum.add(DoubleDouble{high[0], high[stride]});
    }
    slope[j] = sum.value();
  }
  for (Index chunk = 1; chunk < chunks; ++chunk)
    for (Index k = 0; k < 2; ++k) totals[k].add(totals[2 * chunk + k]);
  slope[d] = totals[0].value();
  *square = totals[1].value();
  return !stopped;
}

template bool residual_slope(const Table<double>&, const double*, Index, const double*, const double*, double,
                             double*, double*, Stop&);
template bool residual_slope(const Table<float>&, const float*, Index, const double*, const double*, double,
                             double*, double*, Stop&);

}  // namespace sixfold
