// Bindings of decision trees: growth and the way of rows.
#include <algorithm>
#include <cmath>

#include "bindings/bindings.hpp"
#include "bindings/tree_bindings.hpp"
#include "trees/growth.hpp"

namespace sixfold {
namespace {

constexpr Index kMostCodes = Index{1} << 24;  // every thread keeps a list of them

// More than the greatest code of a category, all of them checked.
template <class T>
Index codes_of(const TrainingTable<T>& data, const RowNumbers& rows) {
  double most = -1.0;
  bool whole = true;
  for (Index j = 0; j < data.X.columns; ++j) {
    if (data.kinds[j] == 0) continue;
    for (const Row row : rows) {
      const double code = static_cast<double>(data.X.row(row)[j * data.X.column_stride]);
      if (code != code) continue;
      whole &= code >= 0.0 && code == std::floor(code);
      most = std::max(most, code);
    }
  }
  expect(whole, "categories must be whole numbers from 0 on");
  expect(most < static_cast<double>(kMostCodes), "categories must be numbered below 2^24");
  return static_cast<Index>(most) + 1;
}

void expect_kinds(const List<std::uint8_t>& kinds, std::size_t columns) {
  expect(kinds.shape(0) == columns, "kinds must have one entry a column");
}

template <class T>
void bind_growth(nb::module_& m) {
  m.def(
      "grow_tree",
      [](const Matrix<T>& X, const List<std::uint8_t>& kinds, const List<std::int32_t>& labels,
         const std::optional<Vector>& weight, const std::optional<Indices>& rows, Index classes,
         const std::string& criterion, bool binary, bool unknown_best, Index max_depth,
         Index min_samples_split, Index min_samples_leaf, double min_leaf_weight,
         double min_impurity_decrease, Index max_columns, std::uint64_t seed, double seconds_left,
         const Flag& flag) {
        const Table<T> values = table(X);
        expect(values.rows <= kMostRows, "a tree grows from at most 2^30 rows");
        expect(classes >= 1 && classes <= std::numeric_limits<std::int32_t>::max(), "there must be a class");
        expect_kinds(kinds, X.shape(1));
        expect(labels.shape(0) == X.shape(0), "labels must have one entry a row");
        const TrainingTable<T> data{values, kinds.data(), labels.data(), each_row(weight, values.rows),
                                    classes};
        const GrowthRules rules{
            criterion_of(criterion), binary,          unknown_best,          max_depth,   min_samples_split,
            min_samples_leaf,        min_leaf_weight, min_impurity_decrease, max_columns, seed};
        Stop stop(seconds_left, flag.data());
        std::pair<TreeArrays, bool> grown;
        {
          nb::gil_scoped_release release;
          RowNumbers taken = rows_of(values.rows, data.labels, data.weight, classes, rows);
          const Index codes = codes_of(data, taken);
          grown = grow_tree(data, rules, std::move(taken), codes, stop);
        }
        return tree_tuple(std::move(grown), classes);
      },
      nb::arg("X").noconvert(), nb::arg("kinds").noconvert(), nb::arg("labels").noconvert(),
      nb::arg("weight").noconvert().none(), nb::arg("rows").noconvert().none(), nb::arg("classes"),
      nb::arg("criterion"), nb::arg("binary"), nb::arg("unknown_best"), nb::arg("max_depth"),
      nb::arg("min_samples_split"), nb::arg("min_samples_leaf"), nb::arg("min_leaf_weight"),
      nb::arg("min_impurity_decrease"), nb::arg("max_columns"), nb::arg("seed"), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
}

template <class T>
void bind_way(nb::module_& m) {
  m.def(
      "apply_tree",
      [](const Matrix<T>& X, const List<std::uint8_t>& kinds, const List<std::int32_t>& column,
         const List<double>& threshold, const List<Index>& first, const List<std::int32_t>& code,
         const List<std::int32_t>& child, const List<std::int32_t>& unknown) {
        expect_kinds(kinds, X.shape(1));
        const TreeView tree = tree_view(kinds, column, threshold, first, code, child, unknown);
        std::vector<std::int32_t> ends(X.shape(0));
        {
          nb::gil_scoped_release release;
          apply_tree(table(X), tree, ends.data());
        }
        return array_of(std::move(ends));
      },
      nb::arg("X").noconvert(), nb::arg("kinds").noconvert(), nb::arg("column").noconvert(),
      nb::arg("threshold").noconvert(), nb::arg("first").noconvert(), nb::arg("code").noconvert(),
      nb::arg("child").noconvert(), nb::arg("unknown").noconvert());
}

}  // namespace

void bind_tree(nb::module_& m) {
  bind_growth<double>(m);
  bind_growth<float>(m);
  bind_growth<std::uint8_t>(m);
  bind_way<double>(m);
  bind_way<float>(m);
  bind_way<std::uint8_t>(m);
}

}  // namespace sixfold
