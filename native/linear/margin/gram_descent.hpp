#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// One target of a support vector machine through the products of its rows, signs in the multipliers:
//
//     minimise  s'M s / 2 - t.s,   low <= s <= high,   sum_i s_i = 0 (if there is an intercept),
//
// where M = K / l2 + diag(quadratic), with `draw` added to every entry if there is an intercept. Entries of
// rows that do not count have low = high = 0.
struct GramTarget {
  Table<double> M;
  const double *t, *low, *high, *quadratic;
  double draw;
};

struct GramFit {
  double b, objective, gap;
  Index epochs;
};

// Leaves multipliers in s whose gap is at most min(tolerance, max(relative * objective, least)), or those
// that `most` epochs reached.
GramFit fit_by_products(const GramTarget& target, double tolerance, double relative, double least, Index most,
                        double* s, Stop& stop);

}  // namespace sixfold
