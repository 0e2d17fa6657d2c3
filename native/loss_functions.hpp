// The losses of sixfold.risk.losses and their derivatives in the score, for loops that visit one row at a
// time. At a kink the derivative is 0.
#pragma once

#include <algorithm>
#include <cmath>

#include "table.hpp"

namespace sixfold {

// The losses that have a gradient, in the order of sixfold.solvers.row_updates.LOSS_CODES.
enum class LossCode : int { squared, absolute, cubed, logistic, hinge, squared_hinge, perceptron, softmax };

struct Squared {
  static double value(double s, double y) { return 0.5 * (s - y) * (s - y); }
  static double gradient(double s, double y) { return s - y; }
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
  static double gradient(double s, double y) { return y * s < 1.0 ? -y : 0.0; }
};
struct SquaredHinge {
  static double value(double s, double y) { return 0.5 * Hinge::value(s, y) * Hinge::value(s, y); }
  static double gradient(double s, double y) { return -y * Hinge::value(s, y); }
};
struct Perceptron {
  static double value(double s, double y) { return std::max(0.0, -y * s); }
  static double gradient(double s, double y) { return y * s < 0.0 ? -y : 0.0; }
};
struct Softmax {};

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
  }
  return false;
}

}  // namespace sixfold
