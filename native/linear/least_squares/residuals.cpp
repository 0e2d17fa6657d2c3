// Residuals and their slope in double-double arithmetic: what iterative refinement needs to win back the
// digits that the factorisation lost, and what a certificate is made of.
//
//   r_i = y_i - b - w.x_i     slope = sum_i weight_i r_i (x_i - shift, 1)     square = sum_i weight_i r_i^2
//
// With a shift near the means of columns that are far from zero, r_i = y_i - (b + w.shift) - w.(x_i - shift),
// whose terms are as small as the columns vary. x_i - shift is exact as a sum of two doubles, of which the
// second is zero for most data.
//
// A few rows at a time are copied next to each other, whatever their layout, and go through vector registers
// twice: 20 operations an entry, which takes about as long as reading it from memory does. (One number after
// the other, each sum waiting for the one before, took six times as long.)
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

// Some rows as doubles, each filled up with zeros to `stride`: x - shift = value + rest.
struct Group {
  Index count, stride;
  double* value;
  double* rest;
  bool exact;  // rest is zero
};

template <class T>
void copy_rows(const Table<T>& X, Index first, Group& group) {
  if (X.column_stride == 1) {
    for (Index k = 0; k < group.count; ++k) {
      const T* x = X.row(first + k);
      double* to = group.value + k * group.stride;
      for (Index j = 0; j < X.columns; ++j) to[j] = static_cast<double>(x[j]);
    }
    return;
  }
  for (Index j = 0; j < X.columns; ++j) {
    const T* x = X.row(first) + j * X.column_stride;
    for (Index k = 0; k < group.count; ++k)
      group.value[k * group.stride + j] = static_cast<double>(x[k * X.row_stride]);
  }
}

void subtract(const double* shift, Group& group) {
  Lanes any{};
  for (Index k = 0; k < group.count; ++k) {
    for (Index j = 0; j < group.stride; j += kLanes) {
      double* at = group.value + k * group.stride + j;
      Doubled<Lanes> difference{load(at), Lanes{}};
      difference.add(-load(shift + j));
      store(at, difference.hi);
      store(group.rest + k * group.stride + j, difference.lo);
      any = difference.lo != 0.0 ? 1.0 - Lanes{} : any;
    }
  }
  group.exact = true;
  for (Index k = 0; k < kLanes; ++k) group.exact = group.exact && any[k] == 0.0;
}

// start - w.x for row k of a group
DoubleDouble residual(DoubleDouble start, const double* w, const Group& group, Index k) {
  const double* x = group.value + k * group.stride;
  Doubled<Lanes> sum;
  for (Index j = 0; j < group.stride; j += kLanes) sum.add_product(-load(w + j), load(x + j));
  if (!group.exact) {
    const double* rest = group.rest + k * group.stride;
    for (Index j = 0; j < group.stride; j += kLanes) sum.lo -= load(w + j) * load(rest + j);
  }
  for (Index lane = 0; lane < kLanes; ++lane) start.add(DoubleDouble{sum.hi[lane], sum.lo[lane]});
  return start;
}

// slope += sum_k (scaled_k + rest_k) x_k over the rows of a group
void add_slopes(const double* scaled, const double* rest, const Group& group, double* high, double* low) {
  for (Index j = 0; j < group.stride; j += kLanes) {
    Doubled<Lanes> sum{load(high + j), load(low + j)};
    for (Index k = 0; k < group.count; ++k) {
      const Lanes x = load(group.value + k * group.stride + j);
      sum.add_product(scaled[k] - Lanes{}, x);
      sum.lo += rest[k] * x;
      if (!group.exact) sum.lo += scaled[k] * load(group.rest + k * group.stride + j);
    }
    store(high + j, sum.hi);
    store(low + j, sum.lo);
  }
}

}  // namespace

template <class T>
bool residual_slope(const Table<T>& X, const T* y, Index y_stride, const double* weight, const double* w,
                    DoubleDouble b, const double* shift, double* slope, double* square, Stop& stop) {
  const Index n = X.rows, d = X.columns, stride = (d + kLanes - 1) / kLanes * kLanes;
  const Index chunks = std::clamp<Index>(n / kChunkRows, 1, kMostChunks);
  const int team = team_size(chunks, 4.0 * n * d);
  const AlignedArray<double> sums = aligned_zeros(chunks * 2 * stride);
  const AlignedArray<double> buffers = aligned_zeros(team * 2 * kGroup * stride);
  const AlignedArray<double> padded = aligned_zeros(2 * stride);  // w and shift
  std::copy(w, w + d, padded.data());
  DoubleDouble constant{-b.hi, -b.lo};
  if (shift != nullptr) {
    std::copy(shift, shift + d, padded.data() + stride);
    for (Index j = 0; j < d; ++j) constant.add_product(-w[j], shift[j]);
  }
  std::vector<DoubleDouble> totals(static_cast<std::size_t>(2 * chunks));  // of weight r, and of weight r^2
  std::atomic<bool> stopped{stop.now()};

#pragma omp parallel for schedule(dynamic) num_threads(team)
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    double* buffer = buffers.data() + omp_get_thread_num() * 2 * kGroup * stride;
    double* high = sums.data() + chunk * 2 * stride;
    DoubleDouble* total = totals.data() + 2 * chunk;
    const Index begin = cut(n, chunks, chunk), end = cut(n, chunks, chunk + 1);
    for (Index first = begin; first < end && !stopped; first += kGroup) {
      Group group{std::min(kGroup, end - first), stride, buffer, buffer + kGroup * stride, true};
      double scaled[kGroup], rest[kGroup];
      copy_rows(X, first, group);
      if (shift != nullptr) subtract(padded.data() + stride, group);
      for (Index k = 0; k < group.count; ++k) {
        DoubleDouble start = constant;
        start.add(static_cast<double>(y[(first + k) * y_stride]));
        const DoubleDouble r = residual(start, padded.data(), group, k);
        const double scale = weight == nullptr ? 1.0 : weight[first + k];
        // Both halves of the residual count: r is often far smaller than the terms it is made of.
        const double hi = r.hi + r.lo, lo = r.lo - (hi - r.hi);
        scaled[k] = scale * hi;
        rest[k] = std::fma(scale, hi, -scaled[k]) + scale * lo;
        total[0].add(scaled[k]);
        total[0].lo += rest[k];
        total[1].add_product(scaled[k], hi);
      }
      add_slopes(scaled, rest, group, high, high + stride);
      if ((first - begin) % 512 == 0 && omp_get_thread_num() == 0 && stop.now()) stopped = true;
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

template bool residual_slope(const Table<double>&, const double*, Index, const double*, const double*,
                             DoubleDouble, const double*, double*, double*, Stop&);
template bool residual_slope(const Table<float>&, const float*, Index, const double*, const double*,
                             DoubleDouble, const double*, double*, double*, Stop&);

}  // namespace sixfold
