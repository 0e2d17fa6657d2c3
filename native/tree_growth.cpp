// The growth of tree_growth.hpp. Large nodes are split one after the other, their columns shared by all
// threads; what is left are subtrees, each grown by one thread.
#include "tree_growth.hpp"

#include <omp.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "blas.hpp"
#include "tasks.hpp"

namespace sixfold {
namespace {

// Steele, Lea and Flood 2014: a number that looks random, of each number another.
std::uint64_t splitmix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A node that waits: its rows and its place in the tree.
struct Waiting {
  Index begin, end;
  Index parent, slot;
  Index depth;
  std::uint64_t path;  // made of the seed and the slots on the way here
};

// Room for one thread.
struct Desk {
  Desk(Index classes, Index codes) : column(classes, codes), totals(classes) {}

  ColumnDesk column;
  ClassTotals totals;
  std::vector<Index> columns;     // in the order in which they are looked at
  std::vector<ColumnBest> bests;  // of these
  std::vector<std::int32_t> slots;
  std::vector<Index> ends;
  std::vector<Row> rows;
};

template <class T>
class Growth {
 public:
  Growth(const TrainingTable<T>& data, const GrowthRules& rules, std::vector<Row>&& rows, Index codes,
         Stop& stop)
      : data_(data),
        rules_(rules),
        rows_(std::move(rows)),
        score_(rules.criterion, data.weight != nullptr, size()),
        stop_(stop),
        team_(size() * data.X.columns < kShared ? 1 : threads()),
        looked_at_(rules.max_columns <= 0 ? data.X.columns : std::min(rules.max_columns, data.X.columns)) {
    for (int thread = 0; thread < team_; ++thread) desks_.emplace_back(data.classes, codes);
    for (const Row row : rows_) whole_weight_ += data.weight_of(row);
  }

  std::pair<TreeArrays, bool> grow() {
    GrowingTree tree(data_.classes);
    std::vector<Waiting> small;
    std::vector<Index> places;
    Desk& desk = desks_[0];
    std::atomic<bool> ended{false};
    Watch watch(&stop_, ended);
    std::vector<Waiting> stack{{0, size(), -1, 0, 0, splitmix(rules_.seed)}};
    while (!stack.empty()) {
      const Waiting node = stack.back();
      stack.pop_back();
      if (is_large(node) || watch.over()) {
        visit(node, tree, stack, desk, [&](const NodeRows& rows, std::span<const Index> columns) {
          return look_together(rows, columns, desk.bests, watch);
        });
      } else {
        small.push_back(node);
        places.push_back(tree.add(node.parent, node.slot, count(node, desk)));
      }
    }
    const bool completed = grow_subtrees(tree, small, places) && !watch.over();
    return {tree.finish(), completed};
  }

 private:
  // Below 2^16 values waking other threads costs more than they save; a subtree of a 32nd of all rows
  // is small enough for threads to come out even.
  static constexpr Index kShared = Index{1} << 16, kSubtrees = 32;
  static constexpr Index kPatient = Index{1} << 12;  // values between two looks at the clock

  Index size() const { return static_cast<Index>(rows_.size()); }
  bool is_large(const Waiting& node) const {
    const Index rows = node.end - node.begin;
    return team_ > 1 && rows * data_.X.columns >= kShared && rows * kSubtrees >= size();
  }

  // Each small node becomes a tree of its own, which is put in its place at last.
  bool grow_subtrees(GrowingTree& tree, const std::vector<Waiting>& nodes, const std::vector<Index>& places) {
    std::vector<GrowingTree> subtrees(nodes.size(), GrowingTree(data_.classes));
    std::vector<Index> order(nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {  // the longest first
      return nodes[a].end - nodes[a].begin > nodes[b].end - nodes[b].begin;
    });
    const auto work = [&](Index task, Watch& watch) {
      grow_subtree(nodes[order[task]], subtrees[order[task]], desks_[omp_get_thread_num()], watch);
    };
    const int team = nodes.size() > 1 ? team_ : 1;
    const bool completed = run_tasks(static_cast<Index>(nodes.size()), team, &stop_, work);
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (subtrees[k].size() > 0)
        tree.graft(places[k], subtrees[k]);
      else
        tree.close(places[k], end_of(nodes[k], count(nodes[k], desks_[0])).value_or(Reason::stopped));
    }
    return completed;
  }

  void grow_subtree(Waiting root, GrowingTree& tree, Desk& desk, Watch& watch) {
    root.parent = -1;
    std::vector<Waiting> stack{root};
    while (!stack.empty()) {
      const Waiting node = stack.back();
      stack.pop_back();
      visit(node, tree, stack, desk, [&](const NodeRows& rows, std::span<const Index> columns) {
        return look_alone(rows, columns, desk, watch);
      });
    }
  }

  // Adds a node to the tree, and its children to those that wait if it is split.
  template <class Look>
  void visit(const Waiting& node, GrowingTree& tree, std::vector<Waiting>& stack, Desk& desk,
             const Look& look) {
    const ClassTotals& totals = count(node, desk);
    const Index number = tree.add(node.parent, node.slot, totals);
    if (const std::optional<Reason> reason = end_of(node, totals)) return tree.close(number, *reason);
    Split split;
    const NodeRows rows{rows_.data() + node.begin, node.end - node.begin, totals};
    const Reason reason = find_split(rows, node.path, desk, look, split);
    if (reason != Reason::split) return tree.close(number, reason);
    tree.split(number, split);
    partition(node, split, desk);
    for (Index slot = split.children - 1; slot >= 0; --slot) {
      const Index begin = node.begin + (slot == 0 ? 0 : desk.ends[slot - 1]);
      stack.push_back({begin, node.begin + desk.ends[slot], number, slot, node.depth + 1,
                       splitmix(node.path + static_cast<std::uint64_t>(slot) + 1)});
    }
  }

  const ClassTotals& count(const Waiting& node, Desk& desk) const {
    desk.totals.clear();
    for (Index i = node.begin; i < node.end; ++i)
      desk.totals.add(data_.labels[rows_[i]], data_.weight_of(rows_[i]));
    return desk.totals;
  }

  // Why a node is not even to be searched, if so.
  std::optional<Reason> end_of(const Waiting& node, const ClassTotals& totals) const {
    if (totals.is_pure()) return Reason::pure;
    if (node.depth == rules_.max_depth || totals.rows() < rules_.min_samples_split) return Reason::limit;
    return std::nullopt;
  }

  // Why a node is not split, or Reason::split and how.
  template <class Look>
  Reason find_split(const NodeRows& node, std::uint64_t path, Desk& desk, const Look& look, Split& split) {
    const Index all = data_.X.columns;
    order_columns(path, desk.columns);
    desk.bests.assign(static_cast<std::size_t>(all), ColumnBest{});
    const std::span<const Index> columns(desk.columns);
    if (!look(node, columns.first(looked_at_))) return Reason::stopped;
    const auto least = [&] {
      double value = std::numeric_limits<double>::infinity();
      for (const ColumnBest& best : desk.bests) value = std::min(value, best.least);
      return value;
    };
    for (Index k = looked_at_; k < all && least() == std::numeric_limits<double>::infinity(); ++k)
      if (!look(node, columns.subspan(k, 1))) return Reason::stopped;
    const double limit = least() + SplitScore::kTie * node.totals.weight();
    if (limit == std::numeric_limits<double>::infinity()) {
      const bool any = std::any_of(desk.bests.begin(), desk.bests.end(),
                                   [](const ColumnBest& best) { return best.has_candidates; });
      return any ? Reason::limit : Reason::exhausted;
    }
    Index first = 0;
    while (!(desk.bests[first].least <= limit)) ++first;
    search_column(data_, rules_, score_, node, first, desk.column, &split, limit);
    return is_worth(node.totals, split) ? Reason::split : Reason::limit;
  }

  bool is_worth(const ClassTotals& node, const Split& split) const {
    const double gain = score_.part(node).impurity / node.weight() - split.average;
    return node.weight() / whole_weight_ * gain >= rules_.min_impurity_decrease - SplitScore::kTie;
  }

  // All columns, or where only some are looked at all in an order that is random but for seed and path.
  void order_columns(std::uint64_t path, std::vector<Index>& columns) const {
    columns.resize(static_cast<std::size_t>(data_.X.columns));
    std::iota(columns.begin(), columns.end(), 0);
    if (looked_at_ == data_.X.columns) return;
    std::uint64_t state = path;
    for (std::size_t k = 0; k + 1 < columns.size(); ++k) {  // Fisher and Yates
      state = splitmix(state);
      std::swap(columns[k], columns[k + state % (columns.size() - k)]);
    }
  }

  bool look_together(const NodeRows& node, std::span<const Index> columns, std::vector<ColumnBest>& bests,
                     Watch& watch) {
    if (watch.over()) return false;
    return run_tasks(static_cast<Index>(columns.size()), team_, &stop_, [&](Index k, Watch&) {
      ColumnDesk& desk = desks_[omp_get_thread_num()].column;
      bests[columns[k]] = search_column(data_, rules_, score_, node, columns[k], desk);
    });
  }

  bool look_alone(const NodeRows& node, std::span<const Index> columns, Desk& desk, Watch& watch) const {
    const Index patience = kPatient / node.count + 1;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (static_cast<Index>(k) % patience == 0 && watch.over()) return false;
      desk.bests[columns[k]] = search_column(data_, rules_, score_, node, columns[k], desk.column);
    }
    return true;
  }

  // Sorts the rows of a node by child, in their order; desk.ends says where each child's end.
  void partition(const Waiting& node, const Split& split, Desk& desk) {
    const Index count = node.end - node.begin;
    Row* rows = rows_.data() + node.begin;
    const T* values = data_.X.data + split.column * data_.X.column_stride;
    const bool categories = data_.kinds[split.column] != 0;
    desk.slots.resize(static_cast<std::size_t>(count));
    desk.ends.assign(static_cast<std::size_t>(split.children + 1), 0);
    for (Index i = 0; i < count; ++i) {
      desk.slots[i] = slot_of(split, categories, values[rows[i] * data_.X.row_stride]);
      ++desk.ends[desk.slots[i] + 1];
    }
    std::partial_sum(desk.ends.begin(), desk.ends.end(), desk.ends.begin());
    desk.rows.assign(rows, rows + count);
    for (Index i = 0; i < count; ++i) rows[desk.ends[desk.slots[i]]++] = desk.rows[i];
  }

  const TrainingTable<T>& data_;
  const GrowthRules& rules_;
  std::vector<Row> rows_;  // each node has a range of them
  SplitScore score_;
  Stop& stop_;
  const int team_;
  const Index looked_at_;  // columns a node
  double whole_weight_ = 0.0;
  std::vector<Desk> desks_;  // one a thread
};

}  // namespace

template <class T>
std::pair<TreeArrays, bool> grow_tree(const TrainingTable<T>& data, const GrowthRules& rules,
                                      std::vector<Row> rows, Index codes, Stop& stop) {
  return Growth<T>(data, rules, std::move(rows), codes, stop).grow();
}

template std::pair<TreeArrays, bool> grow_tree(const TrainingTable<double>&, const GrowthRules&,
                                               std::vector<Row>, Index, Stop&);
template std::pair<TreeArrays, bool> grow_tree(const TrainingTable<float>&, const GrowthRules&,
                                               std::vector<Row>, Index, Stop&);
template std::pair<TreeArrays, bool> grow_tree(const TrainingTable<std::uint8_t>&, const GrowthRules&,
                                               std::vector<Row>, Index, Stop&);

}  // namespace sixfold
