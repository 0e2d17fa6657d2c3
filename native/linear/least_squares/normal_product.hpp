// sum_i weight_i (x_i.p - shift) x_i of compressed sparse rows: the product of the normal equations with a
// vector.
//
// Both products with a row are made while it is in the cache, so that the table is read once and not twice:
// a conjugate gradient step on 20,000 x 10,000 with 2 million entries is bound by that.
#pragma once

#include <algorithm>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

constexpr Index kNormalPollRows = 1 << 12;

template <class T, class I>
struct SparseRows {
  const T* data;
  const I *column, *start;
  Index rows, columns;
};

// Also the sums of weight_i s_i and weight_i s_i^2, s_i = x_i.p - shift. False if stopped.
template <class T, class I>
bool normal_product(const SparseRows<T, I>& X, const double* weight, double shift, const double* p,
                    double* __restrict out, double* sum, double* square, Stop& stop) {
  std::fill_n(out, X.columns, 0.0);
  double total = 0.0, squares = 0.0;
  for (Index i = 0; i < X.rows; ++i) {
    if (i % kNormalPollRows == 0 && stop.now()) return false;
    const I first = X.start[i], end = X.start[i + 1];
    // Two sums at a time, one by one: gathers took a fifth longer.
    double score = -shift, other = 0.0;
    I k = first;
    for (; k + 1 < end; k += 2) {
      score += X.data[k] * p[X.column[k]];
      other += X.data[k + 1] * p[X.column[k + 1]];
    }
    if (k < end) score += X.data[k] * p[X.column[k]];
    score += other;
    const double weighted = weight != nullptr ? weight[i] * score : score;
    total += weighted;
    squares += weighted * score;
    for (k = first; k < end; ++k) out[X.column[k]] += weighted * X.data[k];
  }
  *sum = total;
  *square = squares;
  return true;
}

}  // namespace sixfold
