// Coordinates of rows in the space of landmarks, from their kernels with the landmarks.
#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// values (rows x rank, rows `stride` apart) becomes values T' for a lower triangle T (rank x rank), and
// squares_i the sum of squares of its row i. T has to hold zeros above its diagonal. Every number
// is the same for any number of threads. Returns whether it completed.
template <class T>
bool triangle_rows(T* values, Index rows, Index stride, Index rank, const T* triangle, double* squares,
                   Stop& stop);

// squares_i = the sum of squares of row i, added in double.
template <class T>
void row_lengths(const T* values, Index rows, Index stride, Index columns, double* squares);

}  // namespace sixfold
