// Weighted Gram matrices of some hundred columns at most, and systems with them: simple loops, for tables
// whose rows stay in the cache and where a call of BLAS takes longer than what it computes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/simd.hpp"
#include "core/table.hpp"

namespace sixfold {

constexpr Index kTileRows = kLanes == 8 ? 8 : 4, kTileVectors = 2;  // of sums that stay in registers
constexpr Index kTileColumns = kTileVectors * kLanes;
constexpr Index kGramNumbers = 1 << 12;  // of Z at a time, which stay in the L1 cache meanwhile

// Adds sum_i weight_i z_ij z_ik to out_jk for kTileRows columns j and kTileColumns columns k, as far as there
// are any.
inline void add_tile(const Table<double>& Z, Index begin, Index end, const double* weight, Index j, Index k,
                     double* out) {
  const Index d = Z.columns, columns = std::min(kTileColumns, d - k);
  Lanes sums[kTileRows][kTileVectors] = {};
  Index place[kTileRows];  // in a row; the last column again where there is none
  for (Index r = 0; r < kTileRows; ++r) place[r] = std::min(j + r, d - 1);
  for (Index i = begin; i < end; ++i) {
    const double* z = Z.row(i);
    Lanes column[kTileVectors];
#pragma GCC unroll 2
    for (Index v = 0; v < kTileVectors; ++v)
      column[v] =
          weight[i] * load_first(z + k + v * kLanes, std::clamp<Index>(columns - v * kLanes, 0, kLanes));
#pragma GCC unroll 8
    for (Index r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
      for (Index v = 0; v < kTileVectors; ++v) sums[r][v] += z[place[r]] * column[v];
  }
  double tile[kTileRows][kTileColumns];
#pragma GCC unroll 8
  for (Index r = 0; r < kTileRows; ++r)
#pragma GCC unroll 2
    for (Index v = 0; v < kTileVectors; ++v) store(tile[r] + v * kLanes, sums[r][v]);
  for (Index r = 0; r < std::min(kTileRows, d - j); ++r)
    for (Index c = 0; c < columns; ++c) out[(j + r) * d + k + c] += tile[r][c];
}

// The lower triangle of sum_i weight_i z_i z_i', for rows that are next to each other: 0.12 ms for 1,000 x
// 100.
inline void small_gram(const Table<double>& Z, const double* weight, double* out) {
  const Index d = Z.columns, rows = std::max<Index>(kGramNumbers / d, 1);
  std::fill_n(out, d * d, 0.0);
  for (Index begin = 0; begin < Z.rows; begin += rows)
    for (Index j = 0; j < d; j += kTileRows)
      for (Index k = 0; k < std::min(j + kTileRows, d); k += kTileColumns)
        add_tile(Z, begin, std::min(begin + rows, Z.rows), weight, j, k, out);
}

// U'U = a in place, upper triangle, row after row of U subtracted from those that follow, so that no sum
// waits for itself: 0.02 ms for 100 columns, where products of rows took 0.06. False where no more than such
// a share of a diagonal entry is left as pivot.
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
      : size_(size), upper_(static_cast<std::size_t>(size * size)), scale_(static_cast<std::size_t>(size)) {}

  // What is to be factored, row by row; the lower triangle counts.
  double* matrix() { return upper_.data(); }

  // Overwrites the matrix; false where a pivot is lost in rounding.
  bool decompose(double ridge) {
    for (Index j = 0; j < size_; ++j) {
      const double square = row(j)[j];
      if (!(square < std::numeric_limits<double>::infinity())) return false;
      scale_[j] = square > 0.0 ? 1.0 / std::sqrt(square) : 1.0;
    }
    for (Index j = 0; j < size_; ++j) {
      for (Index k = 0; k < j; ++k) row(k)[j] = row(j)[k] * (scale_[j] * scale_[k]);
      row(j)[j] = 1.0 + ridge;
    }
    return factor_upper(upper_.data(), size_, 0.0);
  }

  // x = matrix^-1 x
  void solve(double* x) {
    for (Index j = 0; j < size_; ++j) x[j] *= scale_[j];
    solve_transposed(upper_.data(), size_, x);
    solve_upper(upper_.data(), size_, x);
    for (Index j = 0; j < size_; ++j) x[j] *= scale_[j];
  }

 private:
  double* row(Index j) { return upper_.data() + j * size_; }

  Index size_;
  std::vector<double> upper_, scale_;
};

}  // namespace sixfold
