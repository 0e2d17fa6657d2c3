// The search from the root, in all threads (see solver.hpp for that below it).
//
// All intervals of questions at the root lie in one queue, the least bound first. A round takes the first
// few, which are parted side by side, and then goes on with what came out, in the order in which they were
// taken: so trees and bounds do not depend on the number of threads. Sides are solved below a target that
// rises to the cost of the best tree: a low target is proven quickly, and with it that no tree costs less,
// while solving every side to its end would leave the bound at nothing for long. Trees that are good early
// come from a search that leaves the middle of short intervals out.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "trees/optimal/search.hpp"
#include "trees/optimal/solver.hpp"

namespace sixfold::optimal {

template <class Cost>
class RootSearch {
 public:
  using Value = typename Cost::Value;
  using Interval = Questions<Value>;

  RootSearch(const SearchTable& table, const Cost& cost, const SearchRules& rules, Stop& stop)
      : table_(table), rules_(rules), stop_(stop), penalty_(static_cast<Value>(rules.penalty)) {
    leaves_ = rules.leaves == 0 || rules.leaves >= most_leaves() ? kAnyLeaves : rules.leaves;
    team_ = rules.threads > 0 ? rules.threads : threads();
    if (rules.depth < 3) team_ = 1;
    for (int k = 0; k < team_; ++k)
      solvers_.push_back(std::make_unique<Solver<Cost>>(table, cost, penalty_, rules.memory / team_));
    order_rows();
  }

  SearchedTree run() {
    best_ = solvers_[0]->leaf(root_);
    nodes_ = {{-1, -1}};
    cutoff_ = rules_.cutoff >= static_cast<double>(kNever<Value>) ? kNever<Value>
                                                                  : static_cast<Value>(rules_.cutoff);
    bound_ = std::min(penalty_, best_);
    note();
    if (rules_.depth <= 2)
      solve_directly();
    else
      search();
    note(true);
    return result();
  }

 private:
  static constexpr int kRound = 16;     // sides that are solved side by side
  static constexpr int kFirstPart = 8;  // the first target is this part of the cost of the first tree
  static constexpr int kLastPart = 32;  // a gap of this part of the best cost is closed at once
  static constexpr Row kWhole = -1;     // the position of a question with a branch each

  // The most children of a question.
  Index branching() const {
    Index most = 2;
    for (Index j = 0; j < table_.columns; ++j) {
      const Rank* rank = table_.rank(j);
      if (table_.kinds[j] == Kind::unknown) most = std::max<Index>(most, 3);
      if (table_.kinds[j] == Kind::branches)
        most = std::max<Index>(most, Index{1} + *std::max_element(rank, rank + table_.rows));
    }
    return most;
  }

  // No tree has more leaves.
  Index most_leaves() const {
    Index most = 1;
    for (int level = 0; level < rules_.depth && most < table_.rows; ++level) most *= branching();
    return std::min(most, table_.rows);
  }

  Value limit() const { return std::min(best_, cutoff_); }

  void order_rows() {
    const Index lists = table_.columns + 1;
    Row* to = lists_.room(lists * table_.rows);
    std::vector<Row> start;
    for (Index j = 0; j < table_.columns; ++j, to += table_.rows) {
      const Rank* rank = table_.rank(j);
      start.assign(static_cast<std::size_t>(*std::max_element(rank, rank + table_.rows)) + 2, 0);
      for (Row i = 0; i < table_.rows; ++i) ++start[rank[i] + 1];
      std::partial_sum(start.begin(), start.end(), start.begin());
      for (Row i = 0; i < table_.rows; ++i) to[start[rank[i]]++] = i;
    }
    std::iota(to, to + table_.rows, 0);
    root_ = {lists_.room(0), table_.rows, static_cast<Row>(table_.rows)};
  }

  // Calls work(watch) in this thread; false if time was up.
  template <class Work>
  bool alone(const Work& work) {
    return run_tasks(1, 1, &stop_, [&](Index, Watch& watch) { work(watch); });
  }

  // Keeps a tree whose cost and first question are known; false where there was no time to write it down.
  bool take(const Found<Value>& found) {
    std::vector<TreeNode> nodes;
    const bool done = alone(
        [&](Watch& watch) { solvers_[0]->write_tree(root_, rules_.depth, leaves_, found, nodes, watch); });
    stopped_ |= !done;
    if (done) take(found.cost, nodes);
    return done;
  }

  void take(Value cost, const std::vector<TreeNode>& nodes) {
    if (cost >= limit()) return;
    best_ = cost;
    nodes_ = nodes;
    note();
  }

  void solve_directly() {
    if (rules_.depth > 1) sketch(1);
    Found<Value> found{kNever<Value>};
    stopped_ |= !alone(
        [&](Watch& watch) { found = solvers_[0]->solve(root_, rules_.depth, leaves_, limit(), watch); });
    if (stopped_) return;
    if (found.cost < limit()) take(found);
    complete_ = !stopped_;
    if (complete_) bound_ = limit();
  }

  // -- first trees ------------------------------------------------------------------------------------------

  // At each node the best tree of so many levels, of which the first question is kept.
  void sketch(int levels) {
    int depth = rules_.depth;
    if (leaves_ != kAnyLeaves) {  // so deep that no tree has more leaves
      Index most = branching();
      for (depth = 0; depth < rules_.depth && most <= leaves_; ++depth) most *= branching();
    }
    std::vector<TreeNode> nodes;
    Value cost = 0;
    const bool done = alone([&](Watch& watch) { cost = sketch_below(root_, depth, levels, nodes, watch); });
    stopped_ |= !done;
    if (done) take(cost, nodes);
  }

  Value sketch_below(const NodeRows& node, int depth, int levels, std::vector<TreeNode>& nodes,
                     Watch& watch) {
    Solver<Cost>& solver = *solvers_[0];
    const Found<Value> found = solver.solve(node, std::min(depth, levels), kAnyLeaves, kNever<Value>, watch);
    if (depth <= levels || found.column == kNoQuestion) {
      solver.write_tree(node, std::min(depth, levels), kAnyLeaves, found, nodes, watch);
      return found.cost;
    }
    nodes.push_back({static_cast<std::int32_t>(found.column), found.rank});
    Value sum = 0;
    PartLists memory;
    for (const auto& [low, high] : parts_of(table_, node, found.column, found.rank)) {
      const NodeRows part = part_between(table_, node, found.column, low, high, memory);
      if (part.count > 0 && !watch.over()) sum += sketch_below(part, depth - 1, levels, nodes, watch);
    }
    return sum;
  }

  // -- the queue --------------------------------------------------------------------------------------------

  // A threshold with what is known of its two sides.
  struct Edge {
    std::int32_t column;
    Row position;
    Value side[2];  // least costs, or bounds of them
    bool exact[2];  // whether they are the costs, or need not be known better
    Value unknown;  // the cost of the unknown part
    std::int32_t left_leaves, unknown_leaves;
    bool busy[2] = {false, false};
  };

  // The questions between two edges, or the one at an edge.
  struct Open {
    Value key;
    Index low, high;
    bool operator<(const Open& other) const {  // for a heap with the least key on top, then the oldest
      if (key != other.key) return key > other.key;
      return low != other.low ? low > other.low : high > other.high;
    }
  };

  struct Task {
    Index edge;
    int side;
    Value cap, cost;
  };

  void search() {
    for (const int levels : {1, 2})
      if (!stopped_) sketch(levels);
    if (!stopped_) begin();
    while (limit() > bound_ && !stopped_) {
      target_ = next_target();
      work();
    }
    complete_ = bound_ >= limit();
  }

  void begin() {
    std::vector<Interval> all;
    stopped_ |= !alone(
        [&](Watch& watch) { solvers_[0]->all_questions(root_, rules_.depth, leaves_, limit(), all, watch); });
    if (stopped_) return;  // the costs of unknown parts are not known
    for (const Interval& one : all) {
      const auto add = [&](Row position, Value left, Value right) {
        edges_.push_back({one.column,
                          position,
                          {left, right},
                          {true, true},
                          one.unknown,
                          one.left_leaves,
                          one.unknown_leaves});
        return static_cast<Index>(edges_.size()) - 1;
      };
      if (one.whole || one.low == one.high) {
        const Index edge = add(one.low, one.left, one.right);
        edges_[edge].exact[0] = edges_[edge].exact[1] = false;
        if (one.whole) edges_[edge].position = kWhole, edges_[edge].exact[1] = true;
        put(edge, edge);
      } else {
        const Index low = add(one.low, one.left, kNever<Value>),
                    high = add(one.high, kNever<Value>, one.right);
        put(low, high);
      }
    }
  }

  // Depth three is solved at once. Deeper, a target is twice the bound before it, but at most half of what is
  // then between bound and best tree; the last part is closed at once.
  Value next_target() const {
    if (rules_.depth == 3) return limit();
    const Value gap = limit() - bound_;
    if (gap <= limit() / kLastPart) return limit();
    return std::min(bound_ + (gap + 1) / 2, std::max(2 * bound_, limit() / kFirstPart + 1));
  }

  Value key_of(Index low, Index high) const {
    return edges_[low].side[0] + edges_[high].side[1] + edges_[low].unknown;
  }

  // An interval with questions that may be better than the best tree is open, others are done with.
  void put(Index low, Index high) {
    const Value key = key_of(low, high);
    if (low != high && between(low, high) < 0) return;
    if (key < limit()) {
      open_.push_back({key, low, high});
      std::push_heap(open_.begin(), open_.end());
    } else {
      closed_.push_back({key, low, high});
    }
  }

  Row between(Index low, Index high) const {
    const Edge &one = edges_[low], &other = edges_[high];
    return between_values(root_.by(one.column), table_.rank(one.column), one.position, other.position);
  }

  void work() {
    while (!open_.empty() && open_.front().key < std::min(target_, limit()) && !stopped_) {
      const Value below = std::min(target_, limit());
      round_.clear();
      waiting_.clear();
      parted_.clear();
      while (!open_.empty() && open_.front().key < below && static_cast<int>(round_.size()) < kRound) {
        std::pop_heap(open_.begin(), open_.end());
        waiting_.push_back(open_.back());
        open_.pop_back();
        ask(waiting_.back(), below);
      }
      const bool done = run_tasks(static_cast<Index>(round_.size()), team_, &stop_,
                                  [&](Index k, Watch& watch) { solve_task(round_[k], watch); });
      for (const Task& task : round_) {
        Edge& edge = edges_[task.edge];
        edge.busy[task.side] = false;
        if (!done) continue;
        edge.exact[task.side] = task.cost < task.cap;
        edge.side[task.side] = std::max(edge.side[task.side], std::min(task.cost, task.cap));
      }
      stopped_ |= !done;
      for (const Open& one : waiting_) settle(one);
      raise_bound();
    }
    raise_bound();
  }

  // Notes what has to be solved for an interval: its bounds first, then a question in its middle.
  void ask(Open& one, Value below) {
    if (one.low == one.high) {
      request(one.low, 0, below - edges_[one.low].unknown - edges_[one.low].side[1]);
      request(one.low, 1, below - edges_[one.low].unknown - edges_[one.low].side[0]);
      return;
    }
    const Edge low = edges_[one.low], high = edges_[one.high];
    const Value spare = below - low.unknown;
    if (!low.exact[0] || !high.exact[1]) {
      request(one.low, 0, spare - high.side[1]);
      request(one.high, 1, spare - low.side[0]);
      return;
    }
    const Row position = between(one.low, one.high);
    edges_.push_back({low.column,
                      position,
                      {low.side[0], high.side[1]},
                      {false, false},
                      low.unknown,
                      low.left_leaves,
                      low.unknown_leaves});
    const Index middle = static_cast<Index>(edges_.size()) - 1;
    request(middle, 0, spare - high.side[1]);
    request(middle, 1, spare - low.side[0]);
    parted_.push_back({one.low, middle, one.high});
    one.low = one.high = middle;
  }

  void request(Index number, int side, Value cap) {
    Edge& edge = edges_[number];
    if (edge.exact[side] || edge.busy[side] || edge.side[side] >= cap) return;
    edge.busy[side] = true;
    round_.push_back({number, side, cap, 0});
  }

  void solve_task(Task& task, Watch& watch) {
    Solver<Cost>& solver = *solvers_[omp_get_thread_num()];
    const Edge& edge = edges_[task.edge];
    if (edge.position == kWhole) {
      task.cost = solver.solve_branches(root_, edge.column, rules_.depth, leaves_, task.cap, watch);
      return;
    }
    Index leaves = leaves_;
    if (leaves_ != kAnyLeaves)
      leaves = task.side == 0 ? edge.left_leaves : leaves_ - edge.left_leaves - edge.unknown_leaves;
    task.cost = solver.solve_side(root_, edge.column, edge.position, task.side, rules_.depth, leaves,
                                  task.cap, watch, AnswerSet{}.with(edge.column, task.side == 1));
  }

  void settle(const Open& one) {
    if (one.low != one.high) return put(one.low, one.high);
    const Edge& edge = edges_[one.low];
    const Value sum = key_of(one.low, one.low);
    // A better tree that there was no time to write down stays open: no other is proven to be the best.
    if (edge.exact[0] && edge.exact[1] && (sum >= limit() || take(edge, sum)))
      closed_.push_back({sum, one.low, one.low});
    else
      put(one.low, one.low);
    for (const auto& [low, middle, high] : parted_) {
      if (middle != one.low) continue;
      put(low, middle);
      put(middle, high);
    }
  }

  void raise_bound() {
    const Value least = open_.empty() ? limit() : std::min(limit(), open_.front().key);
    if (least <= bound_) return;
    bound_ = least;
    note();
  }

  bool take(const Edge& edge, Value cost) {
    const bool whole = edge.position == kWhole;
    return take(Found<Value>{
        cost, edge.column, whole ? -1 : table_.rank(edge.column)[root_.by(edge.column)[edge.position - 1]]});
  }

  // -- what comes out ---------------------------------------------------------------------------------------

  void note(bool last = false) {
    SearchHistory& history = history_;
    const double cost = static_cast<double>(best_), bound = static_cast<double>(std::min(bound_, best_));
    if (!history.cost.empty() && !last) {
      const bool small = bound - history.bound.back() < 1e-3 * cost && cost == history.cost.back();
      if (small) return;
    }
    history.seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
    history.cost.push_back(cost);
    history.bound.push_back(bound);
  }

  SearchedTree result() {
    SearchedTree made;
    for (const TreeNode& node : nodes_) {
      made.column.push_back(node.column);
      made.rank.push_back(node.rank);
    }
    made.cost = static_cast<double>(best_);
    made.bound = static_cast<double>(std::min(bound_, best_));
    made.complete = complete_;
    made.history = history_;
    for (const std::vector<Open>* part : {&open_, &closed_})
      for (const Open& one : *part) add(made.frontier, one);
    return made;
  }

  void add(Frontier& to, const Open& one) const {
    const Edge &from = edges_[one.low], &until = edges_[one.high];
    Rank low = 0, high = 0;
    if (from.position != kWhole) {
      const Row* order = root_.by(from.column);
      const Rank* rank = table_.rank(from.column);
      low = high = rank[order[one.low == one.high ? from.position - 1 : from.position]];
      if (one.low != one.high) {
        Row last = until.position - 1;  // the first of its value, before which the last threshold lies
        while (last > from.position && rank[order[last]] == rank[order[last - 1]]) --last;
        high = rank[order[last - 1]];
      }
    }
    to.column.push_back(from.column);
    to.low.push_back(low);
    to.high.push_back(high);
    to.left_leaves.push_back(leaves_ == kAnyLeaves ? 0 : from.left_leaves);
    to.unknown_leaves.push_back(leaves_ == kAnyLeaves ? 0 : from.unknown_leaves);
    to.left.push_back(static_cast<double>(from.side[0]));
    to.right.push_back(static_cast<double>(until.side[1]));
    to.unknown.push_back(static_cast<double>(from.unknown));
  }

  const SearchTable& table_;
  const SearchRules& rules_;
  Stop& stop_;
  Value penalty_;
  Index leaves_;
  int team_ = 1;
  std::vector<std::unique_ptr<Solver<Cost>>> solvers_;  // one a thread
  PartLists lists_;
  NodeRows root_;
  Value best_{}, bound_{}, cutoff_{};
  std::vector<TreeNode> nodes_;
  std::vector<Edge> edges_;
  std::vector<Open> open_, closed_, waiting_;
  std::vector<std::array<Index, 3>> parted_;  // the intervals parted in this round: low, middle, high
  std::vector<Task> round_;
  Value target_{};
  bool complete_ = false, stopped_ = false;
  SearchHistory history_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sixfold::optimal
