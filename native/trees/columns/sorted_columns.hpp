// The columns of a small node, sorted once for its whole subtree.
//
// Each column is a list of words, rank * 2^16 + row, in the order of values; equal values have equal ranks.
// Where a node is split, the lists are cut in two without changing the order, so that every node of the
// subtree reads its thresholds from left to right:
//
//   entropy, counts    S = g(L) - sum_c h_c(l_c) in whole numbers of 2^-50, from tables of f(n) = n log2 n:
//                      one row moves one l_c by one, and a table says by how much h_c changes
//   entropy, weights   f in single precision (fast_entropy.hpp), with a margin
//   gini               S = W - sum_c l_c^2 / L - sum_c r_c^2 / R, squares updated row by row
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trees/columns/column_splits.hpp"
#include "trees/columns/split_bound.hpp"

namespace sixfold {

template <class T>
class SortedColumns {
 public:
  static constexpr Index kMostRows = 512;

  // Sorts these columns, all of numbers, of these rows.
  void load(const TrainingTable<T>& data, std::span<const Row> rows, std::span<const Index> columns);

  // Turns to the node that has the loaded rows begin to end, as they are sorted by now.
  void enter(Index begin, Index end, const ClassTotals& totals, const GrowthRules& rules);
  // Of the k-th column at that node.
  SplitBound split_bound(Index k);
  // Sorts that node's rows by child: slots of the rows, in their order, and where each child ends.
  void part(std::span<const std::int32_t> slots, std::span<const Index> ends);

 private:
  using Word = std::uint32_t;
  static constexpr Word kUnknownRank = 0xffff;
  static constexpr Index kTile = 32;

  struct Item {
    T value;
    std::uint16_t id;
  };

  static Word rank(Word word) { return word >> 16; }
  static Index id(Word word) { return word & 0xffff; }

  void sort(const T* values, Word* words);
  void sort_items(const T* values, const std::uint16_t* ids, Index count);
  void tabulate();
  std::int64_t least_of_two(const Word* words) const;
  std::int64_t least_of_many(const Word* words);
  double least_of_weights(const Word* words);
  double least_of_gini(const Word* words);

  Index columns_ = 0, loaded_ = 0;  // of the subtree
  bool weighted_ = false;
  std::vector<Word> words_;
  std::vector<T> values_;
  T known_values_[kMostRows];
  std::uint16_t known_ids_[kMostRows], all_ids_[kMostRows];
  Item items_[kMostRows];
  std::int32_t buckets_[kMostRows], bucket_ends_[2 * kMostRows + 1];
  std::int32_t labels_[kMostRows];  // by id, as are weights
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
  float parts_[kMostRows], own_left_[kMostRows], own_right_[kMostRows], left_[kMostRows], right_[kMostRows];
};

}  // namespace sixfold
