// Double-double numbers: hi + lo with |lo| <= ulp(hi)/2, about 32 decimal digits (Dekker 1971, Knuth 4.2.2);
// one at a time, or as many as a vector register holds.
//
// Compilers must not reorder these sums; -ffast-math is never used, and the products ask for the fused
// multiply-add themselves.
#pragma once

#include <cmath>

#include "core/simd.hpp"

namespace sixfold {

inline double fused(double x, double y, double z) { return std::fma(x, y, z); }
inline Lanes fused(Lanes x, Lanes y, Lanes z) {
  Lanes result;
  for (Index k = 0; k < kLanes; ++k) result[k] = std::fma(x[k], y[k], z[k]);
  return result;
}

template <class Number>
struct Doubled {
  Number hi{}, lo{};

  Number value() const { return hi + lo; }

  void add(Number x) {
    const Number sum = hi + x, part = sum - hi;
    lo += (hi - (sum - part)) + (x - part);
    hi = sum;
  }

  // += x * y, exact product.
  void add_product(Number x, Number y) {
    const Number product = x * y;
    const Number error = fused(x, y, -product);
    add(product);
    lo += error;
  }

  void add(const Doubled& x) {
    add(x.hi);
    lo += x.lo;
  }
};

using DoubleDouble = Doubled<double>;

}  // namespace sixfold
