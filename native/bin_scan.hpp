// What the splits of a node by one binned column are worth at best: scores between bins, bounds inside them.
//
// Left of a threshold there are l_c of class c, L in all; right of it w_c - l_c and W - L. All scores here are
// averages, S / W, of shares p = l / W; with f(x) = x log2 x
//
//   entropy   S(l) = g(L) - sum_c h_c(l_c),   g(L) = f(L) + f(W - L),   h_c(l) = f(l) + f(w_c - l)
//   gini      S(l) = L - sum_c l_c^2 / L + (W - L) - sum_c (w_c - l_c)^2 / (W - L)
//
// and S is concave. Inside a bin l goes from a, left of it, to b, right of it, and never leaves the box between
// them. There
//
//   entropy   g is convex, so g(L) >= g(M) + s (L - M) with s = g'(M) for any M; take the middle of the bin.
//             What remains is a sum over classes of concave functions, each least at an end:
//             S >= g(M) - s M + sum_c min(s a_c - h_c(a_c), s b_c - h_c(b_c)).
//   gini      A child's sum is homogeneous and concave, hence superadditive, and it is not negative: it does
//             not decrease when rows are added. So S >= S_left(a) + S_right(b).
//
// Only bins with a bound below the best score need to be searched inside: one in a thousand where 200,000 rows
// of 100 columns are split. Everything is computed in single precision with margins that cover the rounding:
// nothing that could be within the margin of the best is ever left out.
#pragma once

#include <cstdint>

#include "bin_histograms.hpp"
#include "column_splits.hpp"

namespace sixfold {

template <class Mass>
class BinScan {
 public:
  // Scores and bounds of a column. `histogram_error` bounds the error of a sum of the histogram over W.
  // `mixed` says which bins may hold different values.
  void scan(const BinnedNode& node, const BinHistogram<Mass>& histogram, bool has_unknown,
            const GrowthRules& rules, double histogram_error);

  // At least what the lowest threshold between bins scores, and not more than `margin` above it; infinity where
  // there is none. Likewise of thresholds inside of bins, from below.
  float least_edge() const;
  template <class Mixed>
  float least_bound(const Mixed& is_mixed) const {
    float least = kNone;
    for (Index b = 0; b < kBins; ++b)
      if (bound_[b] < least && is_mixed(b)) least = bound_[b];
    return least;
  }

  // Of the threshold above bin b; infinity where the bin is empty, the last one, or a child too small.
  float edge(Index b) const { return edge_[b]; }
  // Of thresholds inside of bin b; infinity where it has less than two rows.
  float bound(Index b) const { return bound_[b]; }
  // How far edges may be off; bounds are that much too low already.
  float margin() const { return margin_; }
  // Whether two bins have rows, unknown values apart.
  bool has_two_bins() const { return used_bins_ > 1; }
  Index known_rows() const { return known_rows_; }

 private:
  static constexpr float kNone = std::numeric_limits<float>::infinity();

  struct Start;
  void scan_from(const BinnedNode& node, const BinHistogram<Mass>& histogram, const Start& start,
                 const GrowthRules& rules);
  void begin_edges(const Start& start, const GrowthRules& rules, const BinHistogram<Mass>& histogram);
  void begin_entropy(const Start& start);
  void add_entropy(float total_share);
  void add_gini(float total_share);
  void finish_gini(float total);

  alignas(64) float edge_[kBins], bound_[kBins];          // of all starts
  alignas(64) float edges_[kBins], bounds_[kBins];        // of one start
  alignas(64) float slope_[kBins];
  alignas(64) float share_[kBins + 16], part_[kBins + 16];  // left of bin b, and in the last entry of all
  alignas(64) float left_squares_[kBins + 16], right_squares_[kBins + 16];
  alignas(64) Mass left_[kBins + 16];
  std::int32_t rows_left_[kBins + 1];
  float scale_ = 0.0f, margin_ = 0.0f;
  Index used_bins_ = 0, known_rows_ = 0, classes_ = 0;
};

}  // namespace sixfold
