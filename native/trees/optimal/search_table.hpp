// The rows and questions of a search for the best tree, and the rows of one node.
//
// Rows are numbered by class: those of class c are class_start[c] to class_start[c + 1] - 1. Every column has
// the rank of each row, and a node has its rows in the order of each column: parting a node keeps all orders.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/table.hpp"

namespace sixfold::optimal {

using Row = std::int32_t;
using Rank = std::int32_t;

enum class Kind : std::uint8_t {
  ordered,   // rank <= t, or not
  unknown,   // the same, where rank 0 means unknown and has a branch of its own
  branches,  // a branch for each rank
};

struct SearchTable {
  Index rows = 0, columns = 0, classes = 0;
  std::vector<Rank> ranks;          // column by column
  std::vector<Kind> kinds;          // of columns
  std::vector<std::int32_t> label;  // of rows
  std::vector<Row> class_start;
  std::vector<double> weight;  // of rows, whole numbers; empty where each row counts 1

  const Rank* rank(Index column) const { return ranks.data() + column * rows; }
};

// Views of the rows of a node, one list a column in its order, and one in the order of their numbers.
struct NodeRows {
  const Row* lists = nullptr;
  Index stride = 0;
  Row count = 0;

  const Row* by(Index column) const { return lists + column * stride; }
};

// Memory for the lists of the parts of a node.
class PartLists {
 public:
  Row* room(Index rows) {
    if (static_cast<Index>(rows_.size()) < rows) rows_.resize(static_cast<std::size_t>(rows));
    return rows_.data();
  }

 private:
  std::vector<Row> rows_;
};

struct TwoParts {
  NodeRows left, right;
};

// Parts a node by rank <= t in a column; the lists of both parts lie in `memory`.
inline TwoParts part_in_two(const SearchTable& table, const NodeRows& node, Index column, Rank t,
                            PartLists& memory) {
  const Index lists = table.columns + 1, stride = node.count + 1;
  const Rank* rank = table.rank(column);
  Row* left = memory.room(2 * lists * stride);
  Row* right = left + lists * stride;
  TwoParts parts{{left, stride, 0}, {right, stride, 0}};
  for (Index j = 0; j < lists; ++j, left += stride, right += stride) {
    const Row* rows = node.by(j);
    Row goes_left = 0, goes_right = 0;
    for (Row k = 0; k < node.count; ++k) {  // written to both sides, for good to one: no branch to guess
      const Row row = rows[k];
      const bool is_left = rank[row] <= t;
      left[goes_left] = row;
      right[goes_right] = row;
      goes_left += is_left;
      goes_right += !is_left;
    }
    parts.left.count = goes_left;
    parts.right.count = goes_right;
  }
  return parts;
}

// The rows whose rank in a column lies between two, both included.
inline NodeRows part_between(const SearchTable& table, const NodeRows& node, Index column, Rank low,
                             Rank high, PartLists& memory) {
  const Index lists = table.columns + 1, stride = node.count + 1;
  const Rank* rank = table.rank(column);
  Row* const first = memory.room(lists * stride);
  Row count = 0;
  for (Index j = 0; j < lists; ++j) {
    Row* out = first + j * stride;
    const Row* rows = node.by(j);
    count = 0;
    for (Row k = 0; k < node.count; ++k) {
      const Row row = rows[k];
      out[count] = row;
      count += rank[row] >= low && rank[row] <= high;
    }
  }
  return {first, stride, count};
}

// A position strictly between two of a column's order at which the value changes, near their middle; -1 for
// none.
inline Row between_values(const Row* order, const Rank* rank, Row low, Row high) {
  const auto changes = [&](Row k) { return rank[order[k]] != rank[order[k - 1]]; };
  const Row middle = low + (high - low) / 2;
  for (Row k = middle; k < high; ++k)
    if (k > low && changes(k)) return k;
  for (Row k = middle - 1; k > low; --k)
    if (changes(k)) return k;
  return -1;
}

// The ranks, from one to another, that each part of a question has; parts may be empty.
inline std::vector<std::pair<Rank, Rank>> parts_of(const SearchTable& table, const NodeRows& node,
                                                   Index column, Rank t) {
  constexpr Rank kLast = std::numeric_limits<Rank>::max();
  if (table.kinds[column] == Kind::ordered) return {{0, t}, {t + 1, kLast}};
  if (table.kinds[column] == Kind::unknown) return {{1, t}, {t + 1, kLast}, {0, 0}};
  std::vector<std::pair<Rank, Rank>> parts;
  const Row* order = node.by(column);
  const Rank* rank = table.rank(column);
  for (Row k = 0; k < node.count; ++k)
    if (k == 0 || rank[order[k]] != rank[order[k - 1]]) parts.emplace_back(rank[order[k]], rank[order[k]]);
  return parts;
}

}  // namespace sixfold::optimal
