// The rows of a dual problem as sequential minimal optimisation reads them (smo.cpp states the problem), and
// the two passes of an iteration over them.
//
// Everything is padded to whole blocks and starts at a cache line: vectors that straddle two lines made the
// passes 1.6 times slower.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <vector>

#include "lane_mask.hpp"
#include "vector_math.hpp"

namespace sixfold {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNoCurvature = 1e-12;  // LIBSVM's curvature of pairs that have none
inline constexpr Index kBlock = 8 * kLanes;    // rows between two looks at which block is the steepest
inline constexpr std::align_val_t kCacheLine{64};

template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class Other>
  explicit LineAllocator(const LineAllocator<Other>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kCacheLine)); }
  void deallocate(T* from, std::size_t) { ::operator delete(from, kCacheLine); }
  bool operator==(const LineAllocator&) const { return true; }
};

template <class T>
using Lines = std::vector<T, LineAllocator<T>>;

inline Index whole_blocks(Index rows) { return (rows + kBlock - 1) / kBlock * kBlock; }

// `slope` is F = -y G. `rise` is +infinity for rows of I_up and -infinity for others, `fall` is -infinity for
// rows of I_low and +infinity for others, so that min(slope, rise) and max(slope, fall) leave the rest out
// without a branch.
template <class T>
struct DualRows {
  Index count = 0, padded = 0;
  Table<T> gram{};  // of `count` rows; as many columns as may be read, `count` or `padded`
  Lines<double> y, upper, alpha, slope, rise, fall, diagonal;
  Index recent[2] = {0, 0};                     // the rows that moved last
  Lines<T> tails = Lines<T>(2 * kBlock, T{0});  // the last blocks of two rows of a Gram that is not padded

  void resize(Index rows) {
    count = rows;
    padded = whole_blocks(rows);
    for (auto* each : {&y, &upper, &alpha, &slope, &diagonal}) each->resize(padded, 0.0);
    rise.resize(padded);
    fall.resize(padded);
    std::fill(rise.begin() + count, rise.end(), -kInfinity);
    std::fill(fall.begin() + count, fall.end(), kInfinity);
  }

  void note_bounds(Index k) {
    const bool grows = alpha[k] < upper[k], shrinks = alpha[k] > 0.0;
    rise[k] = (y[k] > 0.0 ? grows : shrinks) ? kInfinity : -kInfinity;
    fall[k] = (y[k] > 0.0 ? shrinks : grows) ? -kInfinity : kInfinity;
  }

  // How far y_k a_k may move up (+1) or down (-1).
  double room(Index k, double direction) const {
    return y[k] * direction > 0.0 ? upper[k] - alpha[k] : alpha[k];
  }

  double curvature(Index i, Index j) const {
    return diagonal[i] + diagonal[j] - 2.0 * static_cast<double>(gram.row(i)[j]);
  }
};

// Row i of the Gram, block by block; the last block is a copy where the row ends inside it.
template <class T>
class GramRow {
 public:
  GramRow(DualRows<T>& rows, Index i, Index which) : row_(rows.gram.row(i)), columns_(rows.gram.columns) {
    if (rows.padded <= columns_) return;
    T* tail = rows.tails.data() + which * kBlock;
    std::copy(row_ + (rows.padded - kBlock), row_ + columns_, tail);
    tail_ = tail;
  }
  const T* block(Index first) const { return first + kBlock <= columns_ ? row_ + first : tail_; }

 private:
  const T *row_, *tail_ = nullptr;
  Index columns_;
};

struct Ends {
  Index i;                 // the last row of I_up whose slope is `highest`
  double highest, lowest;  // of the slopes over I_up and I_low
};

// Ends of all rows from those of each lane and the last block in which a lane had its highest.
template <class T>
Ends ends_of_lanes(const DualRows<T>& rows, Lanes highest, Lanes lowest, LanesBits block) {
  Ends ends{0, -kInfinity, kInfinity};
  for (Index l = 0; l < kLanes; ++l) {
    ends.highest = std::max(ends.highest, highest[l]);
    ends.lowest = std::min(ends.lowest, lowest[l]);
  }
  Index first = 0;
  for (Index l = 0; l < kLanes; ++l)
    if (highest[l] == ends.highest) first = std::max<Index>(first, block[l]);
  for (Index k = first + kBlock - kLanes; k >= first; k -= kLanes) {
    const Lanes slope = smaller(load(rows.slope.data() + k), load(rows.rise.data() + k));
    const unsigned lanes = at_most(broadcast(ends.highest), slope);
    if (lanes == 0) continue;
    ends.i = k + 31 - __builtin_clz(lanes);
    break;
  }
  return ends;
}

// Moves the slopes by -(K_i step_i + K_j step_j) and finds the ends of the new ones.
template <class T>
Ends advance(DualRows<T>& rows, Index i, Index j, double step_i, double step_j) {
  const GramRow<T> row_i(rows, i, 0), row_j(rows, j, 1);
  double* const slopes = rows.slope.data();
  const double *const rises = rows.rise.data(), *const falls = rows.fall.data();
  Lanes highest = broadcast(-kInfinity), lowest = broadcast(kInfinity);
  LanesBits where{};
  for (Index first = 0; first < rows.padded; first += kBlock) {
    const T *of_i = row_i.block(first), *of_j = row_j.block(first);
    double* slope = slopes + first;
    const double *rise = rises + first, *fall = falls + first;
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
  return ends_of_lanes(rows, highest, lowest, where);
}

struct Partner {
  Index j = -1;
  double promise = 0.0, threshold = std::numeric_limits<double>::min();
};

// How much of the objective the pair would gain, twice over, were there no bounds; 0 where j cannot follow.
template <class T>
double promise(const DualRows<T>& rows, Index i, Index j, double entry) {
  const double difference = rows.slope[i] - std::max(rows.slope[j], rows.fall[j]);
  if (!(difference > 0.0)) return 0.0;
  const double curvature = rows.diagonal[i] + rows.diagonal[j] - 2.0 * entry;
  return difference * difference / (curvature > 0.0 ? curvature : kNoCurvature);
}

constexpr double kAlmost = 1.0 - 1e-15;  // rounding of the products that are compared instead of quotients

// Looks exactly at the rows first + l of the lanes that passed the test of `partner`.
template <class T>
[[gnu::noinline]] Partner consider(const DualRows<T>& rows, Index i, Index first, unsigned lanes,
                                   const T* of_i, Partner best) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const Index lane = __builtin_ctz(lanes);
    const double value = promise(rows, i, first + lane, static_cast<double>(of_i[lane]));
    if (value > 0.0 && value >= best.promise)
      best = {first + lane, value, std::max(best.threshold, value * kAlmost)};
  }
  return best;
}

// The row of I_low that promises the most together with row i. Divisions are slow: rows are looked at in full
// only if difference^2 reaches a promise that was seen times the curvature, give or take rounding; those of
// the rows that moved last are a good beginning.
template <class T>
Index partner(DualRows<T>& rows, Index i) {
  constexpr Index kTogether = 2;
  const GramRow<T> row_i(rows, i, 0);
  const double slope_i = rows.slope[i], diagonal_i = rows.diagonal[i];
  const double *const slopes = rows.slope.data(), *const falls = rows.fall.data();
  const double* const diagonals = rows.diagonal.data();
  Partner best;
  for (const Index j : rows.recent)
    best.threshold =
        std::max(best.threshold, kAlmost * promise(rows, i, j, static_cast<double>(rows.gram.row(i)[j])));
  for (Index first = 0; first < rows.padded; first += kBlock) {
    const T* of_i = row_i.block(first);
#pragma GCC unroll 4
    for (Index k = 0; k < kBlock; k += kTogether * kLanes) {
      unsigned lanes = 0;
#pragma GCC unroll 4
      for (Index part = 0; part < kTogether; ++part) {
        const Index at = k + part * kLanes;
        const Lanes difference = slope_i - larger(load(slopes + first + at), load(falls + first + at));
        const Lanes curvature = (diagonal_i + load(diagonals + first + at)) - 2.0 * load(of_i + at);
        lanes |= at_most(best.threshold * curvature, difference * magnitude(difference)) << (part * kLanes);
      }
      if (lanes != 0) [[unlikely]]
        best = consider(rows, i, first + k, lanes, of_i + k, best);
    }
  }
  return best.j;
}

}  // namespace sixfold
