#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

enum class Balance : int { unknown, weights, direction };

// Of rows a_i = y_i z_i, looks for weights c > 0 with sum_i c_i a_i = 0 and sum 1, or for a direction v with
// a_i.v > 0 for every row. The rows of Z are next to each other; c holds positive first guesses of the
// weights. Both are worthless where neither is found by factoring so many matrices.
Balance balance_weights(const Table<double>& Z, const double* y, Index most_factors, double* c, double* v,
                        Stop& stop);

}  // namespace sixfold
