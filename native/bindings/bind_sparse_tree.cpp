// Bindings of decision trees on sparse tables.
#include <limits>

#include "bindings/bindings.hpp"
#include "bindings/tree_bindings.hpp"
#include "trees/sparse/sparse_tree.hpp"

namespace sixfold {
namespace {

// Columns of a CSC table, or rows of a CSR one: starts must rise within the entries, and in each part numbers
// below `most`.
void expect_sparse(const Indices& starts, const List<std::int32_t>& numbers, std::size_t values, Index most) {
  const Index parts = static_cast<Index>(starts.shape(0)) - 1, entries = static_cast<Index>(numbers.shape(0));
  expect(parts >= 0 && numbers.shape(0) == values, "indices and data must have the same size");
  expect(starts.data()[0] == 0 && starts.data()[parts] == entries, "indptr must span the entries");
  bool sound = true;
  for (Index j = 0; j < parts; ++j) sound &= starts.data()[j] <= starts.data()[j + 1];
  expect(sound, "indptr must not fall");
  for (Index j = 0; j < parts; ++j) {
    std::int32_t last = -1;
    for (Index k = starts.data()[j]; k < starts.data()[j + 1]; ++k) {
      sound &= numbers.data()[k] > last;
      last = numbers.data()[k];
    }
    sound &= last < most;
  }
  expect(sound, "indices must rise, each once, and lie within the table");
}

SparseColumns columns_of(const List<double>& data, const List<std::int32_t>& indices, const Indices& indptr) {
  return {indptr.data(), indices.data(), data.data(), nullptr, static_cast<Index>(indptr.shape(0)) - 1};
}
SparseColumns columns_of(const List<float>& data, const List<std::int32_t>& indices, const Indices& indptr) {
  return {indptr.data(), indices.data(), nullptr, data.data(), static_cast<Index>(indptr.shape(0)) - 1};
}

template <class T>
void bind_growth(nb::module_& m) {
  m.def(
      "grow_sparse_tree",
      [](const List<T>& data, const List<std::int32_t>& indices, const Indices& indptr, Index n_rows,
         const List<std::int32_t>& labels, const std::optional<Vector>& weight,
         const std::optional<Indices>& rows, Index classes, const std::string& criterion, bool unknown_best,
         Index max_depth, Index min_samples_split, Index min_samples_leaf, double min_leaf_weight,
         double min_impurity_decrease, Index max_columns, std::uint64_t seed, double seconds_left,
         const Flag& flag) {
        expect(n_rows >= 0 && n_rows <= kMostRows, "a tree grows from at most 2^30 rows");
        expect(indptr.shape(0) <= std::numeric_limits<std::int32_t>::max(), "columns have 32-bit numbers");
        expect(classes >= 1 && classes <= std::numeric_limits<std::int32_t>::max(), "there must be a class");
        expect(static_cast<Index>(labels.shape(0)) == n_rows, "labels must have one entry a row");
        const SparseTraining training{columns_of(data, indices, indptr), n_rows, labels.data(),
                                      each_row(weight, n_rows), classes};
        const GrowthRules rules{
            criterion_of(criterion), false,           unknown_best,          max_depth,   min_samples_split,
            min_samples_leaf,        min_leaf_weight, min_impurity_decrease, max_columns, seed};
        Stop stop(seconds_left, flag.data());
        std::pair<TreeArrays, bool> grown;
        {
          nb::gil_scoped_release release;
          expect_sparse(indptr, indices, data.shape(0), n_rows);
          grown = grow_sparse_tree(training, rules,
                                   rows_of(n_rows, training.labels, training.weight, classes, rows), stop);
        }
        return tree_tuple(std::move(grown), classes);
      },
      nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(),
      nb::arg("n_rows"), nb::arg("labels").noconvert(), nb::arg("weight").noconvert().none(),
      nb::arg("rows").noconvert().none(), nb::arg("classes"), nb::arg("criterion"), nb::arg("unknown_best"),
      nb::arg("max_depth"), nb::arg("min_samples_split"), nb::arg("min_samples_leaf"),
      nb::arg("min_leaf_weight"), nb::arg("min_impurity_decrease"), nb::arg("max_columns"), nb::arg("seed"),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

template <class T>
void bind_way(nb::module_& m) {
  m.def(
      "apply_sparse_tree",
      [](const List<T>& data, const List<std::int32_t>& indices, const Indices& indptr,
         const List<std::uint8_t>& kinds, const List<std::int32_t>& column, const List<double>& threshold,
         const List<Index>& first, const List<std::int32_t>& code, const List<std::int32_t>& child,
         const List<std::int32_t>& unknown) {
        const TreeView tree = tree_view(kinds, column, threshold, first, code, child, unknown);
        const Index rows = static_cast<Index>(indptr.shape(0)) - 1;
        std::vector<std::int32_t> ends(static_cast<std::size_t>(std::max(rows, Index{0})));
        {
          nb::gil_scoped_release release;
          const Index columns = static_cast<Index>(kinds.shape(0));
          expect_sparse(indptr, indices, data.shape(0), columns);
          expect_tree(tree, columns);
          bool numbers = true;
          for (Index j = 0; j < columns; ++j) numbers &= kinds.data()[j] == 0;
          expect(numbers, "sparse tables have numbers alone");
          apply_sparse_tree(SparseQueries<T>{indptr.data(), indices.data(), data.data(), rows}, tree, columns,
                            ends.data());
        }
        return array_of(std::move(ends));
      },
      nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(),
      nb::arg("kinds").noconvert(), nb::arg("column").noconvert(), nb::arg("threshold").noconvert(),
      nb::arg("first").noconvert(), nb::arg("code").noconvert(), nb::arg("child").noconvert(),
      nb::arg("unknown").noconvert());
}

}  // namespace

void bind_sparse_tree(nb::module_& m) {
  bind_growth<double>(m);
  bind_growth<float>(m);
  bind_way<double>(m);
  bind_way<float>(m);
}

}  // namespace sixfold
