#pragma once

#include "linear/margin/row_products.hpp"

namespace sixfold {

// One target of a support vector machine and its dual point; one entry a row unless said otherwise.
struct MarginRows {
  const double *y, *upper, *quadratic;  // sign, largest multiplier (0: the row does not count), its curvature
  const double* square;                 // |x|^2
  double* a;                            // multipliers
  double* w;                            // one entry a column: sum_i a_i y_i x_i / l2
};

// Slopes beyond which rows at an end of their range are set aside.
struct Bounds {
  double high, low;
};

struct MarginState {
  std::int32_t* order;  // rows that have not been set aside, in order
  Index active;         // how many they are
  double l2, rho;       // what w and b - centre are penalised by; rho is infinite without intercept
  double balance;       // sum_i a_i y_i
  double centre;        // what b is drawn to: b = centre + balance / rho
  Bounds aside;
  std::uint64_t random;
};

// Passes over the active rows in random order, each row's multiplier in turn moved towards its best value,
// until the gap to be expected from what was summed up on the way is at most `enough`, or `passes` have been
// made. Rows at an end of their range that will stay there are set aside. Returns how many were made.
Index descend_margins(const AnyRows& table, const MarginRows& rows, MarginState& state, double enough,
                      Index passes, Stop& stop);

// The loss and how far it is above what the multipliers certify, summed over all rows, at w and b; and how
// many rows there are in `order`: those not to be set aside when b moves on to `next`.
struct MarginGap {
  double loss, slack;
  Index active;
};
bool margin_gap(const AnyRows& table, const MarginRows& rows, double b, double next, const Bounds& aside,
                std::int32_t* order, MarginGap* found, Stop& stop);

}  // namespace sixfold
