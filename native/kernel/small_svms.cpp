// The binary SVMs of several small classes, whose Gram matrices are parts of one.
//
// Each is what solvers/kernel/decomposition.py makes of few rows: pairs on the Gram matrix in floats,
// multipliers beside a bound put on it, scores in doubles,
//
//     a -> 0 or U where it is within 1e-12 min(U, max a) of it;   the row with most room balances sum a y
//     s = K (y a)
//
// and more pairs on doubles where these scores still violate optimality. Then it is judged on the spot: the
// sums over its rows as calls of NumPy took 35 of the 250 microseconds of a fit of 100 x 4.
#include "kernel/small_svms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/smo.hpp"
#include "kernel/smo_rows.hpp"

namespace sixfold {
namespace {

constexpr double kBoundRounding = 1e-12;  // BOUND_ROUNDING of solvers/kernel/dual.py
constexpr int kRounds = 4;                // on doubles, each to half the tolerance of the one before

// Entries [first, last) of a problem whose rows follow each other in the Gram matrix.
struct RowRun {
  Index first, last;
};

// One of the problems; the rows of a class are a run, so they are read together.
struct Problem {
  const Table<double>& gram;
  const Index* row;
  const double *y, *upper;
  double *alpha, *scores;
  Index count;
  const std::vector<RowRun>& runs;

  // Its Gram matrix with rows of whole blocks, as pairs read them.
  template <class T>
  Table<T> copy_gram(AlignedVector<T>& part) const {
    const Index stride = whole_blocks(count);
    part.resize(static_cast<std::size_t>(count * stride));
    for (Index i = 0; i < count; ++i) {
      const double* from = gram.row(row[i]);
      T* to = part.data() + i * stride;
      std::fill(to + count, to + stride, T{0});
      for (const auto [first, last] : runs) {
        const double* values = from + row[first];
        for (Index k = first; k < last; ++k) to[k] = static_cast<T>(values[k - first]);
      }
    }
    return {part.data(), count, stride, stride, 1};
  }

  void put_on_bounds(std::vector<double>& snapped) const {
    const double largest = *std::max_element(alpha, alpha + count);
    snapped.resize(static_cast<std::size_t>(count));
    double most = -1.0, sum = 0.0;
    Index roomiest = 0;
    for (Index k = 0; k < count; ++k) {
      const double beside = kBoundRounding * std::min(upper[k], largest);
      snapped[k] = alpha[k] <= beside ? 0.0 : upper[k] - alpha[k] <= beside ? upper[k] : alpha[k];
      const double room = std::min(snapped[k], upper[k] - snapped[k]);
      if (room > most) {
        most = room;
        roomiest = k;
      }
      sum += y[k] * snapped[k];
    }
    if (std::abs(sum) >= most) return;  // no row can make up for it
    snapped[roomiest] -= y[roomiest] * sum;
    std::copy(snapped.begin(), snapped.end(), alpha);
  }

  void score() const {
    std::fill_n(scores, count, 0.0);
    for (Index i = 0; i < count; ++i) {
      const double factor = y[i] * alpha[i];
      if (factor == 0.0) continue;
      const double* from = gram.row(row[i]);
      for (const auto [first, last] : runs) {
        const double* values = from + row[first];
        for (Index k = first; k < last; ++k) scores[k] += factor * values[k - first];
      }
    }
  }

  double violation() const {
    double highest = -std::numeric_limits<double>::infinity(), lowest = -highest;
    for (Index k = 0; k < count; ++k) {
      const double v = y[k] - scores[k];
      const bool above = alpha[k] > 0.0, below = alpha[k] < upper[k];
      if (y[k] > 0.0 ? below : above) highest = std::max(highest, v);
      if (y[k] > 0.0 ? above : below) lowest = std::min(lowest, v);
    }
    return highest - lowest;
  }
};

// What a solved problem is worth, and what rounding may have done to it.
struct Judged {
  double highest, lowest, intercept, gap, scale, primal, dual, square, rounding, lost;
};

Judged judge(const Problem& problem, double error, double alike) {
  double highest = -std::numeric_limits<double>::infinity(), lowest = -highest;
  double free = 0.0, mean = 0.0, square = 0.0, size = 0.0, one = 0.0, other = 0.0, squares = 0.0;
  for (Index k = 0; k < problem.count; ++k) {
    const double y = problem.y[k], upper = problem.upper[k], alpha = problem.alpha[k];
    const double v = y - problem.scores[k];
    const bool above = alpha > 0.0, below = alpha < upper, positive = y > 0.0;
    if (positive ? below : above) highest = std::max(highest, v);
    if (positive ? above : below) lowest = std::min(lowest, v);
    if (above && below) {
      free += 1.0;
      mean += v;
    }
    square += alpha * y * problem.scores[k];
    size += alpha;
    (positive ? one : other) += upper;
    squares += alpha * alpha;
  }
  const double intercept = free > 0.0 ? mean / free : 0.5 * (highest + lowest);
  const double rounding = error * std::sqrt(squares + size * size), scale = 2.0 * std::min(one, other);
  double gap = 0.0, cost = 0.0, together = 0.0, apart = 0.0;
  for (Index k = 0; k < problem.count; ++k) {
    const double upper = problem.upper[k], alpha = problem.alpha[k];
    const double slack = 1.0 - problem.y[k] * (problem.scores[k] + intercept), inside = std::max(slack, 0.0);
    gap += alpha * (inside - slack) + (upper - alpha) * inside;
    cost += upper * inside;
    // A row outside the margin by less than the rounding may be inside.
    const double touched = (slack > -rounding ? upper : 0.0) + 0.5 * alpha;
    together += touched;
    apart += touched * touched;
  }
  const double primal = 0.5 * square + cost;
  const double lost =
      std::max(2.0 * rounding * std::sqrt(apart), std::min(rounding * together, alike * scale));
  return {highest,
          lowest,
          intercept,
          gap,
          scale,
          primal,
          size - 0.5 * square,
          square,
          rounding,
          lost + 1e-13 * std::abs(primal)};
}

void find_runs(const Index* row, Index count, std::vector<RowRun>& runs) {
  runs.clear();
  for (Index k = 0; k < count; ++k) {
    if (k == 0 || row[k] != row[k - 1] + 1) runs.push_back({k, k});
    runs.back().last = k + 1;
  }
}

}  // namespace

bool solve_small_svms(const Table<double>& gram, const FlatProblems& problems, bool single, double error,
                      const Accuracy& accuracy, Index most_iterations, const FlatSolutions& solutions,
                      Stop& stop) {
  AlignedVector<float> floats;
  AlignedVector<double> doubles;
  std::vector<RowRun> runs;
  std::vector<double> gradient, snapped;
  const Index total = problems.start[problems.count];
  std::fill_n(solutions.alpha, total, 0.0);
  for (Index number = 0; number < problems.count; ++number) {
    const Index first = problems.start[number], count = problems.start[number + 1] - first;
    find_runs(problems.row + first, count, runs);
    const Problem problem{gram,
                          problems.row + first,
                          problems.y + first,
                          problems.upper + first,
                          solutions.alpha + first,
                          solutions.scores + first,
                          count,
                          runs};
    gradient.assign(static_cast<std::size_t>(count), -1.0);
    const DualPoint point{problem.y, problem.upper, problem.alpha, gradient.data()};
    Index& iterations = solutions.iterations[number];
    iterations = 0;
    double aim = accuracy.violation;
    Table<double> whole{};
    for (int round = single ? 0 : 1; round <= kRounds; ++round, aim *= 0.5) {
      SmoResult found{};
      if (round == 0) {
        found = minimise_pairs(problem.copy_gram(floats), point, aim, most_iterations - iterations, stop);
      } else {
        if (round == 1) whole = problem.copy_gram(doubles);
        found = minimise_pairs(whole, point, aim, most_iterations - iterations, stop);
      }
      iterations += found.iterations;
      problem.put_on_bounds(snapped);
      problem.score();
      if (!found.completed || iterations >= most_iterations) return false;
      if (problem.violation() <= accuracy.violation) break;
      if (round == kRounds) return false;
      for (Index k = 0; k < count; ++k) gradient[k] = problem.y[k] * problem.scores[k] - 1.0;
    }
    const Judged found = judge(problem, error, accuracy.alike);
    const double fields[] = {found.highest, found.lowest, found.intercept, found.gap,
                             found.scale,   found.primal, found.dual,      found.square};
    Index field = 0;
    for (const double value : fields) solutions.states[field++ * problems.count + number] = value;
    solutions.rounding[number] = found.rounding;
    solutions.lost[number] = found.lost;
    if (found.gap > accuracy.gap * found.scale) return false;
  }
  return true;
}

}  // namespace sixfold
