// The losses of sixfold.risk.losses and their derivatives in the score, for loops that visit one row at a
// time. At a kink the derivative is 0.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/table.hpp"

namespace sixfold {

// The losses that have a gradient, in the order of sixfold.solvers.passes.LOSS_CODES; then
// the perceptron with other conventions for a score of 0, in the order of AT_ZERO.
enum class LossCode : int {
  squared,
  absolute,
  cubed,
  logistic,
  hinge,
  squared_hinge,
  perceptron,
  softmax,
  perceptron_zero_is_wrong,
  perceptron_zero_is_positive,
  perceptron_zero_is_negative
};

// Gradients that are templates are also those of whole vectors of scores.
struct Squared {
  static double value(double s, double y) { return 0.5 * (s - y) * (s - y); }
  template <class V>
  static V gradient(V s, V y) {
    return s - y;
  }
};
struct Absolute {
  static double value(double s, double y) { return std::abs(s - y); }
  static double gradient(double s, double y) { return static_cast<double>((s > y) - (s < y)); }
};
struct Cubed {
  static double value(double s, double y) { return std::abs(s - y) * (s - y) * (s - y) / 3.0; }
  static double gradient(double s, double y) { return (s - y) * std::abs(s - y); }
};
struct Logistic {
  static double value(double s, double y) {
    return std::max(-y * s, 0.0) + std::log1p(std::exp(-std::abs(s)));
  }
  static double gradient(double s, double y) { return -y / (1.0 + std::exp(y * s)); }
};
struct Hinge {
  static double value(double s, double y) { return std::max(0.0, 1.0 - y * s); }
  template <class V>
  static V gradient(V s, V y) {
    return y * s < 1.0 ? -y : V{};
  }
};
struct SquaredHinge {
  static double value(double s, double y) { return 0.5 * Hinge::value(s, y) * Hinge::value(s, y); }
  static double gradient(double s, double y) { return -y * Hinge::value(s, y); }
};
struct Perceptron {
  static double value(double s, double y) { return std::max(0.0, -y * s); }
  template <class V>
  static V gradient(V s, V y) {
    return y * s < 0.0 ? -y : V{};
  }
};
// The perceptron where a score of 0 is wrong for y = +1, for y = -1, or for both.
template <bool for_plus, bool for_minus>
struct PerceptronAtZero {
  static double value(double s, double y) { return Perceptron::value(s, y); }
  template <class V>
  static auto wrong(V s, V y) {
    if constexpr (for_plus && for_minus)
      return y * s <= 0.0;
    else if constexpr (for_plus)
      return (y > 0.0) ^ (s > 0.0);
    else
      return (y > 0.0) ^ (s >= 0.0);
  }
  template <class V>
  static V gradient(V s, V y) {
    return wrong(s, y) ? -y : V{};
  }
};
struct Softmax {};

// Whether a score is on the wrong side: where 0 is on neither, it is wrong. Real targets have no sides.
template <class Loss, class V>
inline auto wrong_side(V s, V y) {
  if constexpr (requires { Loss::wrong(s, y); })
    return Loss::wrong(s, y);
  else
    return y * s <= 0.0;
}

// The loss of one row, added over its scores. A real or signed target stands for each score; softmax has one
// class index.
template <class Loss>
inline double row_loss(const double* score, const double* y, Index scores) {
  double sum = 0.0;
  for (Index k = 0; k < scores; ++k) sum += Loss::value(score[k], y[k]);
  return sum;
}

template <>
inline double row_loss<Softmax>(const double* score, const double* y, Index scores) {
  const double top = *std::max_element(score, score + scores);
  double sum = 0.0;
  for (Index k = 0; k < scores; ++k) sum += std::exp(score[k] - top);
  return std::log(sum) + (top - score[static_cast<Index>(y[0])]);
}

// g_k = the derivative in score k.
template <class Loss>
inline void gradients(const double* score, const double* y, Index scores, double* g) {
  for (Index k = 0; k < scores; ++k) g[k] = Loss::gradient(score[k], y[k]);
}

template <>
inline void gradients<Softmax>(const double* score, const double* y, Index scores, double* g) {
  const double top = *std::max_element(score, score + scores);
  double sum = 0.0;
  for (Index k = 0; k < scores; ++k) sum += g[k] = std::exp(score[k] - top);
  for (Index k = 0; k < scores; ++k) g[k] /= sum;
  g[static_cast<Index>(y[0])] -= 1.0;
}

// Adds 1 for each score that is on the wrong side. Softmax counts a row under its class unless that has the
// one largest score.
template <class Loss>
inline void count_mistakes(const double* score, const double* y, Index scores, Index* mistakes) {
  for (Index k = 0; k < scores; ++k) mistakes[k] += wrong_side<Loss>(score[k], y[k]);
}

template <>
inline void count_mistakes<Softmax>(const double* score, const double* y, Index scores, Index* mistakes) {
  const Index own = static_cast<Index>(y[0]);
  bool wrong = false;
  for (Index k = 0; k < scores; ++k) wrong |= k != own && score[k] >= score[own];
  mistakes[own] += wrong;
}

// Calls run with the loss as a type, so that it is compiled into the loop.
template <class Run>
bool with_loss(LossCode code, Run run) {
  switch (code) {
    case LossCode::squared:
      return run(Squared{});
    case LossCode::absolute:
      return run(Absolute{});
    case LossCode::cubed:
      return run(Cubed{});
    case LossCode::logistic:
      return run(Logistic{});
    case LossCode::hinge:
      return run(Hinge{});
    case LossCode::squared_hinge:
      return run(SquaredHinge{});
    case LossCode::perceptron:
      return run(Perceptron{});
    case LossCode::softmax:
      return run(Softmax{});
    case LossCode::perceptron_zero_is_wrong:
      return run(PerceptronAtZero<true, true>{});
    case LossCode::perceptron_zero_is_positive:
      return run(PerceptronAtZero<false, true>{});
    case LossCode::perceptron_zero_is_negative:
      return run(PerceptronAtZero<true, false>{});
  }
  return false;
}

}  // namespace sixfold
