// Trees from sparse tables: the tree of column_splits.hpp without writing the zeros out.
//
// Numbers alone; what is not stored is 0 and a stored NaN is unknown. All open nodes of a level are searched
// in one pass over the stored entries (sparse_lists.hpp, sparse_splits.hpp): a level costs what its open
// nodes have stored, however many columns and nodes there are. Threads share the columns and keep their own
// bests; the first of equals is the same whoever looked at it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/stop.hpp"
#include "trees/apply.hpp"
#include "trees/columns/column_splits.hpp"
#include "trees/nodes.hpp"
#include "trees/sparse/sparse_lists.hpp"

namespace sixfold {

struct SparseTraining {
  SparseColumns X;
  Index rows;
  const std::int32_t* labels;  // of the rows
  const double* weight;        // of the rows, or null
  Index classes;
};

// The tree of these rows (at least one, rising); second: whether it was grown to its end.
std::pair<TreeArrays, bool> grow_sparse_tree(const SparseTraining& data, const GrowthRules& rules,
                                             RowNumbers rows, Stop& stop);

// Rows as CSR has them: row i has the columns columns[starts[i]] ... columns[starts[i + 1] - 1], rising.
template <class T>
struct SparseQueries {
  const Index* starts;
  const std::int32_t* columns;
  const T* values;
  Index rows;
};

// The node at which each row ends in a tree of numbers, of a table of so many columns.
template <class T>
void apply_sparse_tree(const SparseQueries<T>& X, const TreeView& tree, Index columns, std::int32_t* ends);

}  // namespace sixfold
