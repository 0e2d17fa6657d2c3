// Where coordinate descent has found the weights that are not zero, and their signs s, what is left is the
// linear system  (G + l2 I) d = c - G w - l1 s - l2 w  over those coordinates: conjugate gradients, with the
// diagonal as their preconditioner, come nearer by a factor of ten in a third of the passes (Hestenes and
// Stiefel 1952).
//
// The form of descend.hpp knows slopes at w only. So G p comes from how they change as w moves along p, and
// the rest of the step is made together with the next one.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "linear/l1/descend.hpp"

namespace sixfold {

// Moves w to about the minimum over weights of these signs; what would turn becomes 0, unless that makes it
// worse. Returns the passes over the coordinates that took.
template <class Form>
Index conjugate_steps(Form& form, Index count, double* w, const Descent& descent, Index most_steps,
                      Stop& stop) {
  std::vector<Index> ids;
  for (Index j = 0; j < count; ++j)
    if (w[j] != 0.0 && form.curvature(j) > 0.0) ids.push_back(j);
  const std::size_t size = ids.size();
  std::vector<double> left(size), first, direction(size), moved(size), unmade(size);
  const auto slope = [&](std::size_t k) {  // of the objective with the signs that w has, downhill
    const double at = w[ids[k]];
    return form.slope(ids[k]) - std::copysign(descent.l1, at) - descent.l2 * (at + moved[k]);
  };
  const auto bend = [&](std::size_t k) { return form.curvature(ids[k]) + descent.l2; };
  const auto move = [&](std::size_t k, double by) {
    if (by != 0.0) form.move(ids[k], by);
  };
  double size_left = 0.0;
  for (std::size_t k = 0; k < size; ++k) {
    left[k] = slope(k);
    size_left += left[k] * left[k] / bend(k);
    direction[k] = left[k] / bend(k);
  }
  first = left;
  Index steps = 0;
  for (; steps < most_steps && size_left > 0.0 && !stop.now(); ++steps) {
    for (std::size_t k = 0; k < size; ++k) {
      move(k, unmade[k] + direction[k]);
      moved[k] += direction[k];
    }
    double along = 0.0;
    for (std::size_t k = 0; k < size; ++k) {
      unmade[k] = left[k] - slope(k);  // G p
      along += unmade[k] * direction[k];
    }
    const double length = along > 0.0 ? size_left / along : 0.0;
    double after = 0.0, largest = 0.0;
    for (std::size_t k = 0; k < size; ++k) {
      left[k] -= length * unmade[k];
      unmade[k] = (length - 1.0) * direction[k];
      moved[k] += unmade[k];
      const double part = left[k] * left[k] / bend(k);
      after += part;
      largest = std::max(largest, part);
    }
    if (largest <= descent.goal || length == 0.0) break;
    for (std::size_t k = 0; k < size; ++k)
      direction[k] = left[k] / bend(k) + after / size_left * direction[k];
    size_left = after;
  }
  bool turned = false;
  for (std::size_t k = 0; k < size; ++k) {
    const double from = w[ids[k]], to = from + moved[k];
    if (to * from > 0.0) {
      move(k, unmade[k]);
    } else {
      turned = true;
      move(k, unmade[k] - to);
      moved[k] = -from;
    }
  }
  double gain = 0.0;  // 2 d.slope - d'G d
  for (std::size_t k = 0; turned && k < size; ++k) gain += moved[k] * (first[k] + slope(k));
  for (std::size_t k = 0; k < size; ++k) {
    if (turned && !(gain > 0.0))
      move(k, -moved[k]);
    else
      w[ids[k]] = moved[k] == -w[ids[k]] ? 0.0 : w[ids[k]] + moved[k];
  }
  return steps + 1;
}

}  // namespace sixfold
