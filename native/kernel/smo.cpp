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
// Rows that cannot be chosen now, at a bound and beyond the slopes of the other set, are left out for a while
// (shrinking, Joachims 1998): the others go on with a packed copy of their part of the Gram, whose rows are
// shorter and nearer to the processor. When the violation has fallen to a tenth, the slopes of all rows are
// made up for and everything begins again.
//
// Compiled without fused multiply-add, so that every instruction set takes the same path: equal rows stay
// equal wherever they stand, and the result is that of the plain formula.
#include "kernel/smo.hpp"

#include <cmath>
#include <utility>

#include "kernel/smo_rows.hpp"

namespace sixfold {
namespace {

constexpr double kRounding = 1e-6;  // a curvature below -kRounding (K_ii + K_jj) is no rounding of floats
constexpr Index kPoll = 256;        // iterations between two looks at the clock
constexpr Index kPeriod = 1000;  // iterations between two looks at which rows can be left out, as in LIBSVM
constexpr double kEnough = 0.1;  // of the violation: then the rows left out are looked at again

// What one call has used and found.
struct Run {
  Index most_iterations;
  Stop& stop;
  SmoResult result{0, 0.0, true, false};

  bool over() {
    if (result.completed && result.iterations % kPoll == 0 && stop.now()) result.completed = false;
    return !result.completed || result.iterations >= most_iterations;
  }
};

// Moves y_k a_k by `step`, exactly to the bound if asked. Returns by how much it moved.
template <class T>
double move(DualRows<T>& rows, Index k, double step, bool to_bound) {
  const double old = rows.alpha[k], change = rows.y[k] * step;
  const double bound = change > 0.0 ? rows.upper[k] : 0.0;
  rows.alpha[k] = to_bound ? bound : std::clamp(old + change, 0.0, rows.upper[k]);
  rows.note_bounds(k);
  return rows.y[k] * (rows.alpha[k] - old);
}

// One iteration; false if nothing moved.
template <class T>
bool iterate(DualRows<T>& rows, Ends& ends, SmoResult& result) {
  const Index i = ends.i, j = partner(rows, i);
  if (j < 0) return false;  // entries that are not numbers
  const double curvature = rows.curvature(i, j);
  if (curvature < -kRounding * std::abs(rows.diagonal[i] + rows.diagonal[j])) result.indefinite = true;
  const double best = (rows.slope[i] - rows.slope[j]) / (curvature > 0.0 ? curvature : kNoCurvature);
  const double room_i = rows.room(i, 1.0), room_j = rows.room(j, -1.0);
  const double step = std::min({best, room_i, room_j});
  const double moved_i = move(rows, i, step, step == room_i), moved_j = move(rows, j, -step, step == room_j);
  if (moved_i == 0.0 && moved_j == 0.0) return false;  // smaller than rounding
  rows.recent[0] = i;
  rows.recent[1] = j;
  rows.centre = ends.highest;
  ends = advance(rows, i, j, moved_i, moved_j);
  ++result.iterations;
  return true;
}

template <class T>
Ends ends_now(DualRows<T>& rows) {
  return advance(rows, 0, 0, 0.0, 0.0);
}

// -- rows left out -----------------------------------------------------------------------------------------

// The rows that may be chosen: all but those at a bound, beyond the slopes of the other set.
template <class T>
std::vector<Index> movable(const DualRows<T>& rows, const Ends& ends) {
  std::vector<Index> kept;
  for (Index k = 0; k < rows.count; ++k) {
    const bool rises = rows.may_rise(k), falls = rows.may_fall(k);
    if ((rises && (falls || rows.slope[k] >= ends.lowest)) || (falls && rows.slope[k] <= ends.highest))
      kept.push_back(k);
  }
  return kept;
}

// Some rows of a problem with their own Gram, padded; `origin` says which rows of the whole they are.
template <class T>
struct Part {
  DualRows<T> rows;
  AlignedVector<T> entries;
  std::vector<Index> origin;
};

// Copies the kept rows of `from` to the front of `to`; they may be the same, for entries only move forward.
template <class T>
void pack(const DualRows<T>& from, const std::vector<Index>& kept, AlignedVector<T>& entries,
          DualRows<T>& to) {
  const Index count = static_cast<Index>(kept.size()), stride = whole_blocks(count);
  const Table<T> gram = from.gram;
  for (Index r = 0; r < count; ++r) {
    const T* row = gram.row(kept[r]);
    T* packed = entries.data() + r * stride;
    for (Index c = 0; c < count; ++c) packed[c] = row[kept[c]];
    std::fill(packed + count, packed + stride, T{0});
  }
  if (&from != &to) to.resize(count);
  for (auto each : {&DualRows<T>::y, &DualRows<T>::upper, &DualRows<T>::alpha, &DualRows<T>::slope,
                    &DualRows<T>::diagonal})
    for (Index r = 0; r < count; ++r) (to.*each)[r] = (from.*each)[kept[r]];
  to.resize(count);
  to.start();
  to.centre = from.centre;
  to.gram = {entries.data(), count, stride, stride, 1};
}

template <class T>
Part<T> part_of(const DualRows<T>& rows, std::vector<Index>&& kept) {
  Part<T> part;
  part.entries.resize(kept.size() * whole_blocks(kept.size()));
  pack(rows, kept, part.entries, part.rows);
  part.origin = std::move(kept);
  return part;
}

// Hands the multipliers of a part over to the whole.
template <class T>
void put_back(const Part<T>& part, DualRows<T>& whole) {
  for (Index k = 0; k < part.rows.count; ++k) whole.alpha[part.origin[k]] = part.rows.alpha[k];
}

// Leaves out more rows of a part.
template <class T>
void narrow(Part<T>& part, std::vector<Index>&& kept, DualRows<T>& whole) {
  put_back(part, whole);
  pack(part.rows, kept, part.entries, part.rows);
  for (Index& k : kept) k = part.origin[k];
  part.origin = std::move(kept);
}

// Whether leaving out all other rows pays, if a copied entry costs what two rows do in an iteration and half
// as many iterations are to come as there have been. (16,000 rows, 10,400 of them free, converge after 52,777
// iterations: 0.84 s; 1.15 s where as many were expected, and the last third paid for a copy of 430 MB.)
template <class T>
bool worthwhile(const std::vector<Index>& kept, const DualRows<T>& rows, Index iterations) {
  const Index count = static_cast<Index>(kept.size());
  return 4 * count * count <= (rows.count - count) * iterations;
}

// Iterates on a part, with ever fewer rows, until its violation is at most `tolerance`; false if nothing
// moves.
template <class T>
bool descend_part(Part<T>& part, DualRows<T>& whole, double tolerance, Run& run) {
  DualRows<T>& rows = part.rows;
  Ends ends = ends_now(rows);
  Index next = run.result.iterations + kPeriod;
  bool moves = true;
  while (moves && ends.highest - ends.lowest > tolerance && !run.over()) {
    moves = iterate(rows, ends, run.result);
    if (run.result.iterations < next) continue;
    next += kPeriod;
    std::vector<Index> kept = movable(rows, ends);
    if (!worthwhile(kept, rows, run.result.iterations)) continue;
    narrow(part, std::move(kept), whole);
    ends = ends_now(rows);
  }
  put_back(part, whole);
  return moves;
}

// Makes up for what happened to multipliers since `before`: slopes of all rows, and where they may move.
template <class T>
void catch_up(DualRows<T>& rows, const AlignedVector<double>& before) {
  for (Index i = 0; i < rows.count; ++i) {
    const double change = rows.alpha[i] - before[i];
    if (change == 0.0) continue;
    const double step = rows.y[i] * change;
    const T* row = rows.gram.row(i);
    for (Index k = 0; k < rows.count; ++k) rows.slope[k] -= static_cast<double>(row[k]) * step;
    rows.note_bounds(i);
  }
}

template <class T>
void descend(DualRows<T>& rows, double tolerance, Run& run) {
  Ends ends = ends_now(rows);
  Index next = kPeriod;
  bool moves = true;
  while (moves && (run.result.violation = ends.highest - ends.lowest) > tolerance && !run.over()) {
    if (run.result.iterations < next) {
      moves = iterate(rows, ends, run.result);
      continue;
    }
    std::vector<Index> kept = movable(rows, ends);
    if (worthwhile(kept, rows, run.result.iterations)) {
      const AlignedVector<double> before = rows.alpha;
      Part<T> part = part_of(rows, std::move(kept));
      // Where nothing moves in the part, the whole has the last word.
      if (!descend_part(part, rows, std::max(tolerance, kEnough * run.result.violation), run))
        next = run.result.iterations + kPeriod;
      catch_up(rows, before);
      ends = ends_now(rows);
    } else {
      next = run.result.iterations + kPeriod;
    }
  }
}

}  // namespace

template <class T>
SmoResult minimise_pairs(const Table<T>& gram, const DualPoint& point, double tolerance,
                         Index most_iterations, Stop& stop) {
  if (gram.rows == 0) return {0, -kInfinity, true, false};
  DualRows<T> rows;
  rows.gram = gram;
  rows.resize(gram.rows);
  for (Index k = 0; k < gram.rows; ++k) {
    rows.y[k] = point.y[k];
    rows.upper[k] = point.upper[k];
    rows.alpha[k] = point.alpha[k];
    rows.slope[k] = -point.y[k] * point.gradient[k];
    rows.diagonal[k] = static_cast<double>(gram.row(k)[k]);
  }
  rows.start();
  Run run{most_iterations, stop};
  descend(rows, tolerance, run);
  for (Index k = 0; k < gram.rows; ++k) {
    point.alpha[k] = rows.alpha[k];
    point.gradient[k] = -point.y[k] * rows.slope[k];
  }
  return run.result;
}

template SmoResult minimise_pairs(const Table<float>&, const DualPoint&, double, Index, Stop&);
template SmoResult minimise_pairs(const Table<double>&, const DualPoint&, double, Index, Stop&);

}  // namespace sixfold
