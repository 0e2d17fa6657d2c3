// The candidates of a column of categories, see column_splits.hpp.
#include <algorithm>
#include <numeric>

#include "trees/columns/column_search.hpp"

namespace sixfold {
namespace {

constexpr Index kAllGroupings = 8;  // categories of which every grouping is tried

std::span<const ClassCell> cells_of(const ColumnDesk& desk, const ColumnDesk::Category& category) {
  return {desk.cells.data() + category.first_cell, static_cast<std::size_t>(category.cells)};
}

void fill_multiway(const ColumnDesk& desk, Split& split) {
  std::int32_t slot = 0;
  for (const ColumnDesk::Category& category : desk.categories)
    split.branches.push_back({category.code, slot++});
}

// A child for each category.
void offer_multiway(Candidates& candidates) {
  ColumnDesk& desk = candidates.desk();
  candidates.note_candidate();
  const auto fill = [&](Split& split) { fill_multiway(desk, split); };
  const std::int32_t count = static_cast<std::int32_t>(desk.categories.size());
  ScorePart sum;
  Index large = 0;
  desk.parts.clear();
  for (const ColumnDesk::Category& category : desk.categories) {
    desk.parts.push_back(candidates.score().part(cells_of(desk, category), category.weight, category.rows));
    sum = sum + desk.parts.back();
    large += candidates.is_large_enough(category.weight, category.rows);
  }
  if (!candidates.has_unknown()) {
    if (large >= 2) candidates.offer(sum, count, -1, fill);
  } else if (!candidates.rules().unknown_best) {
    if (large >= 2) candidates.offer(sum + candidates.score().part(desk.unknown), count + 1, count, fill);
  } else {
    for (std::int32_t k = 0; k < count; ++k) {
      const ColumnDesk::Category& category = desk.categories[k];
      desk.joined = desk.unknown;
      desk.joined.add(cells_of(desk, category));
      const Index others = large - candidates.is_large_enough(category.weight, category.rows);
      if (others + candidates.is_large_enough(desk.joined) >= 2)
        candidates.offer(sum - desk.parts[k] + candidates.score().part(desk.joined), count, k, fill);
    }
  }
}

// The grouping that desk.is_right says, its categories added up in desk.right.
void offer_grouping(Candidates& candidates) {
  ColumnDesk& desk = candidates.desk();
  desk.left.set_difference(desk.known, desk.right);
  // The lowest code is always left.
  const bool swapped = desk.is_right[0];
  candidates.offer_two(swapped ? desk.right : desk.left, swapped ? desk.left : desk.right, [&](Split& split) {
    for (std::size_t k = 0; k < desk.categories.size(); ++k)
      split.branches.push_back({desk.categories[k].code, desk.is_right[k] != swapped});
  });
}

// Categories by the share of a class, least first: every prefix of them.
void offer_prefixes(Candidates& candidates, std::int32_t label) {
  ColumnDesk& desk = candidates.desk();
  for (ColumnDesk::Category& category : desk.categories) {
    category.share = 0.0;
    for (const ClassCell& cell : cells_of(desk, category))
      if (cell.label == label) category.share = cell.weight / category.weight;
  }
  desk.order.resize(desk.categories.size());
  std::iota(desk.order.begin(), desk.order.end(), 0);
  std::stable_sort(desk.order.begin(), desk.order.end(), [&](std::int32_t a, std::int32_t b) {
    return desk.categories[a].share < desk.categories[b].share;
  });
  desk.is_right.assign(desk.categories.size(), 0);
  desk.right.clear();
  for (std::size_t k = 0; k + 1 < desk.order.size(); ++k) {
    desk.is_right[desk.order[k]] = 1;
    desk.right.add(cells_of(desk, desk.categories[desk.order[k]]));
    offer_grouping(candidates);
  }
}

void offer_all_groupings(Candidates& candidates) {
  ColumnDesk& desk = candidates.desk();
  const Index count = static_cast<Index>(desk.categories.size());
  desk.is_right.assign(desk.categories.size(), 0);
  for (unsigned mask = 1; mask < 1u << (count - 1); ++mask) {
    desk.right.clear();
    for (Index k = 1; k < count; ++k) {
      desk.is_right[k] = mask >> (k - 1) & 1;
      if (desk.is_right[k]) desk.right.add(cells_of(desk, desk.categories[k]));
    }
    offer_grouping(candidates);
  }
}

void offer_binary(Candidates& candidates) {
  const ColumnDesk& desk = candidates.desk();
  const Index classes = static_cast<Index>(desk.known.cells().size());
  if (classes <= 2) {
    offer_prefixes(candidates, 1);
  } else if (static_cast<Index>(desk.categories.size()) <= kAllGroupings) {
    offer_all_groupings(candidates);
  } else {
    for (Index label = 0; label < classes; ++label)
      offer_prefixes(candidates, static_cast<std::int32_t>(label));
  }
}

}  // namespace

void offer_categories(Candidates& candidates) {
  ColumnDesk& desk = candidates.desk();
  if (desk.categories.size() >= 2)
    candidates.rules().binary ? offer_binary(candidates) : offer_multiway(candidates);
  candidates.offer_known([&](Split& split) {
    for (const ColumnDesk::Category& category : desk.categories) split.branches.push_back({category.code, 0});
  });
}

}  // namespace sixfold
