// Dual coordinate descent for the hinge on rows of features, in the precision of the features.
//
//     maximise  sum_i a_i - |w|^2 / 2      0 <= a_i <= upper_i,  sum_i a_i y_i = 0,   w = sum_i a_i y_i phi_i
//
// The loop of linear/margin/dual_coordinate.hpp reads any table and computes in double; this one is for a few
// thousand columns of float, of which a row is read from memory as fast as that goes.
#pragma once

#include <cstdint>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// Some rows of a table of features, and their multipliers: one entry for each row that was chosen.
template <class T>
struct FeatureRows {
  const T* features;
  Index columns;
  const Index* index;  // rows of the table
  Index count;
  const double *y, *upper, *square;  // -1 or +1, the largest multiplier, |phi|^2
  double* a;
};

// The intercept is drawn to a centre by rho (b - centre)^2 / 2, and after every pass the centre moves to
// b = centre + balance / rho, so that in the end balance = sum_i a_i y_i is 0.
struct FeatureState {
  double centre, balance, rho;
  std::uint64_t random;
};

struct Descent {
  Index passes;
  double gap;  // summed up on the way of the last pass, over the rows that were chosen
};

// Passes over the rows in random order, each multiplier moved to its best value in turn, until what is summed
// up as the gap on the way is at most `enough`, or `most` passes have been made. Rows at an end of their
// range that will stay there are set aside; the last pass is over all of them.
template <class T>
Descent descend_features(const FeatureRows<T>& rows, T* w, FeatureState& state, double enough, Index most,
                         Stop& stop);

}  // namespace sixfold
