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
#include "node_views.hpp"
#include "tasks.hpp"

namespace sixfold {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

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
template <class T>
struct Desk {
  Desk(Index classes, Index codes) : search(classes, codes), totals(classes) {}

  SearchDesk<T> search;
  ClassTotals totals;
  std::vector<Index> columns;     // in the order in which they are looked at
  std::vector<Index> open;        // those that are to be searched
  std::vector<Outlook> outlooks;  // of all columns
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
        growing_{data, rules, score_, {}, {}},
        stop_(stop),
        team_(size() * data.X.columns < kShared ? 1 : threads()),
        looked_at_(rules.max_columns <= 0 ? data.X.columns : std::min(rules.max_columns, data.X.columns)) {
    for (int thread = 0; thread < team_; ++thread) desks_.emplace_back(data.classes, codes);
    for (const Row row : rows_) whole_weight_ += data.weight_of(row);
    const bool is_concave = rules.criterion != Criterion::homogeneous;
    growing_.place.assign(static_cast<std::size_t>(data.X.columns), -1);
    for (Index j = 0; is_concave && j < data.X.columns; ++j) {
      if (data.kinds[j] != 0) continue;
      growing_.place[j] = static_cast<std::int32_t>(growing_.numbers.size());
      growing_.numbers.push_back(j);
    }
    if (growing_.numbers.empty() || size() <= SortedColumns<T>::kMostRows) return;
    group_by_class();
    bins_.emplace(data.X, growing_.numbers, rows_, team_);
  }

  std::pair<TreeArrays, bool> grow() {
    GrowingTree tree(data_.classes);
    std::vector<Waiting> small;
    std::vector<Index> places;
    std::atomic<bool> ended{false};
    Watch watch(&stop_, ended);
    BinnedView<T> view = binned_view();
    std::vector<Waiting> stack{{0, size(), -1, 0, 0, splitmix(rules_.seed)}};
    while (!stack.empty()) {
      const Waiting node = stack.back();
      stack.pop_back();
      if (is_large(node) || watch.over()) {
        visit(node, tree, stack, desks_[0], view, [&](Index tasks, const auto& work) {
          return !watch.over() && run_tasks(tasks, team_, &stop_, [&](Index task, Watch&) {
            work(task, desks_[omp_get_thread_num()].search);
          });
        });
      } else {
        small.push_back(node);
        places.push_back(tree.add(node.parent, node.slot, count(node, desks_[0])));
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
  bool by_ratio() const { return rules_.criterion == Criterion::gain_ratio; }
  bool is_large(const Waiting& node) const {
    const Index rows = node.end - node.begin;
    return team_ > 1 && rows * data_.X.columns >= kShared && rows * kSubtrees >= size();
  }
  BinnedView<T> binned_view() const { return {growing_, bins_ ? &*bins_ : nullptr}; }

  // Histograms are made class by class. Nodes keep the order of their rows when they are split.
  void group_by_class() {
    std::vector<Index> to(static_cast<std::size_t>(data_.classes) + 1, 0);
    for (const Row row : rows_) ++to[data_.labels[row] + 1];
    std::partial_sum(to.begin(), to.end(), to.begin());
    std::vector<Row> grouped(rows_.size());
    for (const Row row : rows_) grouped[to[data_.labels[row]]++] = row;
    rows_ = std::move(grouped);
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
      Waiting root = nodes[order[task]];
      root.parent = -1;
      grow_subtree(root, subtrees[order[task]], desks_[omp_get_thread_num()], watch);
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

  void grow_subtree(const Waiting& root, GrowingTree& tree, Desk<T>& desk, Watch& watch) {
    BinnedView<T> view = binned_view();
    std::vector<Waiting> stack{root};
    while (!stack.empty()) {
      const Waiting node = stack.back();
      stack.pop_back();
      if (is_sorted(node))
        grow_sorted(node, tree, desk, watch);
      else
        visit(node, tree, stack, desk, view, alone(node, desk, watch));
    }
  }

  // Few rows, all of whose columns are looked at in every node: it pays to sort them.
  bool is_sorted(const Waiting& node) const {
    return !growing_.numbers.empty() && looked_at_ == data_.X.columns &&
           node.end - node.begin <= SortedColumns<T>::kMostRows;
  }

  void grow_sorted(const Waiting& root, GrowingTree& tree, Desk<T>& desk, Watch& watch) {
    const std::span<const Row> rows(rows_.data() + root.begin, static_cast<std::size_t>(root.end - root.begin));
    std::optional<SortedView<T>> view;
    std::vector<Waiting> stack{root};
    while (!stack.empty()) {
      const Waiting node = stack.back();
      stack.pop_back();
      if (!view && !end_of(node, count(node, desk)))
        view.emplace(growing_, desk.search.sorted, rows, root.begin);
      visit(node, tree, stack, desk, *view, alone(node, desk, watch));
    }
  }

  // Does tasks for a node one after the other.
  auto alone(const Waiting& node, Desk<T>& desk, Watch& watch) const {
    const Index patience = kPatient / (node.end - node.begin) + 1;
    return [&desk, &watch, patience](Index tasks, const auto& work) {
      for (Index task = 0; task < tasks; ++task) {
        if (task % patience == 0 && watch.over()) return false;
        work(task, desk.search);
      }
      return true;
    };
  }

  // Adds a node to the tree, and its children to those that wait if it is split.
  template <class View, class Each>
  void visit(const Waiting& node, GrowingTree& tree, std::vector<Waiting>& stack, Desk<T>& desk, View& view,
             const Each& each) {
    const ClassTotals& totals = count(node, desk);
    const Index number = tree.add(node.parent, node.slot, totals);
    if (const std::optional<Reason> reason = end_of(node, totals)) return tree.close(number, *reason);
    view.enter({rows_.data() + node.begin, node.end - node.begin, totals}, node.begin);
    Split split;
    const Reason reason = find_split(node.path, desk, view, each, split);
    if (reason != Reason::split) return tree.close(number, reason);
    tree.split(number, split);
    partition(node, split, desk);
    view.part(desk.slots, desk.ends);
    for (Index slot = split.children - 1; slot >= 0; --slot) {
      const Index begin = node.begin + (slot == 0 ? 0 : desk.ends[slot - 1]);
      stack.push_back({begin, node.begin + desk.ends[slot], number, slot, node.depth + 1,
                       splitmix(node.path + static_cast<std::uint64_t>(slot) + 1)});
    }
  }

  const ClassTotals& count(const Waiting& node, Desk<T>& desk) const {
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
  template <class View, class Each>
  Reason find_split(std::uint64_t path, Desk<T>& desk, const View& view, const Each& each, Split& split) {
    const Index all = data_.X.columns;
    const double tie = SplitScore::kTie * desk.totals.weight();
    order_columns(path, desk.columns);
    desk.outlooks.assign(static_cast<std::size_t>(all), Outlook{});
    const std::span<const Index> columns(desk.columns);
    double least = kNone;
    if (!look(columns.first(looked_at_), tie, desk, view, each, least)) return Reason::stopped;
    for (Index k = looked_at_; k < all && least == kNone; ++k)
      if (!look(columns.subspan(k, 1), tie, desk, view, each, least)) return Reason::stopped;
    if (least == kNone) {
      const bool any = std::any_of(desk.outlooks.begin(), desk.outlooks.end(),
                                   [](const Outlook& outlook) { return outlook.has_candidates; });
      return any ? Reason::limit : Reason::exhausted;
    }
    if (by_ratio()) {
      if (!choose_by_ratio(tie, desk, view, each, split)) return Reason::stopped;
    } else {
      Index first = 0;
      while (!(desk.outlooks[first].least <= least + tie)) ++first;
      view.search(first, least + tie, desk.search, &split);
    }
    return is_worth(desk.totals, split) ? Reason::split : Reason::limit;
  }

  // Takes the split with the best ratio of the columns with at least the average gain.
  template <class View, class Each>
  bool choose_by_ratio(double tie, Desk<T>& desk, const View& view, const Each& each, Split& split) {
    Average average;
    for (const Outlook& outlook : desk.outlooks)
      if (outlook.least < kNone) average.add(outlook.least);
    std::vector<Index>& open = desk.open;
    open.clear();
    for (Index column = 0; column < data_.X.columns; ++column)
      if (desk.outlooks[column].least <= average.value() + tie) open.push_back(column);
    std::vector<Split> splits(open.size());
    std::vector<double> scores(open.size());
    const ScorePart whole = score_.part(desk.totals);
    const auto score = [&](Index k, SearchDesk<T>& room) {
      view.search(open[k], desk.outlooks[open[k]].least + tie, room, &splits[k]);
      scores[k] = SplitScore::ratio(desk.totals.weight(), whole, splits[k].parts);
    };
    if (!each(static_cast<Index>(open.size()), score)) return false;
    const double limit = *std::min_element(scores.begin(), scores.end()) + tie;
    std::size_t first = 0;
    while (!(scores[first] <= limit)) ++first;
    split = std::move(splits[first]);
    return true;
  }

  // Finds the least S of these columns; of the columns that come within a tie of it, exactly. Where nothing
  // is known but what a column may have to offer, the more promising columns are searched first, and those
  // that cannot reach what was found are not searched at all, unless an average needs them.
  template <class View, class Each>
  bool look(std::span<const Index> columns, double tie, Desk<T>& desk, const View& view, const Each& each,
            double& least) {
    std::vector<Outlook>& outlooks = desk.outlooks;
    const auto see = [&](Index k, SearchDesk<T>& room) { outlooks[columns[k]] = view.outlook(columns[k], room); };
    if (!each(static_cast<Index>(columns.size()), see)) return false;
    std::vector<Index>& open = desk.open;
    open.clear();
    for (const Index column : columns) {
      if (outlooks[column].is_exact) least = std::min(least, outlooks[column].least);
      else open.push_back(column);
    }
    std::sort(open.begin(), open.end(), [&](Index a, Index b) {
      return outlooks[a].reach != outlooks[b].reach ? outlooks[a].reach < outlooks[b].reach : a < b;
    });
    std::atomic<double> best{least};
    const auto search = [&](Index k, SearchDesk<T>& room) {
      Outlook& outlook = outlooks[open[k]];
      const double limit = by_ratio() ? kNone : best + tie;
      ColumnBest found;
      if (outlook.least <= limit) found = view.search(open[k], std::min(limit, outlook.reach), room);
      if (found.least == kNone && outlook.least <= limit && outlook.reach < limit)
        found = view.search(open[k], limit, room);
      outlook = {outlook.has_candidates, true, found.least, found.least};
      for (double now = best; found.least < now && !best.compare_exchange_weak(now, found.least);) {
      }
    };
    if (!open.empty()) search(0, desk.search);
    const auto search_others = [&](Index k, SearchDesk<T>& room) { search(k + 1, room); };
    if (open.size() > 1 && !each(static_cast<Index>(open.size()) - 1, search_others)) return false;
    least = best;
    return true;
  }

  bool is_worth(const ClassTotals& node, const Split& split) const {
    const double gain = (score_.part(node).impurity - split.parts.impurity) / node.weight();
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

  // Sorts the rows of a node by child, in their order; desk.ends says where each child's end.
  void partition(const Waiting& node, const Split& split, Desk<T>& desk) {
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
    desk.ends.pop_back();
  }

  const TrainingTable<T>& data_;
  const GrowthRules& rules_;
  std::vector<Row> rows_;  // each node has a range of them
  SplitScore score_;
  Growing<T> growing_;
  std::optional<TreeBins<T>> bins_;
  Stop& stop_;
  const int team_;
  const Index looked_at_;  // columns a node
  double whole_weight_ = 0.0;
  std::vector<Desk<T>> desks_;  // one a thread
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
