// The steps of solvers/margin/interior_point.py, which states them, for tables so small that a step takes
// less than the calls it is made of: fits of 100 x 4 rows take 0.9 milliseconds, and 1.6 step by step.
#include "linear/margin/small_path.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/margin/small_crossover.hpp"
#include "linear/small_systems.hpp"

namespace sixfold {
namespace {

// As in solvers/margin/interior_point.py.
constexpr double kStep = 0.9995;   // how much of the way to the boundary a step may go
constexpr double kShort = 0.3;     // a step after which the next one looks after what is unmet
constexpr double kSimilar = 0.9;   // lengths whose ratio is above this need no choice
constexpr double kCentring = 0.3;  // the share of the products that it keeps then, at most
constexpr double kStart = 0.5;     // least residual to begin with
constexpr double kCloser = 0.01;   // of the gap that is asked for: after that rows can be told apart
constexpr int kIdle = 3;           // steps that halve neither gap nor products

class Path {
 public:
  Path(const Table<double>& Z, const double* t, double l2, const InteriorRows& rows, PathPoint& point,
       Stop& stop)
      : Z_(Z),
        t_(t),
        l2_(l2),
        rows_(rows),
        point_(point),
        stop_(stop),
        d_(Z.columns - 1),
        none_(static_cast<std::size_t>(d_ + 1), 0.0),
        table_(DenseRows<double>{{Z.data, Z.rows, d_, Z.columns, 1}, none_.data(), Z.row(0)[d_]}),
        factor_(Z.columns),
        step_(none_),
        sums_(4 * none_.size()) {}

  // Sets the beginning: least squares, residuals kept off zero and multipliers in the middle.
  bool begin() {
    const Index size = d_ + 1, n = Z_.rows;
    for (Index i = 0; i < n; ++i) rows_.weight[i] = 0.5 * (rows_.high[i] - rows_.low[i]);
    std::fill_n(point_.theta, size, 0.0);
    std::fill_n(point_.slope, size, 0.0);
    if (!set_system()) return false;
    std::copy(step_.begin(), step_.end(), point_.theta);
    double total = 0.0, missed = 0.0, targets = 0.0, largest = 0.0;
    for (Index i = 0; i < n; ++i) {
      const double q = rows_.weight[i], residual = rows_.dp[i] = t_[i] - score(i);
      total += q;
      missed += q * std::abs(residual);
      targets += q * std::abs(t_[i]);
      largest = std::max(largest, std::abs(residual));
      point_.ends += q > 0.0 ? 2.0 : 0.0;
    }
    point_.unit = std::max(missed, 1e-6 * targets) / total;
    if (!(point_.unit > 0.0)) point_.unit = 1.0;
    const double inside = kStart + 1e-12 * largest;
    for (Index i = 0; i < n; ++i) {
      const double residual = rows_.dp[i];
      rows_.p[i] = rows_.weight[i] > 0.0 ? std::max(residual, 0.0) + inside : 0.0;
      rows_.m[i] = rows_.weight[i] > 0.0 ? rows_.p[i] - residual : 0.0;
      rows_.a[i] = 0.5 * (rows_.high[i] + rows_.low[i]);
      rows_.dp[i] = rows_.dm[i] = rows_.da[i] = 0.0;
      for (Index j = 0; j < size; ++j) point_.slope[j] += rows_.a[i] * Z_.row(i)[j];
    }
    std::fill(step_.begin(), step_.end(), 0.0);
    std::copy_n(point_.slope, size, sums_.begin());
    take(0.0, 0.0);
    point_.length = 0.0;
    return std::isfinite(point_.objective);
  }

  // False where nothing was done.
  bool advance() {
    const Index size = d_ + 1;
    if (!set_system()) return false;
    Prediction found{};
    if (!predict_step(table_, step_.data(), rows_, sums_.data(), &found, stop_)) return false;
    const double primal = 1.0 / found.largest_primal, dual = 1.0 / std::max(found.largest_dual, 1.0);
    const double products = point_.products;
    const double reached = products + primal * found.primal + dual * found.dual + primal * dual * found.both;
    double share = std::pow(reached / products, 3);
    if (point_.length < kShort)
      share = std::max(share, std::min(kCentring, (point_.gap - products) / products));
    const double aim = products / point_.ends * share, *sums = sums_.data();
    for (Index j = 0; j < size; ++j)
      step_[j] = sums[j] - shrink(j) * point_.theta[j] + sums[size + j] - aim * sums[2 * size + j] -
                 sums[3 * size + j];
    if (!solve()) return false;
    Lengths largest{};
    if (!correct_step(table_, step_.data(), aim, rows_, &largest, stop_)) return false;
    choose_lengths(kStep / std::max(largest.primal, kStep), kStep / std::max(largest.dual, kStep));
    return true;
  }

 private:
  double score(Index i) const {
    double total = 0.0;
    for (Index j = 0; j <= d_; ++j) total += Z_.row(i)[j] * point_.theta[j];
    return total;
  }

  double shrink(Index j) const { return j < d_ ? l2_ : 0.0; }

  // Factors Z'WZ + l2 D and makes the predicted step with it.
  bool set_system() {
    const Index size = d_ + 1;
    double* matrix = factor_.matrix();
    small_gram(Z_, rows_.weight, matrix);
    for (Index j = 0; j < size; ++j) {
      matrix[j * size + j] += shrink(j);
      if (matrix[j * size + j] == 0.0) matrix[j * size + j] = 1.0;
    }
    // Z'W(t - Z theta) + Z'a - l2 D theta
    std::copy(point_.slope, point_.slope + size, step_.begin());
    for (Index j = 0; j < size; ++j) step_[j] -= shrink(j) * point_.theta[j];
    for (Index i = 0; i < Z_.rows; ++i) {
      const double* z = Z_.row(i);
      double residual = t_[i];
      for (Index j = 0; j < size; ++j) residual -= z[j] * point_.theta[j];
      residual *= rows_.weight[i];
      for (Index j = 0; j < size; ++j) step_[j] += residual * z[j];
    }
    return factor_.decompose(0.0) && solve();
  }

  bool solve() {
    factor_.solve(step_.data());
    return std::all_of(step_.begin(), step_.end(), [](double v) { return std::isfinite(v); });
  }

  // What unmet = Z'a - l2 D theta adds to the gap, after steps of lengths s in theta and r in a.
  double price_after(double s, double r) const {
    double squares = 0.0, last = 0.0;
    for (Index j = 0; j <= d_; ++j) {
      const double unmet = sums_[j] - shrink(j) * point_.theta[j];
      const double left = (1.0 - r) * unmet + (r - s) * shrink(j) * step_[j];
      if (j < d_) squares += left * left;
      last = left;
    }
    return std::abs(last) * (std::abs(point_.theta[d_]) + point_.unit) + 0.5 * squares / l2_;
  }

  // Both lengths, or the shorter of them for both where that leaves less of products and slope.
  void choose_lengths(double primal, double dual) {
    const double shorter = std::min(primal, dual);
    if (shorter <= kSimilar * std::max(primal, dual)) {
      double along = 0.0, across = 0.0, both = 0.0;
      for (Index i = 0; i < Z_.rows; ++i) {
        along += rows_.dp[i] * (rows_.high[i] - rows_.a[i]) + rows_.dm[i] * (rows_.a[i] - rows_.low[i]);
        across += rows_.da[i] * (rows_.m[i] - rows_.p[i]);
        both += rows_.da[i] * (rows_.dm[i] - rows_.dp[i]);
      }
      const auto left = [&](double s, double r) {
        return s * along + r * across + s * r * both + price_after(s, r);
      };
      if (left(shorter, shorter) < left(primal, dual)) primal = dual = shorter;
    }
    take(primal, dual);
  }

  void take(double primal, double dual) {
    point_.length = std::min(primal, dual);
    for (Index j = 0; j <= d_; ++j) {
      const double slope = sums_[j];
      point_.slope[j] = slope + dual * (shrink(j) * (point_.theta[j] + step_[j]) - slope);
      point_.theta[j] += primal * step_[j];
    }
    const State state = take_step(primal, dual, rows_, Z_.rows);
    double squares = 0.0, unmet = 0.0;
    for (Index j = 0; j < d_; ++j) {
      const double off = point_.slope[j] - l2_ * point_.theta[j];
      squares += point_.theta[j] * point_.theta[j];
      unmet += off * off;
    }
    point_.objective = state.loss + 0.5 * l2_ * squares;
    point_.gap = state.slack + std::abs(point_.slope[d_]) * (std::abs(point_.theta[d_]) + point_.unit) +
                 0.5 * unmet / l2_;
    point_.products = state.products;
  }

  const Table<double>& Z_;
  const double* t_;
  const double l2_;
  const InteriorRows& rows_;
  PathPoint& point_;
  Stop& stop_;
  const Index d_;
  const std::vector<double> none_;
  const AnyRows table_;
  SmallFactor factor_;
  std::vector<double> step_, sums_;
};

// Takes steps until gap or products are at most enough(); returns how many.
template <class Enough>
Index follow(Path& path, PathPoint& point, Enough enough, Index most, double* records, Stop& stop) {
  double least_gap = std::numeric_limits<double>::infinity(), least_products = least_gap;
  int idle = 0;
  for (Index made = 0; made < most; ++made) {
    if (!(point.products > 0.0) || std::min(point.gap, point.products) <= enough() || idle >= kIdle)
      return made;
    if (stop.now() || !path.advance()) return made;
    records[2 * made] = point.objective;
    records[2 * made + 1] = point.gap;
    idle = point.gap <= 0.5 * least_gap || point.products <= 0.5 * least_products ? 0 : idle + 1;
    if (point.gap <= 0.5 * least_gap) least_gap = point.gap;
    if (point.products <= 0.5 * least_products) least_products = point.products;
  }
  return most;
}

}  // namespace

Index follow_small_path(const Table<double>& Z, const double* t, double l2, const InteriorRows& rows,
                        double enough, Index most, PathPoint& point, double* records, Stop& stop) {
  Path path(Z, t, l2, rows, point, stop);
  return follow(path, point, [&] { return enough; }, most, records, stop);
}

bool small_hinge(const Table<double>& Z, const double* t, double l2, const InteriorRows& rows,
                 double tolerance, double relative, double least, Index most, double* theta, double* records,
                 Index* made, Stop& stop) {
  std::vector<double> slope(static_cast<std::size_t>(Z.columns));
  PathPoint point{theta, slope.data(), 1.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  Path path(Z, t, l2, rows, point, stop);
  *made = 0;
  if (!path.begin()) return false;
  const auto goal = [&] {
    return kCloser * std::min(tolerance, std::max(relative * point.objective, least));
  };
  *made = follow(path, point, goal, most, records, stop);
  if (stop.now() || !(point.gap <= tolerance)) return false;
  SmallCrossover vertex(Z, t, l2, rows, point.unit);
  return vertex.find(theta, std::max(std::min(point.gap, 100.0 * goal()), goal()));
}

}  // namespace sixfold
