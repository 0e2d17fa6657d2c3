// The rows of a small dense table as Newton's loops read them: about their mean, in blocks, a column after
// the other, so that rows lie side by side in the lanes of a vector; see newton_fit.cpp.
#pragma once

#include <algorithm>
#include <functional>

#include "core/aligned_memory.hpp"
#include "core/simd.hpp"
#include "linear/smooth/newton_fit.hpp"

namespace sixfold {

inline constexpr Index kTile = kLanes == 8 ? 4 : 3;  // columns and rows of products that registers hold
inline constexpr Index kBlock = 256;                 // rows: with 11 columns they are in the L1 cache
inline constexpr Index kChunkBlocks = 16;            // of a part that a thread works on
inline constexpr Index kMostChunks = 16;
inline constexpr Index kMostKept = 1 << 21;  // numbers, 16 MB: larger tables are packed anew in every pass

constexpr Index whole(Index size, Index unit) { return (size + unit - 1) / unit * unit; }

// The rows about their mean, block by block and column by column; rows that fill up a vector have weight 0.
struct Packed {
  Index rows, columns, width, tall, blocks, padded;  // width: with ones; tall: and filled up to whole tiles
  AlignedArray<double> z, q, y;                      // y: column after column, `padded` apart
  std::function<void(Index, double*)> pack;          // a block of z, where not all are kept
  double spread = 0.0;                               // root mean square distance of a row from the mean
  const double* reach = nullptr;                     // columns: largest |z| of rows that count

  Index count(Index block) const { return whole(std::min(kBlock, rows - block * kBlock), kLanes); }
  // Parts that threads share, and are added up in order: as many as the table asks for, not the machine.
  Index chunks() const { return std::clamp<Index>(blocks / kChunkBlocks, 1, kMostChunks); }
  Index room() const { return z.data() == nullptr ? tall * kBlock : 0; }
  // The columns of a block, kBlock apart; those that are not kept are packed in `buffer`, zeros of size
  // room().
  const double* block(Index number, double* buffer) const {
    if (z.data() != nullptr) return z.data() + number * tall * kBlock;
    pack(number, buffer);
    return buffer;
  }
};

// mean_j = sum_i q_i x_ij, counted from the first row, so that that of a constant column is exact.
template <class T>
void find_means(const Table<T>& X, const double* q, double* mean) {
  const Index d = X.columns;
  const T* first = X.row(0);
  std::fill_n(mean, d, 0.0);
  for (Index i = 1; i < X.rows; ++i) {
    const T* row = X.row(i);
    if (X.column_stride == 1)
      for (Index j = 0; j < d; ++j)
        mean[j] += q[i] * (static_cast<double>(row[j]) - static_cast<double>(first[j]));
    else
      for (Index j = 0; j < d; ++j)
        mean[j] += q[i] * (static_cast<double>(row[j * X.column_stride]) -
                           static_cast<double>(first[j * X.column_stride]));
  }
  for (Index j = 0; j < d; ++j) mean[j] += static_cast<double>(first[j * X.column_stride]);
}

// A block of rows of which those that fill up a vector are 0, as columns that fill up a tile are already.
template <class T>
void pack_block(const Table<T>& X, const double* mean, bool intercept, Index block, double* z) {
  const Index first = block * kBlock, count = std::min(kBlock, X.rows - first), d = X.columns;
  const auto about = [=](Index j) { return intercept ? mean[j] : 0.0; };
  Index i = 0;
  // Squares of values are transposed in registers; the last one overlaps that before it.
  if (X.column_stride == 1 && d >= kLanes)
    for (; i + kLanes <= count; i += kLanes)
      for (Index j = 0; j < d; j += kLanes) {
        const Index from = std::min(j, d - kLanes);
        Lanes square[kLanes];
        for (Index k = 0; k < kLanes; ++k) square[k] = load(X.row(first + i + k) + from);
        transpose(square);
        for (Index k = 0; k < kLanes; ++k)
          store(z + (from + k) * kBlock + i, square[k] - broadcast(about(from + k)));
      }
  for (; i < count; ++i) {
    const T* row = X.row(first + i);
    for (Index j = 0; j < d; ++j)
      z[j * kBlock + i] = static_cast<double>(row[j * X.column_stride]) - about(j);
  }
  if (intercept) std::fill_n(z + d * kBlock, count, 1.0);
  for (Index j = 0; j < d + intercept; ++j)
    std::fill(z + j * kBlock + count, z + j * kBlock + whole(count, kLanes), 0.0);
}

template <class T>
Packed pack_rows(const NewtonProblem<T>& of, double* mean) {
  const Index n = of.X.rows, d = of.X.columns, blocks = (n + kBlock - 1) / kBlock;
  const Index width = d + (of.intercept ? 1 : 0), tall = whole(width, kTile), padded = blocks * kBlock;
  const bool kept = padded * tall <= kMostKept;
  Packed to{n,
            d,
            width,
            tall,
            blocks,
            padded,
            aligned_zeros(kept ? padded * tall : 0),
            aligned_zeros(padded),
            AlignedArray<double>(padded * of.y.columns),
            nullptr};
  for (Index i = 0; i < n; ++i) to.q.data()[i] = (of.weight == nullptr ? 1.0 : of.weight[i]) / of.weight_sum;
  std::fill_n(to.y.data(), padded * of.y.columns, 1.0);
  for (Index k = 0; k < of.y.columns; ++k)
    for (Index i = 0; i < n; ++i)
      to.y.data()[k * padded + i] = static_cast<double>(of.y.row(i)[k * of.y.column_stride]);
  if (of.most_steps > 0) find_means(of.X, to.q.data(), mean);  // else they are given
  to.pack = [X = of.X, mean, intercept = of.intercept](Index block, double* z) {
    pack_block(X, mean, intercept, block, z);
  };
  for (Index block = 0; kept && block < blocks; ++block) to.pack(block, to.z.data() + block * tall * kBlock);
  return to;
}

}  // namespace sixfold
