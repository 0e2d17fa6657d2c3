#pragma once

#include "core/double_double.hpp"
#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// For one target: r_i = y_i - b - w.x_i, slope (columns + 1) = sum_i weight_i r_i (x_i - shift, 1) and the
// returned square = sum_i weight_i r_i^2, all in double-double arithmetic, rounded once at the end. shift may
// be null.
template <class T>
bool residual_slope(const Table<T>& X, const T* y, Index y_stride, const double* weight, const double* w,
                    DoubleDouble b, const double* shift, double* slope, double* square, Stop& stop);

}  // namespace sixfold
