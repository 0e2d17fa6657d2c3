// How the columns of a node are searched: the two ways there are, behind the same few calls.
//
//   enter        turns to a node
//   split_bounds how good the best candidates of a few columns can be, at most kAtOnce
//   search       the best candidate of a column, or the split that is taken
//   leave        the node is not split
//   part         the node is split, and its rows are sorted by child
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "trees/bins/bin_splits.hpp"
#include "trees/bins/bins.hpp"
#include "trees/columns/column_splits.hpp"
#include "trees/columns/sorted_columns.hpp"

namespace sixfold {

// A node yet to be split: its rows and its place in the tree.
struct PendingNode {
  Index begin, end;
  Index parent, slot;
  Index depth;
  std::uint64_t path;      // made of the seed and the slots on the way here
  bool is_open = true;     // false where it is clear that it will not be split
  bool is_sorted = false;  // whether it is a root of a subtree whose columns are sorted
  Index histograms = -1;   // where they are kept

  Index size() const { return end - begin; }
};

// What all nodes of a tree have in common.
template <class T>
struct GrowthContext {
  const TrainingTable<T>& data;
  const GrowthRules& rules;
  const SplitScore& score;
  RowNumbers rows;                   // each node has a range of them
  std::vector<Index> numbers;        // the columns in which not all thresholds have to be tried
  std::vector<std::int32_t> number;  // of a column among these, or -1
  std::optional<TreeBins<T>> bins;   // of these, where there are rows enough

  // How many columns a node looks at, and whether these are all.
  Index looked_at() const {
    return rules.max_columns <= 0 ? data.X.columns : std::min(rules.max_columns, data.X.columns);
  }
  bool all_columns() const { return looked_at() == data.X.columns; }

  // What the classes of a node have. With bins its rows are grouped by class.
  void count(const PendingNode& node, ClassTotals& totals) const {
    totals.clear();
    for (Index i = node.begin, end; i < node.end; i = end) {
      end = bins ? end_of_class(i, node.end) : i + 1;
      double weight = data.weight == nullptr ? static_cast<double>(end - i) : 0.0;
      for (Index at = i; data.weight != nullptr && at < end; ++at) weight += data.weight[rows[at]];
      totals.add(data.labels[rows[i]], weight, static_cast<std::int32_t>(end - i));
    }
  }
  // Where the class of the first of these rows ends, in steps that double (Bentley and Yao 1976): 1,000,000
  // rows a level took 3.8 ms one by one.
  Index end_of_class(Index first, Index last) const {
    const auto is_own = [&, own = data.labels[rows[first]]](Row row) { return data.labels[row] == own; };
    Index step = 1;
    while (first + step < last && is_own(rows[first + step])) step *= 2;
    const Row* from = rows.data() + first + step / 2 + 1;
    return std::partition_point(from, rows.data() + std::min(first + step, last), is_own) - rows.data();
  }

  ColumnBest search(const NodeRows& node, Index column, ColumnWorkspace& workspace, Split* chosen,
                    double limit) const {
    return search_column(data, rules, score, node, column, workspace, chosen, limit);
  }
  SplitBound search(const NodeRows& node, Index column, ColumnWorkspace& workspace) const {
    const ColumnBest best = search_column(data, rules, score, node, column, workspace);
    return {best.has_candidates, true, best.least, best.least};
  }
};

// Scratch memory of one thread.
template <class T>
struct SearchWorkspace {
  SearchWorkspace(Index classes, Index codes) : columns(classes, codes) {}

  ColumnWorkspace columns;
  BinWorkspace bins;
  SortedColumns<T> sorted;
};

// A node with many rows: columns of numbers by their bins, others by trying all candidates. `Mass` is int32
// for counts, double for weights.
template <class T, class Mass>
class BinnedView {
 public:
  static constexpr bool kHasCodes = true;                 // of the rows of the node, if there are bins
  static constexpr Index kAtOnce = TreeBins<T>::kAtOnce;  // columns

  // Histograms are kept in up to `most_bytes`.
  BinnedView(GrowthContext<T>& context, Index most_bytes)
      : context_(context), store_(context.numbers.size(), context.data.classes, most_bytes) {
    if (context.bins) search_.emplace(context.data, context.rules, context.score, *context.bins);
  }

  void enter(const NodeRows& node, const PendingNode& pending) {
    node_.emplace(node);
    if (!search_) return;
    kept_ = pending.histograms;
    is_filled_ = kept_ >= 0;
    if (!is_filled_ && context_.all_columns() && pending.size() >= 2 * fewest_kept()) kept_ = store_.take();
    binned_.emplace(binned(pending, node.totals, kept_ >= 0));
    if (!is_filled_ && kept_ >= 0) store_.error(kept_) = binned_->rounding() * node.totals.weight();
  }

  void split_bounds(std::span<const Index> columns, SearchWorkspace<T>& workspace,
                    std::vector<SplitBound>& bounds) {
    Index numbers[kAtOnce];
    std::size_t count = 0;
    for (const Index column : columns) {
      if (is_binned(column))
        numbers[count++] = context_.number[column];
      else
        bounds[column] = context_.search(*node_, column, workspace.columns);
    }
    if (count == 0) return;
    const double error = kept_ < 0 ? binned_->rounding() : store_.error(kept_) / node_->totals.weight();
    const auto bound = [&](Index k, const BinHistogram<Mass>& histogram) {
      bounds[context_.bins->column(k)] =
          search_->split_bound(*binned_, k, histogram, error, workspace.bins.template bounds<Mass>());
    };
    if (is_filled_)
      for (std::size_t j = 0; j < count; ++j) bound(numbers[j], store_.column(kept_, numbers[j]));
    else
      make(*binned_, kept_, {numbers, count}, workspace.bins, bound);
  }

  ColumnBest search(Index column, double limit, SearchWorkspace<T>& workspace, Split* chosen = nullptr) {
    if (!is_binned(column)) return context_.search(*node_, column, workspace.columns, chosen, limit);
    return search_->search(*binned_, context_.number[column], limit, workspace.bins, workspace.columns,
                           chosen);
  }

  void leave() {
    if (kept_ >= 0) store_.give_back(kept_);
    kept_ = -1;
  }
  // A node that is left for others to search.
  void drop(const PendingNode& node) {
    if (node.histograms >= 0) store_.give_back(node.histograms);
  }

  // Codes follow their rows, where a child will read them. The child with the most rows has the histograms of
  // the node less those of the others.
  template <class Each>
  void part(std::span<PendingNode> children, std::span<const std::int32_t> slots, const Each& each) {
    if (!search_) return;
    if (std::none_of(children.begin(), children.end(), reads_codes)) return leave();
    const auto largest = std::max_element(children.begin(), children.end(),
                                          [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::vector<ClassTotals> totals(children.size(), ClassTotals(context_.data.classes));
    std::vector<BinnedNode> others;
    std::vector<Index> kept;
    if (kept_ >= 0 && reads_codes(*largest) && largest->size() >= fewest_kept())
      keep_for(children, *largest, totals, others, kept);
    else
      leave();
    std::vector<Index> ends;
    for (const PendingNode& child : children) ends.push_back(child.end - children[0].begin);
    const Index all = context_.bins->columns();
    each((all + kAtOnce - 1) / kAtOnce, [&](Index task, SearchWorkspace<T>& workspace) {
      Index numbers[kAtOnce];
      std::size_t count = 0;
      for (Index k = task * kAtOnce; k < std::min((task + 1) * kAtOnce, all); ++k) {
        context_.bins->split(k, children[0].begin, slots, ends, workspace.bins.moved_codes);
        numbers[count++] = k;
      }
      for (std::size_t i = 0; i < kept.size(); ++i)
        make(others[i], kept[i], {numbers, count}, workspace.bins,
             [&](Index k, const BinHistogram<Mass>& part) {
               subtract(others[i], part, store_.column(kept_, k));
             });
    });
    if (!kept.empty()) largest->histograms = kept_;
    kept_ = -1;
  }

 private:
  static constexpr std::size_t kMostHistograms = 512;  // of single classes, in the workspace: 512 kB
  static constexpr double kMostError = 1e-9;  // of a sum of weights, over W: far below that of the scan

  // Rows of a node for which subtracting histograms is faster than counting.
  Index fewest_kept() const { return context_.data.classes * kBins; }
  static bool reads_codes(const PendingNode& child) { return child.is_open && !child.is_sorted; }
  bool is_binned(Index column) const { return search_ && context_.number[column] >= 0; }

  BinnedNode binned(const PendingNode& node, const ClassTotals& totals, bool all_classes) const {
    const std::size_t size = static_cast<std::size_t>(node.size());
    return {std::span(context_.rows).subspan(node.begin, size), node.begin, totals, context_.data.weight,
            all_classes};
  }

  // Makes the histograms of a few columns, in a kept place if there is one, and hands each of them on.
  template <class Use>
  void make(const BinnedNode& node, Index place, std::span<const Index> numbers, BinWorkspace& workspace,
            const Use& use) {
    const std::size_t most =
        place >= 0 ? numbers.size() : std::max<std::size_t>(1, kMostHistograms / node.classes.size());
    for (std::size_t first = 0; first < numbers.size(); first += most) {
      const auto some = numbers.subspan(first, std::min(most, numbers.size() - first));
      if (place < 0) workspace.make_room<Mass>(node, static_cast<Index>(some.size()));
      const auto to = [&](Index j) {
        return place >= 0 ? store_.column(place, some[j]) : workspace.histogram<Mass>(node, j);
      };
      build(node, *context_.bins, some, to);
      for (std::size_t j = 0; j < some.size(); ++j) use(some[j], to(static_cast<Index>(j)));
    }
  }

  // Finds places for the histograms of the other children, which `kept` says, -1 for none; nothing where the
  // largest child would have sums that are too far off.
  void keep_for(std::span<PendingNode> children, const PendingNode& largest, std::vector<ClassTotals>& totals,
                std::vector<BinnedNode>& others, std::vector<Index>& kept) {
    double error = store_.error(kept_) + 0x1p-53 * node_->totals.weight(), rest = node_->totals.weight();
    for (std::size_t slot = 0; slot < children.size(); ++slot) {
      const PendingNode& child = children[slot];
      if (&child == &largest) continue;
      context_.count(child, totals[slot]);
      others.push_back(binned(child, totals[slot], true));
      error += others.back().rounding() * totals[slot].weight();
      rest -= totals[slot].weight();
    }
    if (!std::is_integral_v<Mass> && error > kMostError * rest) return leave();
    for (std::size_t slot = 0; slot < children.size(); ++slot) {
      PendingNode& child = children[slot];
      if (&child == &largest) continue;
      if (reads_codes(child) && child.size() >= fewest_kept()) child.histograms = store_.take();
      if (child.histograms >= 0)
        store_.error(child.histograms) = others[kept.size()].rounding() * totals[slot].weight();
      kept.push_back(child.histograms);
    }
    store_.error(kept_) = std::is_integral_v<Mass> ? 0.0 : error;
  }

  GrowthContext<T>& context_;
  KeptHistograms<Mass> store_;
  std::optional<BinnedSearch<T>> search_;
  std::optional<NodeRows> node_;
  std::optional<BinnedNode> binned_;
  Index kept_ = -1;  // of the node
  bool is_filled_ = false;
};

// A node of a small subtree whose columns of numbers are sorted.
template <class T>
class SortedView {
 public:
  static constexpr bool kHasCodes = false;
  static constexpr Index kAtOnce = 1;

  SortedView(const GrowthContext<T>& context, SortedColumns<T>& sorted, const PendingNode& root)
      : context_(context), sorted_(sorted), first_(root.begin) {
    const std::span<const Row> rows(context.rows);
    sorted.load(context.data, rows.subspan(root.begin, static_cast<std::size_t>(root.size())),
                context.numbers);
  }

  void enter(const NodeRows& node, const PendingNode& pending) {
    node_.emplace(node);
    sorted_.enter(pending.begin - first_, pending.end - first_, node.totals, context_.rules);
  }

  void split_bounds(std::span<const Index> columns, SearchWorkspace<T>& workspace,
                    std::vector<SplitBound>& bounds) {
    for (const Index column : columns)
      bounds[column] = context_.number[column] < 0 ? context_.search(*node_, column, workspace.columns)
                                                   : sorted_.split_bound(context_.number[column]);
  }

  ColumnBest search(Index column, double limit, SearchWorkspace<T>& workspace, Split* chosen = nullptr) {
    const Index k = context_.number[column];
    if (k < 0 || sorted_.has_unknown(k))
      return context_.search(*node_, column, workspace.columns, chosen, limit);
    workspace.columns.known = node_->totals;
    workspace.columns.unknown.clear();
    Candidates candidates(context_.rules, context_.score, node_->totals, workspace.columns,
                          static_cast<std::int32_t>(column), chosen, limit);
    const Table<T>& X = context_.data.X;
    sorted_.offer(k, X.data + column * X.column_stride, X.row_stride, limit, candidates);
    return candidates.best();
  }

  void leave() {}

  template <class Each>
  void part(std::span<PendingNode> children, std::span<const std::int32_t> slots, const Each&) {
    std::vector<Index> ends;
    for (const PendingNode& child : children) ends.push_back(child.end - children[0].begin);
    sorted_.part(slots, ends);
  }

 private:
  const GrowthContext<T>& context_;
  SortedColumns<T>& sorted_;
  const Index first_;
  std::optional<NodeRows> node_;
};

}  // namespace sixfold
