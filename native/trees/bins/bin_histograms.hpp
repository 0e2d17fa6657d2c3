// How the rows of a node spread over the bins of a column, class by class.
//
// The rows of a node are grouped by class, so that the histogram of a class is that of the bytes of its rows.
// Counts are exact; sums of weights carry a rounding error, which is known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "core/spilled_memory.hpp"
#include "trees/bins/bins.hpp"
#include "trees/split_score.hpp"

namespace sixfold {

// The rows of a node as histograms read them, grouped by class in the order of labels.
struct BinnedNode {
  struct Class {
    std::int32_t label;
    Index end;  // of its rows; they begin where those of the class before end
    double weight;
  };

  // `first` says where their codes begin; weights are one a row of the table, or null. Histograms that are to
  // be subtracted from each other need all classes, others only those that are there.
  BinnedNode(std::span<const std::int32_t> node_rows, Index first_code, const ClassTotals& node_totals,
             const double* weight, bool all_classes)
      : rows(node_rows), first(first_code), totals(node_totals) {
    Index end = 0;
    for (const ClassCell& cell : node_totals.cells())
      if (all_classes || cell.rows > 0) classes.push_back({cell.label, end += cell.rows, cell.weight});
    if (weight == nullptr) return;
    weights.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) weights[i] = weight[rows[i]];
  }

  Index size() const { return static_cast<Index>(rows.size()); }
  Index class_count() const { return static_cast<Index>(classes.size()); }
  // A sum of weights is off by less than this much of W, and so is what is left of it.
  double rounding() const { return weights.empty() ? 0.0 : 2.0 * static_cast<double>(rows.size()) * 0x1p-53; }

  std::span<const std::int32_t> rows;
  Index first;
  const ClassTotals& totals;
  std::vector<Class> classes;
  spilled::SpilledVector<double> weights;  // of the rows, in their order; empty where all are 1
};

// Adds the rows of one class to counts of bins. Rows with the same code one after the other wait for each
// other's sum; four counters of each code make that rare (images, where most codes are 0: 1.6 times faster).
inline void count_bins(std::span<const std::uint8_t> codes, std::int32_t* counts) {
  constexpr std::size_t kWorthwhile = 256;
  std::size_t i = 0;
  if (codes.size() >= kWorthwhile) {
    std::int32_t more[3][kBins] = {};
    for (; i + 8 <= codes.size(); i += 8) {
      std::uint64_t eight;  // one load, and none of single bytes
      std::memcpy(&eight, codes.data() + i, sizeof(eight));
      ++counts[eight & 255];
      ++more[0][eight >> 8 & 255];
      ++more[1][eight >> 16 & 255];
      ++more[2][eight >> 24 & 255];
      ++counts[eight >> 32 & 255];
      ++more[0][eight >> 40 & 255];
      ++more[1][eight >> 48 & 255];
      ++more[2][eight >> 56];
    }
    for (Index b = 0; b < kBins; ++b) counts[b] += more[0][b] + more[1][b] + more[2][b];
  }
  for (; i < codes.size(); ++i) ++counts[codes[i]];
}

// The histogram of one column: kBins sums for each class of the node, in the order of node.classes, and how
// many rows a bin has. Without weights the sums are counts.
template <class Mass>
struct BinHistogram {
  Mass* masses;
  std::int32_t* rows;

  Mass* of_class(Index k) const { return masses + k * kBins; }
};

// How far the sums of two columns are apart. A line of the cache lies between them: without it the same code
// of many columns, as the background of images, would be in the same few sets of the cache. Histograms of 32
// pixels of 20,000 images in ten classes take 0.35 ns a value, and 0.77 without it; with weights 0.63
// and 5.7.
template <class Mass>
Index masses_apart(Index classes) {
  return classes * kBins + 64 / static_cast<Index>(sizeof(Mass));
}

// `codes` are those of the node.
inline void build(const BinnedNode& node, const std::uint8_t* codes, BinHistogram<std::int32_t> to) {
  std::fill_n(to.masses, node.class_count() * kBins, 0);
  Index begin = 0;
  for (Index k = 0; k < node.class_count(); begin = node.classes[k++].end) {
    const std::size_t count = static_cast<std::size_t>(node.classes[k].end - begin);
    count_bins({codes + begin, count}, to.of_class(k));
  }
  std::copy_n(to.masses, kBins, to.rows);
  for (Index k = 1; k < node.class_count(); ++k)
    for (Index b = 0; b < kBins; ++b) to.rows[b] += to.of_class(k)[b];
}

inline void build(const BinnedNode& node, const std::uint8_t* codes, BinHistogram<double> to) {
  std::fill_n(to.masses, node.class_count() * kBins, 0.0);
  std::fill_n(to.rows, kBins, 0);
  Index i = 0;
  for (Index k = 0; k < node.class_count(); ++k) {
    double* masses = to.of_class(k);
    for (; i < node.classes[k].end; ++i) {
      const std::uint8_t code = codes[i];
      masses[code] += node.weights[i];
      ++to.rows[code];
    }
  }
}

// Row by row. Of bytes one after the other a row is one line of the cache, or two.
template <class To>
void build_of_bytes(const BinnedNode& node, const TreeBins<std::uint8_t>& bins,
                    std::span<const Index> columns, const To& to) {
  using Mass = std::remove_pointer_t<decltype(to(0).masses)>;
  constexpr Index kAtOnce = TreeBins<std::uint8_t>::kAtOnce;
  const Index count = static_cast<Index>(columns.size());
  constexpr Index kAhead = 24;  // rows
  Index offsets[kAtOnce];
  Mass* masses[kAtOnce];
  std::int32_t* rows[kAtOnce];
  bool is_run = count == kAtOnce;
  for (Index j = 0; j < count; ++j) {
    const BinHistogram<Mass> histogram = to(j);
    offsets[j] = bins.column(columns[j]) * bins.X().column_stride;
    is_run &= offsets[j] == offsets[0] + j;
    masses[j] = histogram.masses;
    rows[j] = histogram.rows;
    std::fill_n(masses[j], node.class_count() * kBins, Mass{0});
    std::fill_n(rows[j], kBins, 0);
  }
  Index i = 0;
  for (Index k = 0; k < node.class_count(); ++k) {
    for (; i < node.classes[k].end; ++i) {
      const std::uint8_t* row = bins.X().row(node.rows[i]);
      // Rows are far from each other, and one takes long enough that few are under way by themselves.
      if (i + kAhead < node.size()) {
        const std::uint8_t* later = bins.X().row(node.rows[i + kAhead]) + offsets[0];
        __builtin_prefetch(later);
        __builtin_prefetch(later + kAtOnce - 1);
      }
      const auto add = [&](Index j, std::uint8_t code) {
        if constexpr (std::is_integral_v<Mass>) {
          ++masses[j][code];
        } else {
          masses[j][code] += node.weights[i];
          ++rows[j][code];
        }
      };
      if (is_run) {
        std::uint8_t codes[kAtOnce];
        std::copy_n(row + offsets[0], kAtOnce, codes);
#pragma GCC unroll 32
        for (Index j = 0; j < kAtOnce; ++j) add(j, codes[j]);
      } else {
        for (Index j = 0; j < count; ++j) add(j, row[offsets[j]]);
      }
    }
    for (Index j = 0; j < count; ++j) masses[j] += kBins;
  }
  if constexpr (std::is_integral_v<Mass>)
    for (Index j = 0; j < count; ++j)
      for (Index k = 0; k < node.class_count(); ++k)
        for (Index b = 0; b < kBins; ++b) rows[j][b] += to(j).of_class(k)[b];
}

// The histograms of a few columns, at most TreeBins::kAtOnce; to(j) is that of the j-th of them.
template <class T, class To>
void build(const BinnedNode& node, const TreeBins<T>& bins, std::span<const Index> columns, const To& to) {
  if constexpr (TreeBins<T>::kKeepsCodes) {
    for (std::size_t j = 0; j < columns.size(); ++j)
      build(node, bins.codes(columns[j], node.first), to(static_cast<Index>(j)));
  } else {
    build_of_bytes(node, bins, columns, to);
  }
}

// Takes the rows of a part of a node out of its histogram.
template <class Mass>
void subtract(const BinnedNode& node, const BinHistogram<Mass>& part, BinHistogram<Mass> from) {
  for (Index i = 0; i < node.class_count() * kBins; ++i) from.masses[i] -= part.masses[i];
  for (Index b = 0; b < kBins; ++b) from.rows[b] -= part.rows[b];
}

// The histograms of all columns of some nodes, kept for their children: the one with the most rows has what
// the others leave over. There is room for few nodes, so that memory stays a part of that of the table.
template <class Mass>
class KeptHistograms {
 public:
  KeptHistograms(std::size_t columns, Index classes, Index most_bytes)
      : columns_(static_cast<Index>(columns)),
        masses_(masses_apart<Mass>(classes)),
        bytes_((columns_ + 1) * (masses_ * static_cast<Index>(sizeof(Mass)) + kBins * 4)),
        most_(most_bytes / bytes_) {}

  // The number of a place, or -1 where there is none left.
  Index take() {
    if (free_.empty() && static_cast<Index>(nodes_.size()) == most_) return -1;
    if (free_.empty()) {
      free_.push_back(static_cast<Index>(nodes_.size()));
      nodes_.push_back({std::vector<Mass>(static_cast<std::size_t>(columns_ * masses_)),
                        std::vector<std::int32_t>(static_cast<std::size_t>(columns_ * kBins)), 0.0});
    }
    const Index place = free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(Index place) { free_.push_back(place); }

  BinHistogram<Mass> column(Index place, Index k) {
    return {nodes_[place].masses.data() + k * masses_, nodes_[place].rows.data() + k * kBins};
  }
  // How far a sum may be off.
  double& error(Index place) { return nodes_[place].error; }

 private:
  struct Node {
    std::vector<Mass> masses;
    std::vector<std::int32_t> rows;
    double error;
  };

  Index columns_, masses_, bytes_, most_;
  std::vector<Node> nodes_;
  std::vector<Index> free_;
};

}  // namespace sixfold
