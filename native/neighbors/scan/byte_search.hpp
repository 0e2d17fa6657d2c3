// Manhattan distances of rows of bytes, most of them ruled out by sums over groups of columns.
//
//   sum_j |x_j - q_j|  >=  sum_G |sum_(j in G) x_j - sum_(j in G) q_j|
//
// for any groups G. With at most m columns in each of g groups and the sums kept as whole parts of m, that is
//
//   >=  m sum_G | [x_G / m] - [q_G / m] | - g (m - 1)
//
// since whole parts are off by at most (m - 1) / m each way. A byte a group: for 784 columns, 56 of them rule
// out 98% of 60,000 images. All numbers are whole, so nothing is rounded and no margin is needed.
#pragma once

#include <cstdint>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "neighbors/scan/all_rows.hpp"

namespace sixfold {

inline constexpr Index kTile =
    32;  // rows that are bounded at once: four registers of eight, or more shorter ones

// Groups of columns: those of group g are order[g * size], ..., order[(g + 1) * size - 1], as far as there
// are columns; the number of groups is a multiple of 8.
struct Groups {
  const Index* order;
  Index columns, size, count;
};

// Writes the whole parts of the rows' sums, a tile of rows after the other: of each tile the first eight
// groups of all rows, then the next eight. Rows that fill up the last tile are zero.
void write_group_sums(const std::uint8_t* X, Index rows, const Groups& groups, std::uint8_t* tiles);

// The same, one row after the other.
void write_group_sums_by_row(const std::uint8_t* X, Index rows, const Groups& groups, std::uint8_t* sums);

struct ByteScan {
  const std::uint8_t* X;
  Index rows;
  const std::uint8_t* tiles;
  Groups groups;
  const std::uint8_t* Q;
  const std::uint8_t* sums;  // of the queries, by row
  Index queries;
};

// As scan_nearest and scan_within; they return how many distances were computed, or -1 if stopped.
Index byte_nearest(const ByteScan& scan, Index k, double* distances, Index* rows, Stop& stop);
Index byte_within(const ByteScan& scan, double radius, RadiusResult& result, Stop& stop);

}  // namespace sixfold
