// How the columns of a node are searched: the two ways there are, behind the same few calls.
//
//   enter      turns to a node
//   outlook    what a column may have to offer
//   search     the best candidate of a column, or the split that is taken
//   part       the node has been split, its rows sorted by child
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "bin_splits.hpp"
#include "column_splits.hpp"
#include "sorted_columns.hpp"
#include "tree_bins.hpp"

namespace sixfold {

// What all nodes of a tree have in common.
template <class T>
struct Growing {
  const TrainingTable<T>& data;
  const GrowthRules& rules;
  const SplitScore& score;
  std::vector<Index> numbers;       // the columns that thresholds are found in without trying all of them
  std::vector<std::int32_t> place;  // of a column among these, or -1
};

// Room for one thread.
template <class T>
struct SearchDesk {
  SearchDesk(Index classes, Index codes) : columns(classes, codes) {}

  ColumnDesk columns;
  BinDesk bins;
  SortedColumns<T> sorted;
};

template <class T>
Outlook exhaustive_outlook(const Growing<T>& growing, const NodeRows& node, Index column,
                           ColumnDesk& desk) {
  const ColumnBest best = search_column(growing.data, growing.rules, growing.score, node, column, desk);
  return {best.has_candidates, true, best.least, best.least};
}

// A node with many rows: columns of numbers by their bins, others by trying all candidates.
template <class T>
class BinnedView {
 public:
  BinnedView(const Growing<T>& growing, const TreeBins<T>* bins) : growing_(growing), bins_(bins) {
    if (bins != nullptr) search_.emplace(growing.data, growing.rules, growing.score, *bins);
  }

  void enter(const NodeRows& node, Index) {
    node_.emplace(node);
    if (bins_ != nullptr)
      binned_.emplace(std::span(node.rows, static_cast<std::size_t>(node.count)), node.totals,
                      growing_.data.weight, false);
  }

  Outlook outlook(Index column, SearchDesk<T>& desk) const {
    if (!is_binned(column)) return exhaustive_outlook(growing_, *node_, column, desk.columns);
    return search_->outlook(*binned_, growing_.place[column], desk.bins);
  }

  ColumnBest search(Index column, double limit, SearchDesk<T>& desk, Split* chosen = nullptr) const {
    if (is_binned(column))
      return search_->search(*binned_, growing_.place[column], limit, desk.bins, desk.columns, chosen);
    return search_column(growing_.data, growing_.rules, growing_.score, *node_, column, desk.columns, chosen,
                         limit);
  }

  void part(std::span<const std::int32_t>, std::span<const Index>) {}

 private:
  bool is_binned(Index column) const { return bins_ != nullptr && growing_.place[column] >= 0; }

  const Growing<T>& growing_;
  const TreeBins<T>* bins_;
  std::optional<BinnedSearch<T>> search_;
  std::optional<NodeRows> node_;
  std::optional<BinnedNode> binned_;
};

// A node of a small subtree whose columns of numbers are sorted.
template <class T>
class SortedView {
 public:
  // Of the rows from `first` on in the list of all rows.
  SortedView(const Growing<T>& growing, SortedColumns<T>& sorted, std::span<const Row> rows, Index first)
      : growing_(growing), sorted_(sorted), first_(first) {
    sorted.load(growing.data, rows, growing.numbers);
  }

  void enter(const NodeRows& node, Index begin) {
    node_.emplace(node);
    sorted_.enter(begin - first_, begin - first_ + node.count, node.totals, growing_.rules);
  }

  Outlook outlook(Index column, SearchDesk<T>& desk) const {
    if (growing_.place[column] < 0) return exhaustive_outlook(growing_, *node_, column, desk.columns);
    return sorted_.outlook(growing_.place[column]);
  }

  ColumnBest search(Index column, double limit, SearchDesk<T>& desk, Split* chosen = nullptr) const {
    return search_column(growing_.data, growing_.rules, growing_.score, *node_, column, desk.columns, chosen,
                         limit);
  }

  void part(std::span<const std::int32_t> slots, std::span<const Index> ends) { sorted_.part(slots, ends); }

 private:
  const Growing<T>& growing_;
  SortedColumns<T>& sorted_;
  const Index first_;
  std::optional<NodeRows> node_;
};

}  // namespace sixfold
