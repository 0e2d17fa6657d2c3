// Double-double numbers: hi + lo with |lo| <= ulp(hi)/2, about 32 decimal digits (Dekker 1971, Knuth 4.2.2).
//
// Compilers must not reorder these sums; -ffast-math is never used, and the products ask for the fused
// multiply-add themselves.
#pragma once

#include <cmath>

namespace sixfold {

struct DoubleDouble {
  double hi = 0.0, lo = 0.0;

  double value() const { return hi + lo; }

  void add(double x) {
    const double sum = hi + x, part = sum - hi;
    lo += (hi - (sum - part)) + (x - part);
    hi = sum;
  }

  // += x * y, exact product.
  void add_product(double x, double y) {
    const double product = x * y;
    const double error = std::fma(x, y, -product);
    add(product);
    lo += error;
  }

  void add(const DoubleDouble& x) {
    add(x.hi);
    lo += x.lo;
  }
};

}  // namespace sixfold
