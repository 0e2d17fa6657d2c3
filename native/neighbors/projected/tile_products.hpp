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

// Calls use(j, first, low, high) with the sums of query j and the rows first, ..., first + 2 kFloatLanes - 1
// of the panel: sum_k panel[k][i] strip[k][j].
template <class Use>
[[gnu::always_inline]] inline void for_tile_sums(const float* __restrict panel, const float* __restrict strip,
                                                 Index coordinates, const Use& use) {
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
    for (Index j = 0; j < kStripQueries; ++j) use(j, first, low[j], high[j]);
  }
}

// Bit i is set where sum i is at least `least`.
inline std::uint32_t tile_bits(FloatLanes low, FloatLanes high, float least) {
  return at_least(low, least) | at_least(high, least) << kFloatLanes;
}

// passed[j]: bit i is set where the sum of row i and query j is at least least[j].
// With kKeep also sums[j][i], the sums themselves.
template <bool kKeep>
[[gnu::noinline]] void tile_products(const float* __restrict panel, const float* __restrict strip,
                                     Index coordinates, const float* __restrict least,
                                     std::uint32_t* __restrict passed, float* __restrict sums) {
  for (Index j = 0; j < kStripQueries; ++j) passed[j] = 0;
  for_tile_sums(panel, strip, coordinates, [&](Index j, Index first, FloatLanes low, FloatLanes high) {
    passed[j] |= tile_bits(low, high, least[j]) << first;
    if constexpr (kKeep) {
      store_floats(sums + j * kPanelRows + first, low);
      store_floats(sums + j * kPanelRows + first + kFloatLanes, high);
    }
  });
}

}  // namespace sixfold
