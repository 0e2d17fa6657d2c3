// The rows of a dual problem as sequential minimal optimisation reads them (smo.cpp states the problem), and
// the two passes of an iteration over them.
//
// Everything is padded to whole blocks and starts at a cache line: vectors that straddle two lines made the
// passes 1.6 times slower.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/lane_mask.hpp"
#include "core/vector_math.hpp"
#include "kernel/packs.hpp"

namespace sixfold {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNoCurvature = 1e-12;     // LIBSVM's curvature of pairs that have none
inline constexpr Index kRowsAtOnce = 8 * kLanes;  // rows between two looks at which block is the steepest

inline Index whole_blocks(Index rows) { return (rows + kRowsAtOnce - 1) / kRowsAtOnce * kRowsAtOnce; }

// Which lanes of a are at least those of b.
inline unsigned reaches(Lanes a, Lanes b) { return at_most(b, a); }
inline unsigned reaches(FloatLanes a, FloatLanes b) { return at_least(a, b); }

inline void store_as(double* to, Lanes value) { store(to, value); }
inline void store_as(float* to, Lanes value) {
  using Half [[gnu::vector_size(kLanes * sizeof(float))]] = float;
  using LooseHalf [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(sizeof(float)), gnu::may_alias]] =
      float;
  *reinterpret_cast<LooseHalf*>(to) = __builtin_convertvector(value, Half);
}

// `slope` is F = -y G; `rise` and `fall` say which rows are in I_up and I_low, a bit a row and a byte a
// vector. `low` is what the search for partners reads: slope - centre in the Gram's type, infinite outside
// I_low.
template <class T>
struct DualRows {
  Index count = 0, padded = 0;
  Table<T> gram{};  // of `count` rows; as many columns as may be read, `count` or `padded`
  AlignedVector<double> y, upper, alpha, slope, diagonal;
  std::vector<std::uint8_t> rise, fall;
  AlignedVector<T> low, diagonal_as;
  double centre = 0.0;       // near the slopes of free rows, so that floats tell small differences
  double widest = 0.0;       // of the diagonal's sizes
  Index recent[2] = {0, 0};  // the rows that moved last
  AlignedVector<T> tails =
      AlignedVector<T>(2 * kRowsAtOnce, T{0});  // the last blocks of two rows of a Gram that is not padded

  // Room for so many rows, whose arrays are then filled, and start() called.
  void resize(Index rows) {
    count = rows;
    padded = whole_blocks(rows);
    for (auto* each : {&y, &upper, &alpha, &slope, &diagonal}) each->resize(padded, 0.0);
  }

  void start() {
    rise.assign(padded / kLanes, 0);
    fall.assign(padded / kLanes, 0);
    low.assign(padded, static_cast<T>(kInfinity));
    diagonal_as.assign(diagonal.begin(), diagonal.end());
    recent[0] = recent[1] = 0;
    widest = 0.0;
    for (Index k = 0; k < count; ++k) {
      note_bounds(k);
      widest = std::max(widest, std::abs(diagonal[k]));
    }
  }

  void note_bounds(Index k) {
    const bool grows = alpha[k] < upper[k], shrinks = alpha[k] > 0.0;
    note(rise, k, y[k] > 0.0 ? grows : shrinks);
    note(fall, k, y[k] > 0.0 ? shrinks : grows);
  }
  static void note(std::vector<std::uint8_t>& bits, Index k, bool value) {
    const unsigned bit = 1u << (k % kLanes);
    bits[k / kLanes] = static_cast<std::uint8_t>(value ? bits[k / kLanes] | bit : bits[k / kLanes] & ~bit);
  }
  bool may_rise(Index k) const { return (rise[k / kLanes] >> (k % kLanes) & 1) != 0; }
  bool may_fall(Index k) const { return (fall[k / kLanes] >> (k % kLanes) & 1) != 0; }

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
    T* tail = rows.tails.data() + which * kRowsAtOnce;
    std::copy(row_ + (rows.padded - kRowsAtOnce), row_ + columns_, tail);
    tail_ = tail;
  }
  const T* block(Index first) const { return first + kRowsAtOnce <= columns_ ? row_ + first : tail_; }

 private:
  const T *row_, *tail_ = nullptr;
  Index columns_;
};

// Asks for the block 4 kB further on: the processor's own prefetching ends with each page.
template <class T>
inline void fetch_ahead(const T* block) {
  constexpr Index kLine = 64 / sizeof(T), kAhead = 4096 / sizeof(T);
  for (Index k = 0; k < kRowsAtOnce; k += kLine) __builtin_prefetch(block + kAhead + k);
}

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
  for (Index k = first + kRowsAtOnce - kLanes; k >= first; k -= kLanes) {
    const unsigned lanes =
        at_most(broadcast(ends.highest), load(rows.slope.data() + k)) & rows.rise[k / kLanes];
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
  T* const lows = rows.low.data();
  const std::uint8_t *const rises = rows.rise.data(), *const falls = rows.fall.data();
  const double centre = rows.centre;
  Lanes highest = broadcast(-kInfinity), lowest = broadcast(kInfinity);
  LanesBits where{};
  for (Index first = 0; first < rows.padded; first += kRowsAtOnce) {
    const T *of_i = row_i.block(first), *of_j = row_j.block(first);
    fetch_ahead(of_j);
    Lanes top = broadcast(-kInfinity);
#pragma GCC unroll 8
    for (Index k = 0; k < kRowsAtOnce; k += kLanes) {
      const Index at = first + k;
      const Lanes moved = load(slopes + at) - (load(of_i + k) * step_i + load(of_j + k) * step_j);
      store(slopes + at, moved);
      top = larger(top, chosen(rises[at / kLanes], moved, broadcast(-kInfinity)));
      const Lanes low = chosen(falls[at / kLanes], moved, broadcast(kInfinity));
      lowest = smaller(lowest, low);
      store_as(lows + at, low - centre);
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
  const double difference = rows.slope[i] - rows.slope[j];
  if (!(difference > 0.0) || !rows.may_fall(j)) return 0.0;
  const double curvature = rows.diagonal[i] + rows.diagonal[j] - 2.0 * entry;
  return difference * difference / (curvature > 0.0 ? curvature : kNoCurvature);
}

// Looks exactly at the rows first + l of the lanes that passed the test of `partner`.
template <class T>
[[gnu::noinline]] Partner consider(const DualRows<T>& rows, Index i, Index first, unsigned lanes,
                                   const T* of_i, Partner best) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const Index lane = __builtin_ctz(lanes);
    const double value = promise(rows, i, first + lane, static_cast<double>(of_i[lane]));
    if (value > 0.0 && value >= best.promise) best = {first + lane, value, std::max(best.threshold, value)};
  }
  return best;
}

// The row of I_low that promises the most together with row i. Divisions are slow, and so are doubles: rows
// are looked at exactly only if, in the Gram's type, difference^2 reaches a promise that was seen times the
// curvature; all three are rounded so that no row is missed. The promises of the rows that moved last are a
// good beginning.
template <class T>
Index partner(DualRows<T>& rows, Index i) {
  constexpr double kUnit = std::numeric_limits<T>::epsilon();
  constexpr double kAlmost = 1.0 - 16.0 * kUnit;
  const GramRow<T> row_i(rows, i, 0);
  const double from_centre = rows.slope[i] - rows.centre;
  const T slope_i = static_cast<T>(from_centre + 4.0 * kUnit * std::abs(from_centre));
  const T diagonal_i = static_cast<T>(rows.diagonal[i] - 4.0 * kUnit * rows.widest);
  const T *const lows = rows.low.data(), *const diagonals = rows.diagonal_as.data();
  Partner best;
  for (const Index j : rows.recent)
    best.threshold = std::max(best.threshold, promise(rows, i, j, static_cast<double>(rows.gram.row(i)[j])));
  T threshold = static_cast<T>(kAlmost * best.threshold);
  for (Index first = 0; first < rows.padded; first += kRowsAtOnce) {
    const T* of_i = row_i.block(first);
    fetch_ahead(of_i);
#pragma GCC unroll 8
    for (Index k = 0; k < kRowsAtOnce; k += kWidth<T>) {
      const auto difference = slope_i - load_pack(lows + first + k);
      const auto curvature = (diagonal_i + load_pack(diagonals + first + k)) - T{2} * load_pack(of_i + k);
      const auto size = difference > -difference ? difference : -difference;
      const unsigned lanes = reaches(difference * size, threshold * curvature);
      if (lanes != 0) [[unlikely]] {
        best = consider(rows, i, first + k, lanes, of_i + k, best);
        threshold = static_cast<T>(kAlmost * best.threshold);
      }
    }
  }
  return best.j;
}

}  // namespace sixfold
