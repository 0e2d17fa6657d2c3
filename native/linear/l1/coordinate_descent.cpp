// Cyclic coordinate descent on  1/2 w'G w - c'w + l1 |w|_1 + l2/2 |w|^2,  optionally with w >= 0.
//
// With slope_j = (c - G w)_j and curvature_j = G_jj the minimum over coordinate j is
//
//   w_j <- soft(slope_j + curvature_j w_j, l1) / (curvature_j + l2)        (Friedman et al. 2007)
//
// One pass over all coordinates is followed by passes over the nonzero ones until these have settled. A
// coordinate without curvature (a constant column) stays where it is.
#include "linear/l1/coordinate_descent.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sixfold {
namespace {

constexpr Index kPollOperations = 1 << 16;

// Form: slope(j), curvature(j), move(j, step) which adds step to w_j in the slopes, cost (operations of a
// visit).
template <class Form>
DescentResult descend(Form& form, Index count, double* w, const Descent& descent, Stop& stop) {
  std::vector<Index> active;
  active.reserve(static_cast<std::size_t>(count));
  Index operations = 0;
  bool whole = true;
  for (Index epoch = 0; epoch < descent.most_epochs; ++epoch) {
    double largest = 0.0;
    const Index visits = whole ? count : static_cast<Index>(active.size());
    for (Index visit = 0; visit < visits; ++visit) {
      if ((operations += form.cost) > kPollOperations) {
        operations = 0;
        if (stop.now()) return {epoch, false};
      }
      const Index j = whole ? visit : active[static_cast<std::size_t>(visit)];
      const double curvature = form.curvature(j);
      if (!(curvature > 0.0)) continue;
      const double target = form.slope(j) + curvature * w[j];
      const double size = std::max((descent.positive ? target : std::fabs(target)) - descent.l1, 0.0);
      const double step = std::copysign(size, target) / (curvature + descent.l2) - w[j];
      if (step == 0.0) continue;
      // From the new weight rather than by adding the step: a weight that becomes zero is exactly zero.
      w[j] = size == 0.0 ? 0.0 : w[j] + step;
      form.move(j, step);
      operations += form.cost;
      largest = std::max(largest, (curvature + descent.l2) * step * step);
    }
    if (largest <= descent.goal) {
      if (whole) return {epoch + 1, true};
      whole = true;
    } else if (whole) {
      whole = false;
      active.clear();
      for (Index j = 0; j < count; ++j)
        if (w[j] != 0.0) active.push_back(j);
    }
  }
  return {descent.most_epochs, true};
}

struct GramForm {
  const double* gram;
  Index count;
  double* slopes;
  Index cost;

  double slope(Index j) const { return slopes[j]; }
  double curvature(Index j) const { return gram[j * count + j]; }
  void move(Index j, double step) {
    const double* row = gram + j * count;
#pragma omp simd
    for (Index k = 0; k < count; ++k) slopes[k] -= step * row[k];
  }
};

template <class T>
struct DenseForm {
  const Table<T>& X;
  const double *q, *mean, *curvatures;
  double* v;
  Index cost;

  double curvature(Index j) const { return curvatures[j]; }
  double slope(Index j) const {
    const T* x = X.data + j * X.column_stride;
    const double centre = mean[j];
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (Index i = 0; i < X.rows; ++i) sum += v[i] * (x[i] - centre);
    return sum;
  }
  void move(Index j, double step) {
    const T* x = X.data + j * X.column_stride;
    const double centre = mean[j];
#pragma omp simd
    for (Index i = 0; i < X.rows; ++i) v[i] -= step * q[i] * (x[i] - centre);
  }
};

template <class T, class I>
struct SparseForm {
  const SparseColumns<T, I>& X;
  const double *q, *mean, *curvatures;
  double *v, *lift;
  Index cost;

  double curvature(Index j) const { return curvatures[j]; }
  // sum_i (v_i + lift q_i)(x_ij - mean_j), where v + lift q sums to zero and q . x_j = mean_j.
  double slope(Index j) const {
    double sum = *lift * mean[j];
    for (I k = X.start[j]; k < X.start[j + 1]; ++k) sum += v[X.row[k]] * X.data[k];
    return sum;
  }
  void move(Index j, double step) {
    for (I k = X.start[j]; k < X.start[j + 1]; ++k) v[X.row[k]] -= step * q[X.row[k]] * X.data[k];
    *lift += step * mean[j];
  }
};

}  // namespace

DescentResult descend_gram(const double* gram, Index count, double* slope, double* w, const Descent& descent,
                           Stop& stop) {
  GramForm form{gram, count, slope, 1 + count / 8};
  return descend(form, count, w, descent, stop);
}

template <class T>
DescentResult descend_columns(const Table<T>& X, const double* q, const double* mean, const double* curvature,
                              double* v, double* w, const Descent& descent, Stop& stop) {
  DenseForm<T> form{X, q, mean, curvature, v, 1 + X.rows};
  return descend(form, X.columns, w, descent, stop);
}

template <class T, class I>
DescentResult descend_sparse_columns(const SparseColumns<T, I>& X, const double* q, const double* mean,
                                     const double* curvature, double* v, double* lift, double* w,
                                     const Descent& descent, Stop& stop) {
  const Index entries = X.columns > 0 ? static_cast<Index>(X.start[X.columns]) / X.columns : 0;
  SparseForm<T, I> form{X, q, mean, curvature, v, lift, 1 + entries};
  return descend(form, X.columns, w, descent, stop);
}

template DescentResult descend_columns(const Table<double>&, const double*, const double*, const double*,
                                       double*, double*, const Descent&, Stop&);
template DescentResult descend_columns(const Table<float>&, const double*, const double*, const double*,
                                       double*, double*, const Descent&, Stop&);
template DescentResult descend_sparse_columns(const SparseColumns<double, std::int32_t>&, const double*,
                                              const double*, const double*, double*, double*, double*,
                                              const Descent&, Stop&);
template DescentResult descend_sparse_columns(const SparseColumns<double, std::int64_t>&, const double*,
                                              const double*, const double*, double*, double*, double*,
                                              const Descent&, Stop&);
template DescentResult descend_sparse_columns(const SparseColumns<float, std::int32_t>&, const double*,
                                              const double*, const double*, double*, double*, double*,
                                              const Descent&, Stop&);
template DescentResult descend_sparse_columns(const SparseColumns<float, std::int64_t>&, const double*,
                                              const double*, const double*, double*, double*, double*,
                                              const Descent&, Stop&);

}  // namespace sixfold
