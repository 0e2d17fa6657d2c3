#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// gram (p x p, p = columns + targets + 1, full symmetric) = sum_i weight_i z_i z_i',
// z_i = (x_i - shift_x - row_shift_i, y_i - shift_y, 1). weight and row_shift may be null.
// Returns false if stopped, and gram is then worthless.
template <class T>
bool moments(const Table<T>& X, const Table<T>& Y, const double* weight, const double* shift,
             const double* row_shift, double* gram, Stop& stop);

}  // namespace sixfold
