// The best tree where every column has two values: rows are bits, and counts are those of bits.
//
// At depth two the rows that have both of two columns, class by class, tell with the counts of each column
// alone those of all four parts, so that one pass over the pairs gives the best question on either side of
// every first one. Above, every column is tried in turn, its rows packed anew so that loops shrink with them.
// What is known of a part of the rows is kept under the set of answers that leads to it, whatever the order
// of the questions.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/tasks.hpp"
#include "trees/optimal/depth_two.hpp"
#include "trees/optimal/search_table.hpp"

namespace sixfold::optimal {

inline constexpr int kMostAnswers = 8;  // of a key; deeper parts are not kept

// The answers that lead to a part, in order; 0 for none, and column * 2 + answer + 1.
struct AnswerSet {
  std::array<std::uint16_t, kMostAnswers> answers{};
  int count = 0;

  bool operator==(const AnswerSet& other) const { return answers == other.answers; }
  bool full() const { return count >= kMostAnswers; }
  AnswerSet with(Index column, bool right) const {
    AnswerSet more = *this;
    const auto answer = static_cast<std::uint16_t>(column * 2 + right + 1);
    int place = more.count++;
    for (; place > 0 && more.answers[place - 1] > answer; --place)
      more.answers[place] = more.answers[place - 1];
    more.answers[place] = answer;
    return more;
  }
};

inline const AnswerSet kNotKept{.count = kMostAnswers};

struct AnswerHash {
  std::size_t operator()(const AnswerSet& set) const {
    std::uint64_t hash = 0x9E3779B97F4A7C15;
    for (const std::uint16_t answer : set.answers)
      hash = (hash ^ answer) * 0xBF58476D1CE4E5B9, hash ^= hash >> 29;
    return hash;
  }
};

template <class Cost>
class BinaryColumns {
 public:
  using Count = typename Cost::Count;
  using Value = typename Cost::Value;

  // Whether a table can be searched so: two values a column, and rows that count 1.
  static bool fits(const SearchTable& table) {
    return std::is_same_v<Count, std::int32_t> && table.weight.empty() && table.columns < 30000 &&
           std::all_of(
               table.kinds.begin(), table.kinds.end(), [](Kind k) { return k == Kind::ordered; }) &&
           std::all_of(table.ranks.begin(), table.ranks.end(), [](Rank r) { return r <= 1; });
  }

  BinaryColumns(const SearchTable& table, const Cost& cost, Value penalty, Index memory)
      : table_(table), cost_(cost), penalty_(penalty), classes_(table.classes), memory_(memory) {
    const std::size_t columns = static_cast<std::size_t>(table.columns);
    alone_.resize(columns * static_cast<std::size_t>(classes_));
    for (auto& side : best_) side.resize(columns);
    counts_.resize(static_cast<std::size_t>(classes_) * 4);
  }

  // Rows that reached here by the answers of `path`.
  Found<Value> solve(const NodeRows& node, int depth, Value cap, const AnswerSet& path, Watch& watch) {
    return solve(pack(node), depth, cap, path, watch);
  }

 private:
  using Word = std::uint64_t;

  // The columns as bits, class after class, each from a new word on; the last column has a bit for every row.
  struct Bits {
    std::vector<Word> words;
    std::vector<Index> start;  // of the words of each class
    std::vector<Count> total;  // rows of each class
    Index rows(Index c) const { return static_cast<Index>(total[c]); }
    Index stride = 0;
    const Word* column(Index j) const { return words.data() + j * stride; }
  };

  Bits pack(const NodeRows& node) {
    Bits bits;
    const Row* rows = node.by(table_.columns);
    bits.total.assign(static_cast<std::size_t>(classes_), 0);
    for (Row k = 0; k < node.count; ++k) ++bits.total[table_.label[rows[k]]];
    lay_out(bits);
    for (Index j = 0; j < table_.columns; ++j) {
      Word* to = bits.words.data() + j * bits.stride;
      const Rank* rank = table_.rank(j);
      Row k = 0;
      for (Index c = 0; c < classes_; ++c)
        for (Index i = 0; i < bits.rows(c); ++i, ++k)
          to[bits.start[c] + i / 64] |= static_cast<Word>(rank[rows[k]]) << (i % 64);
    }
    fill_last(bits);
    return bits;
  }

  void lay_out(Bits& bits) const {
    bits.start.assign(static_cast<std::size_t>(classes_) + 1, 0);
    for (Index c = 0; c < classes_; ++c) bits.start[c + 1] = bits.start[c] + (bits.rows(c) + 63) / 64;
    bits.stride = bits.start[classes_];
    bits.words.assign(static_cast<std::size_t>(bits.stride * (table_.columns + 1)), 0);
  }

  void fill_last(Bits& bits) const {
    Word* to = bits.words.data() + table_.columns * bits.stride;
    for (Index c = 0; c < classes_; ++c)
      for (Index i = 0; i < bits.rows(c); i += 64)
        to[bits.start[c] + i / 64] = bits.rows(c) - i >= 64 ? ~Word{0} : (Word{1} << (bits.rows(c) - i)) - 1;
  }

  // The rows that answer a column so, packed.
  Bits part(const Bits& from, Index column, bool right) const {
    Bits to;
    const Word *asked = from.column(column), *all = from.column(table_.columns);
    std::vector<Word> kept(static_cast<std::size_t>(from.stride));
    to.total.assign(static_cast<std::size_t>(classes_), 0);
    for (Index c = 0; c < classes_; ++c) {
      for (Index w = from.start[c]; w < from.start[c + 1]; ++w) {
        kept[w] = right ? asked[w] : all[w] & ~asked[w];
        to.total[c] += std::popcount(kept[w]);
      }
    }
    lay_out(to);
    for (Index j = 0; j < table_.columns; ++j) {
      const Word* values = from.column(j);
      Word* out = to.words.data() + j * to.stride;
      for (Index c = 0; c < classes_; ++c) {
        Index place = to.start[c] * 64;
        for (Index w = from.start[c]; w < from.start[c + 1]; ++w) {
          if (kept[w] == 0) continue;
          const Word packed = compress(values[w], kept[w]);
          const int taken = std::popcount(kept[w]), offset = static_cast<int>(place % 64);
          out[place / 64] |= packed << offset;
          if (offset + taken > 64) out[place / 64 + 1] |= packed >> (64 - offset);
          place += taken;
        }
      }
    }
    fill_last(to);
    return to;
  }

  // The bits of `values` at those of `mask`, side by side.
  static Word compress(Word values, Word mask) {
#if defined(__BMI2__)
    return __builtin_ia32_pext_di(values, mask);
#else
    Word packed = 0;
    for (int place = 0; mask != 0; mask &= mask - 1, ++place)
      packed |= (values >> std::countr_zero(mask) & 1) << place;
    return packed;
#endif
  }

  Found<Value> solve(const Bits& bits, int depth, Value cap, const AnswerSet& path, Watch& watch) {
    Found<Value> found{cap};
    const Value as_leaf = cost_.leaf(bits.total.data()) + penalty_;
    if (as_leaf < found.cost) found = {as_leaf};
    if (depth == 0 || found.cost <= 2 * penalty_) return found;
    const Index most = depth < 30 ? Index{1} << depth : kNever<std::int32_t>;
    if (cost_.floor(bits.total.data(), most) + 2 * penalty_ >= found.cost) return found;
    count_alone(bits);
    if (depth == 1) {
      for (Index j = 0; j < table_.columns; ++j) take(stump(bits, j), j, found);
      return found;
    }
    if (depth == 2) {
      of_pairs(bits, found, watch);
      return found;
    }
    deeper(bits, depth, path, found, watch);
    return found;
  }

  static void take(Value cost, Index column, Found<Value>& found) {
    if (cost < found.cost) found = {cost, column, 0};
  }

  void count_alone(const Bits& bits) {
    for (Index j = 0; j < table_.columns; ++j)
      for (Index c = 0; c < classes_; ++c) {
        Count sum = 0;
        for (Index w = bits.start[c]; w < bits.start[c + 1]; ++w) sum += std::popcount(bits.column(j)[w]);
        alone_[j * classes_ + c] = sum;
      }
  }

  bool constant(const Bits& bits, Index j) const {
    Count sum = 0, all = 0;
    for (Index c = 0; c < classes_; ++c) sum += alone_[j * classes_ + c], all += bits.total[c];
    return sum == 0 || sum == all;
  }

  Value stump(const Bits& bits, Index j) {
    if (constant(bits, j)) return kNever<Value>;
    Count* left = counts_.data();
    for (Index c = 0; c < classes_; ++c) left[c] = bits.total[c] - alone_[j * classes_ + c];
    return cost_.leaf(left) + cost_.leaf(alone_.data() + j * classes_) + 2 * penalty_;
  }

  // best_[side][i]: the least cost of the rows on a side of column i, with at most one question more.
  void of_pairs(const Bits& bits, Found<Value>& found, Watch& watch) {
    const Index columns = table_.columns;
    for (Index i = 0; i < columns; ++i) {
      Count* left = counts_.data();
      for (Index c = 0; c < classes_; ++c) left[c] = bits.total[c] - alone_[i * classes_ + c];
      best_[0][i] = cost_.leaf(left) + penalty_;
      best_[1][i] = cost_.leaf(alone_.data() + i * classes_) + penalty_;
    }
    for (Index i = 0; i < columns; ++i) {
      if (watch.over()) return;
      for (Index j = 0; j < i; ++j) pair(bits, i, j);
    }
    for (Index i = 0; i < columns; ++i)
      if (!constant(bits, i)) take(best_[0][i] + best_[1][i], i, found);
  }

  void pair(const Bits& bits, Index i, Index j) {
    const Word *one = bits.column(i), *other = bits.column(j);
    Count *both = counts_.data(), *first = both + classes_, *second = first + classes_,
          *none = second + classes_;
    for (Index c = 0; c < classes_; ++c) {
      Count sum = 0;
      for (Index w = bits.start[c]; w < bits.start[c + 1]; ++w) sum += std::popcount(one[w] & other[w]);
      const Count has_i = alone_[i * classes_ + c], has_j = alone_[j * classes_ + c];
      both[c] = sum;
      first[c] = has_i - sum;
      second[c] = has_j - sum;
      none[c] = bits.total[c] - has_i - has_j + sum;
    }
    const Value at_both = cost_.leaf(both), at_first = cost_.leaf(first), at_second = cost_.leaf(second),
                at_none = cost_.leaf(none);
    const Value more = 2 * penalty_;
    best_[1][i] = std::min(best_[1][i], at_both + at_first + more);
    best_[0][i] = std::min(best_[0][i], at_second + at_none + more);
    best_[1][j] = std::min(best_[1][j], at_both + at_second + more);
    best_[0][j] = std::min(best_[0][j], at_first + at_none + more);
  }

  // What is known of a part: its least cost, or a bound of it.
  struct Known {
    Value cost;
    bool exact;
  };

  using Memory = std::unordered_map<AnswerSet, Known, AnswerHash>;

  Known known(int depth, const AnswerSet& path) const {
    if (path.full() || depth >= static_cast<int>(kept_.size())) return {penalty_, false};
    const auto place = kept_[depth].find(path);
    return place == kept_[depth].end() ? Known{penalty_, false} : place->second;
  }

  void keep(int depth, const AnswerSet& path, const Known& one) {
    constexpr Index kBytes = sizeof(AnswerSet) + sizeof(Known) + 32;
    if (path.full()) return;
    while (depth >= static_cast<int>(kept_.size())) kept_.emplace_back();
    if (entries_ * kBytes >= memory_) {
      if (auto place = kept_[depth].find(path); place != kept_[depth].end()) place->second = one;
      return;
    }
    entries_ += kept_[depth].insert_or_assign(path, one).second;
  }

  // The least cost of the rows that answer so, or the cap.
  Value side(const Bits& bits, Index column, bool right, int depth, Value cap, const AnswerSet& path,
             Watch& watch) {
    const AnswerSet more = path.full() ? path : path.with(column, right);
    const Known before = path.full() ? Known{penalty_, false} : known(depth, more);
    if (before.exact || before.cost >= cap) return std::min(before.cost, cap);
    // A cap saves nothing at depth two: what is kept had better be exact.
    const Value below = depth <= 2 ? kNever<Value> : cap;
    const Value cost = solve(part(bits, column, right), depth, below, more, watch).cost;
    if (!watch.ended() && !path.full()) keep(depth, more, {cost, cost < below});
    return std::min(cost, cap);
  }

  void deeper(const Bits& bits, int depth, const AnswerSet& path, Found<Value>& found, Watch& watch) {
    std::vector<std::uint8_t> asks(static_cast<std::size_t>(table_.columns));
    for (Index j = 0; j < table_.columns; ++j) asks[j] = !constant(bits, j);
    for (Index j = 0; j < table_.columns && !watch.over(); ++j) {
      if (!asks[j] || found.cost <= 2 * penalty_) continue;
      const Value least_right = path.full() ? penalty_ : known(depth - 1, path.with(j, true)).cost;
      const Value left = side(bits, j, false, depth - 1, found.cost - least_right, path, watch);
      if (left + least_right >= found.cost) continue;
      const Value right = side(bits, j, true, depth - 1, found.cost - left, path, watch);
      if (!watch.ended()) take(left + right, j, found);
    }
  }

  const SearchTable& table_;
  const Cost& cost_;
  Value penalty_;
  Index classes_, memory_, entries_ = 0;
  std::vector<Count> alone_, counts_;
  std::vector<Value> best_[2];
  std::vector<Memory> kept_;  // by depth
};

}  // namespace sixfold::optimal
