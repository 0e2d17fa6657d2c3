// One score under absolute values, from the start to the end in one call; see proximal_newton.cpp.
#pragma once

#include <functional>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "linear/l1/scaled_columns.hpp"
#include "linear/loss_functions.hpp"

namespace sixfold {

// minimise  sum_i q_i loss(s_i, y_i) + l1 |w|_1 + l2 |w|^2 / 2,   s = Z w + c   (optionally w >= 0)
struct ScoreProblem {
  const double *y, *q;  // -1 or +1 and the share of each row
  LossCode loss;        // logistic or squared hinge
  double l1, l2;
  bool positive, intercept;
  double goal;  // estimated gap at which it is done
};

enum class ProximalEnd : int { done, stopped, stuck };

// Hears of every pass over all columns (value, gap); true ends the descent.
using ProximalReport = std::function<bool(double, double)>;

// w has one entry a column, c is the intercept; both are where it begins and ends.
template <class Columns>
ProximalEnd proximal_newton(const Columns& Z, const ScoreProblem& problem, double* w, double* c,
                            const ProximalReport& report, Stop& stop);

}  // namespace sixfold
