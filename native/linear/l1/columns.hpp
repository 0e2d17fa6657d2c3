#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// out (count x columns): out_kj = sum_i v_ki (x_ij - shift_j), of all columns or of `columns` chosen ones
// (null for all). X must be contiguous along rows or along columns, along rows where columns are chosen.
// Returns false if stopped, and out is then worthless; so do the loops below.
template <class T>
bool correlations(const Table<T>& X, const Index* chosen, Index columns, const double* shift, const double* v,
                  Index count, double* out, Stop& stop);

// out_i = sum_k w_k (x_i,chosen_k - shift_k), for `count` chosen columns.
template <class T>
bool combination(const Table<T>& X, const Index* chosen, Index count, const double* shift, const double* w,
                 double* out, Stop& stop);

// Row weights of a Gram matrix: the root of the weight that row i has for the columns of group g is
// root[i * groups + g], and group[k] says which group the k-th chosen column belongs to.
struct RowRoots {
  const double* root;
  Index groups;
  const Index* group;
};

// gram (count - old, count): the rows `old`, ..., `count - 1` of the Gram matrix of the chosen columns,
// gram_kl = sum_i root_i,group_k root_i,group_l (x_i,chosen_k - shift_k) (x_i,chosen_l - shift_l).
// A chosen column of -1 is a column of ones: the intercept.
template <class T>
bool gram_rows(const Table<T>& X, const RowRoots& roots, const Index* chosen, Index old, Index count,
               const double* shift, double* gram, Stop& stop);

}  // namespace sixfold
