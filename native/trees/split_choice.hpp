// The split of a node: of all columns that are looked at the best candidate there is.
//
// The best has the least S; taken is the first one, by column and then in the order of column_splits.hpp,
// with S <= least + 1e-12 W. A bound of each column rules most of them out.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trees/columns/column_order.hpp"
#include "trees/node_views.hpp"

namespace sixfold {

// Scratch memory of one thread.
template <class T>
struct ChoiceWorkspace {
  ChoiceWorkspace(Index classes, Index codes) : search(classes, codes) {}

  SearchWorkspace<T> search;
  std::vector<Index> columns;      // in the order in which they are looked at
  std::vector<Index> open;         // those that are to be searched
  std::vector<SplitBound> bounds;  // of all columns
};

template <class T>
class SplitChoice {
 public:
  // Of nodes of a tree whose root weighs `whole_weight`.
  SplitChoice(const GrowthContext<T>& context, double whole_weight)
      : context_(context), looked_at_(context.looked_at()), whole_weight_(whole_weight) {}

  // Why a node is not split, or Reason::split and how. `each` does tasks for the node: whether to the end.
  template <class View, class Each>
  Reason find(const ClassTotals& node, std::uint64_t path, ChoiceWorkspace<T>& workspace, View& view,
              const Each& each, Split& split) const {
    const Index all = context_.data.X.columns;
    const double tie = SplitScore::kTie * node.weight();
    order_columns(path, workspace.columns);
    workspace.bounds.assign(static_cast<std::size_t>(all), SplitBound{});
    const std::span<const Index> columns(workspace.columns);
    double least = kNone;
    if (!look(columns.first(looked_at_), tie, workspace, view, each, least)) return Reason::stopped;
    for (Index k = looked_at_; k < all && least == kNone; ++k)
      if (!look(columns.subspan(k, 1), tie, workspace, view, each, least)) return Reason::stopped;
    if (least == kNone) {
      const bool any = std::any_of(workspace.bounds.begin(), workspace.bounds.end(),
                                   [](const SplitBound& bound) { return bound.has_candidates; });
      return any ? Reason::limit : Reason::exhausted;
    }
    if (by_ratio()) {
      if (!choose_by_ratio(node, tie, workspace, view, each, split)) return Reason::stopped;
    } else {
      Index first = 0;
      while (!(workspace.bounds[first].least <= least + tie)) ++first;
      view.search(first, least + tie, workspace.search, &split);
    }
    if (split.column < 0) throw std::logic_error("sixfold: the best split of a node was not found again");
    return is_worth(node, split) ? Reason::split : Reason::limit;
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  bool by_ratio() const { return context_.rules.criterion == Criterion::gain_ratio; }

  // Takes the split with the best ratio of the columns with at least the average gain.
  template <class View, class Each>
  bool choose_by_ratio(const ClassTotals& node, double tie, ChoiceWorkspace<T>& workspace, View& view,
                       const Each& each, Split& split) const {
    Average average;
    for (const SplitBound& bound : workspace.bounds)
      if (bound.least < kNone) average.add(bound.least);
    std::vector<Index>& open = workspace.open;
    open.clear();
    for (Index column = 0; column < context_.data.X.columns; ++column)
      if (workspace.bounds[column].least <= average.value() + tie) open.push_back(column);
    std::vector<Split> splits(open.size());
    std::vector<double> scores(open.size());
    const ScorePart whole = context_.score.part(node);
    const auto score = [&](Index k, SearchWorkspace<T>& own) {
      view.search(open[k], workspace.bounds[open[k]].least + tie, own, &splits[k]);
      scores[k] = SplitScore::ratio(node.weight(), whole, splits[k].parts);
    };
    if (!each(static_cast<Index>(open.size()), score)) return false;
    const double limit = *std::min_element(scores.begin(), scores.end()) + tie;
    std::size_t first = 0;
    while (!(scores[first] <= limit)) ++first;
    split = std::move(splits[first]);
    return true;
  }

  // Finds the least S of these columns; of the columns that come within a tie of it, exactly. Where nothing
  // is known but what a column may have at best, the more promising columns are searched first, and those
  // that cannot reach what was found are not searched at all, unless an average needs them.
  template <class View, class Each>
  bool look(std::span<const Index> columns, double tie, ChoiceWorkspace<T>& workspace, View& view,
            const Each& each, double& least) const {
    std::vector<SplitBound>& bounds = workspace.bounds;
    const Index count = static_cast<Index>(columns.size());
    const auto see = [&](Index task, SearchWorkspace<T>& own) {
      const Index first = task * View::kAtOnce;
      view.split_bounds(columns.subspan(first, std::min(View::kAtOnce, count - first)), own, bounds);
    };
    if (!each((count + View::kAtOnce - 1) / View::kAtOnce, see)) return false;
    std::vector<Index>& open = workspace.open;
    open.clear();
    for (const Index column : columns) {
      if (bounds[column].is_exact)
        least = std::min(least, bounds[column].least);
      else
        open.push_back(column);
    }
    std::sort(open.begin(), open.end(), [&](Index a, Index b) {
      return bounds[a].likely != bounds[b].likely ? bounds[a].likely < bounds[b].likely : a < b;
    });
    std::atomic<double> best{least};
    const auto search = [&](Index k, SearchWorkspace<T>& own) {
      SplitBound& bound = bounds[open[k]];
      const double limit = by_ratio() ? kNone : best + tie;
      ColumnBest found;
      if (bound.least <= limit) {
        const double likely = std::min(limit, bound.likely);
        found = view.search(open[k], likely, own);
        // Candidates above the likely score were left out.
        if (found.least > likely && likely < limit) found = view.search(open[k], limit, own);
      }
      bound = {bound.has_candidates, true, found.least, found.least};
      for (double now = best; found.least < now && !best.compare_exchange_weak(now, found.least);) {
      }
    };
    if (!open.empty()) search(0, workspace.search);
    const auto search_others = [&](Index k, SearchWorkspace<T>& own) { search(k + 1, own); };
    if (open.size() > 1 && !each(static_cast<Index>(open.size()) - 1, search_others)) return false;
    least = best;
    return true;
  }

  bool is_worth(const ClassTotals& node, const Split& split) const {
    const double gain = (context_.score.part(node).impurity - split.parts.impurity) / node.weight();
    return node.weight() / whole_weight_ * gain >= context_.rules.min_impurity_decrease - SplitScore::kTie;
  }

  // All columns, or where only some are looked at all in an order that is random but for seed and path.
  void order_columns(std::uint64_t path, std::vector<Index>& columns) const {
    columns.resize(static_cast<std::size_t>(context_.data.X.columns));
    std::iota(columns.begin(), columns.end(), 0);
    if (looked_at_ == context_.data.X.columns) return;
    std::uint64_t state = path;
    for (std::size_t k = 0; k + 1 < columns.size(); ++k) {  // Fisher and Yates
      state = splitmix(state);
      std::swap(columns[k], columns[k + state % (columns.size() - k)]);
    }
  }

  const GrowthContext<T>& context_;
  const Index looked_at_;  // columns a node
  const double whole_weight_;
};

}  // namespace sixfold
