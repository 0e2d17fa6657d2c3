#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// One dual problem of a kernel SVM and its point; one entry a row.
struct DualPoint {
  const double *y, *upper;  // sign, largest multiplier (may be infinite)
  double *alpha, *gradient;
};

struct SmoResult {
  Index iterations;
  double violation;
  bool completed;   // false: the deadline or Ctrl-C ended it
  bool indefinite;  // a pair of rows had a curvature that rounding does not explain
};

// Moves two multipliers at a time until the violation is at most `tolerance`, until `most_iterations` have
// been made, or until rounding lets nothing move. The point is feasible whenever it ends; the gradient is
// that of all rows.
template <class T>
SmoResult minimise_pairs(const Table<T>& gram, const DualPoint& point, double tolerance,
                         Index most_iterations, Stop& stop);

}  // namespace sixfold
