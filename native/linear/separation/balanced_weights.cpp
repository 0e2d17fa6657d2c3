// Positive weights of rows that balance each other: the proof that no plane separates two classes.
//
//     c > 0,    sum_i c_i a_i = 0,    a_i = y_i z_i
//
// From any positive weights q, the nearest that balance (in the metric 1 / q) are q_i t_i with
//
//     t = 1 - A v,    (A' Q A) v = A' Q 1
//
// so all is proved where every a_i.v < 1, and separated where every a_i.v > 0. Elsewhere t is raised to a
// share of its mean where it is below, and brought to the nearest that balance, in turns with the same factor
// (alternating projections). Where that takes long, the q t so far are the next q, whose metric lets small
// weights move little. Ten classes of 1,000 x 100 rows: 28 factors and 117 turns for all ten of them; 60
// factors where each has one turn.
#include "linear/separation/balanced_weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/small_systems.hpp"

namespace sixfold {
namespace {

constexpr int kTurns = 5;             // with one factor
constexpr double kFloor = 0.1;        // of the mean of t: what it is raised to
constexpr double kFurther = 1.8;      // how far it is raised, of the way there
constexpr double kMostChange = 10.0;  // of a weight, from one factor to the next
constexpr double kRidge = 1e-13;      // of the diagonal: columns that depend on others have slope 0

// The rows a_i = y_i z_i.
struct Signed {
  const Table<double>& Z;
  const double* y;

  // out = sum_i weight_i t_i a_i
  void add_up(const double* weight, const double* t, double* __restrict out) const {
    const Index d = Z.columns;
    std::fill_n(out, d, 0.0);
    for (Index i = 0; i < Z.rows; ++i) {
      const double* z = Z.row(i);
      const double g = weight[i] * t[i] * y[i];
#pragma omp simd
      for (Index j = 0; j < d; ++j) out[j] += g * z[j];
    }
  }

  // t_i -= a_i.v; returns the least a_i.v.
  double subtract(const double* v, double* t) const {
    double least = std::numeric_limits<double>::infinity();
    for (Index i = 0; i < Z.rows; ++i) {
      const double* z = Z.row(i);
      double s = 0.0;
#pragma omp simd reduction(+ : s)
      for (Index j = 0; j < Z.columns; ++j) s += v[j] * z[j];
      s *= y[i];
      least = std::min(least, s);
      t[i] -= s;
    }
    return least;
  }
};

}  // namespace

Balance balance_weights(const Table<double>& Z, const double* y, Index most_factors, double* c, double* v,
                        Stop& stop) {
  const Index n = Z.rows;
  const Signed rows{Z, y};
  std::vector<double> t(static_cast<std::size_t>(n));
  SmallFactor factor(Z.columns);
  for (Index factors = 0; factors < most_factors && !stop.now(); ++factors) {
    small_gram(Z, c, factor.matrix());
    if (!factor.decompose(kRidge)) return Balance::unknown;
    std::fill(t.begin(), t.end(), 1.0);
    for (int turn = 0; turn < kTurns; ++turn) {
      rows.add_up(c, t.data(), v);
      factor.solve(v);
      const double least = rows.subtract(v, t.data());
      if (turn == 0 && least > 0.0) return Balance::direction;
      if (*std::min_element(t.begin(), t.end()) > 0.0) {
        rows.add_up(c, t.data(), v);  // once more, for the digits that the first time has lost
        factor.solve(v);
        rows.subtract(v, t.data());
        double total = 0.0, smallest = std::numeric_limits<double>::infinity();
        for (Index i = 0; i < n; ++i) {
          c[i] *= t[i];
          total += c[i];
          smallest = std::min(smallest, c[i]);
        }
        if (!(smallest > 0.0)) return Balance::unknown;
        for (Index i = 0; i < n; ++i) c[i] /= total;
        return Balance::weights;
      }
      double total = 0.0, weight = 0.0;
      for (Index i = 0; i < n; ++i) {
        total += c[i] * std::max(t[i], 0.0);
        weight += c[i];
      }
      if (turn + 1 < kTurns) {
        const double floor = kFloor * total / weight;
        for (double& value : t) value += kFurther * std::max(floor - value, 0.0);
        continue;
      }
      const double usual = total / weight;
      for (Index i = 0; i < n; ++i) c[i] *= std::clamp(t[i] / usual, 1.0 / kMostChange, kMostChange);
    }
  }
  return Balance::unknown;
}

}  // namespace sixfold
