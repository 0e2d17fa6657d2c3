// A tree while it grows, and the flat arrays it ends as.
//
// A split has children in slots 0, 1, ...: left, right, unknown, or one a category by code, then unknown.
// Nodes may be added in any order; finish() numbers them depth first: a node, then the subtree of slot 0, ...
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/table.hpp"
#include "trees/split_score.hpp"

namespace sixfold {

enum class Reason : std::uint8_t { split, pure, exhausted, limit, stopped };

struct Branch {
  std::int32_t code;  // numbers: 0 for x <= threshold, 1 for others; else the category
  std::int32_t slot;
};

struct Split {
  std::int32_t column = -1;
  double threshold = std::numeric_limits<double>::quiet_NaN();  // of numbers; infinity: all known values
  std::vector<Branch> branches;                                 // by code
  std::int32_t unknown = -1;                                    // the slot for unknown values
  std::int32_t children = 0;
  ScorePart parts;  // of the children, summed
};

// The tree as Python knows it, see solvers/trees/fitted_tree.py.
struct TreeArrays {
  std::vector<std::int32_t> column;
  std::vector<double> threshold;
  std::vector<Index> first;
  std::vector<std::int32_t> code, child, unknown;
  std::vector<std::uint8_t> reason;
  std::vector<Index> rows;
  std::vector<double> totals;
};

class GrowingTree {
 public:
  explicit GrowingTree(Index classes) : classes_(classes) {}

  Index size() const { return static_cast<Index>(nodes_.size()); }

  // A new node, in a slot of one that is split; the first node has the parent -1. Returns its number.
  Index add(Index parent, Index slot, const ClassTotals& totals);
  void split(Index node, const Split& split);
  void close(Index node, Reason reason);
  // Puts a tree in the place of an unsplit node: its root is that node.
  void graft(Index node, const GrowingTree& subtree);

  TreeArrays finish() const;

 private:
  struct Node {
    std::int32_t column = -1, unknown = -1;
    double threshold = std::numeric_limits<double>::quiet_NaN();
    Index rows = 0;
    Index first_branch = 0, branches = 0;
    Index first_child = 0, children = 0;
    Reason reason = Reason::split;
  };

  Index classes_;
  std::vector<Node> nodes_;
  std::vector<double> totals_;  // node by node
  std::vector<Branch> branches_;
  std::vector<Index> children_;  // of first_child + slot
};

}  // namespace sixfold
