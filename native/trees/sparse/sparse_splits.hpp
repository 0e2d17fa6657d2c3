// Every threshold of one open node in one column, from the entries that it has stored there.
//
// A threshold parts the known rows into a *side*, which has stored entries alone, and the *rest*, which has
// the rows that are 0 as well: below zero the side grows from the lowest value up, above zero from the
// highest value down. What the rest has is what the node has less what the side has, so that rows of zeros
// and classes that are not met cost nothing. An entry of class c changes two terms of the scores,
//
//   entropy, gain_ratio   sum_c f(w_c)   by   f(w_c + w) - f(w_c)      f(x) = x log2 x
//   gini                  sum_c w_c^2
//   homogeneous           the number of classes met
//
// and both sums are kept by compensated summation, so that they are as accurate as if they were added anew.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "trees/columns/column_splits.hpp"
#include "trees/sparse/sparse_lists.hpp"
#include "trees/split_score.hpp"

namespace sixfold {

// A sum whose roundings are carried along (Kahan 1965).
class CarefulSum {
 public:
  CarefulSum() = default;
  explicit CarefulSum(double start) : sum_(start) {}
  void add(double value) {
    const double corrected = value - excess_, sum = sum_ + corrected;
    excess_ = (sum - sum_) - corrected;
    sum_ = sum;
  }
  double value() const { return sum_; }

 private:
  double sum_ = 0.0, excess_ = 0.0;
};

// Where the known rows of a node are parted, in the order in which the first of equals wins.
struct Cut {
  std::int32_t left;   // how many entries are left of it
  bool zeros_left;     // whether the rows of zeros are
  bool unknown_right;  // whether unknown rows join the right child, where they join one
  bool apart;          // known | unknown

  bool operator<(const Cut& other) const { return order() < other.order(); }

 private:
  Index order() const {
    return apart ? std::numeric_limits<Index>::max() : 4 * Index{left} + 2 * zeros_left + unknown_right;
  }
};

// A node that is not yet split.
struct SparseNode {
  Index parent, slot;  // its place in the tree
  Index depth;
  std::uint64_t path;  // see column_order.hpp
  ClassTotals totals;
  Index number = -1;  // in the tree
  ScorePart whole{};
  double terms = 0.0;  // sum over the classes, see above
};

template <Criterion criterion>
class SparseScore {
 public:
  SparseScore(bool weighted, Index rows) : f_(weighted ? 0 : std::min(rows + 1, SplitScore::kLookedUp)) {}

  double term(double weight, std::int32_t rows) const {
    if constexpr (criterion == Criterion::homogeneous) return rows > 0 ? 1.0 : 0.0;
    if constexpr (criterion == Criterion::gini) return weight * weight;
    return f_(weight);
  }
  double terms(std::span<const ClassCell> cells) const {
    CarefulSum sum;
    for (const ClassCell& cell : cells) sum.add(term(cell.weight, cell.rows));
    return sum.value();
  }

  // Of a child of this weight whose classes have this sum of terms.
  ScorePart part(double weight, double terms) const {
    if constexpr (criterion == Criterion::homogeneous) return {terms > 1.5 ? weight : 0.0, 0.0};
    if constexpr (criterion == Criterion::gini) return {weight > 0.0 ? weight - terms / weight : 0.0, 0.0};
    const double size = f_(weight);
    return {size - terms, size};
  }

 private:
  XLog2X f_;
};

// The searches of one thread.
template <Criterion criterion>
class GroupSearch {
 public:
  GroupSearch(const SparseScore<criterion>& score, const GrowthRules& rules,
              const std::vector<RowState>& rows, const double* weight, Index classes)
      : score_(score), rules_(rules), rows_(rows), weight_(weight), unknown_(classes), known_(classes) {
    for (Walk& walk : walks_) walk.side = std::vector<ClassCell>(static_cast<std::size_t>(classes));
  }

  // Calls visit(sum of the children's parts, cut) for every valid candidate, or for none if the impurity of
  // all is above the limit; returns whether there are candidates, valid or not.
  template <class Visit>
  bool search(const SparseNode& node, std::span<const Entry> entries, double limit, const Visit& visit) {
    begin(node, entries);
    if (!has_candidates()) return false;
    if (limit < std::numeric_limits<double>::infinity() && !may_reach(limit)) return true;
    std::size_t below = 0;
    while (below < known_count_ && entries[below].rank < 0) ++below;
    if (below > 0) walk(below, visit, [&](std::size_t i) { return i; }, true);
    if (below < known_count_)
      walk(known_count_ - below, visit, [&](std::size_t i) { return known_count_ - 1 - i; }, false);
    if (unknown_.rows() > 0) visit_apart(visit);
    return true;
  }

 private:
  static constexpr std::size_t kWorthABound = 4;  // fewer entries are sooner walked through

  // One way of partition: the side as it grows, and both together, which stay what they are.
  struct Walk {
    std::vector<ClassCell> side;  // zeros between searches
    const ClassCell* both;
    double weight, both_weight;
    Index rows, both_rows;
    CarefulSum side_terms, rest_terms;
  };

  bool is_branch() const { return unknown_.rows() > 0 && !rules_.unknown_best; }
  bool joins() const { return unknown_.rows() > 0 && rules_.unknown_best; }

  bool is_large_enough(double weight, Index rows) const {
    return rows >= rules_.min_samples_leaf &&
           weight >= rules_.min_leaf_weight - SplitScore::kTie * node_->totals.weight();
  }

  bool has_candidates() const {
    const Index known = node_->totals.rows() - unknown_.rows();
    if (unknown_.rows() > 0) return known > 0;
    return static_cast<Index>(known_count_) < known || entries_[0].rank != entries_[known_count_ - 1].rank;
  }

  void begin(const SparseNode& node, std::span<const Entry> entries) {
    node_ = &node;
    entries_ = entries;
    known_count_ = entries.size();
    if (unknown_.rows() > 0) unknown_.clear();
    while (known_count_ > 0 && entries[known_count_ - 1].rank == kUnknownRank) {
      const std::int32_t row = entries[--known_count_].row;
      unknown_.add(rows_[row].label, weight_of(row));
    }
    if (unknown_.rows() == 0) return;
    known_.set_difference(node.totals, unknown_);
    unknown_terms_ = score_.terms(unknown_.cells());
    known_terms_ = score_.terms(known_.cells());
    unknown_part_ = score_.part(unknown_.weight(), unknown_terms_);
  }

  double weight_of(std::int32_t row) const { return weight_ == nullptr ? 1.0 : weight_[row]; }

  // Whether a candidate may have S <= limit. The sums S of entropy and of gini are concave in what the
  // classes weigh on the side. So the best of all sides that could be made of the entries, whatever their
  // order, has of each class all entries or none. With two classes that leaves three sides: on 20,000 columns
  // of 40 values they rule out nearly all, and a level takes less than half the time.
  bool may_reach(double limit) const {
    if constexpr (criterion == Criterion::homogeneous) return true;
    if (node_->totals.cells().size() != 2 || unknown_.rows() > 0 || known_count_ < kWorthABound) return true;
    const std::array<ClassCell, 2> stored = stored_of_two();
    const std::span<const ClassCell> all = node_->totals.cells();
    std::array<double, 2> side{}, rest{}, whole{};  // terms
    for (int c = 0; c < 2; ++c) {
      side[c] = score_.term(stored[c].weight, stored[c].rows);
      rest[c] = score_.term(less(all[c], stored[c]), all[c].rows - stored[c].rows);
      whole[c] = score_.term(all[c].weight, all[c].rows);
    }
    const auto reaches = [&](double weight, double side_terms, double rest_terms) {
      const double other = std::max(node_->totals.weight() - weight, 0.0);
      return (score_.part(weight, side_terms) + score_.part(other, rest_terms)).impurity <= limit;
    };
    return reaches(stored[0].weight, side[0], rest[0] + whole[1]) ||
           reaches(stored[1].weight, side[1], whole[0] + rest[1]) ||
           reaches(stored[0].weight + stored[1].weight, side[0] + side[1], rest[0] + rest[1]);
  }

  std::array<ClassCell, 2> stored_of_two() const {
    const auto count = static_cast<std::int32_t>(entries_.size());
    std::int32_t ones = 0;
    double weight = 0.0, weight_of_ones = 0.0;
    if (weight_ == nullptr) {  // apart, as this loop has vectors
      for (std::int32_t i = 0; i < count; ++i) ones += rows_[entries_[i].row].label;
      weight = count;
      weight_of_ones = ones;
    } else {
      for (const Entry& entry : entries_) {
        const std::int32_t label = rows_[entry.row].label;
        ones += label;
        weight += weight_[entry.row];
        weight_of_ones += label * weight_[entry.row];
      }
    }
    return {ClassCell{weight - weight_of_ones, count - ones, 0}, ClassCell{weight_of_ones, ones, 1}};
  }

  // The side takes the first `count` entries in this order, group by group of equals.
  template <class Visit, class Order>
  void walk(std::size_t count, const Visit& visit, const Order& order, bool upwards) {
    const int ways = joins() ? 2 : 1;
    start_walks();
    const Index known = node_->totals.rows() - unknown_.rows();
    std::size_t taken = 0;
    while (taken < count) {
      const Entry& entry = entries_[order(taken++)];
      const std::int32_t label = rows_[entry.row].label;
      const double weight = weight_of(entry.row);
      for (int k = 0; k < ways; ++k) take(walks_[k], label, weight);
      if (taken < count && entries_[order(taken)].rank == entry.rank) continue;
      if (static_cast<Index>(taken) == known) break;  // nothing known is left
      const auto left = static_cast<std::int32_t>(upwards ? taken : known_count_ - taken);
      for (int k = 0; k < ways; ++k)
        visit_walk(walks_[k], {left, !upwards, (k == 0) != upwards, false}, visit);
    }
    for (int k = 0; k < ways; ++k) clear(walks_[k].side, order, taken);
  }

  void start_walks() {
    Walk& first = walks_[0];
    if (is_branch()) {
      start(first, known_.cells().data(), known_.weight(), known_.rows(), known_terms_);
      return;
    }
    const ClassTotals& all = node_->totals;
    start(first, all.cells().data(), all.weight(), all.rows(), node_->terms);
    if (!joins()) return;
    start(walks_[1], all.cells().data(), all.weight(), all.rows(), node_->terms);
    // In the first walk unknown rows are on the side, in the second they stay with the rest.
    std::copy(unknown_.cells().begin(), unknown_.cells().end(), first.side.begin());
    first.weight = unknown_.weight();
    first.rows = unknown_.rows();
    first.side_terms = CarefulSum(unknown_terms_);
    first.rest_terms = CarefulSum(known_terms_);
  }

  static void start(Walk& walk, const ClassCell* both, double weight, Index rows, double terms) {
    walk.both = both;
    walk.weight = 0.0;
    walk.both_weight = weight;
    walk.rows = 0;
    walk.both_rows = rows;
    walk.side_terms = CarefulSum();
    walk.rest_terms = CarefulSum(terms);
  }

  void take(Walk& walk, std::int32_t label, double weight) const {
    ClassCell& side = walk.side[label];
    const ClassCell& both = walk.both[label];
    const double side_before = score_.term(side.weight, side.rows);
    const double rest_before = score_.term(less(both, side), both.rows - side.rows);
    side.weight += weight;
    ++side.rows;
    walk.side_terms.add(score_.term(side.weight, side.rows) - side_before);
    walk.rest_terms.add(score_.term(less(both, side), both.rows - side.rows) - rest_before);
    walk.weight += weight;
    ++walk.rows;
  }

  // A class without rows weighs nothing, whatever rounding leaves over.
  static double less(const ClassCell& both, const ClassCell& side) {
    return both.rows == side.rows ? 0.0 : std::max(both.weight - side.weight, 0.0);
  }

  template <class Visit>
  void visit_walk(const Walk& walk, const Cut& cut, const Visit& visit) const {
    const double rest = walk.both_weight - walk.weight;
    if (!is_large_enough(walk.weight, walk.rows) || !is_large_enough(rest, walk.both_rows - walk.rows))
      return;
    ScorePart children =
        score_.part(walk.weight, walk.side_terms.value()) + score_.part(rest, walk.rest_terms.value());
    if (is_branch()) children = children + unknown_part_;
    visit(children, cut);
  }

  template <class Visit>
  void visit_apart(const Visit& visit) const {
    if (!is_large_enough(known_.weight(), known_.rows()) ||
        !is_large_enough(unknown_.weight(), unknown_.rows()))
      return;
    visit(score_.part(known_.weight(), known_terms_) + unknown_part_, Cut{0, false, false, true});
  }

  template <class Order>
  void clear(std::vector<ClassCell>& side, const Order& order, std::size_t taken) {
    if (joins() || side.size() < taken) {
      std::fill(side.begin(), side.end(), ClassCell{});
      return;
    }
    for (std::size_t i = 0; i < taken; ++i) side[rows_[entries_[order(i)].row].label] = ClassCell{};
  }

  const SparseScore<criterion>& score_;
  const GrowthRules& rules_;
  const std::vector<RowState>& rows_;
  const double* weight_;
  // Of the search that is under way.
  const SparseNode* node_ = nullptr;
  std::span<const Entry> entries_;
  std::size_t known_count_ = 0;
  ClassTotals unknown_, known_;
  double unknown_terms_ = 0.0, known_terms_ = 0.0;
  ScorePart unknown_part_{};
  std::array<Walk, 2> walks_{};
};

}  // namespace sixfold
