// The bounds of bin_bounds.hpp: loops over the bins of one class after the other, in vectors.
#include "trees/bins/bin_bounds.hpp"

#include <algorithm>
#include <cmath>

#include "core/float_lanes.hpp"
#include "trees/fast_entropy.hpp"

namespace sixfold {
namespace {

constexpr float kNone = std::numeric_limits<float>::infinity();
constexpr float kRounding = 1.0f / (1 << 24);  // u, of single precision

}  // namespace

// Without weights shares are made in single precision, which is all they are used in; weights may be out of
// its range.
template <class Mass>
float BinBounds<Mass>::share_of(Mass mass) const {
  if constexpr (std::is_integral_v<Mass>)
    return static_cast<float>(mass) * static_cast<float>(scale_);
  else
    return static_cast<float>(mass * scale_);
}

// A share is off by a relative 3u, its f by u x (5 |log2 x| + 9) with what fast_log2 adds. Over the 2K cells
// of the classes x sums to 1 and x |log2 x| to log2 2K at most; over the two children to 1. Adding K parts to
// a sum below 1 + log2 2K rounds K times. An error e of a sum moves f by e (log2(1 / e) + 2), and there
// are 2K + 2 of them. Gini's terms are off by less: u (2K + 24).
template <class Mass>
void BinBounds<Mass>::compute(const BinnedNode& node, const BinHistogram<Mass>& histogram,
                              const std::uint8_t* mixed, bool unknown_bin, const GrowthRules& rules,
                              double error) {
  scale_ = 1.0 / node.totals.weight();
  unknown_bin_ = unknown_bin;
  node_rows_ = node.size();
  classes_ = node.class_count();
  unknown_rows_ = unknown_bin ? histogram.rows[kUnknownBin] : 0;
  const float log_cells = std::log2(2.0f * static_cast<float>(classes_));
  margin_ = kRounding * ((static_cast<float>(classes_) + 5.0f) * (1.0f + log_cells) + 25.0f) +
            static_cast<float>(error * 100.0 * static_cast<double>(classes_ + 1));
  const Index known_bins = unknown_bin ? kUnknownBin : kBins;
  std::int32_t used_bins = 0, mixed_bins = 0;
  for (Index b = 0; b < known_bins; ++b) {
    used_bins += histogram.rows[b] > 0;
    mixed_bins += (histogram.rows[b] > 1) & (mixed[b] != 0);
  }
  used_bins_ = used_bins;
  rows_left_[0] = 0;
  for (Index b = 0; b < known_bins; ++b) rows_left_[b + 1] = rows_left_[b] + histogram.rows[b];
  rows_left_[kBins] = rows_left_[known_bins];
  std::fill_n(edge_, kBins, kNone);
  std::fill_n(bound_, kBins, kNone);
  known_unknown_ = kNone;
  const Index fewest = std::max<Index>(1, rules.min_samples_leaf);
  if (unknown_rows_ >= fewest && node_rows_ - unknown_rows_ >= fewest)
    known_unknown_ = unknown_part(node, histogram, true, rules.criterion) +
                     unknown_part(node, histogram, false, rules.criterion);
  if (used_bins_ < 2 && mixed_bins == 0) return;
  if (unknown_rows_ > 0 && !rules.unknown_best) {
    compute_with(Unknown::apart, node, histogram, mixed, rules);
    return;
  }
  if (unknown_rows_ > 0) compute_with(Unknown::left, node, histogram, mixed, rules);
  compute_with(Unknown::right, node, histogram, mixed, rules);
}

template <class Mass>
float BinBounds<Mass>::least_of(const float* values) {
  FloatLanes least = load_floats(values);
  for (Index b = kFloatLanes; b < kBins; b += kFloatLanes) {
    const FloatLanes value = load_floats(values + b);
    least = value < least ? value : least;
  }
  float lanes[kFloatLanes];
  store_floats(lanes, least);
  return *std::min_element(lanes, lanes + kFloatLanes);
}

template <class Mass>
void BinBounds<Mass>::compute_with(Unknown unknown, const BinnedNode& node,
                                   const BinHistogram<Mass>& histogram, const std::uint8_t* mixed,
                                   const GrowthRules& rules) {
  const bool entropy = rules.criterion != Criterion::gini;
  const auto start_of = [&](const Mass* masses) {
    return unknown == Unknown::left ? masses[kUnknownBin] : Mass{0};
  };
  const auto total_of = [&](const Mass* masses, Mass of_class) {
    return unknown == Unknown::apart ? of_class - masses[kUnknownBin] : of_class;
  };
  std::fill_n(bin_masses_, kBins, Mass{0});
  for (Index k = 0; k < classes_; ++k)
    for (Index b = 0; b < kBins; ++b) bin_masses_[b] += histogram.of_class(k)[b];
  sum_left(bin_masses_, start_of(bin_masses_));
  share_out(total_of(bin_masses_, static_cast<Mass>(node.totals.weight())));
  std::copy_n(left_, kPlaces, all_left_);
  std::copy_n(right_, kPlaces, all_right_);
  if (entropy) {
    begin_entropy();
  } else {
    std::fill_n(squares_left_, kPlaces, 0.0f);
    std::fill_n(squares_right_, kPlaces, 0.0f);
  }
  for (Index k = 0; k < classes_; ++k) {
    if (!(node.classes[k].weight > 0.0)) continue;
    const Mass* masses = histogram.of_class(k);
    sum_left(masses, start_of(masses));
    share_out(total_of(masses, static_cast<Mass>(node.classes[k].weight)));
    if (entropy)
      add_entropy();
    else
      add_gini();
  }
  if (!entropy) finish_gini();
  take_valid(unknown, rules, mixed,
             unknown == Unknown::apart ? unknown_part(node, histogram, false, rules.criterion) : 0.0f);
}

// What is left of each place.
template <class Mass>
void BinBounds<Mass>::sum_left(const Mass* masses, Mass start) {
  Mass sum = start;
  for (Index b = 0; b < kBins; ++b) {
    sums_[b] = sum;
    sum += masses[b];
  }
  std::fill_n(sums_ + kBins, kPlaces - kBins, unknown_bin_ ? sums_[kBins - 1] : sum);
}

// Shares left and right of each place; rounded sums of weights may leave less than nothing.
template <class Mass>
void BinBounds<Mass>::share_out(Mass total) {
  for (Index place = 0; place < kPlaces; ++place) {
    const Mass rest = total - sums_[place];
    left_[place] = share_of(sums_[place] > Mass{0} ? sums_[place] : Mass{0});
    right_[place] = share_of(rest > Mass{0} ? rest : Mass{0});
  }
}

// g, and the tangent of g at the middle M of each bin: g(M) - s M = (M + (W - M)) log2(W - M). The slope is
// off by u (10 + 2 |s|), and adding K + 1 terms that are |s| at most rounds as often.
template <class Mass>
void BinBounds<Mass>::begin_entropy() {
  for (Index place = 0; place < kPlaces; ++place)
    part_[place] = fast_x_log2_x(all_left_[place]) + fast_x_log2_x(all_right_[place]);
  const float rounding = kRounding * (static_cast<float>(classes_) + 12.0f);
  for (Index b = 0; b < kBins; ++b) {
    const float left = 0.5f * (all_left_[b] + all_left_[b + 1]);
    const float right = 0.5f * (all_right_[b] + all_right_[b + 1]);
    const float log_right = fast_log2(right);
    slope_[b] = fast_log2(left) - log_right;
    edges_[b] = part_[b + 1];
    bounds_[b] = (left + right) * log_right - rounding * (1.0f + std::abs(slope_[b]));
  }
}

template <class Mass>
void BinBounds<Mass>::add_entropy() {
  for (Index place = 0; place < kPlaces; ++place)
    part_[place] = fast_x_log2_x(left_[place]) + fast_x_log2_x(right_[place]);
  for (Index b = 0; b < kBins; ++b) {
    const float low = slope_[b] * left_[b] - part_[b];
    const float high = slope_[b] * left_[b + 1] - part_[b + 1];
    edges_[b] -= part_[b + 1];
    bounds_[b] += low < high ? low : high;
  }
}

template <class Mass>
void BinBounds<Mass>::add_gini() {
  for (Index place = 0; place < kPlaces; ++place) {
    squares_left_[place] += left_[place] * left_[place];
    squares_right_[place] += right_[place] * right_[place];
  }
}

template <class Mass>
void BinBounds<Mass>::finish_gini() {
  constexpr float kTiny = std::numeric_limits<float>::min();  // 0 / 0 is 0 here
  for (Index place = 0; place < kPlaces; ++place) {
    // Where a child has hardly any weight, its quotient is all rounding, but no child adds less than nothing.
    const float left = all_left_[place] - squares_left_[place] / (all_left_[place] + kTiny);
    const float right = all_right_[place] - squares_right_[place] / (all_right_[place] + kTiny);
    squares_left_[place] = left > 0.0f ? left : 0.0f;
    squares_right_[place] = right > 0.0f ? right : 0.0f;
  }
  for (Index b = 0; b < kBins; ++b) {
    edges_[b] = squares_left_[b + 1] + squares_right_[b + 1];
    bounds_[b] = squares_left_[b] + squares_right_[b + 1];
  }
}

// Keeps what no limit forbids and is lower than what was there.
template <class Mass>
void BinBounds<Mass>::take_valid(Unknown unknown, const GrowthRules& rules, const std::uint8_t* mixed,
                                 float apart) {
  const auto known = rows_left_[kBins];
  const auto unknown_rows = static_cast<std::int32_t>(unknown_rows_);
  const auto fewest = static_cast<std::int32_t>(std::min(rules.min_samples_leaf, node_rows_));
  // A child has enough rows where this many known ones are on its side.
  const std::int32_t fewest_left = fewest - (unknown == Unknown::left ? unknown_rows : 0);
  const std::int32_t fewest_right = fewest - (unknown == Unknown::right ? unknown_rows : 0);
  const float lightest = static_cast<float>(rules.min_leaf_weight * scale_) - margin_;
  const float lower = apart - 2.0f * margin_;
  for (Index b = 0; b < kBins; ++b) {
    const std::int32_t left = rows_left_[b], right = rows_left_[b + 1];
    const bool splits = (left < right) & (right < known) & (right >= fewest_left) &
                        (known - right >= fewest_right) & (all_left_[b + 1] >= lightest) &
                        (all_right_[b + 1] >= lightest);
    const bool splits_inside = (right - left > 1) & (right - 1 >= fewest_left) &
                               (known - left - 1 >= fewest_right) & (all_left_[b + 1] >= lightest) &
                               (all_right_[b] >= lightest) & (mixed[b] != 0);
    const float edge = splits ? edges_[b] + apart : kNone, bound = splits_inside ? bounds_[b] + lower : kNone;
    edge_[b] = edge < edge_[b] ? edge : edge_[b];
    bound_[b] = bound < bound_[b] ? bound : bound_[b];
  }
}

// What the unknown rows would add to S / W as a child, or the known ones.
template <class Mass>
float BinBounds<Mass>::unknown_part(const BinnedNode& node, const BinHistogram<Mass>& histogram, bool known,
                                    Criterion criterion) const {
  double all = 0.0, sum = 0.0;
  for (Index k = 0; k < classes_; ++k) {
    const double unknown = static_cast<double>(histogram.of_class(k)[kUnknownBin]);
    const double x = std::max(0.0, (known ? node.classes[k].weight - unknown : unknown) * scale_);
    all += x;
    if (criterion == Criterion::gini)
      sum += x * x;
    else if (x > 0.0)
      sum += x * std::log2(x);
  }
  if (!(all > 0.0)) return 0.0f;
  return static_cast<float>(criterion == Criterion::gini ? all - sum / all : all * std::log2(all) - sum);
}

template class BinBounds<std::int32_t>;
template class BinBounds<double>;

}  // namespace sixfold
