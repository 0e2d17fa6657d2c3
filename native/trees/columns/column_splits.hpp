// The best split of a node by one column: every candidate there is, each by its definition.
//
// Candidates, in the order in which the first of equals wins:
//
//   numbers                a threshold between any two neighbouring values, from low to high
//   categories             a child for each category
//   categories, binary     two groups: with two classes the prefixes of the categories by share of class 1,
//                          which hold the best of all groupings (Breiman et al. 1984); with more all
//                          groupings of up to 8 categories, and prefixes by the share of each class in turn
//                          beyond
//   known | unknown        last, where a column has both
//
// Unknown values (NaN) have a child of their own in each of these, or ("best") each is several candidates:
// the unknown rows join one child after another. Valid are candidates of which at least two children have the
// rows and the weight that the rules ask for, a child of unknown values alone not counted but in the last:
// one rare category, or one unknown value, does not rule a column out (Quinlan 1993).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/spilled_memory.hpp"
#include "core/table.hpp"
#include "trees/nodes.hpp"
#include "trees/split_score.hpp"

namespace sixfold {

using Row = std::int32_t;
using RowNumbers = spilled::SpilledVector<Row>;  // of all rows, or of many

struct GrowthRules {
  Criterion criterion;
  bool binary;        // categories in two groups
  bool unknown_best;  // unknown rows join a child
  Index max_depth;    // -1: none
  Index min_samples_split, min_samples_leaf;
  double min_leaf_weight, min_impurity_decrease;
  Index max_columns;  // looked at in a node
  std::uint64_t seed;
};

template <class T>
struct TrainingTable {
  Table<T> X;
  const std::uint8_t* kinds;   // of the columns: 0 numbers, 1 categories
  const std::int32_t* labels;  // of the rows
  const double* weight;        // of the rows, or null
  Index classes;

  double weight_of(Row row) const { return weight == nullptr ? 1.0 : weight[row]; }
};

// The rows of a node.
struct NodeRows {
  const Row* rows;
  Index count;
  const ClassTotals& totals;
};

// What one column has to offer.
struct ColumnBest {
  bool has_candidates = false;                             // whether limits are met or not
  double least = std::numeric_limits<double>::infinity();  // S of the best valid candidate, or S_entropy
};

// Scratch memory of one thread's searches.
struct ColumnWorkspace {
  struct Value {
    double value;
    Row row;
    std::int32_t label;
  };
  struct Category {
    std::int32_t code;
    Index first_cell, cells;
    double weight;
    Index rows;
    double share;  // of the class that orders categories
  };

  ColumnWorkspace(Index classes, Index codes)
      : known(classes), unknown(classes), left(classes), right(classes), joined(classes), slots(codes, -1) {}

  ClassTotals known, unknown, left, right, joined;
  std::vector<Value> values;           // known ones with their rows
  std::vector<Value> room;             // for sorting them
  std::vector<std::int32_t> slots;     // of codes, -1 for those not met
  std::vector<std::int32_t> present;   // the codes met
  std::vector<Index> ends;             // of the rows of each category
  std::vector<Row> by_category;        // rows, category by category
  std::vector<Category> categories;    // by code
  std::vector<ClassCell> cells;        // of the categories, one after the other
  std::vector<ScorePart> parts;        // of the categories
  std::vector<std::int32_t> order;     // of the categories
  std::vector<std::uint8_t> is_right;  // of the categories
};

// Looks at all candidates of a column. Where `chosen` is not null, it becomes the first valid one with
// S <= limit, and must be there: one search finds the least S of all columns, a second one in a single column
// the split that is taken.
template <class T>
ColumnBest search_column(const TrainingTable<T>& data, const GrowthRules& rules, const SplitScore& score,
                         const NodeRows& node, Index column, ColumnWorkspace& workspace,
                         Split* chosen = nullptr, double limit = -std::numeric_limits<double>::infinity());

// Where the rows of a split go: the slot of one value.
template <class T>
std::int32_t slot_of(const Split& split, bool categories, T value);

}  // namespace sixfold
