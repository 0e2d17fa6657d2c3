#pragma once

#include "stop.hpp"
#include "table.hpp"

namespace sixfold {

// out (count x columns): out_kj = sum_i v_ki (x_ij - shift_j). X must be contiguous along rows or along
// columns. Returns false if stopped, and out is then worthless; so do the loops below.
template <class T>
bool correlations(const Table<T>& X, const double* shift, const double* v, Index count, double* out,
                  Stop& stop);

// out_i = sum_k w_k (x_i,chosen_k - shift_k), for `count` chosen columns.
template <class T>
bool combination(const Table<T>& X, const Index* chosen, Index count, const double* shift, const double* w,
                 double* out, Stop& stop);

// gram (count - old, count): the rows `old`, ..., `count - 1` of the Gram matrix of the chosen columns,
// gram_kl = sum_i share_i (x_i,chosen_k - shift_k) (x_i,chosen_l - shift_l).
template <class T>
bool gram_rows(const Table<T>& X, const double* share, const Index* chosen, Index old, Index count,
               const double* shift, double* gram, Stop& stop);

}  // namespace sixfold
