// The sums behind a certificate of a linear model with one score a row; see slope_sums.cpp.
#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"
#include "linear/loss_functions.hpp"
#include "linear/smooth/newton_fit.hpp"

namespace sixfold {

// With z_i = x_i - shift, c = b + shift.w, s_i = w.z_i + c, u_i = loss'(s_i, y_i) and q_i = weight_i /
// weight_sum: slope = sum_i q_i u_i z_i, lengths = sum_i q_i z_i^2 (one entry a column each), and `sums` as
// SumOf names them. *depth is how many additions a term goes through at most. Returns false if stopped; the
// results are then worthless.
template <class T>
bool slope_sums(const Table<T>& X, const double* y, const double* weight, double weight_sum, LossCode loss,
                const double* w, double b, const double* shift, double* slope, double* lengths, double* sums,
                Index* depth, Stop& stop);

}  // namespace sixfold
