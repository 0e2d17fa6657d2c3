// exp and log1p on whole vectors, which the compiler leaves to one call a number.
//
// exp(x) = 2^k exp(r) with k = round(x / log 2) and |r| <= log(2) / 2: adding 1.5 * 2^52 leaves k in the low
// bits, where it is shifted into the exponent; log 2 is subtracted in two parts (Cody and Waite 1980), and
// exp(r) is its Taylor polynomial of degree 13. log1p(e) = 2 atanh(e / (2 + e)) as a power series. Tests hold
// losses made of them to a relative 1e-14.
#pragma once

#include <cstdint>

#include "core/simd.hpp"

namespace sixfold {

using LanesBits = std::int64_t __attribute__((vector_size(kLanes * sizeof(std::int64_t))));

inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
inline Lanes magnitude(Lanes a) { return larger(a, -a); }
inline Lanes broadcast(double value) { return value - Lanes{}; }

inline double sum(Lanes a) {
  double total = 0.0;
  for (Index k = 0; k < kLanes; ++k) total += a[k];
  return total;
}

// The same in halves, each added to the other: the sum of a loop whose next turn waits for it.
template <Index kHalf = kLanes / 2>
inline double pairwise_sum(Lanes a) {
  if constexpr (kHalf == 0) {
    return a[0];
  } else {
    const auto others = [&]<Index... k>(std::integer_sequence<Index, k...>) {
      return __builtin_shufflevector(a, a, (k ^ kHalf)...);
    };
    return pairwise_sum<kHalf / 2>(a + others(std::make_integer_sequence<Index, kLanes>()));
  }
}

// e^x; 0 below -690 (1e-300), so that products with it are not subnormal numbers, which made the softmax pass
// four times slower; beyond 708 it stays at what it is there (3e307).
inline Lanes exponential(Lanes x) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
  const auto vanishes = x < -690.0;
  x = smaller(larger(x, broadcast(-690.0)), broadcast(708.0));
  const Lanes shifted = x * 1.4426950408889634 + kShift;
  const Lanes k = shifted - kShift;
  const Lanes r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  Lanes p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const Lanes result =
      reinterpret_cast<Lanes>(reinterpret_cast<LanesBits>(p) + (reinterpret_cast<LanesBits>(shifted) << 52));
  return vanishes ? Lanes{} : result;
}

// log(1 + e) for -0.5 <= e <= 1: z = e / (2 + e) is at most 1/3 in size, so the term of z^33 is the last that
// counts.
inline Lanes log_one_plus(Lanes e) {
  const Lanes z = e / (2.0 + e), square = z * z;
  Lanes p = square * (1.0 / 33.0) + 1.0 / 31.0;
#pragma GCC unroll 15
  for (int power = 29; power >= 1; power -= 2) p = p * square + 1.0 / power;
  return 2.0 * z * p;
}

// log(1 + e) for any e >= 0: the power of 2 in 1 + e is split off, which keeps the digits of a small e.
inline Lanes log_of_one_plus(Lanes e) {
  const LanesBits bits = reinterpret_cast<LanesBits>(1.0 + e), power = (bits >> 52) - 1023;
  const Lanes fraction = reinterpret_cast<Lanes>(bits - (power << 52)) - 1.0;
  return __builtin_convertvector(power, Lanes) * 6.93147180559945309417e-01 +
         log_one_plus(power == 0 ? e : fraction);
}

// log(x) for normal x > 0, and a finite number for 0: x = 2^k m with m between 1/sqrt(2) and sqrt(2).
inline Lanes logarithm(Lanes x) {
  const LanesBits bits = reinterpret_cast<LanesBits>(x), power = (bits >> 52) - 1023;
  const Lanes m = reinterpret_cast<Lanes>(bits - (power << 52)), k = __builtin_convertvector(power, Lanes);
  const auto upper = m > 1.4142135623730951;
  return (upper ? k + 1.0 : k) * 6.93147180559945309417e-01 + log_one_plus((upper ? 0.5 * m : m) - 1.0);
}

}  // namespace sixfold
