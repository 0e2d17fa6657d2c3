#include "neighbors/scan/byte_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/threads.hpp"
#include "neighbors/scan/byte_lanes.hpp"

namespace sixfold {
namespace {

constexpr Index kBlock = 512;  // rows; of 784 columns they take a third of a second-level cache
constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;

// Which rows of a tile have sums whose difference from the query's is at most the limit, one bit each.
inline std::uint32_t near_rows(const std::uint8_t* tile, const std::uint8_t* sums, Index groups,
                               std::uint64_t limit) {
  constexpr Index kStep = kLanes * 8, kRows = 4 * kLanes;
  std::uint32_t near = 0;
  for (Index from = 0; from < kTile; from += kRows) {
    Words a{}, b{}, c{}, d{};
    const std::uint8_t* x = tile + from * 8;
    for (Index g = 0; g < groups; g += 8, x += kTile * 8) {
      const Words q = repeat_word(sums + g);
      a += eight_sums(load_words(x), q);
      b += eight_sums(load_words(x + kStep), q);
      c += eight_sums(load_words(x + 2 * kStep), q);
      d += eight_sums(load_words(x + 3 * kStep), q);
    }
    const std::uint32_t bits = at_most(a, limit) | at_most(b, limit) << kLanes |
                               at_most(c, limit) << 2 * kLanes | at_most(d, limit) << 3 * kLanes;
    near |= bits << from;
  }
  return near;
}

// Differences of whole parts above this are of rows that are farther than the limit.
std::uint64_t parts_limit(const Groups& groups, std::int64_t limit) {
  return static_cast<std::uint64_t>((limit + groups.count * (groups.size - 1)) / groups.size);
}

// The largest whole number that is at most `distance`, if it matters.
std::int64_t whole(double distance) {
  if (!(distance < static_cast<double>(kNoLimit))) return kNoLimit;
  return static_cast<std::int64_t>(std::floor(std::max(distance, -1.0)));
}

// Goes through a share, a block of rows at a time: keep(query, row, distance) gets those that are at most
// limit(query) far. Returns how many distances were computed.
template <class Limit, class Keep>
Index go_through(const ByteScan& scan, const Share& share, Watch& watch, Limit limit, Keep keep) {
  const Index d = scan.groups.columns, g = scan.groups.count;
  Index computed = 0;
  for (Index start = share.from; start < share.to; start += kBlock) {
    const Index end = std::min(share.to, start + kBlock);
    for (Index i = share.first; i < share.last; ++i) {
      if (watch.over()) return computed;
      const std::uint8_t* q = scan.Q + i * d;
      std::int64_t most = limit(i);
      std::uint64_t parts = parts_limit(scan.groups, most);
      for (Index tile = start; tile < end; tile += kTile) {
        std::uint32_t near = near_rows(scan.tiles + tile * g, scan.sums + i * g, g, parts);
        if (end - tile < kTile) near &= (std::uint32_t{1} << (end - tile)) - 1;
        for (; near != 0; near &= near - 1) {
          const Index row = tile + std::countr_zero(near);
          const std::int64_t distance = byte_distance(scan.X + row * d, q, d);
          ++computed;
          if (distance > most) continue;
          keep(i, row, static_cast<double>(distance));
          most = limit(i);
          parts = parts_limit(scan.groups, most);
        }
      }
    }
  }
  return computed;
}

Shares shares_of(const ByteScan& scan, Index most) {
  const double terms = static_cast<double>(scan.rows) * static_cast<double>(scan.groups.count) *
                       static_cast<double>(scan.queries);
  return {scan.rows, scan.queries, terms,
          std::min<Index>({256, most, (Index{1} << 18) / scan.groups.columns}), kTile};
}

// The k-th smallest distance to some rows from all over the data: no row farther than this is needed.
std::int64_t seed(const ByteScan& scan, Index query, Index k, std::vector<Near>& room) {
  const Index sample = std::max<Index>(256, 4 * k), stride = scan.rows / sample;
  if (stride < 4) return kNoLimit;
  Nearest nearest(room.data(), k);
  const Index d = scan.groups.columns;
  for (Index row = 0; row < scan.rows; row += stride)
    nearest.offer(static_cast<double>(byte_distance(scan.X + row * d, scan.Q + query * d, d)), row);
  return whole(nearest.worst());
}

// Several rows at once share the look-ups of the order.
template <int kRows>
void sum_rows(const std::uint8_t* X, const Groups& groups, std::uint8_t* sums) {
  for (Index g = 0; g < groups.count; ++g) {
    std::uint32_t sum[kRows] = {};
    const Index from = g * groups.size, to = std::min(groups.columns, from + groups.size);
    for (Index j = from; j < to; ++j) {
      const std::uint8_t* x = X + groups.order[j];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sum[r] += x[r * groups.columns];
    }
    for (int r = 0; r < kRows; ++r)
      sums[r * groups.count + g] =
          static_cast<std::uint8_t>(sum[r] / static_cast<std::uint32_t>(groups.size));
  }
}

}  // namespace

void write_group_sums_by_row(const std::uint8_t* X, Index rows, const Groups& groups, std::uint8_t* sums) {
  Index row = 0;
  for (; row + 8 <= rows; row += 8) sum_rows<8>(X + row * groups.columns, groups, sums + row * groups.count);
  for (; row < rows; ++row) sum_rows<1>(X + row * groups.columns, groups, sums + row * groups.count);
}

void write_group_sums(const std::uint8_t* X, Index rows, const Groups& groups, std::uint8_t* tiles) {
  const int team = rows * groups.columns > 1 << 18 ? threads() : 1;
  run_tasks((rows + kBlock - 1) / kBlock, team, [&](Index block) {
    std::vector<std::uint8_t> sums(static_cast<std::size_t>(kTile * groups.count));
    const Index last = std::min(rows, (block + 1) * kBlock);
    for (Index from = block * kBlock; from < last; from += kTile) {
      std::fill(sums.begin(), sums.end(), std::uint8_t{0});
      write_group_sums_by_row(X + from * groups.columns, std::min(kTile, rows - from), groups, sums.data());
      std::uint8_t* tile = tiles + from * groups.count;
      for (Index row = 0; row < kTile; ++row)
        for (Index g = 0; g < groups.count; g += 8)
          std::copy_n(sums.data() + row * groups.count + g, 8, tile + g * kTile + row * 8);
    }
  });
}

Index byte_nearest(const ByteScan& scan, Index k, double* distances, Index* rows, Stop& stop) {
  const auto look = [&](const Share& share, Nearest* nearest, Watch& watch) {
    std::vector<Near> room(static_cast<std::size_t>(k));
    std::vector<std::int64_t> seeds;
    for (Index i = share.first; i < share.last && !watch.over(); ++i) seeds.push_back(seed(scan, i, k, room));
    const auto limit = [&](Index i) {
      const Index place = i - share.first;
      return std::min(seeds[static_cast<std::size_t>(place)], whole(nearest[place].worst()));
    };
    const auto keep = [&](Index i, Index row, double distance) {
      nearest[i - share.first].offer(distance, row);
    };
    return go_through(scan, share, watch, limit, keep);
  };
  return nearest_of_all(shares_of(scan, (Index{1} << 20) / k), k, distances, rows, stop, look);
}

Index byte_within(const ByteScan& scan, double radius, Around& around, Stop& stop) {
  const std::int64_t most = whole(radius);
  const auto look = [&](const Share& share, const auto& found, Watch& watch) {
    return go_through(scan, share, watch, [&](Index) { return most; }, found);
  };
  return around_of_all(shares_of(scan, 256), around, stop, look);
}

}  // namespace sixfold
