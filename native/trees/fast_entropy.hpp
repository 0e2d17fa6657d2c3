// x log2 x in single precision, written so that compilers make vectors of loops over it.
//
// x = 2^k m with m between sqrt(1/2) and sqrt(2); log2 m = t p(t), t = m - 1, where p of degree 7 is fitted
// to the least largest error, 4.9e-8. A table is as exact, but gathers from it took twice as long.
#pragma once

#include <bit>
#include <cstdint>

namespace sixfold {

// log2 x of a normal x > 0, and a finite number for 0. With u = 2^-24 its error is at most u (5 + |log2 x|):
// u of the polynomial's fit, 4 u of its rounding (all terms are below 0.75), and that of adding k.
inline float fast_log2(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t power = (bits - 0x3f3504f3) >> 23;  // 0x3f3504f3 is sqrt(1/2)
  const float t = std::bit_cast<float>(bits - (power << 23)) - 1.0f;
  float p = -0.1457439512014389f * t + 0.23689016699790955f;
  p = p * t - 0.25006914138793945f;
  p = p * t + 0.28670749068260193f;
  p = p * t - 0.36008721590042114f;
  p = p * t + 0.48093944787979126f;
  p = p * t - 0.7213571667671204f;
  p = p * t + 1.4426947832107544f;
  return static_cast<float>(power) + t * p;
}

// f(x) = x log2 x, 0 for 0.
inline float fast_x_log2_x(float x) { return x * fast_log2(x); }

}  // namespace sixfold
