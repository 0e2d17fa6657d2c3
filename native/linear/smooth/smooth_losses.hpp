// The losses that have a curvature, with their first and second derivatives in the score, a vector of rows at
// a time. The formulas are those of sixfold.risk.losses.
#pragma once

#include "core/vector_math.hpp"
#include "linear/loss_functions.hpp"

namespace sixfold {

struct LossTerms {
  Lanes value, slope, curvature;
};

struct SmoothSquared {
  static LossTerms at(Lanes s, Lanes y) {
    const Lanes r = s - y;
    return {0.5 * r * r, r, broadcast(1.0)};
  }
};
struct SmoothCubed {
  static LossTerms at(Lanes s, Lanes y) {
    const Lanes r = s - y, size = magnitude(r);
    return {size * size * size * (1.0 / 3.0), r * size, 2.0 * size};
  }
};
struct SmoothLogistic {
  static LossTerms at(Lanes s, Lanes y) {
    const Lanes margin = y * s, e = exponential(-magnitude(margin)), share = 1.0 / (1.0 + e);
    const Lanes rest = e * share;  // share and rest are the probabilities of the two labels, rest <= 1/2
    return {larger(-margin, Lanes{}) + log_one_plus(e), -y * (margin < 0.0 ? share : rest), rest * share};
  }
};
struct SmoothSquaredHinge {
  static LossTerms at(Lanes s, Lanes y) {
    const Lanes short_by = larger(1.0 - y * s, Lanes{});
    return {0.5 * short_by * short_by, -y * short_by, short_by > 0.0 ? broadcast(1.0) : Lanes{}};
  }
};

// Calls run with the loss as a type; returns false, and does nothing, where it has no curvature of this form.
template <class Run>
bool with_smooth_loss(LossCode code, Run run) {
  switch (code) {
    case LossCode::squared:
      run(SmoothSquared{});
      return true;
    case LossCode::cubed:
      run(SmoothCubed{});
      return true;
    case LossCode::logistic:
      run(SmoothLogistic{});
      return true;
    case LossCode::squared_hinge:
      run(SmoothSquaredHinge{});
      return true;
    default:
      return false;
  }
}

// slope_i = weight_i loss'(s_i), curvature_i = weight_i loss''(s_i) (unless null); returns the sum of
// weight_i loss(s_i). slope and s may be the same array.
template <class Loss>
double row_losses(const double* s, const double* y, const double* weight, Index rows, double* slope,
                  double* curvature) {
  Lanes total{};
  Index i = 0;
  for (; i + kLanes <= rows; i += kLanes) {
    const Lanes w = weight == nullptr ? broadcast(1.0) : load(weight + i);
    const LossTerms terms = Loss::at(load(s + i), load(y + i));
    total += w * terms.value;
    store(slope + i, w * terms.slope);
    if (curvature != nullptr) store(curvature + i, w * terms.curvature);
  }
  if (i < rows) {  // the last rows, filled up with rows of weight 0
    Lanes score{}, label = broadcast(1.0), w{};
    for (Index k = 0; i + k < rows; ++k) {
      score[k] = s[i + k];
      label[k] = y[i + k];
      w[k] = weight == nullptr ? 1.0 : weight[i + k];
    }
    const LossTerms terms = Loss::at(score, label);
    total += w * terms.value;
    for (Index k = 0; i + k < rows; ++k) {
      slope[i + k] = w[k] * terms.slope[k];
      if (curvature != nullptr) curvature[i + k] = w[k] * terms.curvature[k];
    }
  }
  return sum(total);
}

}  // namespace sixfold
