#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// What is minimised in each coordinate, and for how long.
struct Descent {
  double l1, l2;
  bool positive;
  Index most_epochs;  // passes over all coordinates, or over the nonzero ones
  double goal;        // end when no move of a whole pass changes curvature * move^2 by more than this
};

struct DescentResult {
  Index epochs;
  bool finished;  // false if stopped by the deadline or Ctrl-C
};

// Each of these lowers  1/2 w'G w - c'w + l1 |w|_1 + l2/2 |w|^2  over `count` coordinates in turn, in place.
// They differ in how the slope c - G w is kept: as such, with the Gram matrix G (count x count) at hand,
DescentResult descend_gram(const double* gram, Index count, double* slope, double* w, const Descent& descent,
                           Stop& stop);

// or as weighted residuals v_i = q_i r_i of the columns of a dense table (contiguous along rows), where the
// slope of coordinate j is sum_i v_i (x_ij - mean_j),
template <class T>
DescentResult descend_columns(const Table<T>& X, const double* q, const double* mean, const double* curvature,
                              double* v, double* w, const Descent& descent, Stop& stop);

// or the same for compressed sparse columns, where v_i + lift * q_i stands for v_i, so that centring
// never touches a zero; lift is updated.
template <class T, class I>
struct SparseColumns {
  const T* data;
  const I *row, *start;
  Index rows, columns;

  Index entries() const { return static_cast<Index>(start[columns]); }
};
template <class T, class I>
DescentResult descend_sparse_columns(const SparseColumns<T, I>& X, const double* q, const double* mean,
                                     const double* curvature, double* v, double* lift, double* w,
                                     const Descent& descent, Stop& stop);

}  // namespace sixfold
