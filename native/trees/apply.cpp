// The way of apply.hpp. The nodes are packed first, each with all that a step needs, and several rows
// are on their way at a time, since a step waits for the one before it and hardly ever is its outcome
// guessed.
#include "trees/apply.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/tasks.hpp"
#include "core/threads.hpp"

namespace sixfold {
namespace {

constexpr Index kAbreast = 8;        // rows on their way at a time
constexpr Index kBlock = 1024;       // rows a task
constexpr Index kAThread = 1 << 14;  // rows that are worth a thread: half a millisecond
constexpr Index kNodesARow = 8;  // with more nodes than these a row, packing them costs more than it saves
constexpr std::int32_t kNone = -1;

[[noreturn]] void refuse() {
  throw std::invalid_argument(
      "sixfold native loop: a tree's branches must lead to nodes that come after theirs");
}

void check(bool holds) {
  if (!holds) refuse();
}

void check_node(const TreeView& tree, Index node, Index columns) {
  check(tree.column[node] >= kNone && tree.column[node] < columns);
  check(tree.unknown[node] == kNone || (tree.unknown[node] > node && tree.unknown[node] < tree.nodes));
  check(0 <= tree.first[node] && tree.first[node] <= tree.first[node + 1] &&
        tree.first[node + 1] <= tree.branches);
}

// The child of a branch; none if the node does not have it.
std::int32_t child_of(const TreeView& tree, Index node, std::int32_t code) {
  const std::int32_t *begin = tree.code + tree.first[node], *end = tree.code + tree.first[node + 1];
  const std::int32_t* at = std::lower_bound(begin, end, code);
  if (at == end || *at != code) return kNone;
  const std::int32_t child = tree.child[at - tree.code];
  check(child > node && child < tree.nodes);
  return child;
}

// The child of a category, given as a number.
std::int32_t child_of_category(const TreeView& tree, Index node, double value) {
  if (!(value >= 0.0 && value <= std::numeric_limits<std::int32_t>::max())) return kNone;
  const std::int32_t code = static_cast<std::int32_t>(value);
  return static_cast<double>(code) == value ? child_of(tree, node, code) : kNone;
}

// The way of one row, checked step by step.
template <class T>
std::int32_t end_of(const TreeView& tree, const T* row, Index columns, Index column_stride) {
  for (std::int32_t node = 0;;) {
    check_node(tree, node, columns);
    const std::int32_t column = tree.column[node];
    if (column == kNone) return node;
    const double value = static_cast<double>(row[column * column_stride]);
    std::int32_t next;
    if (value != value)
      next = tree.unknown[node];
    else if (tree.kinds[column] != 0)
      next = child_of_category(tree, node, value);
    else
      next = child_of(tree, node, value <= tree.threshold[node] ? 0 : 1);
    if (next == kNone) return node;
    node = next;
  }
}

// A node that leads to itself where it has no child.
struct PackedNode {
  double threshold;
  std::int32_t column;
  std::int32_t next[3];  // where x <= threshold, where it is not, and where it is unknown
};

class PackedTree {
 public:
  PackedTree(const TreeView& tree, Index columns)
      : tree_(tree), nodes_(static_cast<std::size_t>(tree.nodes)) {
    for (Index i = 0; i < tree.nodes; ++i) {
      check_node(tree, i, columns);
      const std::int32_t self = static_cast<std::int32_t>(i), column = tree.column[i];
      nodes_[i] = {tree.threshold[i], std::max(column, 0), {self, self, self}};
      if (column == kNone) continue;
      const auto or_self = [self](std::int32_t child) { return child == kNone ? self : child; };
      nodes_[i].next[2] = or_self(tree.unknown[i]);
      if (tree.kinds[column] == 0) {
        for (const int code : {0, 1}) nodes_[i].next[code] = or_self(child_of(tree, i, code));
      } else {
        has_categories_ = true;
        nodes_[i].next[0] = kNone;  // looked up instead
      }
    }
  }

  bool has_categories() const { return has_categories_; }

  template <bool kCategories, class T>
  std::int32_t step(std::int32_t at, const T* row, Index column_stride) const {
    const PackedNode& node = nodes_[at];
    const double value = static_cast<double>(row[node.column * column_stride]);
    if constexpr (kCategories) {
      if (node.next[0] == kNone && value == value) {
        const std::int32_t child = child_of_category(tree_, at, value);
        return child == kNone ? at : child;
      }
    }
    const std::int32_t next = node.next[!(value <= node.threshold)];
    return value == value ? next : node.next[2];
  }

 private:
  const TreeView& tree_;
  std::vector<PackedNode> nodes_;
  bool has_categories_ = false;
};

template <bool kCategories, class T>
void apply_block(const Table<T>& X, const PackedTree& tree, Index from, Index to, std::int32_t* ends) {
  const T* rows[kAbreast];
  Index numbers[kAbreast];
  std::int32_t nodes[kAbreast] = {};
  Index taken = from, abreast = std::min(kAbreast, to - from);
  for (Index k = 0; k < abreast; ++k, ++taken) {
    numbers[k] = taken;
    rows[k] = X.row(taken);
  }
  while (abreast == kAbreast) {
    for (Index k = 0; k < kAbreast; ++k) {
      const std::int32_t next = tree.step<kCategories>(nodes[k], rows[k], X.column_stride);
      if (next != nodes[k]) {
        nodes[k] = next;
        continue;
      }
      ends[numbers[k]] = next;
      if (taken == to) {
        abreast = k;
        break;
      }
      nodes[k] = 0;
      numbers[k] = taken;
      rows[k] = X.row(taken++);
    }
  }
  // The last rows one by one; that of place `abreast` has ended, if all places were taken.
  const Index last = std::min(kAbreast, to - from);
  for (Index k = 0; k < last; ++k) {
    if (k == abreast) continue;
    for (std::int32_t next; (next = tree.step<kCategories>(nodes[k], rows[k], X.column_stride)) != nodes[k];)
      nodes[k] = next;
    ends[numbers[k]] = nodes[k];
  }
}

}  // namespace

template <class T>
void apply_tree(const Table<T>& X, const TreeView& tree, std::int32_t* ends) {
  if (X.rows * kNodesARow < tree.nodes) {
    for (Index i = 0; i < X.rows; ++i) ends[i] = end_of(tree, X.row(i), X.columns, X.column_stride);
    return;
  }
  const PackedTree packed(tree, X.columns);
  const Index blocks = (X.rows + kBlock - 1) / kBlock;
  const int team = static_cast<int>(std::clamp<Index>(X.rows / kAThread, 1, threads()));
  run_tasks(blocks, team, [&](Index block) {
    const Index from = block * kBlock, to = std::min(from + kBlock, X.rows);
    if (packed.has_categories())
      apply_block<true>(X, packed, from, to, ends);
    else
      apply_block<false>(X, packed, from, to, ends);
  });
}

template void apply_tree(const Table<double>&, const TreeView&, std::int32_t*);
template void apply_tree(const Table<float>&, const TreeView&, std::int32_t*);
template void apply_tree(const Table<std::uint8_t>&, const TreeView&, std::int32_t*);

}  // namespace sixfold
