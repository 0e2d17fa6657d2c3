// Symmetric matrices that lose and gain rows where they are: the moves that make room, without a second one.
//
// Rows i of a square of `size` are at square + i * stride. All of them are independent of each other, so that
// threads share them; a gigabyte takes two of them about 50 ms, during which nobody asks the clock.
#pragma once

#include "core/table.hpp"

namespace sixfold {

// Rows and columns movers[k] >= kept take the places holes[k] < kept, and the square has `kept` rows then:
// entry (i, j) becomes what was at (from(i), from(j)), where from(holes[k]) = movers[k] and from(i) = i else.
// Movers are only read, so that each row of the result can be made alone.
template <class T>
void fill_holes(T* square, Index stride, Index kept, const Index* holes, const Index* movers, Index count);

// `rows` rows of as many numbers, `stride` apart, come to be `wider` apart.
template <class T>
void widen_rows(T* square, Index rows, Index stride, Index wider);

}  // namespace sixfold
