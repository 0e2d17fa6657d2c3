// What a leaf costs, in whole numbers: W - max_c w_c, or W ln W - sum_c w_c ln w_c in units of 2^-s.
//
// Rows that count 1 have int32 counts, others doubles that are whole numbers, so that all sums are exact and
// no order of adding matters. With F(x) = round(x ln x 2^s) an entropy is F(W) - sum_c F(w_c). The second
// differences of F are at least 2^s / n, far more than rounding takes, so F is convex and a cost never falls
// where a row is added, exactly as without rounding: bounds by fewer rows need no allowance.
//
// A strip has the class counts low[c][f] of the rows before each edge f of the bins of a column; its last
// entry is the total. Between the edges f and f + 1 (inside bin f) no threshold costs less than what is
// certain of both sides there:
//   errors, two classes   min(l1[f] + r0[f + 1], l0[f] + r1[f + 1]), l and r the counts left and right of an
//   edge errors                n - max over classes a != b of (l_a[f + 1] + r_b[f]); a = b is the leaf
//   entropy               leaf(left of f) + leaf(right of f + 1)
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/float_lanes.hpp"
#include "core/simd.hpp"
#include "core/table.hpp"
#include "trees/fast_entropy.hpp"

namespace sixfold::optimal {

// The vectors of counts and costs.
template <class T>
struct LanesOf;

template <>
struct LanesOf<std::int32_t> {
  using Type = IntLanes;
  static constexpr int kCount = static_cast<int>(kFloatLanes);
  static Type load(const std::int32_t* from) { return load_ints(from); }
  static void store(std::int32_t* to, Type value) { store_ints(to, value); }
};

template <>
struct LanesOf<double> {
  using Type = Lanes;
  static constexpr int kCount = static_cast<int>(kLanes);
  static Type load(const double* from) { return sixfold::load(from); }
  static void store(double* to, Type value) { sixfold::store(to, value); }
};

inline constexpr Index kMostEdges = 64;  // of a strip

template <class Value>
inline constexpr Value kNever =
    std::is_integral_v<Value> ? static_cast<Value>(1 << 29) : static_cast<Value>(1e18);

template <class Value>
struct StripLeast {
  Value edge, inner;  // the least cost at an edge, and the least bound inside a bin that is open
};

// The least numbers of errors. Count is int32 or double.
template <class CountType>
class ErrorCost {
 public:
  using Count = CountType;
  using Value = CountType;

  explicit ErrorCost(Index classes) : classes_(classes) {}

  Value leaf(const Count* counts) const {
    Count sum = 0, most = 0;
    for (Index c = 0; c < classes_; ++c) sum += counts[c], most = std::max(most, counts[c]);
    return sum - most;
  }

  // No tree of so many leaves costs less: a leaf has one class right.
  Value floor(const Count* counts, Index leaves) const {
    if (leaves >= classes_) return 0;
    if (leaves == 1) return leaf(counts);
    std::vector<Count> sorted(counts, counts + classes_);
    std::nth_element(sorted.begin(), sorted.begin() + leaves, sorted.end(), std::greater<>());
    return std::accumulate(sorted.begin() + leaves, sorted.end(), Value{0});
  }

  // `low` has class c at c * stride; `shut` is 0 for bins that have thresholds inside, else kNever.
  template <int S>
  StripLeast<Value> strip(const Count* low, Index stride, const Value* shut) const {
    if (classes_ == 2) return two_classes<S>(low, low + stride, shut);
    Value edge[S], inner[S];
    costs<S>(low, stride, shut, edge, inner);
    Value least_edge = edge[0], least_inner = inner[0];
    for (int f = 1; f < S; ++f) {
      least_edge = std::min(least_edge, edge[f]);
      least_inner = std::min(least_inner, inner[f]);
    }
    return {least_edge, least_inner};
  }

  // The cost at every edge, and the bound inside every bin. One past the end of `low` is read.
  template <int S>
  void costs(const Count* low, Index stride, const Value* shut, Value* edge, Value* inner) const {
    if (classes_ == 2) return two_costs<S>(low, low + stride, shut, edge, inner);
    using V = LanesOf<Count>;
    using Vector = typename V::Type;
    Count sum = 0;
    for (Index c = 0; c < classes_; ++c) sum += low[c * stride + S - 1];
    for (int f = 0; f < S; f += V::kCount) {
      Vector left{}, right{}, second{};
      auto which = left == right;  // all bits set: no class
      auto number = left != left;  // of the class
      for (Index c = 0; c < classes_; ++c) {
        const Count* counts = low + c * stride;
        const Vector here = V::load(counts + f), behind = counts[S - 1] - here;
        left = here > left ? here : left;
        const auto most = behind > right;
        const Vector other = behind > second ? behind : second;
        second = most ? right : other;
        which = most ? number : which;
        right = most ? behind : right;
        number += 1;
      }
      V::store(edge + f, sum - left - right);
      Vector both{};
      number = left != left;
      for (Index c = 0; c < classes_; ++c) {
        const Vector sides = V::load(low + c * stride + f + 1) + (which == number ? second : right);
        both = sides > both ? sides : both;
        number += 1;
      }
      V::store(inner + f, sum - both + V::load(shut + f));
    }
  }

  // Bounds as `costs` gives them; returns the least cost at an edge, or `best`.
  template <int S>
  Value bounds(const Count* low, Index stride, const Value* shut, Value best, Value* edge,
               Value* inner) const {
    costs<S>(low, stride, shut, edge, inner);
    for (int f = 0; f < S; ++f) best = std::min(best, edge[f]);
    return best;
  }

  template <int S>
  Value inner_bound(const Count*, Index, int, const Value*, Value inner) const {
    return inner;
  }

  // Rows that go from right to left one by one; `memory` is for two counts a class.
  class Walk {
   public:
    Walk(const ErrorCost& cost, const Count* left, const Count* total, Count* memory)
        : classes_(cost.classes_), left_(memory), right_(memory + classes_) {
      for (Index c = 0; c < classes_; ++c) {
        left_[c] = left[c];
        right_[c] = total[c] - left[c];
        sum_ += total[c];
        most_left_ = std::max(most_left_, left_[c]);
      }
    }
    void move(Index c, Count w) {
      left_[c] += w;
      right_[c] -= w;
      most_left_ = std::max(most_left_, left_[c]);
    }
    void move_if(bool moves, Index c) { move(c, static_cast<Count>(moves)); }
    Value cost() const {
      Count most_right = 0;
      for (Index c = 0; c < classes_; ++c) most_right = std::max(most_right, right_[c]);
      return sum_ - most_left_ - most_right;
    }

   private:
    Index classes_;
    Count *left_, *right_;
    Count sum_ = 0, most_left_ = 0;
  };

  // The same of two classes: with d = left1 - left0 the errors are total0 + d, or total1 - d, or those of a
  // leaf.
  class TwoWalk {
   public:
    TwoWalk(const ErrorCost&, const Count* left, const Count* total, Count*)
        : difference_(left[1] - left[0]), zero_(total[0]), one_(total[1]) {}
    void move(Index c, Count w) { difference_ += c == 0 ? -w : w; }
    void move_if(bool moves, Index c) {
      difference_ += static_cast<Count>(moves) * static_cast<Count>(2 * c - 1);
    }
    Value cost() const { return std::min(zero_ + difference_, one_ - difference_); }

   private:
    Count difference_, zero_, one_;
  };

 private:
  template <int S>
  StripLeast<Value> two_classes(const Count* a0, const Count* a1, const Value* shut) const {
    Value up = kNever<Value>, down = kNever<Value>, inner_up = kNever<Value>, inner_down = kNever<Value>;
    for (int f = 0; f < S - 1; ++f) {
      up = std::min(up, static_cast<Value>(a1[f] - a0[f]));
      down = std::min(down, static_cast<Value>(a0[f] - a1[f]));
      inner_up = std::min(inner_up, static_cast<Value>(a1[f] - a0[f + 1] + shut[f]));
      inner_down = std::min(inner_down, static_cast<Value>(a0[f] - a1[f + 1] + shut[f]));
    }
    const Value l0 = a0[S - 1], l1 = a1[S - 1];
    return {std::min(l0 + up, l1 + down), std::min(l0 + inner_up, l1 + inner_down)};
  }

  template <int S>
  void two_costs(const Count* a0, const Count* a1, const Value* shut, Value* edge, Value* inner) const {
    const Value l0 = a0[S - 1], l1 = a1[S - 1];
    for (int f = 0; f < S - 1; ++f) {
      edge[f] = std::min(l0 + a1[f] - a0[f], l1 + a0[f] - a1[f]);
      inner[f] = std::min(l0 + a1[f] - a0[f + 1], l1 + a0[f] - a1[f + 1]) + shut[f];
    }
    edge[S - 1] = std::min(l0, l1);
    inner[S - 1] = kNever<Value>;
  }

  Index classes_;
};

// x ln x in whole numbers, from a table of all counts or by the logarithm.
template <class Count>
class Entropies;

template <>
class Entropies<std::int32_t> {
 public:
  Entropies(double total, double scale) : table_(static_cast<std::size_t>(total) + 1, 0.0) {
    for (std::size_t n = 1; n < table_.size(); ++n)
      table_[n] = std::rint(static_cast<double>(n) * std::log(static_cast<double>(n)) * scale);
    step_.assign(table_.size() + 1, 0.0);
    for (std::size_t n = 1; n < table_.size(); ++n) step_[n] = table_[n] - table_[n - 1];
  }
  double operator()(std::int32_t count) const { return table_[static_cast<std::size_t>(count)]; }
  // How much more one more than `count` is; for `count` = -1 a number that means nothing.
  double step(std::int32_t count) const { return step_[static_cast<std::size_t>(count + 1)]; }

 private:
  std::vector<double> table_, step_;
};

template <>
class Entropies<double> {
 public:
  Entropies(double, double scale) : scale_(scale) {}
  double operator()(double weight) const {
    return weight > 0.0 ? std::rint(weight * std::log(weight) * scale_) : 0.0;
  }

 private:
  double scale_;
};

// The least entropies.
template <class CountType>
class EntropyCost {
 public:
  using Count = CountType;
  using Value = double;

  EntropyCost(Index classes, double total, double scale)
      : classes_(classes), bit_(std::log(2.0) * scale), f_(total, scale) {}

  Value leaf(const Count* counts) const {
    Count sum = 0;
    Value parts = 0;
    for (Index c = 0; c < classes_; ++c) sum += counts[c], parts += f_(counts[c]);
    return f_(sum) - parts;
  }

  Value floor(const Count*, Index) const { return 0; }

  // In single precision: the edge is rounded up, the bound, of edges and bins, down.
  template <int S>
  StripLeast<Value> strip(const Count* low, Index stride, const Value* shut) const {
    float left[S], right[S];
    const Value margin = rough<S>(low, stride, left, right);
    float edge = left[S - 1], inner = left[S - 1];
    for (int f = 0; f < S - 1; ++f) {
      const float here = left[f] + right[f], inside = left[f] + right[f + 1] + static_cast<float>(shut[f]);
      edge = here < edge ? here : edge;
      inner = inside < inner ? inside : inner;
    }
    const Value least = static_cast<Value>(edge) * bit_, least_inner = static_cast<Value>(inner) * bit_;
    return {least + margin, std::max(Value{0}, std::min(least, least_inner) - margin)};
  }

  // Bounds at every edge and inside every bin; returns the least cost at an edge, exactly, or `best`.
  template <int S>
  Value bounds(const Count* low, Index stride, const Value* shut, Value best, Value* edge,
               Value* inner) const {
    float left[S], right[S];
    const Value margin = rough<S>(low, stride, left, right);
    for (int f = 0; f < S - 1; ++f) {
      edge[f] = static_cast<Value>(left[f] + right[f]) * bit_ - margin;
      inner[f] = static_cast<Value>(left[f] + right[f + 1]) * bit_ - margin + shut[f];
    }
    edge[S - 1] = static_cast<Value>(left[S - 1]) * bit_ - margin;
    inner[S - 1] = kNever<Value>;
    for (int f = 0; f < S; ++f)
      if (edge[f] < best) best = std::min(best, at_edge<S>(low, stride, f));
    return best;
  }

  class Walk {
   public:
    Walk(const EntropyCost& cost, const Count* left, const Count* total, Count* memory)
        : cost_(cost), left_(memory), right_(memory + cost.classes_) {
      for (Index c = 0; c < cost.classes_; ++c) {
        left_[c] = left[c];
        right_[c] = total[c] - left[c];
        n_left_ += left_[c];
        n_right_ += right_[c];
        parts_ += cost.f_(left_[c]) + cost.f_(right_[c]);
      }
    }
    void move(Index c, Count w) {
      parts_ -= cost_.f_(left_[c]) + cost_.f_(right_[c]);
      left_[c] += w;
      right_[c] -= w;
      n_left_ += w;
      n_right_ -= w;
      parts_ += cost_.f_(left_[c]) + cost_.f_(right_[c]);
    }
    // The same of one row that counts 1, where it moves.
    void move_if(bool moves, Index c) {
      const Count w = moves;
      if constexpr (std::is_same_v<Count, std::int32_t>) {
        const Value change = cost_.f_.step(left_[c]) - cost_.f_.step(right_[c] - 1);
        parts_ += moves ? change : 0.0;
        left_[c] += w;
        right_[c] -= w;
        n_left_ += w;
        n_right_ -= w;
      } else {
        move(c, w);
      }
    }
    Value cost() const { return cost_.f_(n_left_) + cost_.f_(n_right_) - parts_; }

   private:
    const EntropyCost& cost_;
    Count *left_, *right_;
    Count n_left_ = 0, n_right_ = 0;
    Value parts_ = 0;
  };

  using TwoWalk = Walk;

  // A better bound inside a bin, where there is one: the counts lie in a box there, and a cost is concave in
  // them, so of two classes it is least at one of the four corners, of which two are edges. Rounding may take
  // a few units.
  template <int S>
  Value inner_bound(const Count* low, Index stride, int f, const Value* edge, Value inner) const {
    if (classes_ != 2) return std::max(inner, separate_bound<S>(low, stride, f));
    constexpr Value kRounding = 8;
    const Count *a0 = low, *a1 = low + stride;
    const Count l0 = a0[S - 1], l1 = a1[S - 1];
    const auto at = [&](Count x0, Count x1) {
      return f_(x0 + x1) + f_(l0 + l1 - x0 - x1) - f_(x0) - f_(x1) - f_(l0 - x0) - f_(l1 - x1);
    };
    const Value corner = std::min(at(a0[f], a1[f + 1]), at(a0[f + 1], a1[f]));
    return std::max(inner, std::min(std::min(edge[f], edge[f + 1]), corner - kRounding));
  }

 private:
  // Many classes have too many corners. With m rows of the bin on the left, n_l and n_r rows on the sides of
  // it and d_c rows of class c in it,
  //
  //   cost = V(m) - sum_c (F(l_c + x_c) + F(r_c + d_c - x_c)),   V(m) = F(n_l + m) + F(n_r + M - m),   m =
  //   sum_c x_c.
  //
  // V is convex: at least its tangent V(m0) + g (m - m0). The terms are concave, and with g x_c added least
  // at an end, x_c = 0 or d_c: so each class is on its own. All of it holds for F in whole numbers as well.
  template <int S>
  Value separate_bound(const Count* low, Index stride, int f) const {
    if constexpr (!std::is_same_v<Count, std::int32_t>) {
      return 0;
    } else {
      Count before = 0, rows = 0, total = 0;
      for (Index c = 0; c < classes_; ++c) {
        const Count* counts = low + c * stride;
        before += counts[f];
        rows += counts[f + 1] - counts[f];
        total += counts[S - 1];
      }
      Value best = 0;
      Count m0 = rows / 2;
      for (int turn = 0; turn < 2; ++turn) {
        const Count left = before + m0, right = total - left;
        if (right < 1) return best;
        const Value slope = f_.step(left) - f_.step(right - 1);
        Value bound = f_(left) + f_(right) - slope * m0;
        Count taken = 0;
        for (Index c = 0; c < classes_; ++c) {
          const Count *counts = low + c * stride, all = counts[S - 1], here = counts[f + 1] - counts[f];
          const Value stay = f_(counts[f]) + f_(all - counts[f]);
          const Value go = f_(counts[f + 1]) + f_(all - counts[f + 1]) - slope * here;
          bound -= std::max(stay, go);
          if (go > stay) taken += here;
        }
        best = std::max(best, bound);
        m0 = taken;
      }
      return best;
    }
  }

  template <int S>
  Value at_edge(const Count* low, Index stride, int f) const {
    Count left = 0, total = 0;
    Value parts = 0;
    for (Index c = 0; c < classes_; ++c) {
      const Count here = low[c * stride + f], all = low[c * stride + S - 1];
      left += here;
      total += all;
      parts += f_(here) + f_(all - here);
    }
    return f_(left) + f_(total - left) - parts;
  }

  // What the rows before and behind each edge cost, in bits; returns by how much both together can be wrong,
  // in units. An x log2 x, with u = 2^-24, is wrong by u x (5 + 2 log2 x) (fast_entropy.hpp), and there are
  // four sums of them; adding the classes up adds u n log2 n at most for each.
  template <int S>
  Value rough(const Count* low, Index stride, float* left, float* right) const {
    float sum[S];
    float total = 0;
    for (int f = 0; f < S; ++f) sum[f] = 0, left[f] = 0, right[f] = 0;
    for (Index c = 0; c < classes_; ++c) {
      const Count* counts = low + c * stride;
      const Count all = counts[S - 1];
      total += static_cast<float>(all);
      for (int f = 0; f < S; ++f) {
        const float here = static_cast<float>(counts[f]), behind = static_cast<float>(all - counts[f]);
        sum[f] += here;
        left[f] -= fast_x_log2_x(here);
        right[f] -= fast_x_log2_x(behind);
      }
    }
    for (int f = 0; f < S; ++f) {
      left[f] += fast_x_log2_x(sum[f]);
      right[f] += fast_x_log2_x(total - sum[f]);
    }
    const double n = static_cast<double>(total),
                 log = std::bit_width(static_cast<std::uint64_t>(n));  // rounded up
    return (0x1p-24 * n * (24.0 + (10.0 + 4.0 * static_cast<double>(classes_)) * log)) * bit_ +
           static_cast<double>(classes_ + 2);
  }

  Index classes_;
  double bit_;  // in units
  Entropies<Count> f_;
};

}  // namespace sixfold::optimal
