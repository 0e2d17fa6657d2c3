// The sweeps over the scores of many machines at once, one row of scores a machine
// (solvers/margin/exemplars/machines.py states the problem).
#pragma once

#include <cstdint>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// What is known of one machine along a step t, beside its row of scores:
// P(t) = square / 2 + slope t + curvature t^2 / 2 + cost max(0, 1 - score - t move)^2 + its negatives' loss.
struct ExemplarLine {
  double slope, curvature, cost, score, move;
};

// With u = max(0, 1 + s) of every score s (machines x rows): slopes = 2 cost_j u, active = u > 0 where the
// row costs something, share_j = how many machines it is active for; sums (machines x 3) = sum_j cost_j u^2,
// sum_j of the slopes and the sum of 2 cost_j over the active rows. Returns false if stopped.
bool exemplar_slopes(const double* scores, Index machines, Index rows, const double* cost, double* slopes,
                     std::uint8_t* active, std::int32_t* share, double* sums, Stop& stop);

// products *= 2 cost_j where active, else 0.
template <class T>
bool mask_products(T* products, Index machines, Index rows, const double* cost, const std::uint8_t* active,
                   Stop& stop);

// The t > 0 of least P along each machine's moves, and scores += t moves.
bool exemplar_steps(double* scores, const double* moves, Index machines, Index rows, const double* cost,
                    const ExemplarLine* lines, double* steps, Stop& stop);

// The sigmoid 1 / (1 + exp(-(slope s + offset))), slope >= 0, of each machine (machines x rows): it minimises
// the cross-entropy of the rows with weight_j > 0 and s > least to the targets of Platt (1999): own_j says
// whether a row is one that the machine should find. parameters (machines x 2).
bool fit_sigmoids(const double* scores, Index machines, Index rows, const double* weight,
                  const std::uint8_t* own, double least, double* parameters, Stop& stop);

}  // namespace sixfold
