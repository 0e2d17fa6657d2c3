// Growing a tree: at each node the best split of all columns, then its children in the same way.
//
// The best has the least S (split_score.hpp) of all valid candidates of all columns; taken is the first one,
// by column and then in the order of column_splits.hpp, with S <= least + 1e-12 W, so that rounding does not
// decide ties. The gain ratio compares columns, each by its first candidate with the most gain, and of these
// only columns with at least the average gain. A node is not split where its rows are of one class, where
// depth, rows or gain are at a limit, where no column tells its rows apart, or where time is over. The tree
// is the same for any number of threads.
#pragma once

#include <utility>
#include <vector>

#include "core/stop.hpp"
#include "trees/columns/column_splits.hpp"
#include "trees/nodes.hpp"

namespace sixfold {

// The tree of these rows of the table (at least one); second: whether it was grown to its end.
// `codes`: more than the greatest code in a column of categories.
template <class T>
std::pair<TreeArrays, bool> grow_tree(const TrainingTable<T>& data, const GrowthRules& rules, RowNumbers rows,
                                      Index codes, Stop& stop);

}  // namespace sixfold
