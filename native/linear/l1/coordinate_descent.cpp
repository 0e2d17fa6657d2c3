// Coordinate descent (descend.hpp) on a Gram matrix, and on residuals of dense and of sparse columns.
#include "linear/l1/coordinate_descent.hpp"

#include "linear/l1/descend.hpp"

namespace sixfold {
namespace {

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
  const Index entries = X.columns > 0 ? X.entries() / X.columns : 0;
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
