// The way of rows through a finished tree: the node at which each one ends, see solvers/tree.py.
#pragma once

#include <cstdint>

#include "table.hpp"

namespace sixfold {

// The arrays of a tree as Python owns them. Children come after their parents, so that every way ends.
struct TreeView {
  const std::uint8_t* kinds;  // of the columns of X
  const std::int32_t* column;
  const double* threshold;
  const Index* first;
  const std::int32_t *code, *child, *unknown;
  Index nodes;
};

template <class T>
void apply_tree(const Table<T>& X, const TreeView& tree, std::int32_t* ends);

}  // namespace sixfold
