// The growth of sparse_tree.hpp, level by level.
#include "trees/sparse/sparse_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "trees/columns/column_search.hpp"
#include "trees/sparse/sparse_splits.hpp"
#include "trees/sparse/sparse_worker.hpp"

namespace sixfold {
namespace {

constexpr Index kColumnsATask = 32;
constexpr Index kSingleThread = 1 << 14;  // entries that one thread has sooner looked at than two

// The column by which a node is split.
struct Found {
  std::int32_t column = kNone;
  double limit = kInfinity;  // S of the split is at most this
  bool has_candidates = false;
};

// How the rows of a node go to its children.
struct RowPartition {
  std::int32_t node, first_child;
  std::int32_t column, unknown;  // `unknown` is a slot
  Cut cut;
};

template <Criterion criterion>
class SparseGrowth {
 public:
  SparseGrowth(const SparseTraining& data, const GrowthRules& rules, RowNumbers&& rows, Stop& stop)
      : data_(data),
        rules_(rules),
        stop_(stop),
        rows_(std::move(rows)),
        states_(static_cast<std::size_t>(data.rows)),
        score_(data.weight != nullptr, static_cast<Index>(rows_.size())),
        tree_(data.classes) {
    for (Index i = 0; i < data.rows; ++i) states_[i] = {kNone, data.labels[i]};
    for (const std::int32_t row : rows_) states_[row].node = 0;
  }

  std::pair<TreeArrays, bool> grow() {
    std::vector<SparseNode> root;
    root.push_back({-1, 0, 0, root_path(rules_.seed), ClassTotals(data_.classes)});
    first_child_.assign(1, 0);
    enter(std::move(root));
    const bool completed = open_.empty() || grow_levels();
    for (const SparseNode& node : open_) tree_.close(node.number, Reason::stopped);
    return {tree_.finish(), completed};
  }

 private:
  static constexpr bool kByRatio = criterion == Criterion::gain_ratio;

  bool looks_at_all() const { return rules_.max_columns <= 0 || rules_.max_columns >= data_.X.columns; }
  static double tie(const SparseNode& node) { return SplitScore::kTie * node.totals.weight(); }

  bool grow_levels() {
    root_weight_ = open_[0].totals.weight();
    bool completed = true;
    const Index stored = data_.X.starts[data_.X.columns];
    const int most = stored < kSingleThread ? 1 : threads();
    SparseLists lists(data_.X, states_, most, stop_, &completed);
    for (int k = 0; k < most; ++k)
      workers_.push_back({GroupSearch<criterion>(score_, rules_, states_, data_.weight, data_.classes),
                          ColumnOrder(looks_at_all() ? 0 : data_.X.columns)});
    while (completed && !open_.empty()) {
      const int team = lists.entry_count() < kSingleThread ? 1 : most;
      completed = look(lists, team) && (looks_at_all() || look_at_some(lists, team));
      if (kByRatio && completed) choose_by_ratio();
      lists.drop_empty_columns();
      if (completed) split_all(lists);
    }
    return completed;
  }

  // One pass over the columns: entries follow their rows to the open nodes, and every node is searched.
  bool look(SparseLists& lists, int team) {
    for (Worker<criterion>& worker : workers_) worker.forget(open_.size());
    const std::span<const std::int32_t> columns = lists.columns();
    const Index count = static_cast<Index>(columns.size());
    const Index tasks = (count + kColumnsATask - 1) / kColumnsATask;
    ratios_.assign(kByRatio && looks_at_all() ? static_cast<std::size_t>(tasks) : 0, {});
    const bool completed = run_tasks(tasks, team, &stop_, [&](Index task, Watch&) {
      Worker<criterion>& worker = workers_[omp_get_thread_num()];
      const Index end = std::min((task + 1) * kColumnsATask, count);
      for (Index k = task * kColumnsATask; k < end; ++k) {
        lists.regroup(columns[k], states_, first_child_, &worker.scratch);
        if (looks_at_all()) look_at(lists, columns[k], worker, task);
      }
    });
    found_.assign(open_.size(), {});
    if (completed && looks_at_all())
      for (std::size_t n = 0; n < open_.size(); ++n)
        found_[n] = first_of_workers(static_cast<std::int32_t>(n));
    return completed;
  }

  void look_at(const SparseLists& lists, std::int32_t column, Worker<criterion>& worker, Index task) {
    const Entry* entries = lists.entries(column);
    std::int32_t begin = 0;
    for (const Group& group : lists.groups(column)) {
      const SparseNode& node = open_[group.node];
      bool has_candidates = false;
      const std::span<const Entry> own{entries + begin, entries + group.end};
      if constexpr (kByRatio) {
        note_ratio(group.node, column, own, worker, task, &has_candidates);
      } else {
        const double least =
            least_of(node, own, worker.best_so_far[group.node].least, worker, &has_candidates);
        worker.note(group.node, column, least, tie(node));
      }
      worker.has_candidates[group.node] |= has_candidates;
      begin = group.end;
    }
  }

  // Of a column that is left out because it is worse than another, infinity: twice the tie, as rounding may
  // take something off.
  double least_of(const SparseNode& node, std::span<const Entry> entries, double other,
                  Worker<criterion>& worker, bool* has_candidates) {
    double least = kInfinity;
    *has_candidates |= worker.search.search(
        node, entries, other + 2.0 * tie(node),
        [&](const ScorePart& children, const Cut&) { least = std::min(least, children.impurity); });
    return least;
  }

  // Returns the least S_entropy.
  double note_ratio(std::int32_t n, std::int32_t column, std::span<const Entry> entries,
                    Worker<criterion>& worker, Index list, bool* has_candidates) {
    Ratio ratio = worker.most_gain(open_[n], entries, tie(open_[n]), has_candidates);
    ratio.node = n;
    ratio.column = column;
    if (ratio.least < kInfinity) ratios_[list].push_back(ratio);
    return ratio.least;
  }

  // Of the columns of a node with at least the average gain, the first with the best ratio.
  void choose_by_ratio() {
    std::vector<Average> averages(open_.size());
    std::vector<double> best(open_.size(), kInfinity);
    const auto each = [&](const auto& visit) {
      for (const std::vector<Ratio>& list : ratios_)
        for (const Ratio& ratio : list) visit(ratio);
    };
    const auto takes_part = [&](const Ratio& ratio) {
      return ratio.least <= averages[ratio.node].value() + tie(open_[ratio.node]);
    };
    each([&](const Ratio& ratio) { averages[ratio.node].add(ratio.least); });
    each([&](const Ratio& ratio) {
      if (takes_part(ratio)) best[ratio.node] = std::min(best[ratio.node], ratio.score);
    });
    each([&](const Ratio& ratio) {
      Found& found = found_[ratio.node];
      const double equal = tie(open_[ratio.node]);
      if (found.column != kNone || !takes_part(ratio) || !(ratio.score <= best[ratio.node] + equal)) return;
      found.column = ratio.column;
      found.limit = ratio.least + equal;
    });
  }

  Found first_of_workers(std::int32_t n) const {
    Found found;
    double least = kInfinity;
    for (const Worker<criterion>& worker : workers_) {
      least = std::min(least, worker.best_so_far[n].least);
      found.has_candidates |= worker.has_candidates[n] != 0;
    }
    if (least == kInfinity) return found;
    found.limit = least + tie(open_[n]);
    for (const Worker<criterion>& worker : workers_) {
      const std::int32_t column = worker.first_column(n, found.limit);
      if (column != kNone && (found.column == kNone || column < found.column)) found.column = column;
    }
    return found;
  }

  // Each node looks at columns of its own choice, and beyond their number until one can be split.
  bool look_at_some(const SparseLists& lists, int team) {
    ratios_.assign(kByRatio ? open_.size() : 0, {});
    return run_tasks(static_cast<Index>(open_.size()), team, &stop_, [&](Index n, Watch&) {
      Worker<criterion>& worker = workers_[omp_get_thread_num()];
      const SparseNode& node = open_[n];
      Found& found = found_[n];
      double least = kInfinity;
      std::vector<BestSoFar> tried;
      worker.order.begin(node.path);
      for (Index k = 0; !worker.order.is_over() && (k < rules_.max_columns || least == kInfinity); ++k) {
        const std::int32_t column = worker.order.next();
        const std::span<const Entry> entries = lists.entries_of(column, static_cast<std::int32_t>(n));
        if (entries.empty()) continue;  // zeros alone
        if constexpr (kByRatio) {
          const auto number = static_cast<std::int32_t>(n);
          least = std::min(least, note_ratio(number, column, entries, worker, n, &found.has_candidates));
        } else {
          tried.push_back({least_of(node, entries, least, worker, &found.has_candidates), column});
          least = std::min(least, tried.back().least);
        }
      }
      if constexpr (kByRatio) std::ranges::sort(ratios_[n], {}, &Ratio::column);
      if (kByRatio || least == kInfinity) return;
      found.limit = least + tie(node);
      for (const BestSoFar& one : tried)
        if (one.least <= found.limit && (found.column == kNone || one.column < found.column))
          found.column = one.column;
    });
  }

  // Splits or closes every open node; their children are the next level.
  void split_all(const SparseLists& lists) {
    std::vector<SparseNode> children;
    std::vector<RowPartition> partitions;
    first_child_.assign(open_.size(), kNone);
    for (std::size_t n = 0; n < open_.size(); ++n) {
      const SparseNode& node = open_[n];
      Split split;
      Cut cut{};
      const Reason reason = choose(lists, static_cast<std::int32_t>(n), &split, &cut);
      if (reason != Reason::split) {
        tree_.close(node.number, reason);
        continue;
      }
      tree_.split(node.number, split);
      first_child_[n] = static_cast<std::int32_t>(children.size());
      partitions.push_back({static_cast<std::int32_t>(n), first_child_[n], split.column, split.unknown, cut});
      for (Index slot = 0; slot < split.children; ++slot)
        children.push_back(
            {node.number, slot, node.depth + 1, child_path(node.path, slot), ClassTotals(data_.classes)});
    }
    part(lists, partitions);
    enter(std::move(children));
  }

  // Why a node is not split, or Reason::split and how: the first candidate of its column within the limit.
  Reason choose(const SparseLists& lists, std::int32_t n, Split* split, Cut* cut) {
    const SparseNode& node = open_[n];
    const Found& found = found_[n];
    if (found.column == kNone) return found.has_candidates ? Reason::limit : Reason::exhausted;
    const std::span<const Entry> entries = lists.entries_of(found.column, n);
    bool is_first = true;
    workers_[0].search.search(node, entries, kInfinity, [&](const ScorePart& children, const Cut& candidate) {
      if (!(children.impurity <= found.limit) || !(is_first || candidate < *cut)) return;
      is_first = false;
      *cut = candidate;
      split->parts = children;
    });
    split->column = found.column;
    fill(node, entries, split, cut);
    const double gain = (node.whole.impurity - split->parts.impurity) / node.totals.weight();
    const bool is_worth =
        node.totals.weight() / root_weight_ * gain >= rules_.min_impurity_decrease - SplitScore::kTie;
    return is_worth ? Reason::split : Reason::limit;
  }

  // Completes threshold and branches of a split.
  void fill(const SparseNode& node, std::span<const Entry> entries, Split* split, Cut* cut) const {
    std::int32_t known = static_cast<std::int32_t>(entries.size());
    while (known > 0 && entries[known - 1].rank == kUnknownRank) --known;
    const bool has_unknown = known < std::ssize(entries);
    split->children = has_unknown && !rules_.unknown_best && !cut->apart ? 3 : 2;
    split->branches = {{0, 0}, {1, 1}};
    if (cut->apart) {
      if (!rules_.unknown_best) split->branches.pop_back();
      *cut = {known, true, true, true};
      split->threshold = kInfinity;
      split->unknown = 1;
      return;
    }
    if (has_unknown) split->unknown = rules_.unknown_best ? static_cast<std::int32_t>(cut->unknown_right) : 2;
    const auto value = [&](std::int32_t i) { return data_.X.at(split->column, entries[i].row); };
    const std::int32_t left = cut->left;
    const bool has_zeros = node.totals.rows() > std::ssize(entries);
    const bool low_is_zero = has_zeros && cut->zeros_left && (left == 0 || entries[left - 1].rank < 0);
    const bool high_is_zero = has_zeros && !cut->zeros_left && (left == known || entries[left].rank > 0);
    split->threshold =
        threshold_between(low_is_zero ? 0.0 : value(left - 1), high_is_zero ? 0.0 : value(left));
  }

  // Rows go to the children, whose numbers they have from now on: first all as if they were zeros, then those
  // that are not.
  void part(const SparseLists& lists, const std::vector<RowPartition>& partitions) {
    std::vector<std::int32_t> child_of_zeros(open_.size(), kNone);
    for (const RowPartition& partition : partitions)
      child_of_zeros[partition.node] = partition.first_child + (partition.cut.zeros_left ? 0 : 1);
    for (const std::int32_t row : rows_) states_[row].node = child_of_zeros[states_[row].node];
    for (const RowPartition& partition : partitions) {
      const std::span<const Entry> entries = lists.entries_of(partition.column, partition.node);
      for (std::int32_t i = 0; i < std::ssize(entries); ++i) {
        const bool is_unknown = entries[i].rank == kUnknownRank;
        const std::int32_t slot = is_unknown ? partition.unknown : i < partition.cut.left ? 0 : 1;
        states_[entries[i].row].node = partition.first_child + slot;
      }
    }
  }

  // New nodes enter the tree. Those that may be split are open and numbered anew; rows of others are
  // finished.
  void enter(std::vector<SparseNode>&& nodes) {
    for (const std::int32_t row : rows_) {
      const RowState& state = states_[row];
      if (state.node != kNone) nodes[state.node].totals.add(state.label, weight_of(row));
    }
    std::vector<std::int32_t> numbers(nodes.size(), kNone), open_before(nodes.size());
    open_.clear();
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      SparseNode& node = nodes[k];
      open_before[k] = static_cast<std::int32_t>(open_.size());
      node.number = tree_.add(node.parent, node.slot, node.totals);
      if (node.totals.is_pure()) {
        tree_.close(node.number, Reason::pure);
      } else if (node.depth == rules_.max_depth || node.totals.rows() < rules_.min_samples_split) {
        tree_.close(node.number, Reason::limit);
      } else {
        node.terms = score_.terms(node.totals.cells());
        node.whole = score_.part(node.totals.weight(), node.terms);
        numbers[k] = open_before[k];
        open_.push_back(std::move(node));
      }
    }
    for (std::int32_t& first : first_child_)
      if (first != kNone) first = open_before[first];
    std::erase_if(rows_, [&](std::int32_t row) {
      std::int32_t& node = states_[row].node;
      if (node != kNone) node = numbers[node];
      return node == kNone;
    });
  }

  double weight_of(std::int32_t row) const { return data_.weight == nullptr ? 1.0 : data_.weight[row]; }

  const SparseTraining& data_;
  const GrowthRules& rules_;
  Stop& stop_;
  RowNumbers rows_;               // that are in open nodes
  std::vector<RowState> states_;  // of all rows
  SparseScore<criterion> score_;
  GrowingTree tree_;
  double root_weight_ = 0.0;
  std::vector<SparseNode> open_;
  std::vector<Found> found_;                // of the open nodes
  std::vector<std::vector<Ratio>> ratios_;  // of each open node by rising column, in one list or in several
  std::vector<std::int32_t> first_child_;   // of the nodes that were open before: the first that is open now
  std::vector<Worker<criterion>> workers_;  // one a thread
};

}  // namespace

std::pair<TreeArrays, bool> grow_sparse_tree(const SparseTraining& data, const GrowthRules& rules,
                                             RowNumbers rows, Stop& stop) {
  switch (rules.criterion) {
    case Criterion::entropy:
      return SparseGrowth<Criterion::entropy>(data, rules, std::move(rows), stop).grow();
    case Criterion::gini:
      return SparseGrowth<Criterion::gini>(data, rules, std::move(rows), stop).grow();
    case Criterion::gain_ratio:
      return SparseGrowth<Criterion::gain_ratio>(data, rules, std::move(rows), stop).grow();
    case Criterion::homogeneous:
      return SparseGrowth<Criterion::homogeneous>(data, rules, std::move(rows), stop).grow();
  }
  return {};
}

}  // namespace sixfold
