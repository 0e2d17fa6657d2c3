// Kernels of all pairs of two sets of rows, as a matrix or multiplied by coefficients at once.
//
// Rows B are packed once into panels (row_panels.hpp). Threads share the rows A in chunks that stay, packed,
// in the L2 cache; for each panel a chunk makes one tile of products, the kernel is applied to it while it is
// in the cache, and then it is copied out, mirrored, or multiplied by the coefficients. Every entry and every
// sum is the same for any number of threads.
#pragma once

#include "core/stop.hpp"
#include "kernel/kernel_function.hpp"
#include "kernel/row_panels.hpp"

namespace sixfold {

// Where a matrix is: entry (i, j) at data[i * stride + j].
template <class T>
struct StridedRows {
  T* data;  // or null
  Index stride;

  T* row(Index i) const { return data + i * stride; }
};

// out_ij = K(A_i, B_j), and the same in mirrored_ji unless that is null. With `same` A is B and `mirrored` is
// `out`: half of it is computed. All of these return whether they completed.
template <class S, class T>
bool kernel_block(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B, bool same,
                  StridedRows<T> out, StridedRows<T> mirrored, Stop& stop);

// out (rows of A x width) = K(A, B) coefficients (rows of B x width), computed in T and added in double.
template <class T, class S>
bool kernel_scores(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B,
                   const double* coefficients, Index width, double* out, Stop& stop);

// products[i * columns + j] becomes the kernel of the rows whose product it is; squared lengths may be null
// where the kernel is not rbf.
template <class T>
void kernel_apply(const KernelForm& form, T* products, Index rows, Index columns, const T* a_lengths,
                  const T* b_lengths);

// How kernel values are rounded: the largest size of one in double precision, and how far single precision is
// from it at most, infinite where it overflows; the largest size of a number in the table, and the
// largest squared length of a row less the centre.
struct KernelRounding {
  double value, apart, number, squared_length;
};

// Kernel values are those of the sample with each other; numbers and lengths those of all rows of its table.
template <class S>
KernelRounding kernel_rounding(const KernelForm& form, const ChosenRows<S>& sample, const ChosenRows<S>& all);

}  // namespace sixfold
