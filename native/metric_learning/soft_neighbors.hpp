// Soft neighbours: with which probability each row picks another one, and what pulls the rows (Goldberger et
// al. 2004).
//
//     D_ij = |z_i - z_j|^2 - log q_j                      q_j: how often row j counts
//     p_ij = exp(-D_ij) / sum_k exp(-D_ik)                over k != i, and s_i copies of row i itself
//     p_i  = sum of p_ij over the rows j of the class of i, the copies among them
//     pull_i = sum_j (a_ij + a_ji) (z_j - z_i),           a_ij = q_i p_ij ([same class] - p_i)
//
// so that 2 pull_i is the slope of sum_i q_i p_i along z_i. No n x n matrix is kept. Two ways:
//
// near    Where most weights vanish: tiles of products in single precision, whose rounding is bounded, find
//         the rows with D_ij within `reach` of the least of row i. What is left out has less than exp(-reach)
//         of the weight of the nearest row, which is added up; for the others D_ij is computed from the
//         differences, in double precision.
// dense   Where many rows count: tiles of products twice, first for the sums over k, then for the pulls.
//
// Every sum has a fixed order, whatever the number of threads.
#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

struct SoftRows {
  const double* values;  // (count x columns), centred
  Index count, columns;
  const std::int32_t* labels;
  const double* weights;  // q > 0
  const double* copies;   // s >= 0
};

struct SoftResult {
  double* right;   // p_i
  double* pulls;   // (count x columns)
  Index kept;      // pairs whose weight counts
  double omitted;  // sum_i q_i times the most that p_i may have lost
};

enum class Ended { done, stopped, too_many };

// `nearest` holds a row near each one, or -1, and is brought up to date. More than `most` pairs end it.
Ended near_neighbors(const SoftRows& rows, double reach, Index most, Index* nearest, SoftResult& result,
                     Stop& stop);

Ended dense_neighbors(const SoftRows& rows, double reach, SoftResult& result, Stop& stop);

}  // namespace sixfold
