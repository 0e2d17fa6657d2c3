// exp on whole vectors of floats; see vector_math.hpp for doubles.
//
// exp(x) = 2^k exp(r) with k = round(x / log 2) and |r| <= log(2) / 2: adding 1.5 * 2^23 leaves k in the low
// bits, where it is shifted into the exponent; log 2 is subtracted in two parts (Cody and Waite 1980), and
// exp(r) is its Taylor polynomial of degree 7, whose first term left out is 5e-9 of the result. Tests hold it
// to two units in the last place.
#pragma once

#include <cstdint>

#include "core/float_lanes.hpp"

namespace sixfold {

using FloatLanesBits = std::int32_t __attribute__((vector_size(kFloatLanes * sizeof(std::int32_t))));

inline FloatLanes larger(FloatLanes a, FloatLanes b) { return a > b ? a : b; }
inline FloatLanes smaller(FloatLanes a, FloatLanes b) { return a < b ? a : b; }

// e^x; 0 below -87 (1.6e-38), so that nothing is a subnormal number; beyond 88 it stays at what it is there.
inline FloatLanes exponential(FloatLanes x) {
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23
  const auto vanishes = x < -87.0F;
  x = smaller(larger(x, -87.0F - FloatLanes{}), 88.0F - FloatLanes{});
  const FloatLanes shifted = x * 1.44269504F + kShift;
  const FloatLanes k = shifted - kShift;
  const FloatLanes r = (x - k * 0.693359375F) + k * 2.12194440e-4F;
  FloatLanes p = r * (1.0F / 5040.0F) + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto result = reinterpret_cast<FloatLanes>(reinterpret_cast<FloatLanesBits>(p) +
                                                   (reinterpret_cast<FloatLanesBits>(shifted) << 23));
  return vanishes ? FloatLanes{} : result;
}

}  // namespace sixfold
