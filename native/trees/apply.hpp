// The way of rows through a finished tree: the node at which each one ends, see solvers/trees/fitted_tree.py.
//
// At a node the value of one column leads to a child, or nowhere if the node has no branch for it: then, as
// in a leaf, the way ends.
#pragma once

#include <cstdint>

#include "core/table.hpp"

namespace sixfold {

// The arrays of a tree as Python owns them.
struct TreeView {
  const std::uint8_t* kinds;  // of the columns of X
  const std::int32_t* column;
  const double* threshold;
  const Index* first;
  const std::int32_t *code, *child, *unknown;
  Index nodes, branches;
};

// Throws std::invalid_argument where an array would lead out of the others, or a way in a circle: children
// have to come after their parents. Of few rows only the nodes on their way are looked at.
template <class T>
void apply_tree(const Table<T>& X, const TreeView& tree, std::int32_t* ends);

}  // namespace sixfold
