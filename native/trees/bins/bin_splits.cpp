// The search of bin_splits.hpp.
#include "trees/bins/bin_splits.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "trees/columns/column_search.hpp"

namespace sixfold {
namespace {

constexpr std::size_t kWorthSpreading = 128;  // rows
constexpr Index kManyReads = 512;  // of values that lie all over a column, and a page each if it is in a file

template <class Mass, class T>
BinHistogram<Mass> histogram_of(const BinnedNode& node, const TreeBins<T>& bins, Index k,
                                BinWorkspace& workspace) {
  workspace.make_room<Mass>(node, 1);
  const BinHistogram<Mass> histogram = workspace.histogram<Mass>(node, 0);
  build(node, bins, {&k, 1}, [&](Index) { return histogram; });
  return histogram;
}

}  // namespace

template <class T>
template <class Mass>
SplitBound BinnedSearch<T>::split_bound(const BinnedNode& node, Index k, const BinHistogram<Mass>& histogram,
                                        double error, BinBounds<Mass>& bounds) const {
  bounds.compute(node, histogram, bins_.mixed(k), kUnknowns, rules_, error);
  const double weight = node.totals.weight();
  const double edge = bounds.least_edge(), bound = bounds.least_bound(), margin = bounds.margin();
  const bool has_candidates = bounds.used_bins() > 1 || (bounds.used_bins() == 1 && bounds.has_unknown()) ||
                              (bounds.used_bins() == 1 && !is_one_value(node, k));
  return {has_candidates, false, weight * std::min(edge - margin, bound), weight * (edge + margin)};
}

// Whether a column whose rows are in one bin tells none of them apart.
template <class T>
bool BinnedSearch<T>::is_one_value(const BinnedNode& node, Index k) const {
  if (bins_.mixed(k)[bins_.code(k, node.first, node.rows[0])] == 0) return true;
  const T first = value(node.rows[0], k);
  return std::all_of(node.rows.begin(), node.rows.end(), [&](Row row) { return value(row, k) == first; });
}

template <class T>
ColumnBest BinnedSearch<T>::search(const BinnedNode& node, Index k, double limit, BinWorkspace& workspace,
                                   ColumnWorkspace& column_workspace, Split* chosen) const {
  const BinHistogram<std::int32_t> counts = histogram_of<std::int32_t>(node, bins_, k, workspace);
  if (node.weights.empty()) {
    workspace.bounds<std::int32_t>().compute(node, counts, bins_.mixed(k), kUnknowns, rules_, 0.0);
    return offer(node, k, limit, workspace.bounds<std::int32_t>(), workspace, column_workspace, chosen);
  }
  const BinHistogram<double> weights = histogram_of<double>(node, bins_, k, workspace);
  workspace.bounds<double>().compute(node, weights, bins_.mixed(k), kUnknowns, rules_, node.rounding());
  return offer(node, k, limit, workspace.bounds<double>(), workspace, column_workspace, chosen);
}

// Goes through the bins from left to right with what is left of them, and stops where the limit may be met.
template <class T>
template <class Mass>
ColumnBest BinnedSearch<T>::offer(const BinnedNode& node, Index k, double limit,
                                  const BinBounds<Mass>& bounds, BinWorkspace& workspace,
                                  ColumnWorkspace& column_workspace, Split* chosen) const {
  // Infinite scores are of thresholds that are none, or that have a child too small.
  const float level = static_cast<float>(limit / node.totals.weight()) + 2.0f * bounds.margin();
  const auto may_be_below = [level](float score) {
    return score <= level && score < std::numeric_limits<float>::infinity();
  };
  bool wanted[kBins];
  for (Index b = 0; b < kBins; ++b) wanted[b] = may_be_below(bounds.bound(b));
  gather(node, k, wanted, workspace);
  const auto add_bin = [&](Index bin, ClassTotals& to) {
    for (Index c = 0; c < node.class_count(); ++c) {
      const std::int32_t rows = workspace.counts[c * kBins + bin];
      const double weight = node.weights.empty() ? rows : workspace.weights[c * kBins + bin];
      if (rows > 0) to.add(node.classes[c].label, weight, rows);
    }
  };
  column_workspace.unknown.clear();
  if (bounds.has_unknown()) add_bin(kUnknownBin, column_workspace.unknown);
  column_workspace.known.set_difference(node.totals, column_workspace.unknown);

  Candidates candidates(rules_, score_, node.totals, column_workspace,
                        static_cast<std::int32_t>(bins_.column(k)), chosen, limit);
  ClassTotals &left = column_workspace.left, &right = column_workspace.right;
  left.clear();
  for (Index b = 0; left.rows() < column_workspace.known.rows(); ++b) {
    // Where only the least counts, what was found so far rules out bins that were wanted.
    const double least = candidates.best().least + SplitScore::kTie * node.totals.weight();
    if (wanted[b] && (chosen != nullptr || bounds.bound(b) * node.totals.weight() <= least))
      offer_inside<Mass>(node, b, chosen != nullptr ? limit : std::min(limit, least),
                         inside_of(k, b, workspace), workspace, candidates);
    else
      add_bin(b, left);
    if (!may_be_below(bounds.edge(b))) continue;
    right.set_difference(column_workspace.known, left);
    candidates.offer_two(left, right,
                         [&](Split& split) { set_threshold(split, threshold_above(node, k, b, workspace)); });
  }
  if (bounds.used_bins() > 1) candidates.note_candidate();
  candidates.offer_known([&](Split& split) { set_all_known(split, rules_.unknown_best); });
  return candidates.best();
}

// The thresholds between the rows of one bin, which are added to what is left of it.
template <class T>
template <class Mass>
void BinnedSearch<T>::offer_inside(const BinnedNode& node, Index bin, double limit,
                                   std::span<BinWorkspace::Value> rows, BinWorkspace& workspace,
                                   Candidates& candidates) const {
  if (rows.size() < kWorthSpreading) return offer_sorted(rows, candidates);
  double low = rows[0].value, high = low;
  for (const BinWorkspace::Value& item : rows) {
    low = std::min(low, item.value);
    high = std::max(high, item.value);
  }
  // All steps that find a finer bin round monotonically, so these keep the order of values whatever they are.
  const double scale = static_cast<double>(BinWorkspace::FinerBins::kMost - 1) / (0.5 * high - 0.5 * low);
  if (!std::isfinite(scale)) return offer_sorted(rows, candidates);  // one value, or nearly
  spread<Mass>(node, bin, low, scale, rows, workspace, candidates.workspace());
  offer_finer<Mass>(node, limit, workspace, candidates);
}

// Makes the histogram of finer bins, and puts the rows in their order. They come grouped by class.
template <class T>
template <class Mass>
void BinnedSearch<T>::spread(const BinnedNode& node, Index bin, double low, double scale,
                             std::span<const BinWorkspace::Value> rows, BinWorkspace& workspace,
                             const ColumnWorkspace& totals) const {
  BinWorkspace::FinerBins& finer = workspace.finer;
  constexpr Index kRight = BinWorkspace::FinerBins::kMost + 1;
  finer.clear(node.class_count());
  const BinHistogram<Mass> histogram = finer.histogram<Mass>();
  finer.codes.resize(std::max(finer.codes.size(), rows.size()));
  std::size_t i = 0;
  for (Index c = 0; c < node.class_count(); ++c) {
    std::int32_t* counts = finer.counts.data() + c * kBins;
    Mass* masses = histogram.of_class(c);
    const std::size_t end = i + static_cast<std::size_t>(workspace.counts[c * kBins + bin]);
    Mass inside{0};
    for (; i < end; ++i) {
      const Index code = 1 + static_cast<Index>((0.5 * rows[i].value - 0.5 * low) * scale);
      finer.codes[i] = static_cast<std::uint8_t>(code);
      ++counts[code];
      ++histogram.rows[code];
      if constexpr (!std::is_integral_v<Mass>) {
        masses[code] += data_.weight[rows[i].row];
        inside += data_.weight[rows[i].row];
      }
    }
    const auto label = static_cast<std::size_t>(node.classes[c].label);
    const ClassCell &known = totals.known.cells()[label], &left = totals.left.cells()[label];
    if constexpr (std::is_integral_v<Mass>) inside = workspace.counts[c * kBins + bin];
    masses[0] = static_cast<Mass>(left.weight);
    masses[kRight] = std::max(Mass{0}, static_cast<Mass>(known.weight - left.weight) - inside);
    if (kUnknowns) masses[kUnknownBin] = static_cast<Mass>(totals.unknown.cells()[label].weight);
  }
  histogram.rows[0] = static_cast<std::int32_t>(totals.left.rows());
  histogram.rows[kRight] =
      static_cast<std::int32_t>(totals.known.rows() - totals.left.rows()) - static_cast<std::int32_t>(i);
  if (kUnknowns) histogram.rows[kUnknownBin] = static_cast<std::int32_t>(totals.unknown.rows());

  finer.inside.resize(std::max(finer.inside.size(), rows.size()));
  std::size_t ends[kRight] = {};
  for (Index b = 1; b + 1 < kRight; ++b) ends[b + 1] = ends[b] + static_cast<std::size_t>(histogram.rows[b]);
  for (i = 0; i < rows.size(); ++i) finer.inside[ends[finer.codes[i]]++] = rows[i];
}

// What offer does with bins, for finer ones: between the rows left and right of them.
template <class T>
template <class Mass>
void BinnedSearch<T>::offer_finer(const BinnedNode& node, double limit, BinWorkspace& workspace,
                                  Candidates& candidates) const {
  static constexpr auto kMixed = [] {
    std::array<std::uint8_t, kBins> mixed{};
    for (Index b = 1; b <= BinWorkspace::FinerBins::kMost; ++b) mixed[b] = 1;
    return mixed;
  }();
  BinWorkspace::FinerBins& finer = workspace.finer;
  const BinHistogram<Mass> histogram = finer.histogram<Mass>();
  BinBounds<Mass>& bounds = finer.bounds.of<Mass>();
  // What is right of the bin is a difference of two sums that have rounded.
  bounds.compute(node, histogram, kMixed.data(), kUnknowns, rules_, 4.0 * node.rounding());
  const float level = std::min(static_cast<float>(limit / node.totals.weight()) + 2.0f * bounds.margin(),
                               std::numeric_limits<float>::max());
  ColumnWorkspace& totals = candidates.workspace();
  std::size_t end = 0, size = 0;
  for (Index b = 1; b <= BinWorkspace::FinerBins::kMost; ++b) size += static_cast<std::size_t>(finer.rows[b]);
  const std::span<BinWorkspace::Value> all(finer.inside.data(), size);
  for (Index b = 1; end < size; ++b) {
    const std::size_t begin = end;
    end += static_cast<std::size_t>(finer.rows[b]);
    if (begin == end) continue;
    const auto rows = all.subspan(begin, end - begin);
    if (bounds.bound(b) <= level) {
      offer_sorted(rows, candidates);
    } else {
      for (Index c = 0; c < node.class_count(); ++c)
        if (const std::int32_t count = finer.counts[c * kBins + b]; count > 0)
          totals.left.add(node.classes[c].label, static_cast<double>(histogram.of_class(c)[b]), count);
    }
    if (end == size || !(bounds.edge(b) <= level)) continue;
    totals.right.set_difference(totals.known, totals.left);
    candidates.offer_two(totals.left, totals.right, [&](Split& split) {
      const auto is_less = [](const auto& a, const auto& c) { return a.value < c.value; };
      Index above = b + 1;
      while (finer.rows[above] == 0) ++above;
      const auto next = all.subspan(end, static_cast<std::size_t>(finer.rows[above]));
      set_threshold(split, threshold_between(std::max_element(rows.begin(), rows.end(), is_less)->value,
                                             std::min_element(next.begin(), next.end(), is_less)->value));
    });
  }
}

template <class T>
void BinnedSearch<T>::offer_sorted(std::span<BinWorkspace::Value> rows, Candidates& candidates) const {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  ColumnWorkspace& workspace = candidates.workspace();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    workspace.left.add(data_.labels[rows[i].row], data_.weight_of(rows[i].row));
    if (i + 1 == rows.size() || rows[i].value == rows[i + 1].value) continue;
    workspace.right.set_difference(workspace.known, workspace.left);
    candidates.offer_two(workspace.left, workspace.right, [&](Split& split) {
      set_threshold(split, threshold_between(rows[i].value, rows[i + 1].value));
    });
  }
}

// The rows in the bins wanted, bin by bin.
template <class T>
void BinnedSearch<T>::gather(const BinnedNode& node, Index k, const bool* wanted,
                             BinWorkspace& workspace) const {
  Index total = 0;
  for (Index b = 0; b < kBins; ++b) {
    workspace.inside_ends[b] = total;
    total += wanted[b] ? workspace.rows[b] : 0;
  }
  if (total == 0) return;
  const auto code_of = [&](Index i) { return bins_.code(k, node.first + i, node.rows[i]); };
  if (workspace.found.size() <= node.rows.size()) workspace.found.resize(node.rows.size() + 1);
  if (static_cast<Index>(workspace.inside.size()) < total)
    workspace.inside.resize(static_cast<std::size_t>(total));
  Index count = 0;
  for (Index i = 0; i < node.size(); ++i) {  // without a branch, which would be guessed wrong too often
    workspace.found[count] = static_cast<std::int32_t>(i);
    count += wanted[code_of(i)];
  }
  for (Index i = 0; i < count; ++i) {
    const std::int32_t at = workspace.found[i];
    workspace.inside[workspace.inside_ends[code_of(at)]++].row = node.rows[at];
  }
}

// The rows of one of these bins, with their values.
template <class T>
std::span<BinWorkspace::Value> BinnedSearch<T>::inside_of(Index k, Index bin, BinWorkspace& workspace) const {
  const std::size_t size = static_cast<std::size_t>(workspace.rows[bin]);
  const std::span<BinWorkspace::Value> rows(workspace.inside.data() + workspace.inside_ends[bin] - size,
                                            size);
  for (BinWorkspace::Value& item : rows) item.value = static_cast<double>(value(item.row, k));
  if (static_cast<Index>(size) >= kManyReads) spilled::look();
  return rows;
}

// Between the greatest value in a bin and the least one beyond it.
template <class T>
double BinnedSearch<T>::threshold_above(const BinnedNode& node, Index k, Index bin,
                                        const BinWorkspace& workspace) const {
  Index above = bin + 1;
  while (workspace.rows[above] == 0) ++above;
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  const auto code_of = [&](Index i) { return bins_.code(k, node.first + i, node.rows[i]); };
  for (Index i = 0; i < node.size(); ++i) {
    const std::uint8_t code = code_of(i);
    if (code == bin) low = std::max(low, static_cast<double>(value(node.rows[i], k)));
    if (code == above) high = std::min(high, static_cast<double>(value(node.rows[i], k)));
  }
  if (workspace.rows[bin] + workspace.rows[above] >= kManyReads) spilled::look();
  return threshold_between(low, high);
}

template class BinnedSearch<double>;
template class BinnedSearch<float>;
template class BinnedSearch<std::uint8_t>;
template SplitBound BinnedSearch<double>::split_bound(const BinnedNode&, Index,
                                                      const BinHistogram<std::int32_t>&, double,
                                                      BinBounds<std::int32_t>&) const;
template SplitBound BinnedSearch<double>::split_bound(const BinnedNode&, Index, const BinHistogram<double>&,
                                                      double, BinBounds<double>&) const;
template SplitBound BinnedSearch<float>::split_bound(const BinnedNode&, Index,
                                                     const BinHistogram<std::int32_t>&, double,
                                                     BinBounds<std::int32_t>&) const;
template SplitBound BinnedSearch<float>::split_bound(const BinnedNode&, Index, const BinHistogram<double>&,
                                                     double, BinBounds<double>&) const;
template SplitBound BinnedSearch<std::uint8_t>::split_bound(const BinnedNode&, Index,
                                                            const BinHistogram<std::int32_t>&, double,
                                                            BinBounds<std::int32_t>&) const;
template SplitBound BinnedSearch<std::uint8_t>::split_bound(const BinnedNode&, Index,
                                                            const BinHistogram<double>&, double,
                                                            BinBounds<double>&) const;

}  // namespace sixfold
