#pragma once

#include "linear/margin/row_products.hpp"

namespace sixfold {

// The labels -1 and +1 of the rows, an entry every so many numbers, and their weights, or null.
struct SignedRows {
  const double* y;
  Index y_stride;
  const double* weight;
};

// What the rows say of a hinge: the sum of losses, and how many are not on their own side of the plane.
struct MarginSums {
  double loss;
  Index wrong;
};

// How many bins there are for |m - 1|: two an octave from 2^-40 to 2^6, and one for the rest at either end.
inline constexpr Index kDistanceBins = 94;

// With margins m_i = y_i z_i.v: beyond_i = m_i - 1, NaN where a row does not count. counts are the rows in
// each bin of |m - 1|. sums (2 x (columns + 2)) are those of q_i z_i and of q_i over the rows of label -1 and
// of +1 with m_i - 1 <= -width, those whose loss is linear unless they move farther than that.
bool margin_pass(const AnyRows& table, const double* v, const SignedRows& rows, double width, double* beyond,
                 double* sums, Index* counts, MarginSums* found, Stop& stop);

}  // namespace sixfold
