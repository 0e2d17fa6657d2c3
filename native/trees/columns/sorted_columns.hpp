// The columns of a small node, sorted once for its whole subtree.
//
// Each column is a list of words, rank * 2^16 + row, in the order of values; equal values have equal ranks.
// Where a node is split, the lists are cut in two without changing the order, so that every node of the
// subtree reads its thresholds from left to right:
//
//   entropy, counts    S = g(L) - sum_c h_c(l_c) in whole numbers of 2^-49, from tables of f(n) = n log2 n:
//                      one row moves one l_c by one, and a table says by how much h_c changes
//   entropy, weights   f in single precision (fast_entropy.hpp), with a margin
//   gini               S = W - sum_c l_c^2 / L - sum_c r_c^2 / R, squares updated row by row
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trees/columns/column_search.hpp"
#include "trees/columns/column_splits.hpp"
#include "trees/columns/sort_values.hpp"
#include "trees/columns/split_bound.hpp"

namespace sixfold {

template <class T>
class SortedColumns {
 public:
  static constexpr Index kMostRows = 1024;

  // Sorts these columns, all of numbers, of these rows.
  void load(const TrainingTable<T>& data, std::span<const Row> rows, std::span<const Index> columns);

  // Turns to the node that has the loaded rows begin to end, as they are sorted by now.
  void enter(Index begin, Index end, const ClassTotals& totals, const GrowthRules& rules);
  // Of the k-th column at that node.
  SplitBound split_bound(Index k);
  bool has_unknown(Index k) const;
  // Offers the thresholds of that column with S <= limit, and of others some, to the exhaustive search's own
  // Candidates; `values` are those of the column in the table. There may be no unknown ones.
  void offer(Index k, const T* values, Index stride, double limit, Candidates& candidates);
  // Sorts that node's rows by child: slots of the rows, in their order, and where each child ends.
  void part(std::span<const std::int32_t> slots, std::span<const Index> ends);

 private:
  using Word = std::uint32_t;
  static constexpr Word kUnknownRank = 0xffff;
  static constexpr Index kTile = 16;

  struct Item {
    T value;
    std::uint16_t id;
  };

  static Word rank(Word word) { return word >> 16; }
  static Index id(Word word) { return word & 0xffff; }

  const Word* words(Index k) const { return words_.data() + k * loaded_ + begin_; }

  void sort(const T* values, Word* words);
  void sort_items(const T* values, const std::uint16_t* ids, Index count);
  void tabulate();
  // All call use(i, whether a threshold above the i-th row is a candidate, S or what it is in units).
  template <class Use>
  void scan(const Word* words, Use&& use);
  template <class Use>
  void scan_two(const Word* words, Use&& use) const;
  template <class Use>
  void scan_many(const Word* words, Use&& use);
  template <class Use>
  void scan_weights(const Word* words, Use&& use);
  template <class Use>
  void scan_gini(const Word* words, Use&& use);

  Index columns_ = 0, loaded_ = 0;  // of the subtree
  bool weighted_ = false;
  std::vector<Word> words_;
  std::vector<T> values_;
  T known_values_[kMostRows];
  std::uint16_t known_ids_[kMostRows], all_ids_[kMostRows];
  Item items_[kMostRows];
  Buckets buckets_;
  Row rows_[kMostRows];  // by id, as are labels and weights
  std::int32_t labels_[kMostRows];
  double weights_[kMostRows];
  std::uint16_t ids_[kMostRows];  // of the rows of nodes, in their order

  Index begin_ = 0, count_ = 0, classes_ = 0;  // of the node
  bool gini_ = false;
  Index fewest_ = 1;       // rows of a child
  double lightest_ = 0.0;  // weight of a child
  double weight_ = 0.0;
  double margin_ = 0.0;                      // of S
  std::uint16_t class_of_[kMostRows];        // by id: the number among the classes of the node
  std::uint16_t slot_of_[kMostRows];         // by id
  std::vector<std::int32_t> class_numbers_;  // of labels
  Index class_rows_[kMostRows];
  double class_weights_[kMostRows];
  // Of counts: g by rows on the left, h of two classes; of more the changes of h, class after class.
  std::int64_t sides_[kMostRows + 1], first_class_[kMostRows + 1], second_class_[kMostRows + 1];
  std::int64_t changes_[kMostRows], whole_ = 0;
  std::int32_t first_change_[kMostRows], next_change_[kMostRows];
  // Of weights, along a column.
  double left_weights_[kMostRows];
  std::uint16_t offered_[kMostRows];  // places in the node above which thresholds are offered
  float parts_[kMostRows], own_left_[kMostRows], own_right_[kMostRows], left_[kMostRows], right_[kMostRows];
};

}  // namespace sixfold
