// What the bindings of trees share: names of criteria, and trees on their way to Python and back.
#pragma once

#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "trees/apply.hpp"
#include "trees/columns/column_splits.hpp"
#include "trees/nodes.hpp"
#include "trees/split_score.hpp"

namespace sixfold {

template <class T>
using List = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline constexpr Index kMostRows = Index{1} << 30;  // nodes, fewer than twice as many, have 32 bits

inline Criterion criterion_of(const std::string& name) {
  if (name == "entropy") return Criterion::entropy;
  if (name == "gini") return Criterion::gini;
  if (name == "gain_ratio") return Criterion::gain_ratio;
  expect(name == "homogeneous", "a criterion is entropy, gini, gain_ratio or homogeneous");
  return Criterion::homogeneous;
}

// The rows a tree is grown from, checked.
inline RowNumbers rows_of(Index count, const std::int32_t* labels, const double* weight, Index classes,
                          const std::optional<Indices>& given) {
  RowNumbers rows(given ? given->shape(0) : static_cast<std::size_t>(count));
  if (!given) std::iota(rows.begin(), rows.end(), 0);
  bool sound = !rows.empty();
  for (std::size_t i = 0; given && i < rows.size(); ++i) {
    const Index row = given->data()[i];
    sound &= row >= 0 && row < count && (i == 0 || given->data()[i - 1] < row);
    rows[i] = static_cast<std::int32_t>(row);
  }
  expect(sound, "rows must be numbers of rows, rising, at least one");
  for (const std::int32_t row : rows) sound &= labels[row] >= 0 && labels[row] < classes;
  expect(sound, "labels must be below the number of classes");
  for (const std::int32_t row : rows)
    sound &= weight == nullptr || (weight[row] > 0.0 && std::isfinite(weight[row]));
  expect(sound, "weights must be positive and finite");
  return rows;
}

inline nb::object matrix_of(std::vector<double>&& values, std::size_t columns) {
  auto kept = std::make_unique<std::vector<double>>(std::move(values));
  double* data = kept->data();
  const std::size_t rows = kept->size() / columns;
  const nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  kept.release();  // by now the capsule's
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<2>>(data, {rows, columns}, owner));
}

// The arrays of a tree, and whether it was grown to its end.
inline nb::tuple tree_tuple(std::pair<TreeArrays, bool>&& grown, Index classes) {
  TreeArrays& tree = grown.first;
  return nb::make_tuple(array_of(std::move(tree.column)), array_of(std::move(tree.threshold)),
                        array_of(std::move(tree.first)), array_of(std::move(tree.code)),
                        array_of(std::move(tree.child)), array_of(std::move(tree.unknown)),
                        array_of(std::move(tree.reason)), array_of(std::move(tree.rows)),
                        matrix_of(std::move(tree.totals), static_cast<std::size_t>(classes)), grown.second);
}

inline TreeView tree_view(const List<std::uint8_t>& kinds, const List<std::int32_t>& column,
                          const List<double>& threshold, const List<Index>& first,
                          const List<std::int32_t>& code, const List<std::int32_t>& child,
                          const List<std::int32_t>& unknown) {
  const std::size_t nodes = column.shape(0);
  expect(nodes >= 1 && threshold.shape(0) == nodes && first.shape(0) == nodes + 1 &&
             unknown.shape(0) == nodes && code.shape(0) == child.shape(0),
         "the arrays of a tree must have an entry a node or a branch");
  return {kinds.data(),
          column.data(),
          threshold.data(),
          first.data(),
          code.data(),
          child.data(),
          unknown.data(),
          static_cast<Index>(nodes),
          static_cast<Index>(child.shape(0))};
}

// Nothing that a tree's arrays hold may lead out of them, or in a circle.
inline void expect_tree(const TreeView& tree, Index columns) {
  bool sound = tree.first[0] == 0 && tree.first[tree.nodes] == tree.branches;
  for (Index i = 0; sound && i < tree.nodes; ++i) {
    sound &= tree.column[i] >= -1 && tree.column[i] < columns;
    sound &= tree.unknown[i] == -1 || (tree.unknown[i] > i && tree.unknown[i] < tree.nodes);
    sound &= tree.first[i] <= tree.first[i + 1] && tree.first[i + 1] <= tree.branches;
    for (Index b = tree.first[i]; sound && b < tree.first[i + 1]; ++b)
      sound &= tree.child[b] > i && tree.child[b] < tree.nodes;
  }
  expect(sound, "a tree's branches must lead to nodes that come after theirs");
}

}  // namespace sixfold
