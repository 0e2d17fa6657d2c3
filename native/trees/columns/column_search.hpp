// What the searches of numbers and of categories share: candidates are offered, the best is kept.
#pragma once

#include <numeric>

#include "trees/columns/column_splits.hpp"

namespace sixfold {

// Halfway between neighbours, rounded once. Where there is no number in between it is the lower one.
inline double threshold_between(double low, double high) {
  const double middle = std::midpoint(low, high);
  return middle >= low && middle < high ? middle : low;
}

inline void set_threshold(Split& split, double threshold) {
  split.threshold = threshold;
  split.branches = {{0, 0}, {1, 1}};
}

// Known | unknown, of numbers.
inline void set_all_known(Split& split, bool unknown_best) {
  split.threshold = std::numeric_limits<double>::infinity();
  split.branches = {{0, 0}};
  if (unknown_best) split.branches.push_back({1, 1});
}

class Candidates {
 public:
  Candidates(const GrowthRules& rules, const SplitScore& score, const ClassTotals& node,
             ColumnWorkspace& workspace, std::int32_t column, Split* chosen, double limit)
      : rules_(rules),
        score_(score),
        node_(node),
        workspace_(workspace),
        column_(column),
        chosen_(chosen),
        limit_(limit) {}

  const ColumnBest& best() const { return best_; }
  const GrowthRules& rules() const { return rules_; }
  const SplitScore& score() const { return score_; }
  ColumnWorkspace& workspace() const { return workspace_; }
  bool has_unknown() const { return workspace_.unknown.rows() > 0; }

  // Weights are sums that rounding may leave a little below what they are.
  bool is_large_enough(double weight, Index rows) const {
    return rows >= rules_.min_samples_leaf &&
           weight >= rules_.min_leaf_weight - SplitScore::kTie * node_.weight();
  }
  bool is_large_enough(const ClassTotals& child) const {
    return is_large_enough(child.weight(), child.rows());
  }

  void note_candidate() { best_.has_candidates = true; }

  // A valid candidate; `fill` completes its threshold and branches.
  template <class Fill>
  void offer(const ScorePart& children, std::int32_t slots, std::int32_t unknown, const Fill& fill) {
    if (children.impurity < best_.least) best_.least = children.impurity;
    if (chosen_ == nullptr || is_chosen_ || !(children.impurity <= limit_)) return;
    is_chosen_ = true;
    *chosen_ = Split{};
    chosen_->column = column_;
    chosen_->unknown = unknown;
    chosen_->children = slots;
    chosen_->parts = children;
    fill(*chosen_);
  }

  // All known rows in a left and a right child, with the unknown ones in every place they may go to.
  template <class Fill>
  void offer_two(const ClassTotals& left, const ClassTotals& right, const Fill& fill) {
    note_candidate();
    const ClassTotals& unknown = workspace_.unknown;
    if (has_unknown() && rules_.unknown_best) {
      workspace_.joined.set_sum(left, unknown);
      if (is_large_enough(workspace_.joined) && is_large_enough(right))
        offer(score_.part(workspace_.joined) + score_.part(right), 2, 0, fill);
      workspace_.joined.set_sum(right, unknown);
      if (is_large_enough(left) && is_large_enough(workspace_.joined))
        offer(score_.part(left) + score_.part(workspace_.joined), 2, 1, fill);
      return;
    }
    if (!is_large_enough(left) || !is_large_enough(right)) return;
    const ScorePart known = score_.part(left) + score_.part(right);
    if (!has_unknown())
      offer(known, 2, -1, fill);
    else
      offer(known + score_.part(unknown), 3, 2, fill);
  }

  // Known | unknown.
  template <class Fill>
  void offer_known(const Fill& fill) {
    const ClassTotals &known = workspace_.known, &unknown = workspace_.unknown;
    if (known.rows() == 0 || !has_unknown()) return;
    note_candidate();
    if (is_large_enough(known) && is_large_enough(unknown))
      offer(score_.part(known) + score_.part(unknown), 2, 1, fill);
  }

 private:
  const GrowthRules& rules_;
  const SplitScore& score_;
  const ClassTotals& node_;
  ColumnWorkspace& workspace_;
  const std::int32_t column_;
  Split* chosen_;
  const double limit_;
  bool is_chosen_ = false;
  ColumnBest best_;
};

// Offers all groupings of the categories on the workspace.
void offer_categories(Candidates& candidates);

}  // namespace sixfold
