// Registers of doubles or floats under one name, for loops that are written once for both.
#pragma once

#include <type_traits>

#include "core/float_lanes.hpp"
#include "core/simd.hpp"

namespace sixfold {

// As many numbers as a register holds.
template <class T>
using Pack = std::conditional_t<std::is_same_v<T, float>, FloatLanes, Lanes>;
template <class T>
inline constexpr Index kWidth = std::is_same_v<T, float> ? kFloatLanes : kLanes;

inline Lanes load_pack(const double* from) { return load(from); }
inline FloatLanes load_pack(const float* from) { return load_floats(from); }
inline void store_pack(double* to, Lanes value) { store(to, value); }
inline void store_pack(float* to, FloatLanes value) { store_floats(to, value); }
template <class T>
inline Pack<T> pack_of(T value) {
  return value - Pack<T>{};
}

}  // namespace sixfold
