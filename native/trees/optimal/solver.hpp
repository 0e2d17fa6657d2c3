// The best tree of a node's rows to any depth: least cost below a cap, and the question at its root.
//
//   solve(rows, d, cap) = min(least cost of a tree of depth d, cap)
//
// A leaf, the best single question, and depth two (depth_two.hpp) are searched directly. Above, the questions
// of a column between two positions of its order form an interval whose trees cost at least
//
//   left(low) + right(high),   the least costs of depth d - 1 of the rows before and behind it,
//
// since a cost never rises where rows leave. The interval with the least bound is parted at a threshold near
// its middle, both sides of which are solved below the cap that is left to them; what is not below the best
// tree is dropped. Unknown values that have a branch of their own are a part more that all questions of a
// column share, and a column with a branch for each rank is one question. Where leaves are limited, an
// interval has so many for each of its parts.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/tasks.hpp"
#include "trees/optimal/binary_columns.hpp"
#include "trees/optimal/depth_two.hpp"
#include "trees/optimal/leaf_cost.hpp"
#include "trees/optimal/search_table.hpp"

namespace sixfold::optimal {

inline constexpr Index kAnyLeaves = Index{1} << 30;

// Questions at a node about one column, from position `low` to `high` of its order, both excluded; where they
// are equal, the question there. Only `whole` questions have more parts than left, right and unknown: a
// branch each.
template <class Value>
struct Questions {
  Value key;
  std::int32_t column;
  Row low, high;
  Value left, right, unknown;  // bounds of the parts
  std::int32_t left_leaves, unknown_leaves;
  bool whole = false;

  bool operator<(
      const Questions& other) const {  // for a heap with the least key on top, then by column and place
    if (key != other.key) return key > other.key;
    if (column != other.column) return column > other.column;
    return low != other.low ? low > other.low : left_leaves > other.left_leaves;
  }
};

struct TreeNode {
  std::int32_t column;  // -1 for a leaf
  Rank rank;
};

template <class Cost>
class Solver {
 public:
  using Count = typename Cost::Count;
  using Value = typename Cost::Value;
  using Interval = Questions<Value>;

  // `memory`: bytes that costs of parts may take.
  Solver(const SearchTable& table, const Cost& cost, Value penalty, Index memory)
      : table_(table),
        cost_(cost),
        penalty_(penalty),
        two_(table, cost, penalty),
        bits_(table, cost, penalty, memory) {
    binary_ = BinaryColumns<Cost>::fits(table);
    plain_ = std::all_of(table.kinds.begin(), table.kinds.end(), [](Kind k) { return k == Kind::ordered; }) &&
             DepthTwo<Cost>::fits(table.columns, table.classes);
    counts_.resize(static_cast<std::size_t>(table.classes));
    totals_.resize(static_cast<std::size_t>(table.classes));
    walked_.resize(static_cast<std::size_t>(2 * table.classes));
  }

  // The cost of the rows as one leaf, its penalty included.
  Value leaf(const NodeRows& node) {
    count(node);
    return cost_.leaf(totals_.data()) + penalty_;
  }

  // Once `watch` has ended, what is found is a tree, but it may not be the best. What is found of rows that
  // the answers of `path` lead to, from the root, is kept.
  Found<Value> solve(const NodeRows& node, int depth, Index leaves, Value cap, Watch& watch,
                     const AnswerSet& path = kNotKept) {
    if (binary_ && leaves == kAnyLeaves) return bits_.solve(node, depth, cap, path, watch);
    if (leaves >= node.count) leaves = kAnyLeaves;  // no tree has more leaves than rows
    Found<Value> found{cap};
    const Value as_leaf = leaf(node);
    if (as_leaf < found.cost) found = {as_leaf};
    if (watch.over()) return found;
    // Another leaf costs a penalty at least, and nothing is below none.
    if (depth == 0 || leaves < 2 || found.cost <= 2 * penalty_) return found;
    if (plain_ && depth < 30) {
      const Index most = std::min(leaves, Index{1} << depth);
      if (cost_.floor(totals_.data(), most) + 2 * penalty_ >= found.cost) return found;
    }
    if (depth == 1) {
      stump(node, leaves, found);
    } else if (depth == 2 && plain_ && leaves >= 4) {
      found = two_.best(node, as_leaf, cap, watch);
    } else {
      search(node, depth, leaves, found, watch);
    }
    return found;
  }

  // The intervals that hold all questions of a node; those of which nothing is below the cap are left out.
  void all_questions(const NodeRows& node, int depth, Index leaves, Value cap, std::vector<Interval>& to,
                     Watch& watch) {
    for (Index j = 0; j < table_.columns; ++j) {
      const Row* order = node.by(j);
      const Rank* rank = table_.rank(j);
      if (rank[order[0]] == rank[order[node.count - 1]]) continue;
      const auto column = static_cast<std::int32_t>(j);
      const Row unknown = table_.kinds[j] == Kind::unknown ? count_unknown(node, j) : 0;
      if (table_.kinds[j] == Kind::branches) {
        to.push_back({2 * penalty_, column, 0, 0, 2 * penalty_, 0, 0, 0, 0, true});
      } else if (unknown == 0) {
        for_leaves(depth, leaves, [&](Index left) {
          to.push_back({2 * penalty_, column, 0, node.count, penalty_, penalty_, 0, small(left), 0, false});
        });
      } else {
        unknown_questions(node, depth, leaves, cap, column, unknown, to, watch);
      }
    }
  }

  // One side of the question at a position: 0 for left, 1 for right.
  Value solve_side(const NodeRows& node, Index column, Row position, int side, int depth, Index leaves,
                   Value cap, Watch& watch, const AnswerSet& path = kNotKept) {
    const Rank t = table_.rank(column)[node.by(column)[position - 1]];
    const Level level(*this);
    const Rank first = table_.kinds[column] == Kind::unknown ? 1 : 0;
    const NodeRows part = part_between(table_, node, column, side == 0 ? first : t + 1,
                                       side == 0 ? t : kLastRank, level.memory());
    if (part.count == 0) return Value{0};  // "is it known?" has nothing on the right
    return solve(part, depth - 1, leaves, cap, watch, path).cost;
  }

  // The sum of the branches of a column, or at least the cap.
  Value solve_branches(const NodeRows& node, Index column, int depth, Index leaves, Value cap, Watch& watch) {
    std::vector<Rank> present;
    const Row* order = node.by(column);
    const Rank* rank = table_.rank(column);
    for (Row k = 0; k < node.count; ++k)
      if (present.empty() || present.back() != rank[order[k]]) present.push_back(rank[order[k]]);
    const Index branches = static_cast<Index>(present.size());
    if (leaves < branches) return cap;
    const Level level(*this);
    if (leaves == kAnyLeaves) {
      Value sum = 0;
      for (Index g = 0; g < branches; ++g) {
        const Value rest = static_cast<Value>(branches - g - 1) * penalty_;
        if (sum + rest >= cap) return cap;
        const NodeRows part = part_between(table_, node, column, present[g], present[g], level.memory());
        sum += solve(part, depth - 1, leaves, cap - sum - rest, watch).cost;
      }
      return std::min(sum, cap);
    }
    // least[k]: of the branches so far with k leaves in all.
    std::vector<Value> least(static_cast<std::size_t>(leaves) + 1, cap), next;
    least[0] = 0;
    for (Index g = 0; g < branches; ++g) {
      const NodeRows part = part_between(table_, node, column, present[g], present[g], level.memory());
      next.assign(least.size(), cap);
      for (Index own = 1; own <= leaves - (branches - 1) && !watch.over(); ++own) {
        const Value cost = solve(part, depth - 1, own, cap, watch).cost;
        for (Index k = 0; k + own <= leaves; ++k) next[k + own] = std::min(next[k + own], least[k] + cost);
      }
      least = next;
    }
    return std::min(cap, *std::min_element(least.begin(), least.end()));
  }

  // Writes the nodes of the best tree whose cost and first question are known, depth first. It is searched
  // for in the same way wherever it was found, so that it is the same for any number of threads.
  void write_tree(const NodeRows& node, int depth, Index leaves, const Found<Value>& found,
                  std::vector<TreeNode>& to, Watch& watch) {
    to.push_back({static_cast<std::int32_t>(found.column), found.rank});
    if (found.column == kNoQuestion || watch.over()) return;
    std::vector<NodeRows> parts;
    std::vector<std::unique_ptr<PartLists>> memory;
    for (const auto& [low, high] : parts_of(table_, node, found.column, found.rank)) {
      memory.push_back(std::make_unique<PartLists>());
      const NodeRows part = part_between(table_, node, found.column, low, high, *memory.back());
      if (part.count > 0) parts.push_back(part);
    }
    std::vector<Index> own(parts.size(), kAnyLeaves);
    if (leaves != kAnyLeaves) own = share_leaves(parts, depth - 1, leaves, watch);
    Value left = found.cost;  // for the parts that are still to be written
    for (std::size_t g = 0; g < parts.size(); ++g) {
      const Value others = static_cast<Value>(parts.size() - g - 1) * penalty_;
      const Value cap = left - others + 1;
      Found<Value> part = solve(parts[g], depth - 1, own[g], cap, watch);
      if (part.cost >= cap) part = solve(parts[g], depth - 1, own[g], kCap, watch);  // off by a rounded unit
      write_tree(parts[g], depth - 1, own[g], part, to, watch);
      left -= part.cost;
    }
  }

  static constexpr Value kCap = kNever<Value>;

 private:
  static constexpr Rank kLastRank = std::numeric_limits<Rank>::max();

  static std::int32_t small(Index leaves) { return static_cast<std::int32_t>(leaves); }

  // Lists for the parts of a node, kept for the next one of the same depth.
  class Level {
   public:
    explicit Level(Solver& solver) : solver_(solver) {
      if (solver_.at_ == solver_.levels_.size()) solver_.levels_.push_back(std::make_unique<PartLists>());
      memory_ = solver_.levels_[solver_.at_++].get();
    }
    ~Level() { --solver_.at_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    PartLists& memory() const { return *memory_; }

   private:
    Solver& solver_;
    PartLists* memory_;
  };

  void count(const NodeRows& node) {
    const Row* rows = node.by(table_.columns);
    std::fill(totals_.begin(), totals_.end(), Count{0});
    if (table_.weight.empty()) {
      Row before = 0;  // rows are in the order of classes
      for (Index c = 0; c < table_.classes; ++c) {
        const Row end = static_cast<Row>(
            std::lower_bound(rows + before, rows + node.count, table_.class_start[c + 1]) - rows);
        totals_[c] = static_cast<Count>(end - before);
        before = end;
      }
    } else {
      for (Row k = 0; k < node.count; ++k) totals_[table_.label[rows[k]]] += weight(rows[k]);
    }
  }

  Count weight(Row row) const {
    return table_.weight.empty() ? Count{1} : static_cast<Count>(table_.weight[row]);
  }

  Row count_unknown(const NodeRows& node, Index column) const {
    const Row* order = node.by(column);
    const Rank* rank = table_.rank(column);
    Row unknown = 0;
    while (unknown < node.count && rank[order[unknown]] == 0) ++unknown;
    return unknown;
  }

  // Calls take(left) for every number of leaves of the left part; once with any where they are not limited.
  template <class Take>
  void for_leaves(int depth, Index leaves, const Take& take) const {
    if (leaves == kAnyLeaves) return take(kAnyLeaves);
    for (Index left = 1; left < leaves; ++left) {
      // More than a part of two branches a node can have are of no use to it.
      const Index most = plain_ && depth - 1 < 20 ? Index{1} << (depth - 1) : kAnyLeaves;
      if (left <= most && leaves - left <= most)
        take(left);
      else if (left <= most && leaves - left > most && left == most)
        take(left);
      else if (leaves - left <= most && left > most && leaves - left == most)
        take(left);
    }
  }

  static Index side_leaves(const Interval& questions, Index leaves, int side) {
    if (leaves == kAnyLeaves) return kAnyLeaves;
    return side == 0 ? questions.left_leaves : leaves - questions.left_leaves - questions.unknown_leaves;
  }

  // -- one question -----------------------------------------------------------------------------------------

  void stump(const NodeRows& node, Index leaves, Found<Value>& found) {  // totals_ are those of the node
    for (Index j = 0; j < table_.columns; ++j) {
      const Row* order = node.by(j);
      const Rank* rank = table_.rank(j);
      if (rank[order[0]] == rank[order[node.count - 1]]) continue;
      if (table_.kinds[j] == Kind::branches) {
        stump_of_branches(node, j, leaves, found);
        continue;
      }
      const Row unknown = table_.kinds[j] == Kind::unknown ? count_unknown(node, j) : 0;
      std::fill(counts_.begin(), counts_.end(), Count{0});
      for (Row k = 0; k < unknown; ++k) counts_[table_.label[order[k]]] += weight(order[k]);
      const Value apart = unknown > 0 ? cost_.leaf(counts_.data()) + penalty_ : Value{0};
      std::vector<Count> known(totals_);
      for (Index c = 0; c < table_.classes; ++c) known[c] -= counts_[c];
      if (unknown > 0) {
        const Value sum = apart + cost_.leaf(known.data()) + penalty_;
        if (sum < found.cost) found = {sum, j, rank[order[node.count - 1]]};
        if (leaves < 3) continue;
      }
      std::fill(counts_.begin(), counts_.end(), Count{0});
      typename Cost::Walk walk(cost_, counts_.data(), known.data(), walked_.data());
      for (Row k = unknown; k + 1 < node.count; ++k) {
        walk.move(table_.label[order[k]], weight(order[k]));
        if (rank[order[k]] == rank[order[k + 1]]) continue;
        const Value sum = walk.cost() + 2 * penalty_ + apart;
        if (sum < found.cost) found = {sum, j, rank[order[k]]};
      }
    }
  }

  void stump_of_branches(const NodeRows& node, Index column, Index leaves, Found<Value>& found) {
    const Row* order = node.by(column);
    const Rank* rank = table_.rank(column);
    Value sum = 0;
    Index branches = 0;
    std::fill(counts_.begin(), counts_.end(), Count{0});
    for (Row k = 0; k < node.count; ++k) {
      counts_[table_.label[order[k]]] += weight(order[k]);
      if (k + 1 < node.count && rank[order[k]] == rank[order[k + 1]]) continue;
      sum += cost_.leaf(counts_.data()) + penalty_;
      ++branches;
      std::fill(counts_.begin(), counts_.end(), Count{0});
    }
    if (branches <= leaves && sum < found.cost) found = {sum, column, -1};
  }

  // -- deeper -----------------------------------------------------------------------------------------------

  // The questions of a column with unknown values: whether it is known, and the thresholds.
  void unknown_questions(const NodeRows& node, int depth, Index leaves, Value cap, std::int32_t column,
                         Row unknown, std::vector<Interval>& to, Watch& watch) {
    const Level level(*this);
    const NodeRows part = part_between(table_, node, column, 0, 0, level.memory());
    const Index most = leaves == kAnyLeaves ? 1 : leaves - 1;
    for (Index own = 1; own <= most && !watch.over(); ++own) {
      const Index held = leaves == kAnyLeaves ? kAnyLeaves : own;
      const Value apart = solve(part, depth - 1, held, cap, watch).cost;
      const Index left = leaves == kAnyLeaves ? kAnyLeaves : leaves - own;
      to.push_back({apart + penalty_, column, node.count, node.count, penalty_, 0, apart, small(left),
                    small(held), false});
      const bool thresholds = table_.rank(column)[node.by(column)[unknown]] !=
                              table_.rank(column)[node.by(column)[node.count - 1]];
      if (!thresholds) continue;
      const Index last = leaves == kAnyLeaves ? 1 : left - 1;
      for (Index one = 1; one <= last; ++one) {
        const Index of_left = leaves == kAnyLeaves ? kAnyLeaves : one;
        to.push_back({apart + 2 * penalty_, column, unknown, node.count, penalty_, penalty_, apart,
                      small(of_left), small(held), false});
      }
    }
  }

  void search(const NodeRows& node, int depth, Index leaves, Found<Value>& found, Watch& watch) {
    if (depth_ == heaps_.size()) heaps_.push_back(std::make_unique<std::vector<Interval>>());
    std::vector<Interval>& heap = *heaps_[depth_++];
    heap.clear();
    all_questions(node, depth, leaves, found.cost, heap, watch);
    std::make_heap(heap.begin(), heap.end());
    const Level level(*this);
    while (!heap.empty() && heap.front().key < found.cost && !watch.over()) {
      std::pop_heap(heap.begin(), heap.end());
      const Interval taken = heap.back();
      heap.pop_back();
      if (taken.whole) {
        const Value sum = solve_branches(node, taken.column, depth, leaves, found.cost, watch);
        if (sum < found.cost && !watch.ended()) found = {sum, taken.column, -1};
        continue;
      }
      const Row position =
          taken.low == taken.high
              ? taken.low
              : between_values(node.by(taken.column), table_.rank(taken.column), taken.low, taken.high);
      if (position < 0) continue;
      part(node, taken, position, depth, leaves, found, heap, level.memory(), watch);
    }
    --depth_;
  }

  void part(const NodeRows& node, const Interval& taken, Row position, int depth, Index leaves,
            Found<Value>& found, std::vector<Interval>& heap, PartLists& memory, Watch& watch) {
    const Value spare = found.cost - taken.unknown;
    const Index j = taken.column;
    const Rank t = table_.rank(j)[node.by(j)[position - 1]];
    Value left, right;
    if (table_.kinds[j] == Kind::ordered) {
      const TwoParts parts = part_in_two(table_, node, j, t, memory);
      left = solve(parts.left, depth - 1, side_leaves(taken, leaves, 0), spare - taken.right, watch).cost;
      right = solve(parts.right, depth - 1, side_leaves(taken, leaves, 1), spare - taken.left, watch).cost;
    } else {
      left =
          solve_side(node, j, position, 0, depth, side_leaves(taken, leaves, 0), spare - taken.right, watch);
      right =
          solve_side(node, j, position, 1, depth, side_leaves(taken, leaves, 1), spare - taken.left, watch);
    }
    if (watch.ended()) return;
    left = std::max(left, taken.left);
    right = std::max(right, taken.right);
    if (left + right < spare) found = {left + right + taken.unknown, j, t};
    if (taken.low == taken.high) return;
    push(heap, taken, taken.low, position, taken.left, right, found.cost);
    push(heap, taken, position, taken.high, left, taken.right, found.cost);
  }

  static void push(std::vector<Interval>& heap, const Interval& from, Row low, Row high, Value left,
                   Value right, Value cap) {
    const Value key = left + right + from.unknown;
    if (key >= cap || high - low < 2) return;
    heap.push_back({key, from.column, low, high, left, right, from.unknown, from.left_leaves,
                    from.unknown_leaves, false});
    std::push_heap(heap.begin(), heap.end());
  }

  // How limited leaves are shared by the parts of a question so that their costs are least.
  std::vector<Index> share_leaves(const std::vector<NodeRows>& parts, int depth, Index leaves, Watch& watch) {
    const std::size_t size = static_cast<std::size_t>(leaves) + 1;
    std::vector<std::vector<Index>> taken;
    std::vector<Value> least(size, kCap);
    least[0] = 0;
    for (const NodeRows& part : parts) {
      std::vector<Value> next(size, kCap);
      std::vector<Index> own_of(size, 0);
      for (Index own = 1; own < static_cast<Index>(size) && !watch.over(); ++own) {
        const Value cost = solve(part, depth, own, kCap, watch).cost;
        for (Index k = 0; k + own < static_cast<Index>(size); ++k) {
          if (least[k] < kCap && least[k] + cost < next[k + own]) {
            next[k + own] = least[k] + cost;
            own_of[k + own] = own;
          }
        }
      }
      taken.push_back(own_of);
      least = next;
    }
    Index k = std::min_element(least.begin(), least.end()) - least.begin();
    std::vector<Index> shared(parts.size());
    for (std::size_t g = parts.size(); g-- > 0;) {
      shared[g] = taken[g][k];
      k -= taken[g][k];
    }
    return shared;
  }

  const SearchTable& table_;
  const Cost& cost_;
  Value penalty_;
  DepthTwo<Cost> two_;
  BinaryColumns<Cost> bits_;
  bool binary_ = false;  // all columns have two values
  bool plain_ = true;    // all questions are thresholds, and pairs of columns have room
  std::vector<Count> counts_, totals_, walked_;
  std::vector<std::unique_ptr<PartLists>> levels_;
  std::vector<std::unique_ptr<std::vector<Interval>>> heaps_;
  std::size_t at_ = 0, depth_ = 0;
};

}  // namespace sixfold::optimal
