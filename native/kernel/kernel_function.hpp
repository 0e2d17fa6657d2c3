// Kernels of rows x, z as functions of their product x.z, on whole vectors of doubles or floats:
//
//     linear      x.z
//     polynomial  (gamma x.z + coef0)^degree
//     rbf         exp(-gamma |x - z|^2),  |x - z|^2 = |x|^2 + |z|^2 - 2 x.z, never below 0
//     sigmoid     tanh(gamma x.z + coef0)
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/float_math.hpp"
#include "core/vector_math.hpp"
#include "kernel/packs.hpp"

namespace sixfold {

enum class KernelKind { linear, polynomial, rbf, sigmoid };

struct KernelForm {
  KernelKind kind;
  double gamma, coef0;
  int degree;
};

// Each takes the products of one row x with some rows z, and their squared lengths.
template <class T>
struct LinearKernel {
  Pack<T> operator()(Pack<T> product, T, Pack<T>) const { return product; }
};

template <class T>
struct PolynomialKernel {
  T gamma, coef0;
  int degree;

  Pack<T> operator()(Pack<T> product, T, Pack<T>) const {
    Pack<T> base = gamma * product + coef0, power = pack_of<T>(1);
    for (int left = degree; left > 0; left /= 2) {
      if (left % 2 == 1) power *= base;
      if (left > 1) base *= base;
    }
    return power;
  }
};

template <class T>
struct RbfKernel {
  T gamma;

  Pack<T> operator()(Pack<T> product, T length, Pack<T> lengths) const {
    const Pack<T> distance = (length + lengths) - 2 * product;
    // A distance that overflows is no number, and not 0.
    return exponential(-gamma * (distance < 0 ? Pack<T>{} : distance));
  }
};

// tanh(u) to three units in the last place: for |u| > 0.55 it is (1 - e) / (1 + e) with e = exp(-2 |u|) <
// 1/3, and the sign of u. Below, 1 - e would lose the digits of a small result, so there it is sinh(u) /
// cosh(u),
//
//     sinh(u) = u (1 + u^2 / (2 * 3) (1 + u^2 / (4 * 5) (1 + ...))),   cosh(u) = 1 + u^2 / (1 * 2) (1 + ...)
//
// all terms of one sign. The first left out is, for |u| = 0.55, 3e-18 of the result for doubles, 7e-10 for
// floats.
template <class T>
Pack<T> hyperbolic_tangent(Pack<T> u) {
  constexpr int kTerms = std::is_same_v<T, float> ? 4 : 7;
  const Pack<T> square = u * u;
  Pack<T> sinh = pack_of<T>(1), cosh = sinh;
#pragma GCC unroll 7
  for (int k = kTerms; k > 0; --k) {
    sinh = sinh * (square * (T(1) / (2 * k * (2 * k + 1)))) + 1;
    cosh = cosh * (square * (T(1) / ((2 * k - 1) * 2 * k))) + 1;
  }
  const Pack<T> size = larger(u, -u), e = exponential(-2 * size), large = (1 - e) / (1 + e);
  return size > T(0.55) ? (u < 0 ? -large : large) : u * (sinh / cosh);
}

template <class T>
struct SigmoidKernel {
  T gamma, coef0;

  Pack<T> operator()(Pack<T> product, T, Pack<T>) const {
    return hyperbolic_tangent<T>(gamma * product + coef0);
  }
};

// Calls use(kernel) with the kernel of this form.
template <class T, class Use>
decltype(auto) with_kernel(const KernelForm& form, const Use& use) {
  // A factor beyond the largest float would make NaN of a distance of 0.
  constexpr double kLargest = std::numeric_limits<T>::max();
  const T gamma = static_cast<T>(std::clamp(form.gamma, -kLargest, kLargest));
  const T coef0 = static_cast<T>(std::clamp(form.coef0, -kLargest, kLargest));
  switch (form.kind) {
    case KernelKind::polynomial:
      return use(PolynomialKernel<T>{gamma, coef0, form.degree});
    case KernelKind::rbf:
      return use(RbfKernel<T>{gamma});
    case KernelKind::sigmoid:
      return use(SigmoidKernel<T>{gamma, coef0});
    default:
      return use(LinearKernel<T>{});
  }
}

}  // namespace sixfold
