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

// Their solutions: multipliers, scores sum_j a_j y_j K_ij, and for each problem how many pairs were moved.
struct FlatSolutions {
  double *alpha, *scores;
  Index* iterations;
};

// Solves them one by one, from multipliers 0, until the violation is at most `tolerance`: with the Gram
// matrix rounded to floats first, if `single`, and then, where that was not enough, as it is. Returns false
// where the work was ended, or got nowhere in so many iterations a problem.
bool solve_small_svms(const Table<double>& gram, const FlatProblems& problems, bool single, double tolerance,
                      Index most_iterations, const FlatSolutions& solutions, Stop& stop);

}  // namespace sixfold
