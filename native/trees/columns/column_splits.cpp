// The search of column_splits.hpp: values are gathered from the node's rows, and thresholds are scanned.
#include "trees/columns/column_splits.hpp"

#include <algorithm>

#include "trees/columns/column_search.hpp"
#include "trees/columns/sort_values.hpp"

namespace sixfold {
namespace {

// Calls known(value, row) for the rows with a value; the others are counted as unknown.
template <class T, class Known>
void gather(const TrainingTable<T>& data, const NodeRows& node, Index column, ColumnDesk& desk,
            const Known& known) {
  const T* values = data.X.data + column * data.X.column_stride;
  desk.unknown.clear();
  for (Index i = 0; i < node.count; ++i) {
    const Row row = node.rows[i];
    const T value = values[row * data.X.row_stride];
    if (value == value)
      known(value, row);
    else
      desk.unknown.add(data.labels[row], data.weight_of(row));
  }
  if (desk.unknown.rows() > 0)
    desk.known.set_difference(node.totals, desk.unknown);
  else
    desk.known = node.totals;
}

template <class T>
void search_numbers(const TrainingTable<T>& data, const NodeRows& node, Index column,
                    Candidates& candidates) {
  ColumnDesk& desk = candidates.desk();
  std::vector<ColumnDesk::Value>& values = desk.values;
  values.clear();
  gather(data, node, column, desk,
         [&](T value, Row row) { values.push_back({static_cast<double>(value), row, data.labels[row]}); });
  sort_by_value(values, desk.room);
  desk.left.clear();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    desk.left.add(values[i].label, data.weight_of(values[i].row));
    const double low = values[i].value, high = values[i + 1].value;
    if (low == high) continue;
    desk.right.set_difference(desk.known, desk.left);
    candidates.offer_two(desk.left, desk.right,
                         [&](Split& split) { set_threshold(split, threshold_between(low, high)); });
  }
  candidates.offer_known([&](Split& split) { set_all_known(split, candidates.rules().unknown_best); });
}

// The class totals of each category present, by code. Only codes that are met are touched.
template <class T>
void count_categories(const TrainingTable<T>& data, const NodeRows& node, Index column, ColumnDesk& desk) {
  desk.present.clear();
  desk.values.clear();
  gather(data, node, column, desk, [&](T value, Row row) {
    const std::int32_t code = static_cast<std::int32_t>(value);
    if (desk.slots[code] < 0) {
      desk.slots[code] = 0;
      desk.present.push_back(code);
    }
    desk.values.push_back({static_cast<double>(value), row, data.labels[row]});
  });
  std::sort(desk.present.begin(), desk.present.end());
  const Index count = static_cast<Index>(desk.present.size());
  for (Index k = 0; k < count; ++k) desk.slots[desk.present[k]] = static_cast<std::int32_t>(k);
  const auto slot = [&](const ColumnDesk::Value& v) {
    return desk.slots[static_cast<std::int32_t>(v.value)];
  };
  desk.ends.assign(static_cast<std::size_t>(count + 1), 0);
  for (const ColumnDesk::Value& v : desk.values) ++desk.ends[slot(v) + 1];
  for (Index k = 0; k < count; ++k) desk.ends[k + 1] += desk.ends[k];
  desk.by_category.resize(desk.values.size());
  for (const ColumnDesk::Value& v : desk.values) desk.by_category[desk.ends[slot(v)]++] = v.row;

  desk.categories.clear();
  desk.cells.clear();
  ClassTotals& totals = desk.left;
  for (Index k = 0, from = 0; k < count; from = desk.ends[k++]) {
    totals.clear();
    for (Index i = from; i < desk.ends[k]; ++i) {
      const Row row = desk.by_category[i];
      totals.add(data.labels[row], data.weight_of(row));
    }
    const Index first = static_cast<Index>(desk.cells.size());
    for (const ClassCell& cell : totals.cells())
      if (cell.rows > 0) desk.cells.push_back(cell);
    const Index cells = static_cast<Index>(desk.cells.size()) - first;
    desk.categories.push_back({desk.present[k], first, cells, totals.weight(), totals.rows(), 0.0});
    desk.slots[desk.present[k]] = -1;
  }
}

}  // namespace

template <class T>
ColumnBest search_column(const TrainingTable<T>& data, const GrowthRules& rules, const SplitScore& score,
                         const NodeRows& node, Index column, ColumnDesk& desk, Split* chosen, double limit) {
  Candidates candidates(rules, score, node.totals, desk, static_cast<std::int32_t>(column), chosen, limit);
  if (data.kinds[column] == 0) {
    search_numbers(data, node, column, candidates);
  } else {
    count_categories(data, node, column, desk);
    offer_categories(candidates);
  }
  return candidates.best();
}

template <class T>
std::int32_t slot_of(const Split& split, bool categories, T value) {
  if (value != value) return split.unknown;
  if (!categories) return static_cast<double>(value) <= split.threshold ? 0 : 1;
  const std::int32_t code = static_cast<std::int32_t>(value);
  const auto at = std::lower_bound(split.branches.begin(), split.branches.end(), code,
                                   [](const Branch& branch, std::int32_t c) { return branch.code < c; });
  return at->slot;
}

template ColumnBest search_column(const TrainingTable<double>&, const GrowthRules&, const SplitScore&,
                                  const NodeRows&, Index, ColumnDesk&, Split*, double);
template ColumnBest search_column(const TrainingTable<float>&, const GrowthRules&, const SplitScore&,
                                  const NodeRows&, Index, ColumnDesk&, Split*, double);
template ColumnBest search_column(const TrainingTable<std::uint8_t>&, const GrowthRules&, const SplitScore&,
                                  const NodeRows&, Index, ColumnDesk&, Split*, double);
template std::int32_t slot_of(const Split&, bool, double);
template std::int32_t slot_of(const Split&, bool, float);
template std::int32_t slot_of(const Split&, bool, std::uint8_t);

}  // namespace sixfold
