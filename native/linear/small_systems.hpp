// Weighted Gram matrices of some hundred columns at most, and systems with them: simple loops, for tables
// whose rows stay in the cache and where a call of BLAS takes longer than what it computes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/table.hpp"

namespace sixfold {

// Adds weight_i z_i z_i' of `count` rows to the lower triangle of `out`, two of its rows at a time, so that
// what is loaded of Z serves both: of the first one entry more than the triangle has.
template <Index count>
void add_weighted_rows(const Table<double>& Z, Index first, const double* weight, double* __restrict out) {
  const Index d = Z.columns;
  const double* z = Z.row(first);
  for (Index j = 0; j < d; j += 2) {
    const Index next = std::min(j + 1, d - 1);
    double factor[count], other[count];
    for (Index r = 0; r < count; ++r) {
      factor[r] = weight[first + r] * z[r * d + j];
      other[r] = next > j ? weight[first + r] * z[r * d + next] : 0.0;
    }
    double *row = out + j * d, *below = out + next * d;
#pragma omp simd
    for (Index k = 0; k <= next; ++k) {
      double value = 0.0, more = 0.0;
#pragma GCC unroll 8
      for (Index r = 0; r < count; ++r) {
        value += factor[r] * z[r * d + k];
        more += other[r] * z[r * d + k];
      }
      row[k] += value;
      below[k] += more;
    }
  }
}

// The lower triangle of sum_i weight_i z_i z_i', for rows that are next to each other.
inline void small_gram(const Table<double>& Z, const double* weight, double* out) {
  const Index whole = Z.rows / 8 * 8;
  std::fill_n(out, Z.columns * Z.columns, 0.0);
  for (Index i = 0; i < whole; i += 8) add_weighted_rows<8>(Z, i, weight, out);
  for (Index i = whole; i < Z.rows; ++i) add_weighted_rows<1>(Z, i, weight, out);
}

// U'U = a in place, upper triangle; false where no more than such a share of a diagonal entry is left as
// pivot.
inline bool factor_upper(double* a, Index order, double share) {
  std::vector<double> least(static_cast<std::size_t>(order));
  for (Index j = 0; j < order; ++j) least[static_cast<std::size_t>(j)] = share * a[j * (order + 1)];
  for (Index j = 0; j < order; ++j) {
    double* __restrict row = a + j * order;
    if (!(row[j] > least[static_cast<std::size_t>(j)])) return false;
    const double root = std::sqrt(row[j]), over = 1.0 / root;
    row[j] = root;
    for (Index k = j + 1; k < order; ++k) row[k] *= over;
    for (Index i = j + 1; i < order; ++i) {
      double* __restrict below = a + i * order;
      const double by = row[i];
      for (Index k = i; k < order; ++k) below[k] -= by * row[k];
    }
  }
  return true;
}

// x = U^-T x
inline void solve_transposed(const double* U, Index order, double* __restrict x) {
  for (Index j = 0; j < order; ++j) {
    const double* row = U + j * order;
    x[j] /= row[j];
    for (Index k = j + 1; k < order; ++k) x[k] -= x[j] * row[k];
  }
}

// x = U^-1 x
inline void solve_upper(const double* U, Index order, double* __restrict x) {
  for (Index j = order - 1; j >= 0; --j) {
    const double* row = U + j * order;
    double left = x[j];
    for (Index k = j + 1; k < order; ++k) left -= row[k] * x[k];
    x[j] = left / row[j];
  }
}

inline double dot(const double* one, const double* other, Index size) {
  double total = 0.0;
  for (Index j = 0; j < size; ++j) total += one[j] * other[j];
  return total;
}

// A symmetric system, scaled to a unit diagonal, to which a ridge is added, and factored (Cholesky).
class SmallFactor {
 public:
  explicit SmallFactor(Index size)
      : size_(size), lower_(static_cast<std::size_t>(size * size)), scale_(static_cast<std::size_t>(size)) {}

  // What is to be factored, row by row; the lower triangle counts.
  double* matrix() { return lower_.data(); }

  // Overwrites the matrix; false where a pivot is lost in rounding.
  bool decompose(double ridge) {
    for (Index j = 0; j < size_; ++j) {
      const double square = lower_[j * size_ + j];
      if (!(square < std::numeric_limits<double>::infinity())) return false;
      scale_[j] = square > 0.0 ? 1.0 / std::sqrt(square) : 1.0;
    }
    for (Index j = 0; j < size_; ++j) {
      double* row = lower_.data() + j * size_;
      for (Index k = 0; k < j; ++k) row[k] *= scale_[j] * scale_[k];
      row[j] = 1.0 + ridge;
    }
    for (Index j = 0; j < size_; ++j) {
      double* row = lower_.data() + j * size_;
      for (Index k = 0; k <= j; ++k) {
        const double* other = lower_.data() + k * size_;
        double value = row[k];
#pragma omp simd reduction(- : value)
        for (Index l = 0; l < k; ++l) value -= row[l] * other[l];
        if (k < j) {
          row[k] = value / other[k];
        } else {
          if (!(value > 0.0)) return false;
          row[k] = std::sqrt(value);
        }
      }
    }
    return true;
  }

  // x = matrix^-1 x
  void solve(double* x) const {
    for (Index j = 0; j < size_; ++j) {
      const double* row = lower_.data() + j * size_;
      double value = x[j] * scale_[j];
#pragma omp simd reduction(- : value)
      for (Index k = 0; k < j; ++k) value -= row[k] * x[k];
      x[j] = value / row[j];
    }
    for (Index j = size_ - 1; j >= 0; --j) {
      const double* row = lower_.data() + j * size_;
      const double value = x[j] /= row[j];
#pragma omp simd
      for (Index k = 0; k < j; ++k) x[k] -= value * row[k];
    }
    for (Index j = 0; j < size_; ++j) x[j] *= scale_[j];
  }

 private:
  Index size_;
  std::vector<double> lower_, scale_;
};

}  // namespace sixfold
