// Rows packed for products: gathered, shifted and converted on the way, and the products of what was packed.
//
// A panel holds kPanelWidth rows, coordinate after coordinate, a strip kStripRows likewise, so that both are
// read straight through. The sums of a tile of kStripRows x kPanelWidth stay in registers (24 of the 32 of
// AVX-512): per coordinate, three loads and kStripRows broadcasts feed 3 kStripRows multiply-adds.
//
// Every sum takes its terms one by one in the order of the coordinates, and so do the squared lengths. An
// entry is therefore the same to the last bit in whatever tile it is computed, x.z = z.x, and equal rows are
// at distance |x|^2 + |z|^2 - 2 x.z = 0 exactly.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/table.hpp"
#include "kernel/kernel_function.hpp"

namespace sixfold {

template <class T>
inline constexpr Index kPanelWidth = 3 * kWidth<T>;
#if defined(__AVX512F__)
inline constexpr Index kStripRows = 8;
#else
inline constexpr Index kStripRows = 4;  // 16 registers
#endif

// Coordinates that are multiplied at a time: a panel of them, 24 KB, stays in the L1 cache.
inline constexpr Index kDepth = 128;

inline constexpr Index pieces(Index size, Index piece) { return (size + piece - 1) / piece; }

// Some rows of a table, less a centre: row i is data[index[i]] - centre. Without index all of them.
template <class S>
struct ChosenRows {
  const S* data;
  Index count, columns;
  const Index* index;    // or null
  const double* centre;  // or null
  Index stride;          // from a row to the next

  const S* row(Index i) const { return data + (index != nullptr ? index[i] : i) * stride; }
  ChosenRows part(Index first, Index size) const {
    if (index != nullptr) return {data, size, columns, index + first, centre, stride};
    return {row(first), size, columns, nullptr, centre, stride};
  }
};

// One rounding where the processor has such an instruction, as the compiler gives the sums of a tile: left to
// itself, it split some of the squares here in two.
template <class T>
inline T multiply_add(T a, T b, T sum) {
#if defined(__FMA__)
  return std::fma(a, b, sum);
#else
  return a * b + sum;
#endif
}

// Rows [first, last) as pieces of kPiece rows, and their squared lengths; what is missing of the last piece
// is filled with zeros.
template <Index kPiece, class S, class T>
void pack_pieces(const ChosenRows<S>& rows, Index first, Index last, T* __restrict out,
                 T* __restrict lengths) {
  constexpr Index kRun = 64;  // coordinates of a row read at a time: what is written stays in the L1 cache
  const Index depth = rows.columns;
  for (Index from = first; from < last; from += kPiece, out += kPiece * depth, lengths += kPiece) {
    const Index here = std::min(kPiece, last - from);
    if (here < kPiece) std::fill_n(out, kPiece * depth, T{0});
    T sums[kPiece] = {};
    for (Index begin = 0; begin < depth; begin += kRun) {
      const Index end = std::min(begin + kRun, depth);
      for (Index r = 0; r < here; ++r) {
        const S* x = rows.row(from + r);
        if (rows.centre == nullptr) {
          for (Index k = begin; k < end; ++k) out[k * kPiece + r] = static_cast<T>(x[k]);
        } else {
          for (Index k = begin; k < end; ++k)
            out[k * kPiece + r] = static_cast<T>(static_cast<double>(x[k]) - rows.centre[k]);
        }
      }
      for (Index k = begin; k < end; ++k)
        for (Index r = 0; r < kPiece; ++r)
          sums[r] = multiply_add(out[k * kPiece + r], out[k * kPiece + r], sums[r]);
    }
    std::copy_n(sums, kPiece, lengths);
  }
}

// What the product after this one reads: it is fetched on the way. The processor finds the next lines of a
// stream by itself, but not the next stream: without this, 784 doubles a row ran at 61% of the peak, and with
// it at 86% (floats 75% and 92%).
struct Ahead {
  const void* strip;
  const void* panel;  // of which this product fetches panel_step bytes per coordinate, others the rest
  Index panel_step;
};

// tile[i][j] = sum_k strip[k][i] panel[k][j], added to what is there unless kFresh.
template <bool kFresh, class T>
[[gnu::noinline]] void add_products(const T* __restrict strip, const T* __restrict panel, Index depth,
                                    T* __restrict tile, const Ahead& ahead) {
  const char* next_strip = static_cast<const char*>(ahead.strip);
  const char* next_panel = static_cast<const char*>(ahead.panel);
  Pack<T> sum[kStripRows][3] = {};
  if constexpr (!kFresh) {
#pragma GCC unroll 8
    for (Index i = 0; i < kStripRows; ++i)
#pragma GCC unroll 3
      for (Index v = 0; v < 3; ++v) sum[i][v] = load_pack(tile + i * kPanelWidth<T> + v * kWidth<T>);
  }
  for (Index k = 0; k < depth; ++k, strip += kStripRows, panel += kPanelWidth<T>) {
    __builtin_prefetch(next_strip);
    __builtin_prefetch(next_panel);
    next_strip += kStripRows * sizeof(T);
    next_panel += ahead.panel_step;
    Pack<T> across[3];
#pragma GCC unroll 3
    for (Index v = 0; v < 3; ++v) across[v] = load_pack(panel + v * kWidth<T>);
#pragma GCC unroll 8
    for (Index i = 0; i < kStripRows; ++i)
#pragma GCC unroll 3
      for (Index v = 0; v < 3; ++v) sum[i][v] += across[v] * strip[i];
  }
#pragma GCC unroll 8
  for (Index i = 0; i < kStripRows; ++i)
#pragma GCC unroll 3
    for (Index v = 0; v < 3; ++v) store_pack(tile + i * kPanelWidth<T> + v * kWidth<T>, sum[i][v]);
}

}  // namespace sixfold
