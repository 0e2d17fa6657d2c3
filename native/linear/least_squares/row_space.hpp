#pragma once

#include "core/float_lanes.hpp"
#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// Columns of a single-precision panel: eight registers of sums, so that no sum waits for the one before.
inline constexpr Index kRowPanel = 8 * kFloatLanes;

inline Index panel_entries(Index rows, Index columns) {
  return rows * ((columns + kRowPanel - 1) / kRowPanel * kRowPanel);
}

// mean_j = sum_i q_i x_ij (0 unless centred), square_j = sum_i q_i (x_ij - mean_j)^2 and, unless null, the
// panels of x - mean. False if stopped.
template <class T>
bool centre_rows(const Table<T>& X, const double* q, bool centred, double* mean, double* square,
                 float* panels, Stop& stop);

// For every target, one after the other in v, w and scores: w = (X - mean)'v unless v is null, and
// scores = (X - mean) w, in one pass over the table. False if stopped.
template <class T>
bool centred_products(const Table<T>& X, const double* mean, const double* v, Index targets, double* w,
                      double* scores, Stop& stop);

struct RowDescent {
  Index steps;
  bool reached, stopped;
};

// Conjugate gradients for (K + l2 I) a = left, K = P D Z Z'D P with the panels Z, D = diag(root_q) and, where
// centred, P = I - root_q root_q'. `left` becomes what is left of it, until its length is `goal` of what it
// was. Gives up where that is not in sight within `most` steps.
RowDescent descend_rows(const float* panels, Index rows, Index columns, const double* root_q, bool centred,
                        double l2, double goal, Index most, double* left, double* a, Stop& stop);

}  // namespace sixfold
