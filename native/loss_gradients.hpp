// Derivatives of the losses in the score, as in sixfold.risk.losses, for loops that visit one row at a time.
// At a kink the derivative is 0.
#pragma once

#include <algorithm>
#include <cmath>

#include "table.hpp"

namespace sixfold {

struct Squared {
  static double gradient(double s, double y) { return s - y; }
};
struct Absolute {
  static double gradient(double s, double y) { return static_cast<double>((s > y) - (s < y)); }
};
struct Cubed {
  static double gradient(double s, double y) { return (s - y) * std::abs(s - y); }
};
struct Logistic {
  static double gradient(double s, double y) { return -y / (1.0 + std::exp(y * s)); }
};
struct Hinge {
  static double gradient(double s, double y) { return y * s < 1.0 ? -y : 0.0; }
};
struct SquaredHinge {
  static double gradient(double s, double y) { return -y * std::max(0.0, 1.0 - y * s); }
};
struct Perceptron {
  static double gradient(double s, double y) { return y * s < 0.0 ? -y : 0.0; }
};
struct Softmax {};

// g_k = the derivative in score k. A real or signed target stands for each score; softmax has one class
// index.
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

}  // namespace sixfold
