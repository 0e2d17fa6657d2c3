// Products of a panel of rows with a strip of queries, compared with a threshold a query.
//
// A panel holds kPanelRows rows, coordinate after coordinate; a strip kStripQueries queries likewise, so both
// are read straight through. The sums of a tile stay in registers (24 of 32 with AVX-512: two loads and
// twelve broadcasts feed 24 multiply-adds), and all that leaves is one bit a sum.
#pragma once

#include "core/float_lanes.hpp"

namespace sixfold {

inline constexpr Index kPanelRows = 32;  // at every level, so that an index can be moved between machines
#if defined(__AVX512F__)
inline constexpr Index kStripQueries = 12;
#else
inline constexpr Index kStripQueries = 6;  // 16 registers
#endif

inline constexpr Index panels_of(Index rows) { return (rows + kPanelRows - 1) / kPanelRows; }

// passed[j]: bit i is set where sum_k panel[k][i] strip[k][j] >= least[j].
// With kKeep also sums[j][i], the sums themselves.
template <bool kKeep>
[[gnu::noinline]] void tile_products(const float* __restrict panel, const float* __restrict strip,
                                     Index coordinates, const float* __restrict least,
                                     std::uint32_t* __restrict passed, float* __restrict sums) {
  for (Index j = 0; j < kStripQueries; ++j) passed[j] = 0;
  for (Index first = 0; first < kPanelRows; first += 2 * kFloatLanes) {
    const float* a = panel + first;
    const float* b = strip;
    FloatLanes low[kStripQueries] = {}, high[kStripQueries] = {};
    for (Index k = 0; k < coordinates; ++k, a += kPanelRows, b += kStripQueries) {
      const FloatLanes x = load_floats(a), y = load_floats(a + kFloatLanes);
#pragma GCC unroll 12
      for (Index j = 0; j < kStripQueries; ++j) {
        low[j] += x * b[j];
        high[j] += y * b[j];
      }
    }
#pragma GCC unroll 12
    for (Index j = 0; j < kStripQueries; ++j) {
      passed[j] |= (at_least(low[j], least[j]) | at_least(high[j], least[j]) << kFloatLanes) << first;
      if constexpr (kKeep) {
        store_floats(sums + j * kPanelRows + first, low[j]);
        store_floats(sums + j * kPanelRows + first + kFloatLanes, high[j]);
      }
    }
  }
}

}  // namespace sixfold
