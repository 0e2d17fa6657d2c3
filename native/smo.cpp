// Sequential minimal optimisation of the dual of a kernel machine on a stored Gram.
//
//     minimise 1/2 sum_ij a_i a_j y_i y_j K_ij - sum_i a_i     0 <= a_i <= U_i,  sum_i a_i y_i = 0
//
// An iteration moves y_i a_i up and y_j a_j down by the same step (Platt 1998). With the slope
// F_k = -y_k G_k = y_k - s_k, where I_up are the rows whose y_k a_k may grow and I_low those where it may
// shrink,
//
//     i = argmax over I_up of F       j = argmax over I_low, F_j < F_i, of (F_i - F_j)^2 / (K_ii + K_jj - 2
//     K_ij)
//
// (second-order working sets, Fan, Chen and Lin 2005), the last of equal rows as in LIBSVM. It ends when the
// violation F_i - min over I_low of F is at most the tolerance.
//
// Compiled without fused multiply-add, so that every instruction set takes the same path: equal rows stay
// equal wherever they stand, and the result is that of the plain formula.
#include "smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lane_mask.hpp"
#include "vector_math.hpp"

namespace sixfold {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoCurvature = 1e-12;  // LIBSVM's curvature of pairs that have none
constexpr double kRounding = 1e-6;      // a curvature below -kRounding (K_ii + K_jj) is no rounding of floats
constexpr Index kVectors = 8;
constexpr Index kBlock = kVectors * kLanes;  // rows between two looks at which block has the steepest slope
constexpr Index kPoll = 256;                 // iterations between two looks at the clock

// The rows of a problem, padded to whole blocks. `rise` is +infinity for rows of I_up and -infinity for
// others, `fall` is -infinity for rows of I_low and +infinity for others, so that min(slope, rise) and
// max(slope, fall) leave the rest out without a branch.
template <class T>
struct Rows {
  Index count, padded;
  Table<T> gram;
  std::vector<double> y, upper, alpha, slope, rise, fall, diagonal;
  std::vector<T> tails = std::vector<T>(2 * kBlock, T{0});  // of two rows of the Gram, padded

  explicit Rows(const Table<T>& table)
      : count(table.rows), padded((count + kBlock - 1) / kBlock * kBlock), gram(table) {
    for (auto* each : {&y, &upper, &alpha, &slope, &diagonal}) each->assign(padded, 0.0);
    rise.assign(padded, -kInfinity);
    fall.assign(padded, kInfinity);
    for (Index k = 0; k < count; ++k) diagonal[k] = static_cast<double>(gram.row(k)[k]);
  }

  void note_bounds(Index k) {
    const bool grows = alpha[k] < upper[k], shrinks = alpha[k] > 0.0;
    rise[k] = (y[k] > 0.0 ? grows : shrinks) ? kInfinity : -kInfinity;
    fall[k] = (y[k] > 0.0 ? shrinks : grows) ? -kInfinity : kInfinity;
  }

  // Entries of row i of the Gram for the block that begins at `first`; the last one ends in `tail`.
  const T* entries(Index i, Index first, const T* tail) const {
    return first + kBlock <= count ? gram.row(i) + first : tail;
  }

  const T* tail(Index i, Index which) {
    T* to = tails.data() + which * kBlock;
    const Index first = padded - kBlock;
    std::copy(gram.row(i) + first, gram.row(i) + count, to);
    return to;
  }
};

struct Ends {
  Index i;
  double highest, lowest;  // of the slopes over I_up and I_low
};

// The last row of I_up whose slope is `highest`, in the last block that has one.
template <class T>
Index last_highest(const Rows<T>& rows, Lanes highest, LanesBits block, double value) {
  Index found = 0;
  for (Index l = 0; l < kLanes; ++l)
    if (highest[l] == value) found = std::max<Index>(found, block[l]);
  Index k = found + kBlock - 1;
  while (k > found && std::min(rows.slope[k], rows.rise[k]) != value) --k;
  return k;
}

// Moves the slopes by -(K_i step_i + K_j step_j) and finds the ends of the new ones.
template <class T>
Ends advance(Rows<T>& rows, Index i, Index j, double step_i, double step_j) {
  const T *tail_i = rows.tail(i, 0), *tail_j = rows.tail(j, 1);
  Lanes highest = broadcast(-kInfinity), lowest = broadcast(kInfinity);
  LanesBits where{};
  for (Index first = 0; first < rows.padded; first += kBlock) {
    const T *of_i = rows.entries(i, first, tail_i), *of_j = rows.entries(j, first, tail_j);
    double* slope = rows.slope.data() + first;
    const double *rise = rows.rise.data() + first, *fall = rows.fall.data() + first;
    Lanes top = broadcast(-kInfinity);
#pragma GCC unroll 8
    for (Index k = 0; k < kBlock; k += kLanes) {
      const Lanes moved = load(slope + k) - (load(of_i + k) * step_i + load(of_j + k) * step_j);
      store(slope + k, moved);
      top = larger(top, smaller(moved, load(rise + k)));
      lowest = smaller(lowest, larger(moved, load(fall + k)));
    }
    const auto later = top >= highest;
    highest = later ? top : highest;
    where = later ? LanesBits{} + first : where;
  }
  Ends ends{0, -kInfinity, kInfinity};
  for (Index l = 0; l < kLanes; ++l) {
    ends.highest = std::max(ends.highest, highest[l]);
    ends.lowest = std::min(ends.lowest, lowest[l]);
  }
  ends.i = last_highest(rows, highest, where, ends.highest);
  return ends;
}

struct Partner {
  Index j = -1;
  double promise = 0.0, threshold = std::numeric_limits<double>::min();
};

// Looks exactly at the rows first + l of the lanes that passed the test of `partner`.
template <class T>
void consider(const Rows<T>& rows, Index i, double slope_i, Index first, unsigned lanes, const T* of_i,
              Partner& best) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const Index lane = __builtin_ctz(lanes), k = first + lane;
    const double difference = slope_i - std::max(rows.slope[k], rows.fall[k]);
    if (!(difference > 0.0)) continue;
    const double curvature = rows.diagonal[i] + rows.diagonal[k] - 2.0 * static_cast<double>(of_i[lane]);
    const double promise = difference * difference / (curvature > 0.0 ? curvature : kNoCurvature);
    if (promise >= best.promise) best = {k, promise, promise * (1.0 - 1e-15)};
  }
}

// The row of I_low that promises the most together with row i. Divisions are slow: a vector of rows is looked
// at in full only if difference^2 reaches the best promise so far times the curvature, give or take rounding.
template <class T>
Partner partner(Rows<T>& rows, Index i) {
  const T* tail = rows.tail(i, 0);
  const double slope_i = rows.slope[i], diagonal_i = rows.diagonal[i];
  Partner best;
  for (Index first = 0; first < rows.padded; first += kBlock) {
    const T* of_i = rows.entries(i, first, tail);
    for (Index k = 0; k < kBlock; k += kLanes) {
      const Index at = first + k;
      const Lanes difference = slope_i - larger(load(rows.slope.data() + at), load(rows.fall.data() + at));
      const Lanes curvature = (diagonal_i + load(rows.diagonal.data() + at)) - 2.0 * load(of_i + k);
      const unsigned lanes = at_most(best.threshold * curvature, difference * magnitude(difference));
      if (lanes != 0) consider(rows, i, slope_i, at, lanes, of_i + k, best);
    }
  }
  return best;
}

// How far y_k a_k may move up (+1) or down (-1).
template <class T>
double room(const Rows<T>& rows, Index k, double direction) {
  return rows.y[k] * direction > 0.0 ? rows.upper[k] - rows.alpha[k] : rows.alpha[k];
}

// Moves y_k a_k by `step`; a row that has no more room than that ends exactly at its bound. Returns the
// change.
template <class T>
double move(Rows<T>& rows, Index k, double step, bool to_bound) {
  const double old = rows.alpha[k], change = rows.y[k] * step;
  const double bound = change > 0.0 ? rows.upper[k] : 0.0;
  rows.alpha[k] = to_bound ? bound : std::clamp(old + change, 0.0, rows.upper[k]);
  rows.note_bounds(k);
  return rows.y[k] * (rows.alpha[k] - old);
}

template <class T>
SmoResult descend(Rows<T>& rows, double tolerance, Index most_iterations, Stop& stop) {
  SmoResult result{0, 0.0, true, false};
  Ends ends = advance(rows, 0, 0, 0.0, 0.0);
  for (;;) {
    result.violation = ends.highest - ends.lowest;
    if (!(result.violation > tolerance) || result.iterations >= most_iterations) return result;
    if (result.iterations % kPoll == 0 && stop.now()) {
      result.completed = false;
      return result;
    }
    const Index i = ends.i, j = partner(rows, i).j;
    if (j < 0) return result;  // entries that are not numbers
    const double both = rows.diagonal[i] + rows.diagonal[j];
    const double curvature = both - 2.0 * static_cast<double>(rows.gram.row(i)[j]);
    if (curvature < -kRounding * std::abs(both)) result.indefinite = true;
    const double best = (rows.slope[i] - rows.slope[j]) / (curvature > 0.0 ? curvature : kNoCurvature);
    const double room_i = room(rows, i, 1.0), room_j = room(rows, j, -1.0);
    const double step = std::min({best, room_i, room_j});
    const double moved_i = move(rows, i, step, step == room_i),
                 moved_j = move(rows, j, -step, step == room_j);
    if (moved_i == 0.0 && moved_j == 0.0) return result;  // smaller than rounding
    ends = advance(rows, i, j, moved_i, moved_j);
    ++result.iterations;
  }
}

}  // namespace

template <class T>
SmoResult minimise_pairs(const Table<T>& gram, const DualPoint& point, double tolerance,
                         Index most_iterations, Stop& stop) {
  if (gram.rows == 0) return {0, -kInfinity, true, false};
  Rows<T> rows(gram);
  for (Index k = 0; k < gram.rows; ++k) {
    rows.y[k] = point.y[k];
    rows.upper[k] = point.upper[k];
    rows.alpha[k] = point.alpha[k];
    rows.slope[k] = -point.y[k] * point.gradient[k];
    rows.note_bounds(k);
  }
  const SmoResult result = descend(rows, tolerance, most_iterations, stop);
  for (Index k = 0; k < gram.rows; ++k) {
    point.alpha[k] = rows.alpha[k];
    point.gradient[k] = -point.y[k] * rows.slope[k];
  }
  return result;
}

template SmoResult minimise_pairs(const Table<float>&, const DualPoint&, double, Index, Stop&);
template SmoResult minimise_pairs(const Table<double>&, const DualPoint&, double, Index, Stop&);

}  // namespace sixfold
