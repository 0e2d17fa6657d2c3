// Newton's method with steps from conjugate gradients, from the start to the end; see truncated_newton.cpp.
#pragma once

#include "core/stop.hpp"
#include "linear/smooth/newton_fit.hpp"

namespace sixfold {

// minimise  sum_i q_i loss(w.(x_i - shift) + c, y_i) + l2 |w|^2 / 2,   q_i = weight_i / weight_sum
template <class Rows>
struct TruncatedProblem {
  const Rows& X;  // Table<T> or SparseTable<T, I>
  Index columns;
  const double* y;       // labels, or class numbers for softmax
  const double* weight;  // null: every row counts the same
  double weight_sum;     // or the number of rows
  LossCode loss;         // with a curvature, or softmax
  Index scores;          // one, or the classes
  double l2;             // above 0
  const double* shift;
  bool intercept;
  double spread;  // root mean square distance of a row from the shift
  double enough;  // gap at which it is done, of which estimates have to be a quarter
  Index most_steps, most_products;
};

// theta ((columns + 1) x scores: w and c) is where to begin, and then the last point; step is what led there.
// Where done, the gap is estimated to be small enough; where stuck, another solver has to go on.
template <class Rows>
NewtonEnd truncated_newton(const TruncatedProblem<Rows>& problem, double* theta, double* step,
                           const NewtonReport& report, Stop& stop);

}  // namespace sixfold
