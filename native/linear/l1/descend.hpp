// Cyclic coordinate descent on  1/2 w'G w - c'w + l1 |w|_1 + l2/2 |w|^2,  optionally with w >= 0, for any way
// in which the slopes c - G w may be kept.
//
// With slope_j = (c - G w)_j and curvature_j = G_jj the minimum over coordinate j is
//
//   w_j <- soft(slope_j + curvature_j w_j, l1) / (curvature_j + l2)        (Friedman et al. 2007)
//
// One pass over all coordinates is followed by passes over the nonzero ones until these have settled. A
// coordinate without curvature (a constant column) stays where it is.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "linear/l1/coordinate_descent.hpp"

namespace sixfold {

inline constexpr Index kPollOperations = 1 << 16;

// Form: slope(j), curvature(j), move(j, step) which adds step to w_j in the slopes, cost (operations of a
// visit).
template <class Form>
DescentResult descend(Form& form, Index count, double* w, const Descent& descent, Stop& stop) {
  std::vector<Index> active;
  active.reserve(static_cast<std::size_t>(count));
  Index operations = 0;
  bool whole = true;
  for (Index epoch = 0; epoch < descent.most_epochs; ++epoch) {
    double largest = 0.0;
    const Index visits = whole ? count : static_cast<Index>(active.size());
    for (Index visit = 0; visit < visits; ++visit) {
      if ((operations += form.cost) > kPollOperations) {
        operations = 0;
        if (stop.now()) return {epoch, false};
      }
      const Index j = whole ? visit : active[static_cast<std::size_t>(visit)];
      const double curvature = form.curvature(j);
      if (!(curvature > 0.0)) continue;
      const double target = form.slope(j) + curvature * w[j];
      const double size = std::max((descent.positive ? target : std::fabs(target)) - descent.l1, 0.0);
      const double step = std::copysign(size, target) / (curvature + descent.l2) - w[j];
      if (step == 0.0) continue;
      // From the new weight rather than by adding the step: a weight that becomes zero is exactly zero.
      w[j] = size == 0.0 ? 0.0 : w[j] + step;
      form.move(j, step);
      operations += form.cost;
      largest = std::max(largest, (curvature + descent.l2) * step * step);
    }
    if (largest <= descent.goal) {
      if (whole) return {epoch + 1, true};
      whole = true;
    } else if (whole) {
      whole = false;
      active.clear();
      for (Index j = 0; j < count; ++j)
        if (w[j] != 0.0) active.push_back(j);
    }
  }
  return {descent.most_epochs, true};
}

}  // namespace sixfold
