// What the splits of a node by one binned column are worth at best: scores between bins, bounds inside them.
//
// Left of a threshold there are l_c of class c, L in all; right of it w_c - l_c and W - L. With f(x) = x log2
// x
//
//   entropy   S(l) = g(L) - sum_c h_c(l_c),   g(L) = f(L) + f(W - L),   h_c(l) = f(l) + f(w_c - l)
//   gini      S(l) = L - sum_c l_c^2 / L  +  (W - L) - sum_c (w_c - l_c)^2 / (W - L)
//
// and S is concave. Inside a bin l goes from a, left of it, to b, right of it, and never leaves the box
// between them. There
//
//   entropy   g is convex, so g(L) >= g(M) + s (L - M) with s = g'(M) for any M; M is the middle of the bin.
//             What remains is a sum over classes of concave functions, each of them least at an end:
//             S >= g(M) - s M + sum_c min(s a_c - h_c(a_c), s b_c - h_c(b_c)).
//   gini      What a child adds is concave and homogeneous, hence superadditive, and not negative: it does
//   not
//             decrease when rows are added. So S >= S_left(a) + S_right(b).
//
// Only bins with a bound below the best score have to be searched inside: one of a thousand where a tree of
// depth 10 splits 200,000 rows of 100 columns. Scores here are averages, S / W, of shares l / W, in single
// precision; the margin covers its rounding, so that nothing that may be the best is left out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "trees/bins/bin_histograms.hpp"
#include "trees/columns/column_splits.hpp"

namespace sixfold {

template <class Mass>
class BinBounds {
 public:
  // Scores and bounds of all thresholds. `mixed` is not 0 for bins that may hold different values; `error`
  // bounds the error of a sum in the histogram over W.
  void compute(const BinnedNode& node, const BinHistogram<Mass>& histogram, const std::uint8_t* mixed,
               bool unknown_bin, const GrowthRules& rules, double error);

  // Of the threshold above bin b: infinity where there are no rows in the bin or beyond, or a child is too
  // small.
  float edge(Index b) const { return edge_[b]; }
  // Below all thresholds inside of bin b: infinity where it has no two rows, or one value only.
  float bound(Index b) const { return bound_[b]; }
  // How far edges may be off. Bounds are low enough as they are.
  float margin() const { return margin_; }

  // The lowest edge, or known | unknown where that is lower.
  float least_edge() const { return std::min(known_unknown_, least_of(edge_)); }
  float least_bound() const { return least_of(bound_); }

  // How many bins of known values have rows, and whether there are unknown values.
  Index used_bins() const { return used_bins_; }
  bool has_unknown() const { return unknown_rows_ > 0; }

 private:
  // Where unknown rows are: left of all thresholds, right of them, or in a child of their own.
  enum class Unknown { left, right, apart };
  static constexpr Index kPlaces = kBins + 16;  // left of each bin and right of the last, whole vectors

  static float least_of(const float* values);
  void compute_with(Unknown unknown, const BinnedNode& node, const BinHistogram<Mass>& histogram,
                    const std::uint8_t* mixed, const GrowthRules& rules);
  void sum_left(const Mass* masses, Mass start);
  void share_out(Mass total);
  void begin_entropy();
  void add_entropy();
  void add_gini();
  void finish_gini();
  void take_valid(Unknown unknown, const GrowthRules& rules, const std::uint8_t* mixed, float apart);

  float share_of(Mass mass) const;
  float unknown_part(const BinnedNode& node, const BinHistogram<Mass>& histogram, bool known,
                     Criterion criterion) const;

  alignas(64) float edge_[kBins], bound_[kBins];    // the least of all places of unknown rows
  alignas(64) float edges_[kBins], bounds_[kBins];  // of one place
  alignas(64) float slope_[kBins];
  // Left and right of a place: shares of the class at hand, of all classes, and sums of squares.
  alignas(64) float left_[kPlaces], right_[kPlaces], part_[kPlaces];
  alignas(64) float all_left_[kPlaces], all_right_[kPlaces];
  alignas(64) float squares_left_[kPlaces], squares_right_[kPlaces];
  alignas(64) Mass sums_[kPlaces];
  alignas(64) Mass bin_masses_[kBins];
  std::int32_t rows_left_[kBins + 1];
  double scale_ = 1.0;  // 1 / W
  float margin_ = 0.0f, known_unknown_ = 0.0f;
  Index used_bins_ = 0, node_rows_ = 0, classes_ = 0, unknown_rows_ = 0;
  bool unknown_bin_ = false;
};

}  // namespace sixfold
