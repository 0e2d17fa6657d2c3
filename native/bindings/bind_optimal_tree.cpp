// Binding of the search for the best tree.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bindings/bindings.hpp"
#include "bindings/tree_bindings.hpp"
#include "trees/optimal/search.hpp"

namespace sixfold {
namespace {

using optimal::SearchTable;
using Ranks = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr Index kMostSearchedRows = Index{1} << 28;  // errors, below 2^29, have 32 bits
constexpr double kLargestCost = 0x1p50;              // sums of whole numbers below 2^53 are exact

// Rows by class, with weights in whole numbers of 1 / `scale`.
SearchTable table_of(const Ranks& ranks, const List<std::uint8_t>& kinds, const List<std::int32_t>& labels,
                     const double* weight, Index classes, double scale) {
  SearchTable made;
  made.rows = static_cast<Index>(ranks.shape(1));
  made.columns = static_cast<Index>(ranks.shape(0));
  made.classes = classes;
  made.class_start.assign(static_cast<std::size_t>(classes) + 1, 0);
  for (Index i = 0; i < made.rows; ++i) ++made.class_start[labels.data()[i] + 1];
  for (Index c = 0; c < classes; ++c) made.class_start[c + 1] += made.class_start[c];
  std::vector<std::int32_t> next(made.class_start.begin(), made.class_start.end() - 1);
  std::vector<std::int32_t> place(static_cast<std::size_t>(made.rows));
  for (Index i = 0; i < made.rows; ++i) place[i] = next[labels.data()[i]]++;
  made.label.resize(place.size());
  for (Index i = 0; i < made.rows; ++i) made.label[place[i]] = labels.data()[i];
  made.ranks.resize(place.size() * static_cast<std::size_t>(made.columns));
  for (Index j = 0; j < made.columns; ++j) {
    const std::int32_t* from = ranks.data() + j * made.rows;
    for (Index i = 0; i < made.rows; ++i) made.ranks[j * made.rows + place[i]] = from[i];
  }
  for (Index j = 0; j < made.columns; ++j) made.kinds.push_back(static_cast<optimal::Kind>(kinds.data()[j]));
  if (scale == 0.0) return made;
  made.weight.resize(place.size());
  for (Index i = 0; i < made.rows; ++i)
    made.weight[place[i]] = std::rint((weight == nullptr ? 1.0 : weight[i]) * scale);
  return made;
}

void check(const Ranks& ranks, const List<std::uint8_t>& kinds, const List<std::int32_t>& labels,
           const double* weight, Index classes) {
  const std::size_t rows = ranks.shape(1), columns = ranks.shape(0);
  expect(rows >= 1 && static_cast<Index>(rows) <= kMostSearchedRows, "a search needs 1 to 2^28 rows");
  expect(classes >= 1 && classes <= std::numeric_limits<std::int32_t>::max(), "there must be a class");
  expect(kinds.shape(0) == columns, "kinds must have one entry a column");
  expect(labels.shape(0) == rows, "labels must have one entry a row");
  bool sound = true;
  for (std::size_t j = 0; j < columns; ++j) sound &= kinds.data()[j] <= 2;
  expect(sound, "a kind is 0, 1 or 2");
  for (std::size_t i = 0; i < rows; ++i) sound &= labels.data()[i] >= 0 && labels.data()[i] < classes;
  expect(sound, "labels must be below the number of classes");
  for (std::size_t k = 0; k < rows * columns; ++k)
    sound &= ranks.data()[k] >= 0 && ranks.data()[k] <= static_cast<std::int32_t>(kMostSearchedRows);
  expect(sound, "ranks must be numbers from 0 to 2^28");
  for (std::size_t i = 0; i < rows; ++i)
    sound &= weight == nullptr || (weight[i] > 0.0 && std::isfinite(weight[i]));
  expect(sound, "weights must be positive and finite");
}

// The power of two that makes the largest cost fit.
double scale_for(double largest) { return std::exp2(std::floor(std::log2(kLargestCost / largest))); }

}  // namespace

void bind_optimal_tree(nb::module_& m) {
  m.def(
      "search_tree",
      [](const Ranks& ranks, const List<std::uint8_t>& kinds, const List<std::int32_t>& labels,
         const std::optional<Vector>& weights, Index classes, const std::string& objective, Index depth,
         Index leaves, double penalty, double seconds_left, const Flag& flag, int threads, double cutoff,
         Index memory) {
        const Index rows = static_cast<Index>(ranks.shape(1));
        const double* weight = each_row(weights, rows);
        check(ranks, kinds, labels, weight, classes);
        expect(objective == "error" || objective == "entropy", "an objective is error or entropy");
        expect(depth >= 0 && depth <= 1000 && leaves >= 0 && threads >= 0, "limits may not be negative");
        expect(penalty >= 0.0 && std::isfinite(penalty), "a penalty is a finite number from 0 on");
        expect(memory >= 0, "memory may not be negative");
        expect(cutoff >= 0.0, "a cutoff may not be negative");
        double total = static_cast<double>(rows);
        if (weight != nullptr) total = std::accumulate(weight, weight + rows, 0.0);
        const bool entropy = objective == "entropy";
        const double most = std::max(total * std::max(1.0, std::log(static_cast<double>(classes))), penalty);
        Stop stop(seconds_left, flag.data());
        optimal::SearchedTree found;
        double scale = 1.0;
        {
          nb::gil_scoped_release release;
          optimal::SearchRules rules{static_cast<int>(depth), leaves, penalty, cutoff, threads, memory};
          const auto in_units = [&](double unit) {
            scale = unit;
            rules.penalty = penalty > 0.0 ? std::max(1.0, std::rint(penalty * scale)) : 0.0;
            rules.cutoff = std::isfinite(cutoff) ? std::ceil(cutoff * scale) : 1e18;
          };
          if (!entropy && weight == nullptr && penalty == 0.0) {
            rules.cutoff = std::isfinite(cutoff) ? std::min(std::ceil(cutoff), 5e8) : 5e8;
            if (rules.cutoff >= static_cast<double>(rows)) rules.cutoff = 1e18;
            found = search_errors(table_of(ranks, kinds, labels, weight, classes, 0.0), rules, stop);
          } else if (!entropy) {
            in_units(scale_for(16.0 * most));
            found =
                search_weighted_errors(table_of(ranks, kinds, labels, weight, classes, scale), rules, stop);
          } else if (weight == nullptr) {
            in_units(scale_for(std::max(total * std::log(total + 1.0), 16.0 * penalty)));
            found = search_entropy(table_of(ranks, kinds, labels, weight, classes, 0.0), rules, scale, stop);
          } else {
            in_units(scale_for(64.0 * most));
            found =
                search_weighted_entropy(table_of(ranks, kinds, labels, weight, classes, scale), rules, stop);
          }
        }
        const double unit = 1.0 / scale;
        const auto scaled = [&](std::vector<double>& values) {
          for (double& value : values) value *= unit;
          return array_of(std::move(values));
        };
        optimal::Frontier& open = found.frontier;
        nb::tuple frontier = nb::make_tuple(
            array_of(std::move(open.column)), array_of(std::move(open.low)), array_of(std::move(open.high)),
            array_of(std::move(open.left_leaves)), array_of(std::move(open.unknown_leaves)),
            scaled(open.left), scaled(open.right), scaled(open.unknown));
        nb::tuple history = nb::make_tuple(array_of(std::move(found.history.seconds)),
                                           scaled(found.history.cost), scaled(found.history.bound));
        return nb::make_tuple(array_of(std::move(found.column)), array_of(std::move(found.rank)),
                              found.cost * unit, found.bound * unit, found.complete, frontier, history, unit);
      },
      nb::arg("ranks").noconvert(), nb::arg("kinds").noconvert(), nb::arg("labels").noconvert(),
      nb::arg("weight").noconvert().none(), nb::arg("classes"), nb::arg("objective"), nb::arg("depth"),
      nb::arg("leaves"), nb::arg("penalty"), nb::arg("seconds_left"), nb::arg("flag").noconvert(),
      nb::arg("threads"), nb::arg("cutoff"), nb::arg("memory"));
}

}  // namespace sixfold
