#pragma once

#include "stochastic_gradient.hpp"
#include "stop.hpp"
#include "table.hpp"

namespace sixfold {

// With scores s_i = W'x_i + b and p_i = softmax(s_i): *value = sum_i weight_i (log sum_c exp(s_ic) - s_iy),
// slope ((columns + 1) x classes) = sum_i weight_i (x_i, 1) (p_i - onehot(y_i))'. W is columns x classes, y
// holds class indices, weight may be null. Returns false if stopped, and the results are then worthless. Rows
// is Table<T> or SparseTable<T, I>.
template <class Rows>
bool softmax_sweep(const Rows& X, const double* y, const double* weight, Index classes, const double* w,
                   const double* b, double* value, double* slope, Stop& stop);

}  // namespace sixfold
