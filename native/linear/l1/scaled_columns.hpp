// Columns of a table, and some of them as the quadratic model of a step sees them: scaled by row, next to
// each other, and filled up to whole vectors, so that coordinate descent waits for nothing.
//
// With second derivatives h_i of the rows and m_j = sum_i h_i z_ij / sum_i h_i (0 without an intercept)
//
//   a_ij = sqrt(h_i) (z_ij - m_j),     z_ij = x_ij - shift_j,     dense
//   a_ij = sqrt(h_i) x_ij,                                        sparse, where zeros must stay zeros
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/vector_math.hpp"
#include "linear/l1/coordinate_descent.hpp"

namespace sixfold {

// Columns of a dense table, contiguous along rows; z_ij = x_ij - shift_j.
template <class T>
struct ShiftedColumns {
  const T* data;
  Index rows, columns, stride;
  const double* shift;

  Index entries() const { return rows * columns; }
};

// sum_i v_i z_ij
template <class T>
double dot(const ShiftedColumns<T>& Z, Index j, const double* v) {
  const T* x = Z.data + j * Z.stride;
  const double shift = Z.shift[j];
  Lanes a{}, b{}, c{}, d{};
  Index i = 0;
  for (; i + 4 * kLanes <= Z.rows; i += 4 * kLanes) {
    a += load(v + i) * (load(x + i) - shift);
    b += load(v + i + kLanes) * (load(x + i + kLanes) - shift);
    c += load(v + i + 2 * kLanes) * (load(x + i + 2 * kLanes) - shift);
    d += load(v + i + 3 * kLanes) * (load(x + i + 3 * kLanes) - shift);
  }
  for (; i + kLanes <= Z.rows; i += kLanes) a += load(v + i) * (load(x + i) - shift);
  double total = sum((a + b) + (c + d));
  for (; i < Z.rows; ++i) total += v[i] * (x[i] - shift);
  return total;
}

// v_i += by z_ij
template <class T>
void add(const ShiftedColumns<T>& Z, Index j, double by, double* __restrict v) {
  const T* x = Z.data + j * Z.stride;
  const double shift = Z.shift[j];
  for (Index i = 0; i < Z.rows; ++i) v[i] += by * (x[i] - shift);
}

template <class T, class I>
double dot(const SparseColumns<T, I>& X, Index j, const double* v) {
  const I end = X.start[j + 1];
  double even = 0.0, odd = 0.0;
  I k = X.start[j];
  for (; k + 1 < end; k += 2) {
    even += v[X.row[k]] * X.data[k];
    odd += v[X.row[k + 1]] * X.data[k + 1];
  }
  if (k < end) even += v[X.row[k]] * X.data[k];
  return even + odd;
}

template <class T, class I>
void add(const SparseColumns<T, I>& X, Index j, double by, double* v) {
  for (I k = X.start[j]; k < X.start[j + 1]; ++k) v[X.row[k]] += by * X.data[k];
}

inline constexpr double kConstantColumn =
    1e-13;  // of the mean square: what rounding leaves of a constant one

// What both kinds have: of each column sum_i a_ij^2 about m_j (0 of a constant one), and m_j; and the
// residual v of the model, sqrt(h_i) times that of a row, with kLanes more entries than there are rows.
struct ScaledColumns {
  std::vector<double> curvatures, means;
  double* v = nullptr;
  Index cost = 0;  // of a visit

  double curvature(Index k) const { return curvatures[static_cast<std::size_t>(k)]; }

 protected:
  void expect(Index count, double* residual) {
    curvatures.assign(static_cast<std::size_t>(count), 0.0);
    means.assign(static_cast<std::size_t>(count), 0.0);
    v = residual;
  }
};

class ScaledDense : public ScaledColumns {
 public:
  // The columns `ids`; `total` is sum_i h_i, or 0 without an intercept.
  template <class T>
  void take(const ShiftedColumns<T>& Z, const std::vector<Index>& ids, const double* root, double total,
            double* residual) {
    const Index count = static_cast<Index>(ids.size()), rows = Z.rows;
    padded_ = (rows + kLanes - 1) / kLanes * kLanes;
    cost = 1 + padded_ / 4;
    expect(count, residual);
    a_.resize(static_cast<std::size_t>(count * padded_));
    for (Index k = 0; k < count; ++k) {
      const Index j = ids[static_cast<std::size_t>(k)];
      const T* x = Z.data + j * Z.stride;
      double* __restrict a = a_.data() + k * padded_;
      double shift = Z.shift[j], once = 0.0, square = 0.0, left = 0.0;
#pragma omp simd reduction(+ : once, square)
      for (Index i = 0; i < rows; ++i) {
        a[i] = root[i] * (x[i] - shift);
        once += root[i] * a[i];
        square += a[i] * a[i];
      }
      const double mean = total > 0.0 ? once / total : 0.0;
#pragma omp simd reduction(+ : left)
      for (Index i = 0; i < rows; ++i) {
        a[i] -= root[i] * mean;
        left += a[i] * a[i];
      }
      std::fill(a + rows, a + padded_, 0.0);
      means[static_cast<std::size_t>(k)] = mean;
      curvatures[static_cast<std::size_t>(k)] = left > kConstantColumn * square ? left : 0.0;
    }
    gram_.clear();
    if (count <= kFewColumns) multiply(count);
  }

  double slope(Index k) const { return gram_.empty() ? product(k, v) : slopes_[static_cast<std::size_t>(k)]; }

  void move(Index k, double step) {
    if (gram_.empty()) {
      const double* a = a_.data() + k * padded_;
      for (Index i = 0; i < padded_; i += kLanes) store(v + i, load(v + i) - step * load(a + i));
    } else {
      const Index count = static_cast<Index>(slopes_.size());
      const double* row = gram_.data() + k * count;
#pragma omp simd
      for (Index l = 0; l < count; ++l) slopes_.data()[l] -= step * row[l];
    }
  }

 private:
  static constexpr Index kFewColumns = 32;  // whose products with each other cost less than passes over rows

  // sum_i a_ik u_i
  double product(Index k, const double* u) const {
    const double* a = a_.data() + k * padded_;
    Lanes sums[4] = {};
    Index i = 0;
    for (; i + 4 * kLanes <= padded_; i += 4 * kLanes)
#pragma GCC unroll 4
      for (Index part = 0; part < 4; ++part)
        sums[part] += load(u + i + part * kLanes) * load(a + i + part * kLanes);
    for (; i < padded_; i += kLanes) sums[0] += load(u + i) * load(a + i);
    return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }

  void multiply(Index count) {
    gram_.resize(static_cast<std::size_t>(count * count));
    slopes_.resize(static_cast<std::size_t>(count));
    for (Index k = 0; k < count; ++k) {
      slopes_[static_cast<std::size_t>(k)] = product(k, v);
      for (Index l = 0; l <= k; ++l)
        gram_.data()[k * count + l] = gram_.data()[l * count + k] = product(k, a_.data() + l * padded_);
    }
  }

  Index padded_ = 0;
  AlignedVector<double> a_;
  std::vector<double> gram_, slopes_;  // of few columns: of these v is not kept up to date, but their slopes
};

// Here v + lift sqrt(h) stands for v. Columns are filled up with zeros of a row behind the last one.
class ScaledSparse : public ScaledColumns {
 public:
  template <class T, class I>
  void take(const SparseColumns<T, I>& X, const std::vector<Index>& ids, const double* root, double total,
            double* residual) {
    const Index count = static_cast<Index>(ids.size());
    expect(count, residual);
    total_ = total;
    lift_ = 0.0;
    start_.resize(ids.size() + 1);
    start_[0] = 0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const Index entries = static_cast<Index>(X.start[ids[k] + 1] - X.start[ids[k]]);
      start_[k + 1] = start_[k] + (entries + kGroup - 1) / kGroup * kGroup;
    }
    cost = 1 + start_.back() / std::max<Index>(count, 1);
    a_.resize(static_cast<std::size_t>(start_.back()));
    row_.resize(a_.size());
    for (std::size_t k = 0; k < ids.size(); ++k) {
      Index at = start_[k];
      double once = 0.0, square = 0.0;
      for (I from = X.start[ids[k]]; from < X.start[ids[k] + 1]; ++from, ++at) {
        const double scale = root[X.row[from]], a = scale * X.data[from];
        row_[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(X.row[from]);
        a_[static_cast<std::size_t>(at)] = a;
        once += scale * a;
        square += a * a;
      }
      for (; at < start_[k + 1]; ++at) {
        row_[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(X.rows);
        a_[static_cast<std::size_t>(at)] = 0.0;
      }
      means[k] = total > 0.0 ? once / total : 0.0;
      const double left = square - means[k] * once;
      curvatures[k] = left > kConstantColumn * square ? left : 0.0;
    }
  }

  // Has the residual sum to zero beside the rows.
  double slope(Index k) const {
    double sums[kGroup] = {};
    for (Index at = start_[static_cast<std::size_t>(k)]; at < start_[static_cast<std::size_t>(k) + 1];
         at += kGroup)
#pragma GCC unroll 4
      for (Index part = 0; part < kGroup; ++part)
        sums[part] += v[row_.data()[at + part]] * a_.data()[at + part];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]) + lift_ * total_ * means[static_cast<std::size_t>(k)];
  }

  void move(Index k, double step) {
    for (Index at = start_[static_cast<std::size_t>(k)]; at < start_[static_cast<std::size_t>(k) + 1];
         at += kGroup)
#pragma GCC unroll 4
      for (Index part = 0; part < kGroup; ++part) v[row_.data()[at + part]] -= step * a_.data()[at + part];
    lift_ += step * means[static_cast<std::size_t>(k)];
  }

 private:
  static constexpr Index kGroup = 4;
  double total_ = 0.0, lift_ = 0.0;
  std::vector<Index> start_;
  AlignedVector<double> a_;
  AlignedVector<std::int32_t> row_;
};

template <class T>
ScaledDense scaled_form(const ShiftedColumns<T>&) {
  return {};
}
template <class T, class I>
ScaledSparse scaled_form(const SparseColumns<T, I>&) {
  return {};
}

}  // namespace sixfold
