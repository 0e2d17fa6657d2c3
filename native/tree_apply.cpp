// The way of tree_apply.hpp.
#include "tree_apply.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "blas.hpp"

namespace sixfold {
namespace {

// The child that a value leads to, or -1: the node has no branch for it.
template <class T>
std::int32_t child_of(const TreeView& tree, std::int32_t node, T value) {
  if (value != value) return tree.unknown[node];
  const Index first = tree.first[node], end = tree.first[node + 1];
  std::int32_t code;
  if (tree.kinds[tree.column[node]] == 0) {
    code = static_cast<double>(value) <= tree.threshold[node] ? 0 : 1;
  } else {
    const double whole = static_cast<double>(value);
    if (!(whole >= 0.0 && whole <= std::numeric_limits<std::int32_t>::max())) return -1;
    code = static_cast<std::int32_t>(whole);
    if (static_cast<double>(code) != whole) return -1;
  }
  const std::int32_t* at = std::lower_bound(tree.code + first, tree.code + end, code);
  return at != tree.code + end && *at == code ? tree.child[at - tree.code] : -1;
}

template <class T>
std::int32_t end_of(const TreeView& tree, const T* row, Index column_stride) {
  std::int32_t node = 0;
  while (tree.column[node] >= 0) {
    const std::int32_t next = child_of(tree, node, row[tree.column[node] * column_stride]);
    if (next < 0) break;
    node = next;
  }
  return node;
}

}  // namespace

template <class T>
void apply_tree(const Table<T>& X, const TreeView& tree, std::int32_t* ends) {
  for (Index i = 0; i < X.rows; ++i) ends[i] = end_of(tree, X.row(i), X.column_stride);
}

template void apply_tree(const Table<double>&, const TreeView&, std::int32_t*);
template void apply_tree(const Table<float>&, const TreeView&, std::int32_t*);
template void apply_tree(const Table<std::uint8_t>&, const TreeView&, std::int32_t*);

}  // namespace sixfold
