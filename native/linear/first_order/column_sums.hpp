// Sums over the columns of one row, on the way to rows that are somewhere else in memory.
//
// Rows in random order come slowly from memory, and a core that asks for a whole row at once stands still
// until most of it is there. So the loops over a row's columns ask for the row to come some visits ahead, one
// cache line with every eight columns: 22 ms a pass of 200,000 x 100 on one thread, where asking for whole
// rows took 60. Inlined, because what a core can look ahead is a number of instructions: the pass took 32 ms
// with this a call and more bookkeeping a visit (the two were not told apart).
#pragma once

#include <algorithm>

#include "core/table.hpp"

namespace sixfold {

constexpr Index kSums = 8;              // columns at a time: a cache line of doubles
constexpr Index kAheadBytes = 1 << 13;  // of rows that are on their way

// How many visits ahead to ask for a row.
template <class T>
Index rows_ahead(const Table<T>& X) {
  return std::clamp<Index>(kAheadBytes / (X.columns * static_cast<Index>(sizeof(T)) + 1), 1, 32);
}

// The sum of column(j) over d columns, on the way asking for row `ahead`. Eight partial sums, whatever the
// instruction set, so all of them give the same result.
template <class T, class Column>
[[gnu::always_inline]] inline double sum_columns(Index d, const T* ahead, Column column) {
  double lanes[kSums] = {};
  Index j = 0;
#pragma GCC unroll 4
  for (; j + kSums <= d; j += kSums) {
    __builtin_prefetch(ahead + j, 0, 3);
#pragma omp simd
    for (Index k = 0; k < kSums; ++k) lanes[k] += column(j + k);
  }
  // A row that begins in mid-line may end one line further.
  __builtin_prefetch(ahead + j, 0, 3);
  __builtin_prefetch(ahead + d - 1, 0, 3);
  double rest = 0.0;
  if (j + kSums / 2 <= d) {
    double half[kSums / 2];
#pragma omp simd
    for (Index k = 0; k < kSums / 2; ++k) half[k] = column(j + k);
    rest = (half[0] + half[2]) + (half[1] + half[3]);
    j += kSums / 2;
  }
  const Index last = d & (kSums / 2 - 1);
  for (Index k = 0; k < last; ++k) rest += column(j + k);
  return rest +
         (((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7])));
}

}  // namespace sixfold
