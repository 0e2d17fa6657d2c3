#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// Several dual problems of kernel SVMs over rows of one Gram matrix, one after the other in flat arrays:
// problem k has the entries from start[k] to start[k + 1].
struct FlatProblems {
  const Index* start;
  Index count;
  const Index* row;  // of the Gram matrix
  const double *y, *upper;
};

// Their solutions: multipliers, scores sum_j a_j y_j K_ij, and for each problem how many pairs were moved,
// what it is worth, how far a score may be off, and how far rounding may have moved the objective. `states`
// has a row a field of Optimality in solvers/kernel/dual.py, whose formulas these are, and a column a
// problem.
struct FlatSolutions {
  double *alpha, *scores;
  Index* iterations;
  double *states, *rounding, *lost;
};

// What is asked for: the violation; the gap as a share of the best constant model's objective; and the share
// up to which rounding counts where it may have one sign everywhere.
struct Accuracy {
  double violation, gap, alike;
};

// Solves them one by one, from multipliers 0, until the violation is small enough: with the Gram matrix
// rounded to floats first, if `single`, and then, where that was not enough, as it is. Its entries are off by
// `error`. Returns false where the work was ended, got nowhere in so many iterations a problem, or left a
// gap.
bool solve_small_svms(const Table<double>& gram, const FlatProblems& problems, bool single, double error,
                      const Accuracy& accuracy, Index most_iterations, const FlatSolutions& solutions,
                      Stop& stop);

}  // namespace sixfold
