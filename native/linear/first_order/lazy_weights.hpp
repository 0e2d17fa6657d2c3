// The weights of a linear model under updates that touch few columns each.
//
// Shrinkage and averaging of columns that a row does not have are put off until a row has them, or until the
// window of updates ends. With w = S v, S the product of the L2 factors since the window began,
//
//   U_s = sum_{r <= s} eta_r l1 / S_r     v_j(s) = soft(v_j(a), U_s - U_a)   if no row had j in updates
//   a+1..s sum_{r = a+1..s} w_j(r) = (|v| + U_a) (T_e - T_a) - (Q_e - Q_a)  with T = sum S, Q = sum S U over
//   the
//                             averaged updates, and e the last of them at which v_j was not yet zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "linear/first_order/stochastic_gradient.hpp"

namespace sixfold {

// Updates between two looks at all columns: as many as there are columns, so that an update pays for one.
constexpr Index kShortestWindow = 1 << 12, kLongestWindow = 1 << 18;
constexpr double kLeastScale = 1e-6;  // below this S is multiplied into v, before digits are lost

inline double soft(double v, double threshold, bool positive) {
  if (positive) return std::max(v - threshold, 0.0);
  return std::copysign(std::max(std::abs(v) - threshold, 0.0), v);
}

class LazyWeights {
 public:
  LazyWeights(const DescentRule& rule, Model& model, Index width, Index updates)
      : rule_(rule),
        model_(model),
        width_(width),
        window_(std::min(updates, std::clamp(width, kShortestWindow, kLongestWindow))),
        averages_(rule.average_from >= 0),
        lazy_(averages_ || rule.l1 > 0.0 || rule.positive) {
    if (lazy_) last_.assign(static_cast<std::size_t>(width), 0);
    threshold_.assign(static_cast<std::size_t>(window_ + 1), 0.0);
    if (averages_) {
      averaged_before_ = std::max<Index>(0, model.updates - rule.average_from);
      scale_sum_.assign(static_cast<std::size_t>(window_ + 1), 0.0);
      product_sum_.assign(static_cast<std::size_t>(window_ + 1), 0.0);
      w_sum_.assign(static_cast<std::size_t>(width * model.scores), 0.0);
    }
  }

  double scale() const { return scale_; }
  bool lazy() const { return lazy_; }  // whether columns have to be brought up to date
  double* column(Index j) { return model_.w + j * model_.scores; }

  // Brings column j up to the present update.
  void catch_up(Index j) {
    if (!lazy_ || last_[j] == now_) return;
    const Index a = last_[j];
    double* v = column(j);
    for (Index k = 0; k < model_.scores; ++k) {
      if (averages_) w_sum_[j * model_.scores + k] += sum_since(v[k], a);
      v[k] = soft(v[k], threshold_[now_] - threshold_[a], rule_.positive);
    }
    last_[j] = now_;
  }

  // Shrinks everything by one update of size eta, and says whether the iterate after it is averaged.
  void shrink(double eta, bool averaged) {
    if (!lazy_ && rule_.l2 == 0.0) return;
    const double l2_factor = std::max(0.0, 1.0 - eta * rule_.l2);
    if (now_ == window_ || scale_ < kLeastScale || l2_factor == 0.0) settle();
    if (l2_factor == 0.0)
      std::fill_n(model_.w, width_ * model_.scores, 0.0);
    else
      scale_ *= l2_factor;
    ++now_;
    threshold_[now_] = threshold_[now_ - 1] + eta * rule_.l1 / scale_;
    if (averages_) {
      scale_sum_[now_] = scale_sum_[now_ - 1] + (averaged ? scale_ : 0.0);
      product_sum_[now_] = product_sum_[now_ - 1] + (averaged ? scale_ * threshold_[now_] : 0.0);
      averaged_ += averaged;
    }
  }

  // Ends the window: every column is brought up to date and w itself is stored.
  void settle() {
    if (lazy_)
      for (Index j = 0; j < width_; ++j) catch_up(j);
    if (scale_ != 1.0)
      for (Index j = 0; j < width_ * model_.scores; ++j) model_.w[j] *= scale_;
    if (averaged_ > 0) {
      averaged_before_ += averaged_;
      const double share = 1.0 / static_cast<double>(averaged_before_);
      for (Index j = 0; j < width_ * model_.scores; ++j) {
        const double excess = w_sum_[j] - static_cast<double>(averaged_) * model_.mean_w[j];
        model_.mean_w[j] += share * excess;
        w_sum_[j] = 0.0;
      }
      averaged_ = 0;
    }
    std::fill(last_.begin(), last_.end(), 0);
    now_ = 0;
    scale_ = 1.0;
  }

 private:
  double sum_since(double v, Index a) const {
    if (v == 0.0 || (rule_.positive && v < 0.0)) return 0.0;
    const double size = std::abs(v), from = threshold_[a];
    Index e = now_;
    if (threshold_[now_] - from >= size)
      e = std::lower_bound(threshold_.begin() + a, threshold_.begin() + now_ + 1, from + size) -
          threshold_.begin() - 1;
    if (e <= a) return 0.0;
    const double sum = (size + from) * (scale_sum_[e] - scale_sum_[a]) - (product_sum_[e] - product_sum_[a]);
    return std::copysign(sum, v);
  }

  const DescentRule& rule_;
  Model& model_;
  Index width_, window_;
  bool averages_, lazy_;
  Index now_ = 0, averaged_ = 0, averaged_before_ = 0;
  double scale_ = 1.0;
  std::vector<Index> last_;
  std::vector<double> threshold_, scale_sum_, product_sum_, w_sum_;
};

}  // namespace sixfold
