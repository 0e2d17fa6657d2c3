// Rows that may be among the k nearest of a query, each with its product: they wait until it is known which
// are worth a distance.
//
// A heap of distances has to compute those of about k log(n / k) rows while its threshold falls. Products of
// whole rows bound distances from both sides: the threshold falls by them alone, whenever the room is full,
// and all but little more than k rows are gone before the first distance is computed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/float_lanes.hpp"
#include "neighbors/nearest.hpp"
#include "neighbors/projected/tile_products.hpp"

namespace sixfold {

inline constexpr Index kMostCandidates = 1024;  // k up to which rows wait: 21 KB a query

// Of the n values below `most`, a value that at least k are no less than, and at most k + extra are, or the
// k-th greatest; infinity if there are no k. Behind the values must be room for kFloatLanes more, which are
// overwritten.
inline float kth_greatest(float* values, Index n, Index k, Index extra, float most,
                          std::vector<float>& room) {
  constexpr int kSteps = 24;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  store_floats(values + n, FloatLanes{} + kNone);
  const auto count_from = [&](float least) {
    Index count = 0;
    for (Index i = 0; i < n; i += kFloatLanes)
      count += std::popcount(at_least(load_floats(values + i), least));
    return count;
  };
  FloatLanes highest = FloatLanes{} + kNone, lowest = FloatLanes{} + most;
  for (Index i = 0; i < n; i += kFloatLanes) {
    const FloatLanes value = load_floats(values + i);
    highest = value > highest ? value : highest;
    const FloatLanes there = value > kNone ? value : lowest;
    lowest = there < lowest ? there : lowest;
  }
  float high = highest[0], low = lowest[0];
  for (Index l = 1; l < kFloatLanes; ++l) {
    high = std::max(high, highest[l]);
    low = std::min(low, lowest[l]);
  }
  Index count = n;  // values that are no less than low
  if (high >= most) {
    k += count_from(most);
    high = most;
  }
  if (count < k) return std::numeric_limits<float>::infinity();
  for (int step = 0; step < kSteps && count > k + extra; ++step) {
    const float middle = low + (high - low) / 2;
    if (!(middle > low)) break;
    const Index above = count_from(middle);
    if (above >= k) {
      low = middle;
      count = above;
    } else {
      high = middle;
    }
  }
  if (count <= k + extra) return low;
  room.assign(values, values + n);  // a few are far from all others, or many are equal
  std::nth_element(room.begin(), room.begin() + (k - 1), room.end(), std::greater<>());
  return room[static_cast<std::size_t>(k - 1)];
}

class Candidates {
 public:
  // Nothing has room until this is called; `queries` in whole strips.
  void make_room(Index queries, Index k) {
    k_ = k;
    stride_ = 2 * grown(k) + kPanelRows + kFloatLanes;
    counts_.assign(static_cast<std::size_t>(queries), 0);
    most_.assign(static_cast<std::size_t>(queries), grown(k));
    products_.resize(static_cast<std::size_t>(queries * stride_));
    rows_.resize(static_cast<std::size_t>(queries * stride_));
  }

  // Adds the rows of a panel, from first_row on, whose products with a query of a strip are no less than its
  // `least`; `there` are the rows that a panel has, as bits. Returns which queries of the strip have more
  // candidates than they should before the next panel, as bits.
  [[gnu::noinline]] std::uint32_t add(const float* panel, const float* strip, Index coordinates,
                                      const float* least, Index first_query, Index first_row,
                                      std::uint32_t there) {
    std::uint32_t full = 0;
    Index* counts = counts_.data() + first_query;
    const Index* most = most_.data() + first_query;
    float* products = products_of(first_query);
    std::int32_t* rows = rows_of(first_query);
    IntLanes numbers;
    for (Index l = 0; l < kFloatLanes; ++l) numbers[l] = static_cast<std::int32_t>(first_row + l);
    for_tile_sums(panel, strip, coordinates, [&](Index j, Index first, FloatLanes low, FloatLanes high) {
      const std::uint32_t bits = tile_bits(low, high, least[j]) & there >> first;
      if (bits == 0) return;
      const auto keep = [&](std::uint32_t half, FloatLanes values, Index from) {
        const Index to = j * stride_ + counts[j];
        counts[j] +=
            keep_lanes(half, values, numbers + static_cast<std::int32_t>(from), products + to, rows + to);
      };
      keep(bits & kAllLanes, low, first);
      keep(bits >> kFloatLanes, high, first + kFloatLanes);
      full |= std::uint32_t{counts[j] > most[j]} << j;
    });
    return full;
  }

  // Adds one row; true if there is no room for another.
  bool add(Index query, float product, Index row) {
    const Index count = counts_[static_cast<std::size_t>(query)]++;
    products_of(query)[count] = product;
    rows_of(query)[count] = static_cast<std::int32_t>(row);
    return count + 1 >= 2 * grown(k_);
  }

  Index size(Index query) const { return counts_[static_cast<std::size_t>(query)]; }
  // Whether there are too many to wait for more.
  bool crowded(Index query) const { return size(query) > grown(k_); }
  void clear(Index query) { counts_[static_cast<std::size_t>(query)] = 0; }
  float* products_of(Index query) { return products_.data() + query * stride_; }
  std::int32_t* rows_of(Index query) { return rows_.data() + query * stride_; }

  // Of the products below `most`, one that at least k reach, and at most `extra` others, or the k-th
  // greatest; infinity if there are no k.
  float kth_product(Index query, Index k, Index extra, float most = std::numeric_limits<float>::infinity()) {
    return kth_greatest(products_of(query), size(query), k, extra, most, copy_);
  }

  // Keeps about k of the greatest products; ties that are too many go. Returns what others have to reach.
  float keep_greatest(Index query) {
    const float least = kth_product(query, k_, k_ / 8);
    drop_below(query, least);
    if (crowded(query)) counts_[static_cast<std::size_t>(query)] = k_;
    wait(query);
    return least;
  }

  // Keeps the candidates whose products are at least this, in their order.
  void drop_below(Index query, float least) {
    float* products = products_of(query);
    std::int32_t* rows = rows_of(query);
    const Index count = size(query);
    store_floats(products + count, FloatLanes{} - std::numeric_limits<float>::infinity());
    Index kept = 0;
    for (Index i = 0; i < count; i += kFloatLanes) {
      const FloatLanes values = load_floats(products + i);
      std::uint32_t bits = at_least(values, least);
      if (count - i < kFloatLanes) bits &= (std::uint32_t{1} << (count - i)) - 1;
      kept += keep_lanes(bits, values, load_ints(rows + i), products + kept, rows + kept);
    }
    counts_[static_cast<std::size_t>(query)] = kept;
  }

  // Waits for about as many more before the next comparison.
  void wait(Index query) {
    most_[static_cast<std::size_t>(query)] = std::min(size(query) + k_ + kMore, 2 * grown(k_));
  }

 private:
  static constexpr std::uint32_t kAllLanes = (std::uint32_t{1} << kFloatLanes) - 1;

  static constexpr Index kMore = 16;
  static Index grown(Index k) { return k + k / 4 + kPanelRows; }

  Index k_ = 0, stride_ = 0;
  std::vector<Index> counts_, most_;    // a query: candidates, and with how many of them they are compared
  std::vector<float> products_, copy_;  // [query][stride]
  std::vector<std::int32_t> rows_;
};

// Writes the k nearest of n rows that come in the order of their numbers, the nearest first; n >= k. The
// place of a row is how many are nearer. For few rows, to count them takes a fraction of the time of sorting:
// in floats, whose order is right but for ties, which are put in order afterwards.
class NearestFirst {
 public:
  // For the distances of up to n rows.
  double* make_room(Index n) {
    distances_.resize(static_cast<std::size_t>(n));
    return distances_.data();
  }

  void write(const std::int32_t* numbers, Index n, Index k, double* distances, Index* rows) {
    order_.resize(static_cast<std::size_t>(n));
    if (n <= kCounted) {
      count(numbers, n);
    } else {
      for (Index i = 0; i < n; ++i) order_[at(i)] = {distances_[at(i)], numbers[i]};
      std::nth_element(order_.begin(), order_.begin() + (k - 1), order_.end());
      std::sort(order_.begin(), order_.begin() + k);
    }
    for (Index i = 0; i < k; ++i) {
      distances[i] = order_[at(i)].distance;
      rows[i] = order_[at(i)].row;
    }
  }

 private:
  static constexpr Index kCounted = 32 * kFloatLanes;

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  // All rows in order.
  void count(const std::int32_t* numbers, Index n) {
    float keys[kCounted];
    std::int32_t places[kCounted];
    const Index padded = (n + kFloatLanes - 1) / kFloatLanes * kFloatLanes;
    for (Index i = 0; i < n; ++i) keys[i] = static_cast<float>(distances_[at(i)]);
    std::fill(keys + n, keys + padded, 0.0f);
    IntLanes lanes;
    for (Index l = 0; l < kFloatLanes; ++l) lanes[l] = static_cast<std::int32_t>(l);
    for (Index i = 0; i < padded; i += kFloatLanes) {
      const FloatLanes own = load_floats(keys + i);
      const Index last = std::min(n, i + kFloatLanes);
      IntLanes before{}, behind{};  // minus the number of nearer rows
      for (Index j = 0; j < i; ++j) before += keys[j] - FloatLanes{} <= own;
      for (Index j = i; j < last; ++j) {
        const FloatLanes other = keys[j] - FloatLanes{};
        before += (other <= own) & (lanes > static_cast<std::int32_t>(j - i));
        behind += (other < own) & (lanes < static_cast<std::int32_t>(j - i));
      }
      for (Index j = last; j < n; ++j) behind += keys[j] - FloatLanes{} < own;
      store_ints(places + i, -(before + behind));
    }
    for (Index i = 0; i < n; ++i) order_[at(places[i])] = {distances_[at(i)], numbers[i]};
    for (Index i = 1; i < n; ++i) {
      const Near own = order_[at(i)];
      Index place = i;
      for (; place > 0 && own < order_[at(place - 1)]; --place) order_[at(place)] = order_[at(place - 1)];
      order_[at(place)] = own;
    }
  }

  std::vector<double> distances_;
  std::vector<Near> order_;
};

}  // namespace sixfold
