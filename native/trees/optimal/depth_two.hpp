// The best tree of depth two of a node's rows, exactly, over all thresholds of all columns.
//
// Every column is cut into bins that respect ties. The class counts of each pair of columns by bin, made
// cumulative, hold all four parts of every pair of edges: trees at edges, which are upper bounds, and, by the
// counts on both sides of a bin, lower bounds for the thresholds inside it (leaf_cost.hpp). A first threshold
// inside a bin has at least the rows left of it at its lower edge and right of it at its upper edge, so the
// bounds of the two halves at these edges add up to one of the bin. What could still be better is looked at
// best first: an interval (a, b) of first thresholds, whose cost is at least left(a) + right(b), is parted at
// its middle. One side of one first threshold is exact from the cumulative counts, the rows of the bin that
// lie on its side, and the rows inside those bins of the second column whose bound does not rule them out.
#pragma once

#include <algorithm>
#include <vector>

#include "core/tasks.hpp"
#include "trees/optimal/leaf_cost.hpp"
#include "trees/optimal/search_table.hpp"

namespace sixfold::optimal {

inline constexpr Index kNoQuestion = -1;

// A cost below the cap with the question at the root that has it (none for a leaf), or the cap itself.
template <class Value>
struct Found {
  Value cost;
  Index column = kNoQuestion;
  Rank rank = -1;
};

// Room for the class counts of all pairs of columns: more is searched without them.
inline constexpr Index kMostPairCounts = Index{1} << 25;

template <class Cost>
class DepthTwo {
 public:
  using Count = typename Cost::Count;
  using Value = typename Cost::Value;

  DepthTwo(const SearchTable& table, const Cost& cost, Value penalty)
      : table_(table), cost_(cost), penalty_(penalty), classes_(table.classes) {
    place_.resize(static_cast<std::size_t>(table.rows));
    walked_.resize(static_cast<std::size_t>(2 * classes_));
  }

  // Whether the counts of all pairs have room.
  static bool fits(Index columns, Index classes) {
    return columns * (columns + 1) / 2 * classes * 16 * 16 <= kMostPairCounts;
  }

  // `leaf` is the cost of the node unsplit, its penalty included.
  Found<Value> best(const NodeRows& node, Value leaf, Value cap, Watch& watch) {
    const Index pairs = table_.columns * (table_.columns + 1) / 2 * classes_;
    const Index each = node.count / classes_;  // counting cells that rows are too few to fill does not pay
    if (each <= (classes_ == 2 ? 150 : 400) || pairs * 32 * 32 > kMostPairCounts)
      return best_in<16>(node, leaf, cap, watch);
    if (each <= 1500 || classes_ > 2 || pairs * 64 * 64 > kMostPairCounts)
      return best_in<32>(node, leaf, cap, watch);
    return best_in<64>(node, leaf, cap, watch);
  }

 private:
  // Bins of a column that is not constant; edge e lies before bin e.
  struct Column {
    Index number;
    const Row* order;
    const Rank* rank;
    int bins;
    Row start[kMostEdges];
    Value shut[kMostEdges];  // kNever for bins of one value
  };

  // First thresholds between two positions in the order of a column, all inside a bin; or one position.
  struct Interval {
    Value key;
    int column, bin;
    Row low, high;
    Value left, right;                             // bounds of the rows before low, and of those from high on
    bool operator<(const Interval& other) const {  // for a heap with the least key on top
      if (key != other.key) return key > other.key;
      return column != other.column ? column > other.column : low > other.low;
    }
  };

  struct OpenBin {
    Value bound;
    int column, bin;
    Index counts;  // where those before the bin, and the totals, are kept
    bool operator<(const OpenBin& other) const { return bound < other.bound; }
  };

  // -- counts -----------------------------------------------------------------------------------------------

  template <int S>
  Found<Value> best_in(const NodeRows& node, Value leaf, Value cap, Watch& watch) {
    Found<Value> found{cap};
    if (leaf < found.cost) found = {leaf};
    if (found.cost <= penalty_) return found;
    place_rows(node);
    make_bins<S>(node);
    const int columns = static_cast<int>(columns_.size());
    if (columns == 0) return found;
    const std::size_t each = static_cast<std::size_t>(columns) * columns * S;
    bound_[0].assign(each, penalty_);
    bound_[1].assign(each, penalty_);
    for (int side = 0; side < 2; ++side) {
      upper_[side].assign(static_cast<std::size_t>(columns) * S, kNever<Value>);
      lower_[side].assign(static_cast<std::size_t>(columns) * S, kNever<Value>);
      known_[side].assign(static_cast<std::size_t>(columns) * S, 0);
    }
    counts_.resize(static_cast<std::size_t>(columns * (columns + 1) / 2 * classes_) * S * S + S);
    turned_.resize(static_cast<std::size_t>(classes_) * S * S + S);
    right_.resize(static_cast<std::size_t>(classes_) * S + S);
    side_.resize(static_cast<std::size_t>(classes_) * S + S);
    for (int a = 0; a < columns; ++a) {
      count_alone<S>(a);
      for (int b = a; b < columns; ++b) {
        Count* counts = pair<S>(a, b);
        if (a == b) {
          repeat_alone<S>(a, counts);
          evaluate<S>(a, a, counts);
          continue;
        }
        if (watch.over()) return found;
        count_pair<S>(a, b, counts);
        evaluate<S>(a, b, counts);
        turn<S>(columns_[a].bins, columns_[b].bins, counts);
        evaluate<S>(b, a, turned_.data());
      }
    }
    for (int a = 0; a < columns; ++a) {
      for (int e = 1; e < columns_[a].bins; ++e) {
        const Value sum = upper_[0][a * S + e] + upper_[1][a * S + e];
        if (sum < found.cost) found = at<S>(a, columns_[a].start[e], sum);
      }
    }
    refine<S>(found, watch);
    return found;
  }

  void place_rows(const NodeRows& node) {
    const Row* rows = node.by(table_.columns);
    begin_.assign(static_cast<std::size_t>(classes_) + 1, 0);
    Row k = 0;
    for (Index c = 0; c < classes_; ++c) {
      begin_[c] = k;
      const Row end = table_.class_start[c + 1];
      for (; k < node.count && rows[k] < end; ++k) place_[rows[k]] = k;
    }
    begin_[classes_] = node.count;
    if (!table_.weight.empty()) {
      weight_.resize(static_cast<std::size_t>(node.count));
      for (Row i = 0; i < node.count; ++i) weight_[i] = static_cast<Count>(table_.weight[rows[i]]);
    }
    count_ = node.count;
  }

  // The position of the first row after `from` whose value differs.
  static Row next_value(const Row* order, const Rank* rank, Row from, Row count) {
    const Rank value = rank[order[from]];
    Row low = from, step = 1;
    while (low + step < count && rank[order[low + step]] == value) low += step, step *= 2;
    Row high = std::min(low + step, count);
    while (high - low > 1) {
      const Row middle = low + (high - low) / 2;
      (rank[order[middle]] == value ? low : high) = middle;
    }
    return high;
  }

  template <int S>
  void make_bins(const NodeRows& node) {
    columns_.clear();
    bins_.resize(static_cast<std::size_t>(table_.columns * node.count));
    for (Index j = 0; j < table_.columns; ++j) {
      const Row* order = node.by(j);
      const Rank* rank = table_.rank(j);
      if (rank[order[0]] == rank[order[node.count - 1]]) continue;
      Column& made = columns_.emplace_back(Column{j, order, rank, 0, {}, {}});
      constexpr int kMost = S - 1;
      int bins = 0;
      for (Row at = 0; at < node.count && bins <= kMost; ++bins) {
        if (bins < kMost) made.start[bins] = at;
        at = next_value(order, rank, at, node.count);
      }
      if (bins > kMost) {  // more values than bins: as many rows in each as ties allow
        bins = 0;
        for (Row at = 0; at < node.count; ++bins) {
          made.start[bins] = at;
          const Row wanted = at + std::max(1, static_cast<Row>((node.count - at) / (kMost - bins)));
          at = next_value(order, rank, std::min(wanted, node.count) - 1, node.count);
        }
      }
      made.bins = bins;
      for (int e = bins; e < S; ++e) made.start[e] = node.count, made.shut[e] = kNever<Value>;
      std::uint8_t* bin = bins_.data() + (columns_.size() - 1) * static_cast<std::size_t>(node.count);
      for (int e = 0; e < bins; ++e) {
        const Row end = e + 1 < bins ? made.start[e + 1] : node.count;
        const bool one = rank[order[made.start[e]]] == rank[order[end - 1]];
        made.shut[e] = one ? kNever<Value> : Value{0};
        for (Row k = made.start[e]; k < end; ++k) bin[place_[order[k]]] = static_cast<std::uint8_t>(e + 1);
      }
    }
    alone_.assign(columns_.size() * static_cast<std::size_t>(classes_) * S, Count{0});
  }

  const std::uint8_t* bin_of(int a) const { return bins_.data() + static_cast<std::size_t>(a) * count_; }

  // The counts of column a alone, before each edge.
  template <int S>
  Count* alone(int a) {
    return alone_.data() + static_cast<std::size_t>(a) * classes_ * S;
  }

  template <int S>
  void count_alone(int a) {
    const std::uint8_t* bin = bin_of(a);
    for (Index c = 0; c < classes_; ++c) {
      Count* to = alone<S>(a) + c * S;
      if (weight_.empty())
        for (Row k = begin_[c]; k < begin_[c + 1]; ++k) to[bin[k]] += 1;
      else
        for (Row k = begin_[c]; k < begin_[c + 1]; ++k) to[bin[k]] += weight_[k];
      for (int e = 1; e < S; ++e) to[e] += to[e - 1];
    }
  }

  // Where the counts of the columns a <= b are: class by class, edges of b side by side.
  template <int S>
  Count* pair(int a, int b) {
    const Index place = static_cast<Index>(b) * (b + 1) / 2 + a;
    return counts_.data() + place * classes_ * S * S;
  }

  template <int S>
  void repeat_alone(int a, Count* counts) {
    for (Index c = 0; c < classes_; ++c) {
      const Count* from = alone<S>(a) + c * S;
      Count* to = counts + c * S * S;
      for (int e = 0; e <= columns_[a].bins; ++e)
        for (int f = 0; f < S; ++f) to[e * S + f] = from[std::min(e, f)];
    }
  }

  template <int S>
  void count_pair(int a, int b, Count* counts) {
    const std::uint8_t *one = bin_of(a), *other = bin_of(b);
    const int rows = columns_[a].bins + 1;
    for (Index c = 0; c < classes_; ++c) {
      Count* to = counts + c * S * S;
      std::fill_n(to, rows * S, Count{0});
      if (weight_.empty())
        for (Row k = begin_[c]; k < begin_[c + 1]; ++k) to[one[k] * S + other[k]] += 1;
      else
        for (Row k = begin_[c]; k < begin_[c + 1]; ++k) to[one[k] * S + other[k]] += weight_[k];
      accumulate<S>(to, rows);
    }
  }

  // Makes counts by bin those before each edge, in both directions.
  template <int S>
  static void accumulate(Count* to, int rows) {
    int e = 1;
    for (; e + 3 < rows; e += 4) {  // four sums at once: each alone waits for its last addition
      Count *p = to + e * S, *q = p + S, *r = q + S, *s = r + S;
      Count x = 0, y = 0, z = 0, w = 0;
      for (int f = 1; f < S; ++f) {
        p[f] = x += p[f];
        q[f] = y += q[f];
        r[f] = z += r[f];
        s[f] = w += s[f];
      }
    }
    for (; e < rows; ++e)
      for (int f = 1; f < S; ++f) to[e * S + f] += to[e * S + f - 1];
    for (e = 1; e < rows; ++e)
      for (int f = 0; f < S; ++f) to[e * S + f] += to[(e - 1) * S + f];
  }

  template <int S>
  void turn(int rows, int columns, const Count* counts) {
    for (Index c = 0; c < classes_; ++c) {
      const Count* from = counts + c * S * S;
      Count* to = turned_.data() + c * S * S;
      for (int f = 0; f <= columns; ++f)
        for (int e = 0; e < S; ++e) to[f * S + e] = from[std::min(e, rows) * S + f];
    }
  }

  // -- bounds -----------------------------------------------------------------------------------------------

  Value of_stump(Value leaf, Value split) const {
    return penalty_ == 0 ? split : std::min(leaf + penalty_, split + 2 * penalty_);
  }

  // Upper and lower bounds of both sides of every edge of the first column, by questions about the second.
  template <int S>
  void evaluate(int first, int second, const Count* counts) {
    const int bins = columns_[first].bins;
    const Count* all = counts + bins * S;
    const Value* shut = columns_[second].shut;
    const std::size_t place = (static_cast<std::size_t>(first) * columns_.size() + second) * S;
    Count* right = right_.data();
    for (int e = 1; e < bins; ++e) {
      const Count* left = counts + e * S;
      for (Index c = 0; c < classes_; ++c)
        for (int f = 0; f < S; ++f) right[c * S + f] = all[c * S * S + f] - left[c * S * S + f];
      note<S>(0, first, e, place, left, S * S, shut);
      note<S>(1, first, e, place, right, S, shut);
    }
  }

  template <int S>
  void note(int side, int first, int e, std::size_t place, const Count* low, Index stride,
            const Value* shut) {
    const StripLeast<Value> least = cost_.template strip<S>(low, stride, shut);
    Value leaf = 0;
    if (penalty_ != 0) leaf = leaf_of(low + S - 1, stride);
    const Value upper = of_stump(leaf, least.edge);
    const Value lower = of_stump(leaf, std::min(least.edge, least.inner));
    bound_[side][place + e] = lower;
    upper_[side][first * S + e] = std::min(upper_[side][first * S + e], upper);
    lower_[side][first * S + e] = std::min(lower_[side][first * S + e], lower);
  }

  Value leaf_of(const Count* counts, Index stride) {
    for (Index c = 0; c < classes_; ++c) walked_[c] = counts[c * stride];
    return cost_.leaf(walked_.data());
  }

  template <int S>
  Found<Value> at(int a, Row position, Value value) const {
    const Column& column = columns_[a];
    return {value, column.number, column.rank[column.order[position - 1]]};
  }

  // -- what could still be better ---------------------------------------------------------------------------

  template <int S>
  void refine(Found<Value>& found, Watch& watch) {
    heap_.clear();
    for (int a = 0; a < static_cast<int>(columns_.size()); ++a) {
      const Column& column = columns_[a];
      lower_[0][a * S] = penalty_;
      for (int e = 0; e < column.bins; ++e) {
        const Value left = lower_[0][a * S + e];
        if (e > 0) {
          const Value right = lower_[1][a * S + e];
          const bool known = left == upper_[0][a * S + e] && right == upper_[1][a * S + e];
          if (!known && left + right < found.cost)
            heap_.push_back({left + right, a, e, column.start[e], column.start[e], left, right});
        }
        const Value right = e + 1 < column.bins ? lower_[1][a * S + e + 1] : penalty_;
        if (column.shut[e] == 0 && left + right < found.cost) {
          const Row end = e + 1 < column.bins ? column.start[e + 1] : count_;
          heap_.push_back({left + right, a, e, column.start[e], end, left, right});
        }
      }
    }
    std::make_heap(heap_.begin(), heap_.end());
    while (!heap_.empty() && heap_.front().key < found.cost && !watch.over()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Interval taken = heap_.back();
      heap_.pop_back();
      if (taken.low == taken.high)
        look_at_edge<S>(taken, found);
      else
        part<S>(taken, found);
    }
  }

  template <int S>
  void look_at_edge(const Interval& taken, Found<Value>& found) {
    const Value left = edge_side<S>(0, taken.column, taken.bin, found.cost - taken.right);
    if (left + taken.right >= found.cost) return;
    const Value right = edge_side<S>(1, taken.column, taken.bin, found.cost - left);
    if (left + right < found.cost) found = at<S>(taken.column, taken.low, left + right);
  }

  // One side of an edge, exact or at least the cap; kept for the bins on both sides of it.
  template <int S>
  Value edge_side(int side, int a, int e, Value cap) {
    Value& lower = lower_[side][a * S + e];
    std::uint8_t& known = known_[side][a * S + e];
    if (known || lower >= cap) return lower;
    const Value value = side_of<S>(side, a, e, columns_[a].start[e], cap);
    known = value < cap;
    lower = std::max(lower, value);
    return lower;
  }

  template <int S>
  void part(Interval taken, Found<Value>& found) {
    const Column& column = columns_[taken.column];
    const Row first = column.start[taken.bin];
    const Row last = taken.bin + 1 < column.bins ? column.start[taken.bin + 1] : count_;
    if (taken.low == first && taken.bin > 0) {
      taken.left = std::max(taken.left, edge_side<S>(0, taken.column, taken.bin, found.cost - taken.right));
      if (taken.left + taken.right >= found.cost) return;
    }
    if (taken.high == last && taken.bin + 1 < column.bins) {
      taken.right =
          std::max(taken.right, edge_side<S>(1, taken.column, taken.bin + 1, found.cost - taken.left));
      if (taken.left + taken.right >= found.cost) return;
    }
    const Row middle = between_values(column.order, column.rank, taken.low, taken.high);
    if (middle < 0) return;
    // Rounded weights may make a part cost a unit less than its bound, which must not pass for a better tree.
    const Value left =
        std::max(taken.left, side_of<S>(0, taken.column, taken.bin, middle, found.cost - taken.right));
    const Value right =
        std::max(taken.right, side_of<S>(1, taken.column, taken.bin, middle, found.cost - taken.left));
    if (left + right < found.cost) found = at<S>(taken.column, middle, left + right);
    push(taken, taken.low, middle, taken.left, right, found.cost);
    push(taken, middle, taken.high, left, taken.right, found.cost);
  }

  void push(const Interval& from, Row low, Row high, Value left, Value right, Value cap) {
    if (left + right >= cap || high - low < 2) return;
    heap_.push_back({left + right, from.column, from.bin, low, high, left, right});
    std::push_heap(heap_.begin(), heap_.end());
  }

  // The best stump of the rows before a position in bin e of column a, or of those from it on; at least the
  // cap where no stump costs less.
  template <int S>
  Value side_of(int side, int a, int e, Row position, Value cap) {
    const Column& column = columns_[a];
    const Rank t = column.rank[column.order[position - 1]];
    const bool at_edge = position == column.start[e];
    const int bounded = side == 0 || at_edge ? e : e + 1;
    const std::size_t place = static_cast<std::size_t>(a) * columns_.size() * S;
    Value best = cap;
    open_.clear();
    kept_.clear();
    bool leaf_counted = false;
    for (int b = 0; b < static_cast<int>(columns_.size()); ++b) {
      const bool is_known = bounded > 0 && bounded < column.bins;
      if (is_known && bound_[side][place + static_cast<std::size_t>(b) * S + bounded] >= best) continue;
      side_counts<S>(side, a, e, position, b);
      Value edge[S], inner[S];
      if (penalty_ != 0 && !leaf_counted) {
        best = std::min(best, leaf_of(side_.data() + S - 1, S) + penalty_);
        leaf_counted = true;
      }
      const Value spare = best - 2 * penalty_;
      best = cost_.template bounds<S>(side_.data(), S, columns_[b].shut, spare, edge, inner) + 2 * penalty_;
      for (int f = 0; f < columns_[b].bins; ++f) {
        if (inner[f] + 2 * penalty_ >= best) continue;
        const Value bound = cost_.template inner_bound<S>(side_.data(), S, f, edge, inner[f]) + 2 * penalty_;
        if (bound >= best) continue;
        open_.push_back({bound, b, f, static_cast<Index>(kept_.size())});
        for (Index c = 0; c < classes_; ++c) kept_.push_back(side_[c * S + f]);
        for (Index c = 0; c < classes_; ++c) kept_.push_back(side_[c * S + S - 1]);
      }
    }
    std::sort(open_.begin(), open_.end());
    for (const OpenBin& open : open_) {
      if (open.bound >= best) break;
      const Value least = classes_ == 2 ? inside<typename Cost::TwoWalk>(open, side, column.rank, t)
                                        : inside<typename Cost::Walk>(open, side, column.rank, t);
      best = std::min(best, least + 2 * penalty_);
    }
    return best;
  }

  // The counts of one side of a first threshold, before each edge of column b.
  template <int S>
  void side_counts(int side, int a, int e, Row position, int b) {
    const Column& column = columns_[a];
    const int bins = columns_[b].bins;
    const Row from = column.start[e];
    const std::uint8_t* bin = bin_of(b);
    for (Index c = 0; c < classes_; ++c) {
      Count* to = side_.data() + c * S;
      if (a <= b) {
        std::copy_n(pair<S>(a, b) + (c * S + e) * S, S, to);
      } else {
        const Count* counts = pair<S>(b, a) + c * S * S + e;
        for (int f = 0; f <= bins; ++f) to[f] = counts[f * S];
        for (int f = bins + 1; f < S; ++f) to[f] = to[bins];
      }
    }
    if (position > from) {
      more_.assign(static_cast<std::size_t>(classes_) * S, Count{0});
      for (Row k = from; k < position; ++k) {
        const Row row = column.order[k], place = place_[row];
        more_[table_.label[row] * S + bin[place]] += weight_.empty() ? Count{1} : weight_[place];
      }
      for (Index c = 0; c < classes_; ++c) {
        Count sum = 0;
        for (int f = 0; f < S; ++f) side_[c * S + f] += sum += more_[c * S + f];
      }
    }
    if (side == 0) return;
    const Count* all = alone<S>(b);
    for (Index k = 0; k < classes_ * S; ++k) side_[k] = all[k] - side_[k];
  }

  template <class Walk>
  static constexpr bool kTwo = std::is_same_v<Walk, typename Cost::TwoWalk> &&
                               !std::is_same_v<typename Cost::TwoWalk, typename Cost::Walk>;

  // The least cost of a second threshold inside a bin.
  template <class Walk>
  Value inside(const OpenBin& open, int side, const Rank* first_rank, Rank t) {
    const Column& column = columns_[open.column];
    const Row start = column.start[open.bin];
    const Row end = open.bin + 1 < column.bins ? column.start[open.bin + 1] : count_;
    const Count* low = kept_.data() + open.counts;
    Walk walk(cost_, low, low + classes_, walked_.data());
    const Row second_class = table_.class_start[1];
    const auto class_of = [&](Row row) -> Index {
      return kTwo<Walk> ? row >= second_class : table_.label[row];
    };
    Value least = kNever<Value>;
    Rank before = column.rank[column.order[start]];
    if (weight_.empty()) {
      // Rows of the other side take part without moving: whether a row is of this side cannot be guessed, and
      // a threshold between two of the others is that of the rows around them.
      for (Row k = start; k < end; ++k) {
        const Row row = column.order[k];
        const Rank here = column.rank[row];
        if (here != before) least = std::min(least, walk.cost());
        before = here;
        walk.move_if((first_rank[row] <= t) == (side == 0), class_of(row));
      }
      return least;
    }
    for (Row k = start; k < end; ++k) {
      const Row row = column.order[k];
      if ((first_rank[row] <= t) == (side == 1)) continue;
      if (column.rank[row] != before) least = std::min(least, walk.cost());
      before = column.rank[row];
      walk.move(class_of(row), weight_[place_[row]]);
    }
    return least;
  }

  const SearchTable& table_;
  const Cost& cost_;
  Value penalty_;
  Index classes_;
  Row count_ = 0;
  std::vector<Row> place_, begin_;  // of a row among those of the node by class; where a class begins
  std::vector<Count> weight_;
  std::vector<Column> columns_;
  std::vector<std::uint8_t> bins_;  // of each column and row, counted from 1
  std::vector<Count> alone_, counts_, turned_, right_, side_, more_, kept_, walked_;
  std::vector<Value> bound_[2];             // of each pair of columns and edge of the first: left, right
  std::vector<Value> upper_[2], lower_[2];  // of each column and edge
  std::vector<std::uint8_t> known_[2];      // whether lower_ is exact
  std::vector<Interval> heap_;
  std::vector<OpenBin> open_;
};

}  // namespace sixfold::optimal
