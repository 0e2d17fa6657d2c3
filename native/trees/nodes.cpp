// The growing tree of nodes.hpp.
#include "trees/nodes.hpp"

#include <algorithm>

namespace sixfold {

Index GrowingTree::add(Index parent, Index slot, const ClassTotals& totals) {
  const Index number = size();
  nodes_.emplace_back().rows = totals.rows();
  for (const ClassCell& cell : totals.cells()) totals_.push_back(cell.weight);
  if (parent >= 0) children_[nodes_[parent].first_child + slot] = number;
  return number;
}

void GrowingTree::split(Index number, const Split& split) {
  Node& node = nodes_[number];
  node.reason = Reason::split;
  node.column = split.column;
  node.threshold = split.threshold;
  node.unknown = split.unknown;
  node.first_branch = static_cast<Index>(branches_.size());
  node.branches = static_cast<Index>(split.branches.size());
  branches_.insert(branches_.end(), split.branches.begin(), split.branches.end());
  node.first_child = static_cast<Index>(children_.size());
  node.children = split.children;
  children_.resize(children_.size() + static_cast<std::size_t>(split.children), -1);
}

void GrowingTree::close(Index node, Reason reason) { nodes_[node].reason = reason; }

void GrowingTree::graft(Index number, const GrowingTree& subtree) {
  // Node 0 of the subtree becomes `number`, node k the one k - 1 after the last there is.
  const Index shift = size() - 1;
  nodes_.resize(nodes_.size() + subtree.nodes_.size() - 1);
  totals_.insert(totals_.end(), subtree.totals_.begin() + classes_, subtree.totals_.end());
  const Index branch_shift = static_cast<Index>(branches_.size());
  const Index child_shift = static_cast<Index>(children_.size());
  branches_.insert(branches_.end(), subtree.branches_.begin(), subtree.branches_.end());
  for (const Index child : subtree.children_) children_.push_back(child + shift);
  for (Index k = 0; k < subtree.size(); ++k) {
    Node& node = nodes_[k == 0 ? number : k + shift];
    node = subtree.nodes_[k];
    node.first_branch += branch_shift;
    node.first_child += child_shift;
  }
}

TreeArrays GrowingTree::finish() const {
  std::vector<Index> order, stack{0};
  std::vector<std::int32_t> number(nodes_.size());
  order.reserve(nodes_.size());
  while (!stack.empty()) {
    const Index at = stack.back();
    stack.pop_back();
    number[at] = static_cast<std::int32_t>(order.size());
    order.push_back(at);
    const Node& node = nodes_[at];
    for (Index slot = node.children - 1; slot >= 0; --slot)
      stack.push_back(children_[node.first_child + slot]);
  }
  TreeArrays tree;
  tree.first.push_back(0);
  for (const Index at : order) {
    const Node& node = nodes_[at];
    const auto child = [&](Index slot) { return number[children_[node.first_child + slot]]; };
    tree.column.push_back(node.column);
    tree.threshold.push_back(node.threshold);
    for (Index b = node.first_branch; b < node.first_branch + node.branches; ++b) {
      tree.code.push_back(branches_[b].code);
      tree.child.push_back(child(branches_[b].slot));
    }
    tree.first.push_back(static_cast<Index>(tree.code.size()));
    tree.unknown.push_back(node.unknown < 0 ? -1 : child(node.unknown));
    tree.reason.push_back(static_cast<std::uint8_t>(node.reason));
    tree.rows.push_back(node.rows);
    const auto totals = totals_.begin() + at * classes_;
    tree.totals.insert(tree.totals.end(), totals, totals + classes_);
  }
  return tree;
}

}  // namespace sixfold
