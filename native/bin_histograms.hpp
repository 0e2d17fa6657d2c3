// How the rows of a node spread over the bins of a column, class by class.
//
// The rows of a node are grouped by class, so that the histogram of a class is that of the bytes of its rows.
// Counts are exact; sums of weights carry a rounding error, which is known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "split_score.hpp"
#include "tree_bins.hpp"

namespace sixfold {

// The rows of a node as histograms read them.
struct BinnedNode {
  struct Class {
    std::int32_t label;
    Index end;  // of its rows; they begin where those of the class before end
    double weight;
  };

  // Rows grouped by class in the order of labels; weights one a row of the table, or null. Histograms that
  // are to be subtracted from each other need all classes, others only those that are there.
  BinnedNode(std::span<const std::int32_t> node_rows, const ClassTotals& node_totals, const double* weight,
             bool all_classes)
      : rows(node_rows), totals(node_totals) {
    Index end = 0;
    for (const ClassCell& cell : node_totals.cells())
      if (all_classes || cell.rows > 0) classes.push_back({cell.label, end += cell.rows, cell.weight});
    if (weight == nullptr) return;
    weights.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) weights[i] = weight[rows[i]];
  }

  Index size() const { return static_cast<Index>(rows.size()); }
  Index class_count() const { return static_cast<Index>(classes.size()); }

  std::span<const std::int32_t> rows;
  const ClassTotals& totals;
  std::vector<Class> classes;
  std::vector<double> weights;  // of the rows, in their order; empty where all are 1
};

// Adds the rows of one class to counts of bins. Rows with the same code one after the other wait for each
// other's sum; four counters of each code make that rare (images, where most codes are 0: 1.6 times faster).
inline void count_bins(std::span<const std::int32_t> rows, const std::uint8_t* codes, std::int32_t* counts) {
  constexpr std::size_t kWorthwhile = 1024;
  std::size_t i = 0;
  if (rows.size() >= kWorthwhile) {
    std::int32_t more[3][kBins] = {};
    for (; i + 4 <= rows.size(); i += 4) {
      ++counts[codes[rows[i]]];
      ++more[0][codes[rows[i + 1]]];
      ++more[1][codes[rows[i + 2]]];
      ++more[2][codes[rows[i + 3]]];
    }
    for (Index b = 0; b < kBins; ++b) counts[b] += more[0][b] + more[1][b] + more[2][b];
  }
  for (; i < rows.size(); ++i) ++counts[codes[rows[i]]];
}

// The histogram of one column: kBins sums for each class of the node, in the order of node.classes, and how
// many rows a bin has. Without weights the sums are counts.
template <class Mass>
struct BinHistogram {
  Mass* masses;
  std::int32_t* rows;

  Mass* of_class(Index k) const { return masses + k * kBins; }
};

inline void build(const BinnedNode& node, const std::uint8_t* codes, BinHistogram<std::int32_t> to) {
  std::fill_n(to.masses, node.class_count() * kBins, 0);
  Index begin = 0;
  for (Index k = 0; k < node.class_count(); begin = node.classes[k++].end) {
    const std::size_t count = static_cast<std::size_t>(node.classes[k].end - begin);
    count_bins(node.rows.subspan(static_cast<std::size_t>(begin), count), codes, to.of_class(k));
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
      const std::uint8_t code = codes[node.rows[i]];
      masses[code] += node.weights[i];
      ++to.rows[code];
    }
  }
}

}  // namespace sixfold
