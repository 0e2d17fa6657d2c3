// How good a split is: the criteria, as sums over its children of what their classes weigh.
//
// Child k has weight w_kc of class c, W_k in all; the node itself w_c and W. Lower is better:
//
//   entropy       S = sum_k [ f(W_k) - sum_c f(w_kc) ],     f(x) = x log2 x, f(0) = 0
//   gini          S = sum_k [ W_k - sum_c w_kc^2 / W_k ]
//   gain_ratio    S = - W gain / info,   gain = (f(W) - sum_c f(w_c) - S_entropy) / W,
//                                        info = (f(W) - sum_k f(W_k)) / W,
//                 of columns alone, each by its candidate with the least S_entropy, and with no more of it
//                 than they have on average
//   homogeneous   S = sum of W_k over the children with rows of several classes
//
// S_entropy / W is the weighted average entropy in bits (Quinlan 1986; the gain ratio is his too, 1993: if
// all thresholds were compared by it, those that cut a single row off would win). Whether a child is of one
// class is judged by its rows, never by sums of weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/table.hpp"

namespace sixfold {

enum class Criterion { entropy, gini, gain_ratio, homogeneous };

// The rows of one class.
struct ClassCell {
  double weight = 0.0;
  std::int32_t rows = 0;
  std::int32_t label = 0;
};

// What each class weighs in a set of rows, and how many rows it has there.
class ClassTotals {
 public:
  explicit ClassTotals(Index classes = 0) : cells_(static_cast<std::size_t>(classes)) {
    for (Index c = 0; c < classes; ++c) cells_[c].label = static_cast<std::int32_t>(c);
  }

  std::span<const ClassCell> cells() const { return cells_; }
  double weight() const { return weight_; }
  Index rows() const { return rows_; }

  bool is_pure() const {
    for (const ClassCell& cell : cells_)
      if (cell.rows == rows_) return true;
    return false;
  }

  void clear() {
    for (ClassCell& cell : cells_) cell.weight = 0.0, cell.rows = 0;
    weight_ = 0.0;
    rows_ = 0;
  }

  void add(std::int32_t label, double weight, std::int32_t rows = 1) {
    cells_[label].weight += weight;
    cells_[label].rows += rows;
    weight_ += weight;
    rows_ += rows;
  }
  void add(std::span<const ClassCell> cells) {
    for (const ClassCell& cell : cells) add(cell.label, cell.weight, cell.rows);
  }

  void set_sum(const ClassTotals& a, const ClassTotals& b) {
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      cells_[c].weight = a.cells_[c].weight + b.cells_[c].weight;
      cells_[c].rows = a.cells_[c].rows + b.cells_[c].rows;
    }
    weight_ = a.weight_ + b.weight_;
    rows_ = a.rows_ + b.rows_;
  }

  // A class without rows weighs nothing, whatever rounding leaves over; none weighs less than nothing.
  void set_difference(const ClassTotals& all, const ClassTotals& part) {
    weight_ = 0.0;
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      cells_[c].rows = all.cells_[c].rows - part.cells_[c].rows;
      const double left_over = std::max(0.0, all.cells_[c].weight - part.cells_[c].weight);
      cells_[c].weight = cells_[c].rows == 0 ? 0.0 : left_over;
      weight_ += cells_[c].weight;
    }
    rows_ = all.rows_ - part.rows_;
  }

 private:
  std::vector<ClassCell> cells_;
  double weight_ = 0.0;
  Index rows_ = 0;
};

// f(x) = x log2 x. Without weights all x are whole numbers, and those that are likely are looked up.
class XLog2X {
 public:
  explicit XLog2X(Index whole_numbers) : table_(static_cast<std::size_t>(whole_numbers)) {
    for (Index x = 2; x < whole_numbers; ++x) table_[x] = compute(static_cast<double>(x));
  }

  double operator()(double x) const {
    // Below 0 only by rounding: of weights that vanish beside others, little more than their difference is
    // left.
    if (x >= 0.0 && x < static_cast<double>(table_.size())) return table_[static_cast<std::size_t>(x)];
    return compute(x);
  }

 private:
  static double compute(double x) { return x > 0.0 ? x * std::log2(x) : 0.0; }

  std::vector<double> table_;  // empty where there are weights
};

// What a child adds to the sums.
struct ScorePart {
  double impurity = 0.0;  // to S, of gain_ratio to S_entropy
  double size = 0.0;      // f(W_k), where that is at hand

  ScorePart operator+(const ScorePart& other) const { return {impurity + other.impurity, size + other.size}; }
  ScorePart operator-(const ScorePart& other) const { return {impurity - other.impurity, size - other.size}; }
};

// The average S_entropy of columns.
struct Average {
  double sum = 0.0;
  Index columns = 0;

  void add(double score) {
    sum += score;
    ++columns;
  }
  double value() const { return sum / static_cast<double>(columns); }
};

class SplitScore {
 public:
  static constexpr double kTie = 1e-12;               // averages this close are equal
  static constexpr Index kLookedUp = Index{1} << 20;  // 8 MB of f

  SplitScore(Criterion criterion, bool weighted, Index rows)
      : criterion_(criterion), f_(weighted ? 0 : std::min(rows + 1, kLookedUp)) {}

  ScorePart part(const ClassTotals& child) const { return part(child.cells(), child.weight(), child.rows()); }

  // Of a child that has these cells and no others.
  ScorePart part(std::span<const ClassCell> cells, double weight, Index rows) const {
    switch (criterion_) {
      case Criterion::entropy:
      case Criterion::gain_ratio: {
        const double size = f_(weight);
        return {size - sum_of_f(cells), size};
      }
      case Criterion::gini: {
        double squares = 0.0;
        for (const ClassCell& cell : cells) squares += cell.weight * cell.weight;
        return {weight > 0.0 ? weight - squares / weight : 0.0, 0.0};
      }
      case Criterion::homogeneous: {
        for (const ClassCell& cell : cells)
          if (cell.rows == rows) return {};
        return {weight, 0.0};
      }
    }
    return {};
  }

  // S of the gain ratio, of a node of this weight with `whole` as its own part and this sum of its
  // children's.
  static double ratio(double weight, const ScorePart& whole, const ScorePart& children) {
    const double info = (whole.size - children.size) / weight;
    return info > 0.0 ? -(whole.impurity - children.impurity) / info : 0.0;
  }

 private:
  double sum_of_f(std::span<const ClassCell> cells) const {
    double sum = 0.0;
    for (const ClassCell& cell : cells) sum += f_(cell.weight);
    return sum;
  }

  Criterion criterion_;
  XLog2X f_;
};

}  // namespace sixfold
