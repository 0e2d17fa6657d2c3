// The stored values of a sparse table as trees look at them: by column in rising order, grouped by open node.
//
// A tree grows level by level, as SPRINT does (Shafer, Agrawal and Mehta 1996). Values are compared only when
// the lists are made: an entry then has a rank in place of its value, and a column falls into one group for
// each open node that has entries there. Regrouping keeps the order, so that no level sorts again, and drops
// the rows of finished nodes, so that a level costs what its open nodes have stored. An entry takes 8 bytes,
// its group at most 8 more.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// Columns one after the other, as CSC has them: column j has the rows rows[starts[j]] ...
// rows[starts[j + 1] - 1], rising. One of doubles and floats is null. NaN is unknown.
struct SparseColumns {
  const Index* starts;
  const std::int32_t* rows;
  const double* doubles;
  const float* floats;
  Index columns;

  double value(Index k) const { return doubles != nullptr ? doubles[k] : static_cast<double>(floats[k]); }
  // Of a row that is stored in the column.
  double at(Index column, std::int32_t row) const;
};

struct Entry {
  std::int32_t rank;  // of the distinct values of the column: ..., -2, -1 below zero, 1, 2, ... above
  std::int32_t row;
};
inline constexpr std::int32_t kUnknownRank = std::numeric_limits<std::int32_t>::max();

// Entries of a column, one after the other, whose rows are in one open node. They begin where the group
// before ends.
struct Group {
  std::int32_t node;  // its number among the open nodes; groups are in this order
  std::int32_t end;
};

struct RowState {
  std::int32_t node;  // number of the open node, negative for rows that are in none
  std::int32_t label;
};

class SparseLists {
 public:
  // What a thread needs while it regroups.
  class Scratch {
    friend class SparseLists;
    std::vector<Entry> later_[3];  // of the second and third child, and of finished rows
    std::vector<Group> groups_;
  };

  // Entries of rows in open nodes, which all are in node 0; zeros that are stored are left out.
  // Sets `completed` to false if `stop` ended it.
  SparseLists(const SparseColumns& X, const std::vector<RowState>& rows, int team, Stop& stop,
              bool* completed);

  // Columns that have entries, in rising order.
  std::span<const std::int32_t> columns() const { return columns_; }
  std::span<const Group> groups(Index column) const {
    return {groups_.get() + starts_[column], static_cast<std::size_t>(group_counts_[column])};
  }
  // Of all groups of the column.
  const Entry* entries(Index column) const { return entries_.get() + starts_[column]; }
  // The entries that a node has in a column, found by bisection; empty if there are none.
  std::span<const Entry> entries_of(Index column, std::int32_t node) const;

  // Entries follow their rows to the children: those of node p that are open are numbered from
  // first_child[p] on, at most three, and stand in the order of their parents.
  void regroup(Index column, const std::vector<RowState>& rows, const std::vector<std::int32_t>& first_child,
               Scratch* scratch);
  // Forgets columns without entries.
  void drop_empty_columns();
  // Of all columns, when empty ones were last dropped.
  Index entry_count() const { return entry_count_; }

 private:
  void fill(const SparseColumns& X, Index column, const std::vector<RowState>& rows,
            std::vector<std::pair<double, std::int32_t>>* known);

  const Index* starts_;  // of X
  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<Group[]> groups_;
  std::vector<std::int32_t> group_counts_, columns_;
  Index entry_count_ = 0;
};

}  // namespace sixfold
