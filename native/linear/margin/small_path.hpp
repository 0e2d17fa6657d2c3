#pragma once

#include "linear/margin/interior_point.hpp"

namespace sixfold {

// A point on the way of an interior point: theta = (w, b), slope = Z'a; the others are in the rows.
struct PathPoint {
  double *theta, *slope;
  double unit;    // a typical residual
  double ends;    // of multipliers: 2 a row that counts
  double length;  // of the last step
  double objective, gap, products;
};

// Takes up to `most` steps of Mehrotra's method for a table of few rows and columns, until the gap or the
// products are at most `enough`, or neither has halved for three steps. Z holds the rows z_i = (x_i, 1), or
// (x_i, 0) without intercept, t their targets. `records` gets the objective and the gap after each step.
// Returns how many were made: fewer also where a system is singular or the work is to end, before anything of
// that step is done.
Index follow_small_path(const Table<double>& Z, const double* t, double l2, const InteriorRows& rows,
                        double enough, Index most, PathPoint& point, double* records, Stop& stop);

// The whole fit of one target of the hinge: the path from its beginning, and from there to the vertex
// (solvers/margin/crossover.py), whose theta and multipliers a (in the rows) are left. `tolerance` is the gap
// it may keep, `relative` the share of the objective, and `least` the least that is aimed at. `steps` gets
// objective and gap after each step of the path, at most `most`. False where it does not end well: other
// solvers begin anew.
bool small_hinge(const Table<double>& Z, const double* t, double l2, const InteriorRows& rows,
                 double tolerance, double relative, double least, Index most, double* theta, double* steps,
                 Index* made, Stop& stop);

}  // namespace sixfold
