// From a point near the optimum of the hinge to the optimum itself: the steps of solvers/margin/crossover.py,
// which states them, for tables of few rows and columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/margin/interior_point.hpp"
#include "linear/small_systems.hpp"

namespace sixfold {

class SmallCrossover {
 public:
  SmallCrossover(const Table<double>& Z, const double* t, double l2, const InteriorRows& rows, double unit)
      : Z_(Z),
        t_(t),
        l2_(l2),
        unit_(unit),
        rows_(rows),
        side_(static_cast<std::size_t>(Z.rows)),
        theta_(static_cast<std::size_t>(Z.columns)),
        slope_(theta_),
        factor_(Z.columns) {}

  // Leaves the vertex in theta and rows.a if its gap is at most `enough`; else returns false.
  bool find(double* theta, double enough) {
    sort_rows();
    for (int round = 0; round < kRounds; ++round) {
      free_.clear();
      for (Index i = 0; i < Z_.rows; ++i) {
        if (side_[i] == kFree)
          free_.push_back(i);
        else
          rows_.a[i] = side_[i] == kHigh ? rows_.high[i] : rows_.low[i];
      }
      const Index many = static_cast<Index>(free_.size());
      if (many == 0 || many > kMostFree * Z_.columns || !meet()) return false;
      if (settled()) {
        std::copy(theta_.begin(), theta_.end(), theta);
        return gap() <= enough;
      }
    }
    return false;
  }

 private:
  enum Side : char { kLow, kFree, kHigh };
  static constexpr int kRounds = 8, kMultipliers = 20;
  static constexpr Index kMostFree = 4;    // times d + 1
  static constexpr double kSofter = 1e-4;  // times the weights, in the last rounds
  static constexpr double kAtEnd = 1e-9;   // of the range of a multiplier, or of the mean residual
  static constexpr double kRidge = 1e-14, kMostRidge = 1e-4;

  double shrink(Index j) const { return j + 1 < Z_.columns ? l2_ : 0.0; }

  double score(Index i) const {
    double total = 0.0;
    for (Index j = 0; j < Z_.columns; ++j) total += Z_.row(i)[j] * theta_[j];
    return total;
  }

  void sort_rows() {
    for (Index i = 0; i < Z_.rows; ++i) {
      const double width = (rows_.high[i] - rows_.low[i]) / unit_, p = rows_.p[i], m = rows_.m[i];
      side_[i] = kFree;
      if (!(width > 0.0))
        side_[i] = kHigh;  // its ends are the same
      else if (p >= m && p * width > rows_.high[i] - rows_.a[i])
        side_[i] = kHigh;
      else if (m > p && m * width > rows_.a[i] - rows_.low[i])
        side_[i] = kLow;
    }
  }

  // theta_ and the multipliers of free rows, by the method of multipliers; false where it does not work out.
  bool meet() {
    const Index size = Z_.columns, many = static_cast<Index>(free_.size());
    std::vector<double> own(free_.size()), weight(own), stiff(static_cast<std::size_t>(size * size)),
        fixed(theta_.size());
    for (Index f = 0; f < many; ++f) {
      own[f] = rows_.a[free_[f]];
      weight[f] = rows_.weight[free_[f]];
      rows_.a[free_[f]] = 0.0;
      const double* z = Z_.row(free_[f]);
      for (Index j = 0; j < size; ++j)
        for (Index k = 0; k <= j; ++k) stiff[j * size + k] += weight[f] * z[j] * z[k];
    }
    add_slope(fixed);
    std::fill(theta_.begin(), theta_.end(), 0.0);
    double worst = 0.0;
    for (const double softer : {1.0, kSofter}) {
      for (double& w : weight) w *= softer;
      if (!set_system(stiff, softer)) return false;
      double least = std::numeric_limits<double>::infinity();
      for (int tried = 0; tried < kMultipliers; ++tried) {
        for (Index j = 0; j < size; ++j) slope_[j] = fixed[j] - shrink(j) * theta_[j];
        for (Index f = 0; f < many; ++f) {
          const double pull = own[f] + weight[f] * (t_[free_[f]] - score(free_[f]));
          for (Index j = 0; j < size; ++j) slope_[j] += pull * Z_.row(free_[f])[j];
        }
        factor_.solve(slope_.data());
        for (Index j = 0; j < size; ++j) theta_[j] += slope_[j];
        worst = 0.0;
        for (Index f = 0; f < many; ++f) {
          const double missed = t_[free_[f]] - score(free_[f]);
          own[f] += weight[f] * missed;
          worst = std::max(worst, std::abs(missed));
          if (!std::isfinite(own[f])) return false;
        }
        if (!(worst < 0.5 * least)) break;
        least = worst;
      }
      if (worst > kAtEnd * unit_)
        break;  // more equations than unknowns: the multipliers say which have to go
    }
    for (Index f = 0; f < many; ++f) rows_.a[free_[f]] = own[f];
    return true;
  }

  bool set_system(const std::vector<double>& stiff, double softer) {
    const Index size = Z_.columns;
    for (double ridge = 0.0; ridge < kMostRidge; ridge = ridge > 0.0 ? 10.0 * ridge : kRidge) {
      double* matrix = factor_.matrix();
      for (Index j = 0; j < size; ++j) {
        for (Index k = 0; k < j; ++k) matrix[j * size + k] = softer * stiff[j * size + k];
        const double own = softer * stiff[j * size + j] + shrink(j);
        matrix[j * size + j] = own > 0.0 ? own : 1.0;
      }
      if (factor_.decompose(ridge)) return true;
    }
    return false;
  }

  void add_slope(std::vector<double>& to) const {
    for (Index i = 0; i < Z_.rows; ++i)
      for (Index j = 0; j < Z_.columns; ++j) to[j] += rows_.a[i] * Z_.row(i)[j];
  }

  // Clips the multipliers, and moves rows that are on the wrong side; true where there were none.
  bool settled() {
    bool settled = true;
    for (Index i = 0; i < Z_.rows; ++i) {
      const double low = rows_.low[i], high = rows_.high[i], margin = kAtEnd * (high - low);
      if (!(high > low)) continue;
      double& a = rows_.a[i];
      const Side before = side_[i];
      if (before == kFree) {
        side_[i] = a > high + margin ? kHigh : a < low - margin ? kLow : kFree;
      } else {
        const double residual = t_[i] - score(i);
        if (before == kHigh ? residual < -kAtEnd * unit_ : residual > kAtEnd * unit_) side_[i] = kFree;
      }
      settled &= side_[i] == before;
      a = std::clamp(a, low, high);
    }
    return settled;
  }

  // The gap that the vertex will be certified with, once the lighter side of the multipliers balances.
  double gap() {
    double up = 0.0, down = 0.0;
    for (Index i = 0; i < Z_.rows; ++i) (rows_.a[i] > 0.0 ? up : down) += rows_.a[i];
    const bool intercept = Z_.row(0)[Z_.columns - 1] != 0.0;
    const double least = intercept ? std::min(up, -down) : 0.0;
    const double of_up = intercept && up > 0.0 ? least / up : 1.0;
    const double of_down = intercept && down < 0.0 ? least / -down : 1.0;
    std::fill(slope_.begin(), slope_.end(), 0.0);
    double slack = 0.0;
    for (Index i = 0; i < Z_.rows; ++i) {
      const double even = rows_.a[i] * (rows_.a[i] > 0.0 ? of_up : of_down), residual = t_[i] - score(i);
      slack += std::max(rows_.high[i] * residual, rows_.low[i] * residual) - even * residual;
      for (Index j = 0; j < Z_.columns; ++j) slope_[j] += even * Z_.row(i)[j];
    }
    double unmet = 0.0;
    for (Index j = 0; j + 1 < Z_.columns; ++j) {
      const double off = slope_[j] - l2_ * theta_[j];
      unmet += off * off;
    }
    const double last = std::abs(slope_[Z_.columns - 1]) * (std::abs(theta_[Z_.columns - 1]) + unit_);
    return slack + last + 0.5 * unmet / l2_;
  }

  const Table<double>& Z_;
  const double* t_;
  const double l2_, unit_;
  const InteriorRows& rows_;
  std::vector<Side> side_;
  std::vector<Index> free_;
  std::vector<double> theta_, slope_;
  SmallFactor factor_;
};

}  // namespace sixfold
