// The growth of growth.hpp. Large nodes are split one after the other, their columns shared by all
// threads; what is left are subtrees, each grown by one thread.
#pragma once

#include <omp.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "trees/bins/split_by_slot.hpp"
#include "trees/growth.hpp"
#include "trees/node_views.hpp"
#include "trees/split_choice.hpp"

namespace sixfold {
namespace {

// Scratch memory of one thread.
template <class T>
struct Workspace {
  Workspace(Index classes, Index codes) : choice(classes, codes), totals(classes) {}

  ChoiceWorkspace<T> choice;
  ClassTotals totals;
  RowNumbers slots;         // of rows
  std::vector<Index> ends;  // of slots
  RowNumbers moved;         // room for rows
  std::vector<PendingNode> children;
};

template <class T>
class Growth {
 public:
  Growth(const TrainingTable<T>& data, const GrowthRules& rules, RowNumbers&& rows, Index codes, Stop& stop)
      : data_(data),
        rules_(rules),
        score_(rules.criterion, data.weight != nullptr, static_cast<Index>(rows.size())),
        context_{data, rules, score_, std::move(rows), {}, {}, {}},
        stop_(stop),
        team_(size() * data.X.columns < kSingleThread ? 1 : threads()) {
    for (int thread = 0; thread < team_; ++thread) workspaces_.emplace_back(data.classes, codes);
    double whole_weight = 0.0;
    for (const Row row : context_.rows) whole_weight += data.weight_of(row);
    choice_.emplace(context_, whole_weight);
    const bool is_concave = rules.criterion != Criterion::homogeneous;
    context_.number.assign(static_cast<std::size_t>(data.X.columns), -1);
    for (Index j = 0; is_concave && j < data.X.columns; ++j) {
      if (data.kinds[j] != 0) continue;
      context_.number[j] = static_cast<std::int32_t>(context_.numbers.size());
      context_.numbers.push_back(j);
    }
    if (context_.numbers.empty() || size() <= SortedColumns<T>::kMostRows) return;
    group_by_class();
    context_.bins.emplace(data.X, context_.numbers, context_.rows, team_, stop);
  }

  std::pair<TreeArrays, bool> grow() {
    return data_.weight == nullptr ? grow_by<std::int32_t>() : grow_by<double>();
  }

 private:
  // Threads wait for each other at every node: 20,000 x 16 values take two of them 48 ms and one 40 ms, and
  // beside another busy process 178 ms and 49 ms.
  static constexpr Index kSingleThread = Index{1} << 19;
  // Nodes below 2^16 values are left to one thread. Eight subtrees a thread, 32 at most, are enough for
  // threads to come out even; with 32 for two threads, which wait for each other at every larger node,
  // 1,000,000 x 20 values took 4.2 s beside other work instead of 2.8.
  static constexpr Index kShared = Index{1} << 16;
  Index subtrees() const { return std::min<Index>(8 * team_, 32); }
  static constexpr Index kClockInterval = Index{1} << 12;  // values between two looks at the clock

  Index size() const { return static_cast<Index>(context_.rows.size()); }
  bool is_large(const PendingNode& node) const {
    return team_ > 1 && node.size() * data_.X.columns >= kShared && node.size() * subtrees() >= size();
  }
  // Of kept histograms: a quarter of the table, or half of one of bytes, which has no codes beside it.
  Index most_bytes() const {
    return size() * data_.X.columns * static_cast<Index>(sizeof(T)) / (TreeBins<T>::kKeepsCodes ? 4 : 2);
  }

  template <class Mass>
  std::pair<TreeArrays, bool> grow_by() {
    GrowingTree tree(data_.classes);
    std::vector<PendingNode> small;
    std::vector<Index> places;
    std::atomic<bool> ended{false};
    Watch watch(&stop_, ended);
    std::optional<BinnedView<T, Mass>> view(std::in_place, context_, most_bytes());
    const auto together = [&](Index tasks, const auto& work) {
      return !watch.over() && run_tasks(tasks, team_, &stop_, [&](Index task, Watch&) {
        work(task, workspaces_[omp_get_thread_num()].choice.search);
      });
    };
    std::vector<PendingNode> stack{{0, size(), -1, 0, 0, root_path(rules_.seed)}};
    while (!stack.empty()) {
      const PendingNode node = stack.back();
      stack.pop_back();
      if (is_large(node) || watch.over()) {
        visit(node, tree, stack, workspaces_[0], *view, together);
      } else {
        view->drop(node);
        small.push_back(node);
        places.push_back(tree.add(node.parent, node.slot, count(node, workspaces_[0])));
      }
    }
    view.reset();
    const bool completed = grow_subtrees<Mass>(tree, small, places) && !watch.over();
    return {tree.finish(), completed};
  }

  // Histograms are made class by class. Nodes keep the order of their rows when they are split.
  void group_by_class() {
    std::vector<Index> to(static_cast<std::size_t>(data_.classes) + 1, 0);
    for (const Row row : context_.rows) ++to[data_.labels[row] + 1];
    std::partial_sum(to.begin(), to.end(), to.begin());
    RowNumbers grouped(context_.rows.size());
    for (const Row row : context_.rows) grouped[to[data_.labels[row]]++] = row;
    context_.rows = std::move(grouped);
  }

  // Each small node becomes a tree of its own, which is put in its place at last.
  template <class Mass>
  bool grow_subtrees(GrowingTree& tree, const std::vector<PendingNode>& nodes,
                     const std::vector<Index>& places) {
    std::vector<GrowingTree> subtrees(nodes.size(), GrowingTree(data_.classes));
    std::vector<Index> order(nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {  // the longest first
      return nodes[a].end - nodes[a].begin > nodes[b].end - nodes[b].begin;
    });
    const auto work = [&](Index task, Watch& watch) {
      PendingNode root = nodes[order[task]];
      root.parent = -1;
      root.histograms = -1;
      grow_subtree<Mass>(root, subtrees[order[task]], workspaces_[omp_get_thread_num()], watch);
    };
    const int team = nodes.size() > 1 ? team_ : 1;
    const bool completed = run_tasks(static_cast<Index>(nodes.size()), team, &stop_, work);
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (subtrees[k].size() > 0)
        tree.graft(places[k], subtrees[k]);
      else
        tree.close(places[k], end_of(nodes[k], count(nodes[k], workspaces_[0])).value_or(Reason::stopped));
    }
    return completed;
  }

  template <class Mass>
  void grow_subtree(const PendingNode& root, GrowingTree& tree, Workspace<T>& workspace, Watch& watch) {
    if (is_sorted(root)) return grow_sorted(root, tree, workspace, watch);
    BinnedView<T, Mass> view(context_, most_bytes() / team_);
    std::vector<PendingNode> stack{root};
    while (!stack.empty()) {
      const PendingNode node = stack.back();
      stack.pop_back();
      if (is_sorted(node))
        grow_sorted(node, tree, workspace, watch);
      else
        visit(node, tree, stack, workspace, view, alone(node, workspace, watch));
    }
  }

  // Few rows, all of whose columns are looked at in every node: it pays to sort them. If only few levels are
  // to come, histograms of fewer rows are faster, which cost about as much as sorting 32 rows a class.
  bool is_sorted(const PendingNode& node) const {
    if (context_.numbers.empty() || !context_.all_columns()) return false;
    Index most = SortedColumns<T>::kMostRows;
    const Index levels = rules_.max_depth - node.depth;
    if (context_.bins && rules_.max_depth >= 0 && levels >= 1 && levels <= 5)
      most = std::min(most, 32 * data_.classes << (levels - 1));
    return node.size() <= most;
  }

  void grow_sorted(const PendingNode& root, GrowingTree& tree, Workspace<T>& workspace, Watch& watch) {
    const ClassTotals& totals = count(root, workspace);
    if (const std::optional<Reason> reason = end_of(root, totals))
      return tree.close(tree.add(root.parent, root.slot, totals), *reason);
    SortedView<T> view(context_, workspace.choice.search.sorted, root);
    std::vector<PendingNode> stack{root};
    while (!stack.empty()) {
      const PendingNode node = stack.back();
      stack.pop_back();
      visit(node, tree, stack, workspace, view, alone(node, workspace, watch));
    }
  }

  // Does tasks for a node one after the other.
  auto alone(const PendingNode& node, Workspace<T>& workspace, Watch& watch) const {
    const Index interval = kClockInterval / node.size() + 1;
    return [&workspace, &watch, interval](Index tasks, const auto& work) {
      for (Index task = 0; task < tasks; ++task) {
        if (task % interval == 0 && watch.over()) return false;
        work(task, workspace.choice.search);
      }
      return true;
    };
  }

  // Adds a node to the tree, and its children to those that wait if it is split.
  template <class View, class Each>
  void visit(const PendingNode& node, GrowingTree& tree, std::vector<PendingNode>& stack,
             Workspace<T>& workspace, View& view, const Each& each) {
    const ClassTotals& totals = count(node, workspace);
    const Index number = tree.add(node.parent, node.slot, totals);
    if (const std::optional<Reason> reason = end_of(node, totals)) return tree.close(number, *reason);
    view.enter({context_.rows.data() + node.begin, node.size(), totals}, node);
    Split split;
    const Reason reason = choice_->find(totals, node.path, workspace.choice, view, each, split);
    if (reason != Reason::split) {
      view.leave();
      return tree.close(number, reason);
    }
    tree.split(number, split);
    partition<View::kHasCodes>(node, number, split, workspace);
    view.part(workspace.children, workspace.slots, each);
    // The largest child waits for the others, so that few nodes wait at a time, and few histograms.
    std::stable_sort(workspace.children.begin(), workspace.children.end(),
                     [](const PendingNode& a, const PendingNode& b) { return a.size() > b.size(); });
    stack.insert(stack.end(), workspace.children.begin(), workspace.children.end());
  }

  const ClassTotals& count(const PendingNode& node, Workspace<T>& workspace) const {
    context_.count(node, workspace.totals);
    return workspace.totals;
  }

  // Why a node is not even to be searched, if so.
  std::optional<Reason> end_of(const PendingNode& node, const ClassTotals& totals) const {
    if (totals.is_pure()) return Reason::pure;
    if (node.depth == rules_.max_depth || totals.rows() < rules_.min_samples_split) return Reason::limit;
    return std::nullopt;
  }

  // Sorts the rows of a node by child, in their order, and makes the children.
  template <bool kHasCodes>
  void partition(const PendingNode& node, Index number, const Split& split, Workspace<T>& workspace) {
    find_slots<kHasCodes>(node, split, workspace);
    std::vector<Index>& ends = workspace.ends;
    if (split.children == 2) {  // in vectors
      const Index right = std::accumulate(workspace.slots.begin(), workspace.slots.end(), 0);
      ends = {node.size() - right, node.size()};
    } else {
      ends.assign(static_cast<std::size_t>(split.children), 0);
      for (const std::int32_t slot : workspace.slots) ++ends[slot];
      std::partial_sum(ends.begin(), ends.end(), ends.begin());
    }
    split_by_slot(context_.rows.data() + node.begin, workspace.slots, ends, workspace.moved);
    workspace.children.clear();
    for (Index slot = 0, begin = node.begin; slot < split.children; begin = node.begin + ends[slot++])
      workspace.children.push_back(
          {begin, node.begin + ends[slot], number, slot, node.depth + 1, child_path(node.path, slot)});
    for (PendingNode& child : workspace.children) {
      child.is_open = may_split(child);
      child.is_sorted = is_sorted(child);
    }
  }

  template <bool kHasCodes>
  void find_slots(const PendingNode& node, const Split& split, Workspace<T>& workspace) const {
    const Row* rows = context_.rows.data() + node.begin;
    const T* values = data_.X.data + split.column * data_.X.column_stride;
    const bool categories = data_.kinds[split.column] != 0;
    const auto slot = [&](Index i) {
      return slot_of(split, categories, values[rows[i] * data_.X.row_stride]);
    };
    workspace.slots.resize(static_cast<std::size_t>(node.size()));
    std::int32_t* slots = workspace.slots.data();
    if constexpr (kHasCodes && TreeBins<T>::kKeepsCodes)
      if (const Index k = context_.number[split.column]; context_.bins && k >= 0)
        return find_slots_by_code(context_.bins->codes(k, node.begin), node.size(),
                                  context_.bins->code_of(k, split.threshold), slots, slot);
    for (Index i = 0; i < node.size(); ++i) slots[i] = slot(i);
  }

  // Codes tell most rows apart without a look at the table, whose rows lie far from each other: all but those
  // in the bin of the threshold and unknown ones.
  template <class Slot>
  static void find_slots_by_code(const std::uint8_t* codes, Index count, std::uint8_t middle,
                                 std::int32_t* slots, const Slot& slot) {
    constexpr Index kBlock = 64;
    for (Index begin = 0; begin < count; begin += kBlock) {
      const Index end = std::min(begin + kBlock, count);
      bool is_plain = true;
      for (Index i = begin; i < end; ++i) {
        slots[i] = codes[i] > middle;
        is_plain &= (codes[i] != middle) & (codes[i] != kUnknownBin);
      }
      for (Index i = begin; !is_plain && i < end; ++i)
        if (codes[i] == middle || codes[i] == kUnknownBin) slots[i] = slot(i);
    }
    if (count >= kBins * kBins) spilled::look();  // some hundred values were read, all over a column
  }

  // False only where it is clear that a node will not be split. Its rows are grouped by class if there are
  // bins.
  bool may_split(const PendingNode& node) const {
    const bool is_pure =
        context_.bins && data_.labels[context_.rows[node.begin]] == data_.labels[context_.rows[node.end - 1]];
    return !is_pure && node.depth != rules_.max_depth && node.size() >= rules_.min_samples_split;
  }

  const TrainingTable<T>& data_;
  const GrowthRules& rules_;
  SplitScore score_;
  GrowthContext<T> context_;
  Stop& stop_;
  const int team_;
  std::optional<SplitChoice<T>> choice_;
  std::vector<Workspace<T>> workspaces_;  // one a thread
};

}  // namespace

template <class T>
std::pair<TreeArrays, bool> grow_tree(const TrainingTable<T>& data, const GrowthRules& rules, RowNumbers rows,
                                      Index codes, Stop& stop) {
  return Growth<T>(data, rules, std::move(rows), codes, stop).grow();
}

}  // namespace sixfold
