// The lists of sparse_lists.hpp: values are sorted once, and entries follow their rows from level to level.
#include "trees/sparse/sparse_lists.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/tasks.hpp"

namespace sixfold {

namespace {

constexpr Index kColumnsATask = 32;

// The end of the entries at the head, some at a time, that all are in one node. Nodes that lose but a few of
// their rows are frequent in sparse tables, and so are columns where nothing moves.
const Entry* head_of(const Entry* from, const Entry* end, const RowState* rows, std::int32_t node) {
  constexpr int kAtATime = 16;
  for (; end - from >= kAtATime; from += kAtATime) {
    int others = 0;
    for (int i = 0; i < kAtATime; ++i) others += rows[from[i].row].node != node;
    if (others > 0) break;
  }
  return from;
}

}  // namespace

double SparseColumns::at(Index column, std::int32_t row) const {
  return value(std::lower_bound(rows + starts[column], rows + starts[column + 1], row) - rows);
}

SparseLists::SparseLists(const SparseColumns& X, const std::vector<RowState>& rows, int team, Stop& stop,
                         bool* completed)
    : starts_(X.starts),
      entries_(std::make_unique_for_overwrite<Entry[]>(X.starts[X.columns])),
      groups_(std::make_unique_for_overwrite<Group[]>(X.starts[X.columns])),
      group_counts_(X.columns),
      columns_(X.columns) {
  std::iota(columns_.begin(), columns_.end(), 0);
  std::vector<std::vector<std::pair<double, std::int32_t>>> known(team);
  *completed =
      run_tasks((X.columns + kColumnsATask - 1) / kColumnsATask, team, &stop, [&](Index task, Watch&) {
        const Index end = std::min((task + 1) * kColumnsATask, X.columns);
        for (Index j = task * kColumnsATask; j < end; ++j) fill(X, j, rows, &known[omp_get_thread_num()]);
      });
  drop_empty_columns();
}

void SparseLists::fill(const SparseColumns& X, Index column, const std::vector<RowState>& rows,
                       std::vector<std::pair<double, std::int32_t>>* known) {
  known->clear();
  Entry* const begin = entries_.get() + starts_[column];
  Entry* last = entries_.get() + starts_[column + 1];  // unknown values are written from the end
  for (Index k = X.starts[column]; k < X.starts[column + 1]; ++k) {
    const double value = X.value(k);
    if (value == 0.0 || rows[X.rows[k]].node < 0) continue;
    if (std::isnan(value)) {
      *--last = {kUnknownRank, X.rows[k]};
    } else {
      known->emplace_back(value, X.rows[k]);
    }
  }
  const auto is_lower = [](const auto& a, const auto& b) { return a.first < b.first; };
  // Words that a text has or has not are all 1: already in order.
  if (!std::is_sorted(known->begin(), known->end(), is_lower))
    std::sort(known->begin(), known->end(), is_lower);
  std::int32_t below = 0;  // distinct values below zero
  for (std::size_t k = 0; k < known->size() && (*known)[k].first < 0.0; ++k)
    below += k == 0 || (*known)[k].first != (*known)[k - 1].first;
  Entry* to = begin;
  std::int32_t rank = -below - 1;
  for (std::size_t k = 0; k < known->size(); ++k, ++to) {
    const double value = (*known)[k].first;
    if (k == 0 || value != (*known)[k - 1].first) ++rank;
    if (value > 0.0 && rank <= 0) rank = 1;
    *to = {rank, (*known)[k].second};
  }
  Entry* const end = entries_.get() + starts_[column + 1];
  std::reverse(last, end);
  to = std::copy(last, end, to);
  group_counts_[column] = to > begin;
  if (to > begin) groups_[starts_[column]] = {0, static_cast<std::int32_t>(to - begin)};
}

std::span<const Entry> SparseLists::entries_of(Index column, std::int32_t node) const {
  const std::span<const Group> all = groups(column);
  const auto at = std::lower_bound(all.begin(), all.end(), node,
                                   [](const Group& group, std::int32_t n) { return group.node < n; });
  if (at == all.end() || at->node != node) return {};
  const std::int32_t begin = at == all.begin() ? 0 : std::prev(at)->end;
  return {entries(column) + begin, static_cast<std::size_t>(at->end - begin)};
}

void SparseLists::regroup(Index column, const std::vector<RowState>& rows,
                          const std::vector<std::int32_t>& first_child, Scratch* scratch) {
  const std::span<const Group> old = groups(column);
  scratch->groups_.assign(old.begin(), old.end());
  Entry* const begin = entries_.get() + starts_[column];
  const Entry* from = begin;
  Entry* to = begin;
  Group* const groups_begin = groups_.get() + starts_[column];
  Group* group_to = groups_begin;
  for (const Group& group : scratch->groups_) {
    const Entry* const end = begin + group.end;
    for (std::vector<Entry>& later : scratch->later_)
      if (std::ssize(later) < end - from) later.resize(static_cast<std::size_t>(end - from));
    // Those of the first child move up in place, never beyond what has been read.
    const std::int32_t first = first_child[group.node];
    const Entry* const head = head_of(from, end, rows.data(), first);
    Entry* const after_head = to == from ? to + (head - from) : std::copy(from, head, to);
    from = head;
    // A table of ends instead of branches: which child comes next cannot be predicted.
    Entry* ends[4] = {after_head, scratch->later_[0].data(), scratch->later_[1].data(),
                      scratch->later_[2].data()};
    for (; from < end; ++from) {
      const std::int32_t node = rows[from->row].node;
      *ends[node < 0 ? 3 : node - first]++ = *from;
    }
    for (std::int32_t child = 0; child < 3; ++child) {
      const Entry* const moved = child == 0 ? to : scratch->later_[child - 1].data();
      if (ends[child] == moved) continue;
      to = child == 0 ? ends[0] : std::copy(moved, static_cast<const Entry*>(ends[child]), to);
      *group_to++ = {first + child, static_cast<std::int32_t>(to - begin)};
    }
  }
  group_counts_[column] = static_cast<std::int32_t>(group_to - groups_begin);
}

void SparseLists::drop_empty_columns() {
  std::erase_if(columns_, [&](std::int32_t j) { return group_counts_[j] == 0; });
  entry_count_ = 0;
  for (const std::int32_t j : columns_) entry_count_ += groups(j).back().end;
}

}  // namespace sixfold
