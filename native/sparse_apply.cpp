// The way of sparse rows through a tree: each node's column is looked up in the row by bisection.
#include <algorithm>

#include "blas.hpp"
#include "sparse_tree.hpp"

namespace sixfold {
namespace {

template <class T>
double value_of(const std::int32_t* columns, const std::int32_t* end, const T* values, std::int32_t column) {
  const std::int32_t* at = std::lower_bound(columns, end, column);
  return at != end && *at == column ? static_cast<double>(values[at - columns]) : 0.0;
}

// The child that a number leads to, or -1: the node has no branch for it.
std::int32_t child_of(const TreeView& tree, std::int32_t node, double value) {
  if (value != value) return tree.unknown[node];
  const Index branch = tree.first[node] + (value <= tree.threshold[node] ? 0 : 1);
  return branch < tree.first[node + 1] ? tree.child[branch] : -1;
}

}  // namespace

template <class T>
void apply_sparse_tree(const SparseQueries<T>& X, const TreeView& tree, std::int32_t* ends) {
#pragma omp parallel for schedule(static) num_threads(threads())
  for (Index i = 0; i < X.rows; ++i) {
    const std::int32_t *begin = X.columns + X.starts[i], *end = X.columns + X.starts[i + 1];
    const T* values = X.values + X.starts[i];
    std::int32_t node = 0;
    while (tree.column[node] >= 0) {
      const std::int32_t next = child_of(tree, node, value_of(begin, end, values, tree.column[node]));
      if (next < 0) break;
      node = next;
    }
    ends[i] = node;
  }
}

template void apply_sparse_tree(const SparseQueries<double>&, const TreeView&, std::int32_t*);
template void apply_sparse_tree(const SparseQueries<float>&, const TreeView&, std::int32_t*);

}  // namespace sixfold
