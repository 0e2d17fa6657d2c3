// Bindings of decision trees: growth and the way of rows.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "bindings.hpp"
#include "tree_apply.hpp"
#include "tree_growth.hpp"

namespace sixfold {
namespace {

template <class T>
using List = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr Index kMostRows = Index{1} << 30;   // nodes, fewer than twice as many, have 32 bits
constexpr Index kMostCodes = Index{1} << 24;  // every thread keeps a list of them

Criterion criterion_of(const std::string& name) {
  if (name == "entropy") return Criterion::entropy;
  if (name == "gini") return Criterion::gini;
  if (name == "gain_ratio") return Criterion::gain_ratio;
  expect(name == "homogeneous", "a criterion is entropy, gini, gain_ratio or homogeneous");
  return Criterion::homogeneous;
}

// The rows a tree is grown from, checked.
template <class T>
std::vector<Row> rows_of(const TrainingTable<T>& data, const std::optional<Indices>& given) {
  std::vector<Row> rows(given ? given->shape(0) : static_cast<std::size_t>(data.X.rows));
  if (!given) std::iota(rows.begin(), rows.end(), 0);
  bool in_range = true;
  for (std::size_t i = 0; given && i < rows.size(); ++i) {
    in_range &= given->data()[i] >= 0 && given->data()[i] < data.X.rows;
    rows[i] = static_cast<Row>(given->data()[i]);
  }
  expect(in_range, "rows must be numbers of rows of X");
  expect(!rows.empty(), "a tree needs a row to grow from");
  for (const Row row : rows) in_range &= data.labels[row] >= 0 && data.labels[row] < data.classes;
  expect(in_range, "labels must be below the number of classes");
  for (const Row row : rows) in_range &= data.weight_of(row) > 0.0 && std::isfinite(data.weight_of(row));
  expect(in_range, "weights must be positive and finite");
  return rows;
}

// More than the greatest code of a category, all of them checked.
template <class T>
Index codes_of(const TrainingTable<T>& data, const std::vector<Row>& rows) {
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

nb::object matrix_of(std::vector<double>&& values, std::size_t columns) {
  auto kept = std::make_unique<std::vector<double>>(std::move(values));
  double* data = kept->data();
  const std::size_t rows = kept->size() / columns;
  const nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  kept.release();  // by now the capsule's
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<2>>(data, {rows, columns}, owner));
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
          std::vector<Row> taken = rows_of(data, rows);
          const Index codes = codes_of(data, taken);
          grown = grow_tree(data, rules, std::move(taken), codes, stop);
        }
        TreeArrays& tree = grown.first;
        return nb::make_tuple(array_of(std::move(tree.column)), array_of(std::move(tree.threshold)),
                              array_of(std::move(tree.first)), array_of(std::move(tree.code)),
                              array_of(std::move(tree.child)), array_of(std::move(tree.unknown)),
                              array_of(std::move(tree.reason)), array_of(std::move(tree.rows)),
                              matrix_of(std::move(tree.totals), static_cast<std::size_t>(classes)),
                              grown.second);
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
        const std::size_t nodes = column.shape(0);
        expect_kinds(kinds, X.shape(1));
        expect(nodes >= 1 && threshold.shape(0) == nodes && first.shape(0) == nodes + 1 &&
                   unknown.shape(0) == nodes && code.shape(0) == child.shape(0),
               "the arrays of a tree must have an entry a node or a branch");
        const TreeView tree{kinds.data(),
                            column.data(),
                            threshold.data(),
                            first.data(),
                            code.data(),
                            child.data(),
                            unknown.data(),
                            static_cast<Index>(nodes),
                            static_cast<Index>(child.shape(0))};
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
