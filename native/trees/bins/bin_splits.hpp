// The search of a node's binned columns for the best threshold: the same candidates, and the same choice
// among them, as the exhaustive search of column_splits.hpp, by looking at few of them.
//
// A bound of every column (bin_bounds.hpp) says what its thresholds between bins score, nearly, and what
// those inside of bins score at best. Columns that may hold the best are then searched: thresholds whose
// score may be below the limit are offered to the exhaustive search's own Candidates, which judge them in
// double precision; for those inside of a bin its few rows are sorted. Where a bin has many rows they are
// spread over finer bins first, with all others left and right of them, and the same bounds say which of
// these have to be sorted: of the values of 1,000,000 rows of 20 columns, down to depth 10, three of a
// hundred are in bins that are searched, and four of a thousand are sorted.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "trees/bins/bin_bounds.hpp"
#include "trees/bins/bin_histograms.hpp"
#include "trees/bins/bins.hpp"
#include "trees/columns/column_search.hpp"
#include "trees/columns/column_splits.hpp"
#include "trees/columns/split_bound.hpp"

namespace sixfold {

// Room for the bounds of counts, and for those of weights.
struct BoundsOf {
  template <class Mass>
  BinBounds<Mass>& of() {
    if constexpr (std::is_integral_v<Mass>)
      return counts;
    else
      return weights;
  }

  BinBounds<std::int32_t> counts;
  BinBounds<double> weights;
};

// Scratch memory of one thread.
struct BinWorkspace {
  struct Value {
    double value;
    Row row;
  };

  // One bin in finer ones, from 1 to kMost; 0 has the rows left of it, kMost + 1 those right of it.
  struct FinerBins {
    static constexpr Index kMost = kBins - 3;

    template <class Mass>
    BinHistogram<Mass> histogram() {
      if constexpr (std::is_integral_v<Mass>)
        return {counts.data(), rows};
      else
        return {weights.data(), rows};
    }
    void clear(Index classes) {
      counts.assign(static_cast<std::size_t>(classes * kBins), 0);
      weights.assign(counts.size(), 0.0);
      std::fill_n(rows, kBins, 0);
    }

    BoundsOf bounds;
    std::vector<std::int32_t> counts;  // of classes and bins
    std::vector<double> weights;
    std::int32_t rows[kBins];              // of bins
    std::vector<std::uint8_t> codes;       // of the rows
    spilled::SpilledVector<Value> inside;  // the rows, finer bin by finer bin
  };

  template <class Mass>
  BinBounds<Mass>& bounds() {
    return own_bounds.of<Mass>();
  }

  // Room for the histograms of some columns at a node, and that of the j-th of them.
  template <class Mass>
  void make_room(const BinnedNode& node, Index columns) {
    const auto grow = [](auto& to, Index size) {
      to.resize(std::max(to.size(), static_cast<std::size_t>(size)));
    };
    grow(rows, columns * kBins);
    if constexpr (std::is_integral_v<Mass>)
      grow(counts, columns * masses_apart<Mass>(node.class_count()));
    else
      grow(weights, columns * masses_apart<Mass>(node.class_count()));
  }
  template <class Mass>
  BinHistogram<Mass> histogram(const BinnedNode& node, Index j) {
    const Index first = j * masses_apart<Mass>(node.class_count());
    if constexpr (std::is_integral_v<Mass>)
      return {counts.data() + first, rows.data() + j * kBins};
    else
      return {weights.data() + first, rows.data() + j * kBins};
  }

  BoundsOf own_bounds;
  std::vector<std::int32_t> counts;  // of classes and bins
  std::vector<double> weights;
  std::vector<std::int32_t> rows;        // of bins
  RowNumbers found;                      // rows of bins that are searched, as numbers in the node
  spilled::SpilledVector<Value> inside;  // the same bin by bin
  Index inside_ends[kBins];
  FinerBins finer;  // of one of these bins
  std::vector<std::uint8_t> moved_codes;
};

template <class T>
class BinnedSearch {
 public:
  BinnedSearch(const TrainingTable<T>& data, const GrowthRules& rules, const SplitScore& score,
               const TreeBins<T>& bins)
      : data_(data), rules_(rules), score_(score), bins_(bins) {}

  // Of the k-th binned column.
  template <class Mass>
  SplitBound split_bound(const BinnedNode& node, Index k, const BinHistogram<Mass>& histogram, double error,
                         BinBounds<Mass>& bounds) const;

  // As search_column, of all candidates with S <= limit: others may be left out.
  ColumnBest search(const BinnedNode& node, Index k, double limit, BinWorkspace& workspace,
                    ColumnWorkspace& column_workspace, Split* chosen = nullptr) const;

 private:
  static constexpr bool kUnknowns = std::numeric_limits<T>::has_quiet_NaN;

  bool is_one_value(const BinnedNode& node, Index k) const;
  template <class Mass>
  ColumnBest offer(const BinnedNode& node, Index k, double limit, const BinBounds<Mass>& bounds,
                   BinWorkspace& workspace, ColumnWorkspace& column_workspace, Split* chosen) const;
  template <class Mass>
  void offer_inside(const BinnedNode& node, Index bin, double limit, std::span<BinWorkspace::Value> rows,
                    BinWorkspace& workspace, Candidates& candidates) const;
  template <class Mass>
  void spread(const BinnedNode& node, Index bin, double low, double scale,
              std::span<const BinWorkspace::Value> rows, BinWorkspace& workspace,
              const ColumnWorkspace& totals) const;
  template <class Mass>
  void offer_finer(const BinnedNode& node, double limit, BinWorkspace& workspace,
                   Candidates& candidates) const;
  void offer_sorted(std::span<BinWorkspace::Value> rows, Candidates& candidates) const;
  void gather(const BinnedNode& node, Index k, const bool* wanted, BinWorkspace& workspace) const;
  std::span<BinWorkspace::Value> inside_of(Index k, Index bin, BinWorkspace& workspace) const;
  double threshold_above(const BinnedNode& node, Index k, Index bin, const BinWorkspace& workspace) const;

  T value(Row row, Index k) const { return data_.X.row(row)[bins_.column(k) * data_.X.column_stride]; }

  const TrainingTable<T>& data_;
  const GrowthRules& rules_;
  const SplitScore& score_;
  const TreeBins<T>& bins_;
};

}  // namespace sixfold
