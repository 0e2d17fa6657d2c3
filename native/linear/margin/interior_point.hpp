#pragma once

#include "linear/margin/row_products.hpp"

namespace sixfold {

// One entry a row: residual p - m with p, m >= 0, multiplier a within [low, high], weight = 1 / (p / (high -
// a) + m / (a - low)), and the step of p, m and a. Rows with low = high do not count: p = m = weight = 0.
struct InteriorRows {
  double *p, *m, *a;
  const double *low, *high;
  double *weight, *dp, *dm, *da;
};

// The affine step. Steps up to 1 / largest_* keep p, m and a inside. After steps of lengths s and t the
// products p (high - a) + m (a - low) add up to what they were + s primal + t dual + s t both.
struct Prediction {
  double largest_primal, largest_dual;
  double primal, dual, both;
};

struct Lengths {
  double primal, dual;
};

// What the rows say of a point: the loss, how far it is above what a certifies (loss - a residual), and the
// sum of the products.
struct State {
  double loss, slack, products;
};

// The affine (predicted) step along v, the change of theta: leaves that of a in rows.da and fills sums (4 x
// (columns + 1)) with Z'a, Z'(weight (p - m)), Z'(weight (1 / (high - a) - 1 / (a - low))) and
// Z'(weight * second-order terms), of which the corrector's right-hand side consists.
bool predict_step(const AnyRows& table, const double* v, const InteriorRows& rows, double* sums,
                  Prediction* found, Stop& stop);

// The corrected step along v towards products of `aim`, from the predicted one in rows.da.
bool correct_step(const AnyRows& table, const double* v, double aim, const InteriorRows& rows,
                  Lengths* largest, Stop& stop);

// Takes the step and renews the weights.
State take_step(double primal, double dual, const InteriorRows& rows, Index count);

// out_i = z_i.v
bool row_scores(const AnyRows& table, const double* v, double* out, Stop& stop);

// out = sum_i g_i z_i
bool row_slope(const AnyRows& table, const double* g, double* out, Stop& stop);

}  // namespace sixfold
