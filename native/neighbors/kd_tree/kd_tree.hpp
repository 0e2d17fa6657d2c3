// A k-d tree for rows of few columns (Bentley 1975): built once, searched for the nearest rows of any query.
//
// Rows are halved at the median of the column they spread widest in, until at most `leaf_size` are left. The
// halves are equal by count, rows with the same value in that column being ordered by their other columns and
// at last by their number, so the tree is balanced whatever the data, its shape follows from the number of
// rows alone, and equal rows lie side by side in the order of their numbers. Three halvings make one node:
//
//   node     the boxes of its eight children (the root: of one, two, four or eight), column by column, so
//            that all eight lower bounds are computed at once
//   leaf     its rows, column by column for the same reason, and their numbers
//
// Nodes are numbered level by level, leaves follow them. Everything is in plain arrays.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "neighbors/exact_distance.hpp"
#include "neighbors/nearest.hpp"

namespace sixfold {

inline constexpr Index kFan = 8;  // children of a node

struct KdShape {
  Index rows, columns;
  Index leaves;    // a power of two
  Index capacity;  // rows there is room for in a leaf: whole vectors
  Index root_fan;  // children of the root; all other nodes have kFan
  Index nodes;     // the leaves not among them

  KdShape(Index rows, Index columns, Index leaves) : rows(rows), columns(columns), leaves(leaves) {
    const Index most = (rows + leaves - 1) / leaves;
    capacity = (most + kFan - 1) / kFan * kFan;
    const int halvings = std::countr_zero(static_cast<std::uint64_t>(leaves));
    const int levels = halvings == 0 ? 1 : (halvings + 2) / 3;
    root_fan = leaves >> (3 * (levels - 1));
    nodes = 1;
    for (Index level = root_fan, l = 1; l < levels; ++l, level *= kFan) nodes += level;
  }

  // The fewest leaves with at most `leaf_size` rows each, but none without a row.
  static Index leaves_for(Index rows, Index leaf_size) {
    Index leaves = 1;
    while (rows > leaves * leaf_size && rows >= 2 * leaves) leaves *= 2;
    return leaves;
  }

  Index first_row(Index leaf) const { return cut(rows, leaves, leaf); }
  Index fan(Index node) const { return node == 0 ? root_fan : kFan; }
  Index first_child(Index node) const { return node == 0 ? 1 : (node - 1) * kFan + 1 + root_fan; }
  Index parent(Index node) const { return node <= root_fan ? 0 : (node - 1 - root_fan) / kFan + 1; }
  Index place(Index node) const { return node <= root_fan ? node - 1 : (node - 1 - root_fan) % kFan; }
  Index box_size() const { return 2 * columns * kFan; }
  Index leaf_values() const { return columns * capacity; }
};

// The arrays of a tree: const where it is searched, not where it is built.
template <class Value, class Bound, class Bits, class Number>
struct KdArrays {
  Value* leaves;    // leaf, column, row of the leaf
  Bound* boxes;     // node, 0 for the lower and 1 for the upper end, column, child
  Bits* points;     // node: bit c is set if all rows of child c are equal
  Number* numbers;  // of the rows, in the order of the leaves
};
template <class T>
using KdRoom = KdArrays<T, double, std::uint8_t, Index>;
template <class T>
using KdTree = KdArrays<const T, const double, const std::uint8_t, const Index>;

// Fills the arrays from the rows of X, C-contiguous and fewer than 2^32. False if it had to stop.
template <class T>
bool build_kd_tree(const T* X, const KdShape& shape, const KdRoom<T>& room, Stop& stop);

template <class T>
struct KdQueries {
  const KdShape& shape;
  const KdTree<T>& tree;
  const Measure& measure;
  const double* rows;  // C-contiguous
  Index count;
};

// The k nearest rows of each query, and how many distances were computed by definition; -1 if it had to stop.
template <class T>
Index kd_nearest(const KdQueries<T>& queries, Index k, double* distances, Index* rows, Stop& stop);

// All rows within the radius of each query, by number; ends[i] is where those of query i begin. -1 as above.
template <class T>
Index kd_within(const KdQueries<T>& queries, double radius, Index* ends, std::vector<double>& distances,
                std::vector<Index>& rows, Stop& stop);

}  // namespace sixfold
