// Columns of numbers in at most 256 ordered bins, a byte a value.
//
//   code(x) = number of tops < x:   bin b holds the values with top[b - 1] < x <= top[b],
//
// so codes keep the order of the values, and a threshold between two bins is one between two values. Tops
// come from a sample of the rows: one a distinct value where these are few, quantiles otherwise, where a
// value with much weight has a bin of its own. A bin all of whose values are equal is known as such: no
// threshold lies inside it. Unknown values have the code 255, bytes are their own code.
//
// The codes of each column lie in the order of the rows that grow the tree, and follow them when a node is
// split: histograms read and count them one after the other, in 0.2 ns each. Looked up row by row, all over
// a column of 1,000,000, they take 0.3 ns in the root, 0.5 in a node of an eighth of the rows and 5 in one of
// a 64th; moving 64 of them takes 3 to 8 ns (split_by_slot.hpp). Bytes stay where they are: a copy would be
// as large as the table, and histograms of 32 columns at a time read 32 bytes of each row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/spilled_memory.hpp"
#include "core/stop.hpp"
#include "core/table.hpp"
#include "trees/bins/bin_of_value.hpp"

namespace sixfold {

template <class T>
class TreeBins {
 public:
  // Of the columns that are listed and of these rows, in their order; of no use if `stop` ends it.
  TreeBins(const Table<T>& X, std::vector<Index> columns, std::span<const std::int32_t> rows, int team,
           Stop& stop);

  Index columns() const { return static_cast<Index>(columns_.size()); }
  // Which column of X the k-th one is.
  Index column(Index k) const { return columns_[k]; }
  static constexpr bool kKeepsCodes = std::is_floating_point_v<T>;
  static constexpr Index kAtOnce = kKeepsCodes ? 1 : 32;  // columns whose histograms are made together

  const Table<T>& X() const { return X_; }
  // The code of the k-th column in the place-th of the rows that grow the tree, which this one is.
  std::uint8_t code(Index k, Index place, std::int32_t row) const {
    if constexpr (kKeepsCodes)
      return codes(k, place)[0];
    else
      return X_.row(row)[columns_[k] * X_.column_stride];
  }
  // The codes of the k-th column from the first-th row on, if they are kept.
  const std::uint8_t* codes(Index k, Index first) const { return codes_.get() + k * X_.rows + first; }
  // Moves the codes of a node that begins at `first` as its rows were: slots[i] is the child of its i-th row,
  // ends[s] where child s ends, from the first row on.
  void split(Index k, Index first, std::span<const std::int32_t> slots, std::span<const Index> ends,
             std::vector<std::uint8_t>& room);
  // The code that a value of the k-th column has or would have.
  std::uint8_t code_of(Index k, double value) const;
  // Of each bin of the k-th column, whether it holds different values somewhere in the table.
  const std::uint8_t* mixed(Index k) const { return mixed_.data() + k * kBins; }

 private:
  struct FreeCodes {
    std::size_t size = 0;
    void operator()(std::uint8_t* codes) const { spilled::Allocator<std::uint8_t>().deallocate(codes, size); }
  };
  static constexpr Index kSample = 2048;
  static constexpr Index kRun = BinOfValue<T>::kMostValues, kTile = 32, kTaskRows = 4096;

  void choose_tops(std::span<const std::int32_t> rows, int team, Stop& stop);
  void encode(int team, Stop& stop);
  void order(std::span<const std::int32_t> rows, int team, Stop& stop);
  void encode_tile(Index first_row, Index last_row, Index first, Index last, std::vector<T>& room,
                   std::vector<std::uint8_t>& mixed);
  void encode_run(Index k, const T* values, Index first_row, Index count, std::uint8_t* mixed);

  Table<T> X_;
  std::vector<Index> columns_;
  std::vector<BinOfValue<T>> bin_of_value_;  // of the columns
  std::vector<T> values_;                    // kBins a column: the one value that a bin is expected to hold
  std::vector<Index> used_;                  // bins of a column
  std::vector<std::uint8_t> mixed_;
  std::unique_ptr<std::uint8_t[], FreeCodes> codes_;
};

}  // namespace sixfold
