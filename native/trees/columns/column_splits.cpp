// The search of column_splits.hpp: values are gathered from the node's rows, and thresholds are scanned.
#include "trees/columns/column_splits.hpp"

#include <algorithm>

#include "trees/columns/column_search.hpp"
#include "trees/columns/sort_values.hpp"

namespace sixfold {
namespace {

// Calls known(value, row) for the rows with a value; the others are counted as unknown.
template <class T, class Known>
void gather(const TrainingTable<T>& data, const NodeRows& node, Index column, ColumnWorkspace& workspace,
            const Known& known) {
  const T* values = data.X.data + column * data.X.column_stride;
  workspace.unknown.clear();
  for (Index i = 0; i < node.count; ++i) {
    const Row row = node.rows[i];
    const T value = values[row * data.X.row_stride];
    if (value == value)
      known(value, row);
    else
      workspace.unknown.add(data.labels[row], data.weight_of(row));
  }
  if (workspace.unknown.rows() > 0)
    workspace.known.set_difference(node.totals, workspace.unknown);
  else
    workspace.known = node.totals;
}

template <class T>
void search_numbers(const TrainingTable<T>& data, const NodeRows& node, Index column,
                    Candidates& candidates) {
  ColumnWorkspace& workspace = candidates.workspace();
  std::vector<ColumnWorkspace::Value>& values = workspace.values;
  values.clear();
  gather(data, node, column, workspace,
         [&](T value, Row row) { values.push_back({static_cast<double>(value), row, data.labels[row]}); });
  sort_by_value(values, workspace.room);
  workspace.left.clear();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    workspace.left.add(values[i].label, data.weight_of(values[i].row));
    const double low = values[i].value, high = values[i + 1].value;
    if (low == high) continue;
    workspace.right.set_difference(workspace.known, workspace.left);
    candidates.offer_two(workspace.left, workspace.right,
                         [&](Split& split) { set_threshold(split, threshold_between(low, high)); });
  }
  candidates.offer_known([&](Split& split) { set_all_known(split, candidates.rules().unknown_best); });
}

// The class totals of each category present, by code. Only codes that are met are touched.
template <class T>
void count_categories(const TrainingTable<T>& data, const NodeRows& node, Index column,
                      ColumnWorkspace& workspace) {
  workspace.present.clear();
  workspace.values.clear();
  gather(data, node, column, workspace, [&](T value, Row row) {
    const std::int32_t code = static_cast<std::int32_t>(value);
    if (workspace.slots[code] < 0) {
      workspace.slots[code] = 0;
      workspace.present.push_back(code);
    }
    workspace.values.push_back({static_cast<double>(value), row, data.labels[row]});
  });
  std::sort(workspace.present.begin(), workspace.present.end());
  const Index count = static_cast<Index>(workspace.present.size());
  for (Index k = 0; k < count; ++k) workspace.slots[workspace.present[k]] = static_cast<std::int32_t>(k);
  const auto slot = [&](const ColumnWorkspace::Value& v) {
    return workspace.slots[static_cast<std::int32_t>(v.value)];
  };
  workspace.ends.assign(static_cast<std::size_t>(count + 1), 0);
  for (const ColumnWorkspace::Value& v : workspace.values) ++workspace.ends[slot(v) + 1];
  for (Index k = 0; k < count; ++k) workspace.ends[k + 1] += workspace.ends[k];
  workspace.by_category.resize(workspace.values.size());
  for (const ColumnWorkspace::Value& v : workspace.values)
    workspace.by_category[workspace.ends[slot(v)]++] = v.row;

  workspace.categories.clear();
  workspace.cells.clear();
  ClassTotals& totals = workspace.left;
  for (Index k = 0, from = 0; k < count; from = workspace.ends[k++]) {
    totals.clear();
    for (Index i = from; i < workspace.ends[k]; ++i) {
      const Row row = workspace.by_category[i];
      totals.add(data.labels[row], data.weight_of(row));
    }
    const Index first = static_cast<Index>(workspace.cells.size());
    for (const ClassCell& cell : totals.cells())
      if (cell.rows > 0) workspace.cells.push_back(cell);
    const Index cells = static_cast<Index>(workspace.cells.size()) - first;
    workspace.categories.push_back({workspace.present[k], first, cells, totals.weight(), totals.rows(), 0.0});
    workspace.slots[workspace.present[k]] = -1;
  }
}

}  // namespace

template <class T>
ColumnBest search_column(const TrainingTable<T>& data, const GrowthRules& rules, const SplitScore& score,
                         const NodeRows& node, Index column, ColumnWorkspace& workspace, Split* chosen,
                         double limit) {
  Candidates candidates(rules, score, node.totals, workspace, static_cast<std::int32_t>(column), chosen,
                        limit);
  if (data.kinds[column] == 0) {
    search_numbers(data, node, column, candidates);
  } else {
    count_categories(data, node, column, workspace);
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
                                  const NodeRows&, Index, ColumnWorkspace&, Split*, double);
template ColumnBest search_column(const TrainingTable<float>&, const GrowthRules&, const SplitScore&,
                                  const NodeRows&, Index, ColumnWorkspace&, Split*, double);
template ColumnBest search_column(const TrainingTable<std::uint8_t>&, const GrowthRules&, const SplitScore&,
                                  const NodeRows&, Index, ColumnWorkspace&, Split*, double);
template std::int32_t slot_of(const Split&, bool, double);
template std::int32_t slot_of(const Split&, bool, float);
template std::int32_t slot_of(const Split&, bool, std::uint8_t);

}  // namespace sixfold
