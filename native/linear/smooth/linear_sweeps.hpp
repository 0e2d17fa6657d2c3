#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"
#include "linear/first_order/stochastic_gradient.hpp"
#include "linear/loss_functions.hpp"

namespace sixfold {

// What a sweep reads beside X and writes beside the slope; weight, score and curvature may be null.
struct RowTerms {
  const double* y;
  const double* weight;
  double* score;
  double* curvature;
};

// With s_i = w.x_i + b: *value = sum_i weight_i loss(s_i, y_i), slope (columns + 1 entries) = sum_i weight_i
// loss'(s_i, y_i) (x_i, 1); score_i = s_i and curvature_i = weight_i loss''(s_i, y_i) where asked for.
// Returns false if stopped, and the results are then worthless. Rows is Table<T> or SparseTable<T, I>.
template <class Rows>
bool loss_sweep(const Rows& X, LossCode loss, const double* w, double b, const RowTerms& rows, double* value,
                double* slope, Stop& stop);

// product (columns + 1 entries) = sum_i curvature_i (v.x_i + c) (x_i, 1). Returns false if stopped.
template <class Rows>
bool curvature_sweep(const Rows& X, const double* curvature, const double* v, double c, double* product,
                     Stop& stop);

// squares (columns + 1 entries) = sum_i weight_i (x_i - shift, 1)^2, entry by entry; weight and shift may be
// null, and a sparse table is never shifted. Returns false if stopped.
template <class Rows>
bool column_squares(const Rows& X, const double* weight, const double* shift, double* squares, Stop& stop);

// With s_i = from_i + step (to_i - from_i): *value = sum_i weight_i loss(s_i, y_i), *slope its derivative in
// step.
void losses_along(LossCode loss, const double* from, const double* to, double step, const double* y,
                  const double* weight, Index rows, double* value, double* slope);

}  // namespace sixfold
