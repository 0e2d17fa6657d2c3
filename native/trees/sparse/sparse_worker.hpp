// What a thread of sparse_tree.cpp finds in the columns that it looks at, for each open node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "trees/columns/column_order.hpp"
#include "trees/sparse/sparse_lists.hpp"
#include "trees/sparse/sparse_splits.hpp"

namespace sixfold {

inline constexpr std::int32_t kNone = -1;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The least S of a column. `previous` leads to one of an earlier column that is a little larger, so that it
// comes first if no later column is much better.
struct BestSoFar {
  double least = kInfinity;
  std::int32_t column = kNone;
  std::int32_t previous = kNone;
};

// What a column has to offer by gain ratio: the least S_entropy of its candidates, and S of the first that
// has it.
struct Ratio {
  std::int32_t node, column;
  double least, score;
};

template <Criterion criterion>
struct Worker {
  struct Candidate {
    ScorePart children;
    Cut cut;
  };

  GroupSearch<criterion> search;
  ColumnOrder order;
  SparseLists::Scratch scratch{};
  std::vector<BestSoFar> best_so_far{}, earlier{};
  std::vector<std::uint8_t> has_candidates{};
  std::vector<Candidate> close{};

  void forget(std::size_t nodes) {
    best_so_far.assign(nodes, {});
    earlier.clear();
    has_candidates.assign(nodes, 0);
  }

  // Columns come in rising order: one that is not less than an earlier one is never the first of equals.
  void note(std::int32_t node, std::int32_t column, double least, double tie) {
    BestSoFar& one = best_so_far[node];
    if (!(least < one.least)) return;
    std::int32_t previous = kNone;
    if (one.least <= least + tie) {
      previous = static_cast<std::int32_t>(earlier.size());
      earlier.push_back(one);
    }
    one = {least, column, previous};
  }

  // The first column with S <= limit, or none.
  std::int32_t first_column(std::int32_t node, double limit) const {
    std::int32_t column = kNone;
    for (const BestSoFar* one = &best_so_far[node]; one->least <= limit; one = &earlier[one->previous]) {
      column = one->column;
      if (one->previous == kNone) break;
    }
    return column;
  }

  // The candidate of a column with the most gain. Candidates come out of their order, so all that may be the
  // first within the tie are kept. Where there is none, least is infinite.
  Ratio most_gain(const SparseNode& node, std::span<const Entry> entries, double tie, bool* any) {
    Ratio best{kNone, kNone, kInfinity, kInfinity};
    close.clear();
    *any |= search.search(node, entries, kInfinity, [&](const ScorePart& children, const Cut& cut) {
      if (!(children.impurity <= best.least + tie)) return;
      best.least = std::min(best.least, children.impurity);
      close.push_back({children, cut});
    });
    const Candidate* first = nullptr;
    for (const Candidate& one : close)
      if (one.children.impurity <= best.least + tie && (first == nullptr || one.cut < first->cut))
        first = &one;
    if (first != nullptr) best.score = SplitScore::ratio(node.totals.weight(), node.whole, first->children);
    return best;
  }
};

}  // namespace sixfold
