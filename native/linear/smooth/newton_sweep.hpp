#pragma once

#include "linear/smooth/linear_sweeps.hpp"

namespace sixfold {

// With z_i = (x_i - shift, 1) and s_i = theta.z_i: *value = sum_i weight_i loss(s_i, y_i), slope = sum_i
// weight_i loss'(s_i, y_i) z_i, gram (full symmetric) = sum_i weight_i loss''(s_i, y_i) z_i z_i', all with
// columns + 1 entries a side; rows.score_i = s_i (rows.curvature is not written). Meant for tables of some
// hundred columns, a block of whose rows stays in the cache. Returns false if stopped; the results are then
// worthless.
template <class T>
bool newton_sweep(const Table<T>& X, LossCode loss, const double* theta, const double* shift,
                  const RowTerms& rows, double* value, double* slope, double* gram, Stop& stop);

}  // namespace sixfold
