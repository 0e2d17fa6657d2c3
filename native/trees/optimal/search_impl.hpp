// The search from the root, in all threads (see solver.hpp for that below it).
//
// All intervals of questions at the root lie in one queue, the least bound first. A round takes the first few, which
// are parted side by side, and then goes on with what came out, in the order in which they were taken: so trees and
// bounds do not depend on the number of threads. Sides are solved below a target that rises to the cost of the best
// tree: a low target is proven quickly, and with it that no tree costs less, while solving every side to its end
// would leave the bound at nothing for long. Trees that are good early come from a search that leaves the middle of
// short intervals out.
#pragma once

#include <algorithm>
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
    leaves_ = rules.leaves == 0 ? kAnyLeaves : rules.leaves;
    if (rules.depth < 30 && leaves_ >= Index{1} << rules.depth && all_ordered()) leaves_ = kAnyLeaves;
    team_ = rules.threads > 0 ? rules.threads : threads();
    if (rules.depth < 3) team_ = 1;
    for (int k = 0; k < team_; ++k) solvers_.push_back(std::make_unique<Solver<Cost>>(table, cost, penalty_));
    order_rows();
  }

  SearchedTree run() {
    best_ = solvers_[0]->leaf(root_);
    nodes_ = {{-1, -1}};
    cutoff_ = rules_.cutoff >= static_cast<double>(kNever<Value>) ? kNever<Value> : static_cast<Value>(rules_.cutoff);
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
  static constexpr int kRound = 8;  // intervals parted side by side

  Value limit() const { return std::min(best_, cutoff_); }

  bool all_ordered() const {
    return std::all_of(table_.kinds.begin(), table_.kinds.end(), [](Kind k) { return k == Kind::ordered; });
  }

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

  void solve_directly() {
    complete_ = alone([&](Watch& watch) {
      const Found<Value> found = solvers_[0]->solve(root_, rules_.depth, leaves_, limit(), watch);
      if (found.cost < limit()) {
        best_ = found.cost;
        nodes_.clear();
        solvers_[0]->write_below(root_, rules_.depth, leaves_, found, nodes_, watch);
      }
    });
    if (complete_) bound_ = limit();
  }

  // -- a first tree: of depth two below each node, of which the first question is kept -------------------------

  void sketch() {
    std::vector<TreeNode> nodes;
    Value cost = 0;
    const bool done = alone([&](Watch& watch) { cost = sketch_below(root_, rules_.depth, nodes, watch); });
    if (done && cost < limit()) {
      best_ = cost;
      nodes_ = nodes;
      note();
    }
  }

  Value sketch_below(const NodeRows& node, int depth, std::vector<TreeNode>& nodes, Watch& watch) {
    Solver<Cost>& solver = *solvers_[0];
    const Found<Value> found = solver.solve(node, std::min(depth, 2), kAnyLeaves, kNever<Value>, watch);
    if (depth <= 2 || found.column == kNoQuestion) {
      solver.write_below(node, std::min(depth, 2), kAnyLeaves, found, nodes, watch);
      return found.cost;
    }
    nodes.push_back({static_cast<std::int32_t>(found.column), found.rank});
    Value sum = 0;
    for_parts(node, found.column, found.rank, [&](const NodeRows& part) { sum += sketch_below(part, depth - 1, nodes, watch); });
    return sum;
  }

  template <class Take>
  void for_parts(const NodeRows& node, Index column, Rank t, const Take& take) {
    PartLists memory;
    const auto between = [&](Rank low, Rank high) {
      const NodeRows part = part_between(table_, node, column, low, high, memory);
      if (part.count > 0) take(part);
    };
    constexpr Rank kLast = std::numeric_limits<Rank>::max();
    switch (table_.kinds[column]) {
      case Kind::ordered:
        between(0, t), between(t + 1, kLast);
        break;
      case Kind::unknown:
        between(1, t), between(t + 1, kLast), between(0, 0);
        break;
      case Kind::branches: {
        const Row* order = node.by(column);
        const Rank* rank = table_.rank(column);
        for (Row k = 0; k < node.count; ++k)
          if (k == 0 || rank[order[k]] != rank[order[k - 1]]) between(rank[order[k]], rank[order[k]]);
      }
    }
  }

  // -- the queue -----------------------------------------------------------------------------------------------

  void search() {
    if (leaves_ == kAnyLeaves) sketch();
    if (rules_.depth > 3) coarse_search();
    begin();
    while (limit() > bound_ && !stopped_) {
      const Value target = next_target();
      work_below(target);
      raise_bound();
    }
    complete_ = bound_ >= limit();
  }

  void begin() {
    open_.clear();
    closed_.clear();
    stopped_ |= !alone([&](Watch& watch) {
      solvers_[0]->all_questions(root_, rules_.depth, leaves_, limit(), open_, watch);
    });
    std::make_heap(open_.begin(), open_.end());
  }

  // Depth three is solved at once; deeper, half of what is between bound and best tree, then the rest.
  Value next_target() const {
    if (rules_.depth == 3) return limit();
    const Value gap = limit() - bound_;
    const Value half = bound_ + (gap + 1) / 2;
    return gap <= limit() / 32 ? limit() : half;
  }

  void raise_bound() {
    const Value least = open_.empty() ? limit() : std::min(limit(), open_.front().key);
    if (least > bound_) {
      bound_ = least;
      note();
    }
  }

  struct Task {
    Interval taken;
    Row position;
    Value left, right;
  };

  void work_below(Value target) {
    while (!open_.empty() && open_.front().key < std::min(target, limit()) && !stopped_) {
      const Value below = std::min(target, limit());
      round_.clear();
      while (!open_.empty() && open_.front().key < below && static_cast<int>(round_.size()) < kRound) {
        std::pop_heap(open_.begin(), open_.end());
        const Interval taken = open_.back();
        open_.pop_back();
        const Row position = taken.whole ? 0 : solvers_[0]->middle(root_, taken);
        if (position >= 0) round_.push_back({taken, position, 0, 0});
      }
      const bool done = run_tasks(2 * static_cast<Index>(round_.size()), team_, &stop_, [&](Index k, Watch& watch) {
        solve_task(round_[k / 2], static_cast<int>(k % 2), below, watch);
      });
      if (!done) {
        stopped_ = true;
        for (const Task& task : round_) put_back(task.taken);
        return;
      }
      for (const Task& task : round_) merge(task, below);
      raise_bound();
    }
  }

  void solve_task(Task& task, int side, Value below, Watch& watch) {
    Solver<Cost>& solver = *solvers_[omp_get_thread_num()];
    const Interval& taken = task.taken;
    if (taken.whole) {
      if (side == 0) task.left = solver.solve_branches(root_, taken.column, rules_.depth, leaves_, below, watch);
      return;
    }
    const Value spare = below - taken.unknown;
    Value& cost = side == 0 ? task.left : task.right;
    cost = solver.solve_side(root_, taken, task.position, side, rules_.depth, leaves_,
                             spare - (side == 0 ? taken.right : taken.left), watch);
  }

  void put_back(const Interval& one) {
    open_.push_back(one);
    std::push_heap(open_.begin(), open_.end());
  }

  // An interval with questions that may be better than the best tree is open, others are done with.
  void keep(Interval one) {
    one.key = one.left + one.right + one.unknown;
    if (!one.whole && one.low != one.high && solvers_[0]->middle(root_, one) < 0) return;
    if (one.key < limit())
      put_back(one);
    else
      closed_.push_back(one);
  }

  void merge(const Task& task, Value below) {
    const Interval& taken = task.taken;
    const Value spare = below - taken.unknown;
    Interval here = taken;
    bool exact;
    if (taken.whole) {
      here.left = std::max(taken.left, task.left);
      exact = task.left < below;
    } else {
      here.low = here.high = task.position;
      here.left = std::max(taken.left, task.left);
      here.right = std::max(taken.right, task.right);
      exact = task.left < spare - taken.right && task.right < spare - taken.left;
    }
    const Value sum = here.left + here.right + here.unknown;
    if (exact && sum < limit()) improve(here, sum);
    here.key = sum;
    if (exact)
      closed_.push_back(here);
    else
      keep(here);
    if (taken.whole || taken.low == taken.high) return;
    Interval before = taken, after = taken;
    before.high = after.low = task.position;
    before.right = here.right;
    after.left = here.left;
    keep(before);
    keep(after);
  }

  void improve(const Interval& here, Value cost) {
    std::vector<TreeNode> nodes;
    const Row* order = root_.by(here.column);
    const Rank t = here.whole ? -1 : table_.rank(here.column)[order[here.low - 1]];
    const bool done = alone([&](Watch& watch) {
      solvers_[0]->write_below(root_, rules_.depth, leaves_, {cost, here.column, t}, nodes, watch);
    });
    if (!done) {
      stopped_ = true;
      return;
    }
    best_ = cost;
    nodes_ = nodes;
    note();
  }

  void coarse_search() {}

  // -- what comes out --------------------------------------------------------------------------------------

  void note(bool last = false) {
    SearchHistory& history = history_;
    const double cost = static_cast<double>(best_), bound = static_cast<double>(std::min(bound_, best_));
    if (!history.cost.empty() && !last) {
      const bool small = bound - history.bound.back() < 1e-3 * cost && cost == history.cost.back();
      if (small) return;
    }
    history.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
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
    for (const std::vector<Interval>* part : {&open_, &closed_})
      for (const Interval& one : *part) add(made.frontier, one);
    return made;
  }

  void add(Frontier& to, const Interval& one) const {
    Rank low = 0, high = 0;
    if (!one.whole) {
      const Row* order = root_.by(one.column);
      const Rank* rank = table_.rank(one.column);
      low = high = rank[order[one.low == one.high ? one.low - 1 : one.low]];
      if (one.low != one.high) {
        Row last = one.high - 1;  // the first of its value, before which the last threshold lies
        while (last > one.low && rank[order[last]] == rank[order[last - 1]]) --last;
        if (one.high < root_.count && rank[order[one.high]] == rank[order[one.high - 1]]) last = one.high;
        if (last <= one.low) return;
        high = rank[order[last - 1]];
      }
    }
    to.column.push_back(one.column);
    to.low.push_back(low);
    to.high.push_back(high);
    to.left_leaves.push_back(leaves_ == kAnyLeaves ? 0 : one.left_leaves);
    to.left.push_back(static_cast<double>(one.left));
    to.right.push_back(static_cast<double>(one.right));
    to.unknown.push_back(static_cast<double>(one.unknown));
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
  std::vector<Interval> open_, closed_;
  std::vector<Task> round_;
  bool complete_ = false, stopped_ = false;
  SearchHistory history_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sixfold::optimal
