// The candidates of a column of categories, see column_splits.hpp.
#include <algorithm>
#include <numeric>

#include "trees/columns/column_search.hpp"

namespace sixfold {
namespace {

constexpr Index kAllGroupings = 8;  // categories of which every grouping is tried

std::span<const ClassCell> cells_of(const ColumnWorkspace& workspace,
                                    const ColumnWorkspace::Category& category) {
  return {workspace.cells.data() + category.first_cell, static_cast<std::size_t>(category.cells)};
}

void fill_multiway(const ColumnWorkspace& workspace, Split& split) {
  std::int32_t slot = 0;
  for (const ColumnWorkspace::Category& category : workspace.categories)
    split.branches.push_back({category.code, slot++});
}

// A child for each category.
void offer_multiway(Candidates& candidates) {
  ColumnWorkspace& workspace = candidates.workspace();
  candidates.note_candidate();
  const auto fill = [&](Split& split) { fill_multiway(workspace, split); };
  const std::int32_t count = static_cast<std::int32_t>(workspace.categories.size());
  ScorePart sum;
  Index large = 0;
  workspace.parts.clear();
  for (const ColumnWorkspace::Category& category : workspace.categories) {
    workspace.parts.push_back(
        candidates.score().part(cells_of(workspace, category), category.weight, category.rows));
    sum = sum + workspace.parts.back();
    large += candidates.is_large_enough(category.weight, category.rows);
  }
  if (!candidates.has_unknown()) {
    if (large >= 2) candidates.offer(sum, count, -1, fill);
  } else if (!candidates.rules().unknown_best) {
    if (large >= 2)
      candidates.offer(sum + candidates.score().part(workspace.unknown), count + 1, count, fill);
  } else {
    for (std::int32_t k = 0; k < count; ++k) {
      const ColumnWorkspace::Category& category = workspace.categories[k];
      workspace.joined = workspace.unknown;
      workspace.joined.add(cells_of(workspace, category));
      const Index others = large - candidates.is_large_enough(category.weight, category.rows);
      if (others + candidates.is_large_enough(workspace.joined) >= 2)
        candidates.offer(sum - workspace.parts[k] + candidates.score().part(workspace.joined), count, k,
                         fill);
    }
  }
}

// The grouping that workspace.is_right says, its categories added up in workspace.right.
void offer_grouping(Candidates& candidates) {
  ColumnWorkspace& workspace = candidates.workspace();
  workspace.left.set_difference(workspace.known, workspace.right);
  // The lowest code is always left.
  const bool swapped = workspace.is_right[0];
  candidates.offer_two(
      swapped ? workspace.right : workspace.left, swapped ? workspace.left : workspace.right,
      [&](Split& split) {
        for (std::size_t k = 0; k < workspace.categories.size(); ++k)
          split.branches.push_back({workspace.categories[k].code, workspace.is_right[k] != swapped});
      });
}

// Categories by the share of a class, least first: every prefix of them.
void offer_prefixes(Candidates& candidates, std::int32_t label) {
  ColumnWorkspace& workspace = candidates.workspace();
  for (ColumnWorkspace::Category& category : workspace.categories) {
    category.share = 0.0;
    for (const ClassCell& cell : cells_of(workspace, category))
      if (cell.label == label) category.share = cell.weight / category.weight;
  }
  workspace.order.resize(workspace.categories.size());
  std::iota(workspace.order.begin(), workspace.order.end(), 0);
  std::stable_sort(workspace.order.begin(), workspace.order.end(), [&](std::int32_t a, std::int32_t b) {
    return workspace.categories[a].share < workspace.categories[b].share;
  });
  workspace.is_right.assign(workspace.categories.size(), 0);
  workspace.right.clear();
  for (std::size_t k = 0; k + 1 < workspace.order.size(); ++k) {
    workspace.is_right[workspace.order[k]] = 1;
    workspace.right.add(cells_of(workspace, workspace.categories[workspace.order[k]]));
    offer_grouping(candidates);
  }
}

void offer_all_groupings(Candidates& candidates) {
  ColumnWorkspace& workspace = candidates.workspace();
  const Index count = static_cast<Index>(workspace.categories.size());
  workspace.is_right.assign(workspace.categories.size(), 0);
  for (unsigned mask = 1; mask < 1u << (count - 1); ++mask) {
    workspace.right.clear();
    for (Index k = 1; k < count; ++k) {
      workspace.is_right[k] = mask >> (k - 1) & 1;
      if (workspace.is_right[k]) workspace.right.add(cells_of(workspace, workspace.categories[k]));
    }
    offer_grouping(candidates);
  }
}

void offer_binary(Candidates& candidates) {
  const ColumnWorkspace& workspace = candidates.workspace();
  const Index classes = static_cast<Index>(workspace.known.cells().size());
  if (classes <= 2) {
    offer_prefixes(candidates, 1);
  } else if (static_cast<Index>(workspace.categories.size()) <= kAllGroupings) {
    offer_all_groupings(candidates);
  } else {
    for (Index label = 0; label < classes; ++label)
      offer_prefixes(candidates, static_cast<std::int32_t>(label));
  }
}

}  // namespace

void offer_categories(Candidates& candidates) {
  ColumnWorkspace& workspace = candidates.workspace();
  if (workspace.categories.size() >= 2)
    candidates.rules().binary ? offer_binary(candidates) : offer_multiway(candidates);
  candidates.offer_known([&](Split& split) {
    for (const ColumnWorkspace::Category& category : workspace.categories)
      split.branches.push_back({category.code, 0});
  });
}

}  // namespace sixfold
