#pragma once

#include "loss_functions.hpp"
#include "stop.hpp"
#include "table.hpp"

namespace sixfold {

// total = sum_i weight_i loss(w.x_i + b, y_i), added over scores; w is scores x columns, y rows x targets,
// and the columns of X must be next to each other. Returns false if stopped, and total is then worthless.
template <class T>
bool empirical_loss(const Table<T>& X, const double* y, Index targets, const double* weight, LossCode loss,
                    const double* w, const double* b, Index scores, double* total, Stop& stop);

}  // namespace sixfold
