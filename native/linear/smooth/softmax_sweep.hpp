#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"
#include "linear/first_order/stochastic_gradient.hpp"

namespace sixfold {

struct SoftmaxSums {
  double value;
  // Where probabilities are moved: the largest log(1 / p) and log(1 / r) of any row and class, and
  // sum_i weight_i |r_i - onehot(y_i)|^2.
  double log_chance, squares;
  Index depth;  // additions that a term of a sum over the rows goes through at most
};

// With scores s_i = W'x_i + b and p_i = softmax(s_i): value = sum_i weight_i (log sum_c exp(s_ic) - s_iy),
// slope ((columns + 1) x classes) = sum_i weight_i (x_i, 1) (p_i - onehot(y_i))'. W is columns x classes, y
// holds class indices, weight may be null.
//
// With kept and share (one number a class, or both null) probability is moved between the classes first,
// r_ic = p_ic kept_c + share_c sum_k p_ik (1 - kept_k), and the pass gives what the duality gap is made of:
// value = sum_i weight_i sum_c r_ic log(r_ic / p_ic), slope = sum_i weight_i (x_i, 1) (r_i - onehot(y_i))'.
// chance (rows x classes, or null) is p where nothing is moved. Returns false if stopped, and the results are
// then worthless. Rows is Table<T> or SparseTable<T, I>.
template <class Rows>
bool softmax_sweep(const Rows& X, const double* y, const double* weight, Index classes, const double* w,
                   const double* b, const double* kept, const double* share, SoftmaxSums* found,
                   double* slope, double* chance, Stop& stop);

// product ((columns + 1) x classes) = sum_i weight_i (x_i, 1) (p_i * (t_i - p_i.t_i))', t_i = V'x_i + c, for
// the probabilities that a sweep has left. Returns false if stopped.
template <class Rows>
bool softmax_product(const Rows& X, const double* chance, const double* weight, Index classes,
                     const double* v, const double* c, double* product, Stop& stop);

}  // namespace sixfold
