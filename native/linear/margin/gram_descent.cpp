// Support vector machines of few rows through the products of their rows (solvers/margin/gram_descent.py
// states the problem).
//
// With what is left of every row, r = t - M s - centre, a step for row i costs one row of M,
//
//     s_i <- clip(s_i + r_i / M_ii, low_i, high_i),
//
// and none where s_i stays. An intercept draws all r by b = centre + draw sum(s), which becomes the centre
// after every epoch: the method of multipliers for sum(s) = 0.
//
// Which rows are between their ends, the set F, is known long before their multipliers are, which then solve
//
//     M_FF s_F + b = t_F - M_FB s_B,    sum(s) = 0.
//
// Rows that turn out to be on the wrong side change sets, and the equations are solved again (the primal-dual
// active set method of Hintermueller, Ito and Kunisch 2002). It need not end. So it is tried beside the
// descent, each time that has cost as much again: 100 x 100 rows take 20 epochs and two systems of 60 rows.
#include "linear/margin/gram_descent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/small_systems.hpp"

namespace sixfold {
namespace {

constexpr double kWorth = 4.0;    // factorings: what the descent may cost before the first system
constexpr double kAgain = 2.0;    // times as much before the next
constexpr double kCheap = 1e5;    // multiplications of a system that costs nothing beside a fit: last digits
constexpr Index kRounds = 8;      // systems that are solved in a row
constexpr int kRefined = 20;      // times a solution may gain digits, where rows depend on each other
constexpr double kAtEnd = 1e-10;  // of the largest multiplier, or of the margin: what counts as the end
constexpr double kRidge = 1e-13, kMostRidge = 1e-6;

class GramDescent {
 public:
  GramDescent(const GramTarget& target, double* s)
      : problem_(target), n_(target.M.rows), s_(s), left_(target.t, target.t + n_) {}

  void epoch() {
    for (Index i = 0; i < n_; ++i) {
      const double own = problem_.M.row(i)[i];
      if (!(problem_.high[i] > problem_.low[i]) || !(own > 0.0)) continue;
      const double moved = std::clamp(s_[i] + left_[at(i)] / own, problem_.low[i], problem_.high[i]);
      if (moved != s_[i]) move(i, moved - s_[i], moved);
    }
  }

  // Work of all moves so far, in multiplications.
  double work() const { return moves_ * static_cast<double>(n_); }

  double factoring() const {
    double size = 0.0;
    for (Index i = 0; i < n_; ++i) size += s_[i] > problem_.low[i] && s_[i] < problem_.high[i];
    return size * size * size / 6.0;
  }

  // Objective and gap at w = sum_i s_i z_i / l2 and b, which becomes the centre.
  void measure(GramFit& fit) {
    double total = 0.0, products = 0.0;
    for (Index i = 0; i < n_; ++i) total += s_[i];
    const double drawn = problem_.draw * total;
    fit.b = centre_ += drawn;
    fit.objective = fit.gap = 0.0;
    for (Index i = 0; i < n_; ++i) {
      const double quadratic = problem_.quadratic[i], s = s_[i], t = problem_.t[i];
      if (!(problem_.high[i] > problem_.low[i])) continue;
      const double missed = left_[at(i)] + quadratic * s, short_by = std::max(t * missed, 0.0);
      if (quadratic > 0.0) {
        const double excess = short_by - quadratic * std::abs(s);
        fit.objective += 0.5 * short_by * short_by / quadratic;
        fit.gap += 0.5 * excess * excess / quadratic + std::abs(s) * std::max(-t * missed, 0.0);
      } else {
        const double cost = std::max(problem_.high[i] * missed, problem_.low[i] * missed);
        fit.objective += cost;
        fit.gap += cost - s * missed;
      }
      products += s * (t - missed - centre_);
    }
    fit.objective += 0.5 * products;  // l2 |w|^2 / 2
    // What multipliers that do not add up to 0 cost once they do.
    if (problem_.draw > 0.0) fit.gap += 2.0 * std::abs(total) * (1.0 + std::abs(centre_));
    for (double& left : left_) left -= drawn;
  }

  // From here to the multipliers that solve the equations of their sets; false where they do not settle, and
  // nothing was moved.
  bool solve_sets(double enough, GramFit& fit, Stop& stop) {
    const std::vector<double> before(s_, s_ + n_), left(left_);
    const double centre = centre_;
    sort_rows();
    for (Index round = 0; round < kRounds && !stop.now() && solve_free(); ++round) {
      if (!settled()) continue;
      for (Index i = 0; i < n_; ++i) s_[i] = std::clamp(s_[i], problem_.low[i], problem_.high[i]);
      refresh();
      GramFit found = fit;
      measure(found);
      if (!(found.gap <= enough)) break;
      fit = found;
      return true;
    }
    std::copy(before.begin(), before.end(), s_);
    left_ = left;
    centre_ = centre;
    return false;
  }

  // What is left, without the rounding of all moves.
  void refresh() {
    for (Index i = 0; i < n_; ++i) {
      const double* row = problem_.M.row(i);
      double sum = 0.0;
#pragma omp simd reduction(+ : sum)
      for (Index k = 0; k < n_; ++k) sum += row[k] * s_[k];
      left_[at(i)] = problem_.t[i] - centre_ - sum;
    }
  }

 private:
  enum Side : char { kLow, kFree, kHigh };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  void move(Index i, double by, double to) {
    const double* __restrict row = problem_.M.row(i);
    double* __restrict left = left_.data();
    s_[i] = to;
    moves_ += 1.0;
#pragma omp simd
    for (Index k = 0; k < n_; ++k) left[k] -= by * row[k];
  }

  void sort_rows() {
    sides_.resize(at(n_));
    for (Index i = 0; i < n_; ++i) {
      const double low = problem_.low[i], high = problem_.high[i], left = left_[at(i)];
      const bool at_low = s_[i] <= low && left <= 0.0, at_high = s_[i] >= high && left >= 0.0;
      sides_[at(i)] = !(high > low) || at_high ? kHigh : at_low ? kLow : kFree;
    }
  }

  // Puts all rows but the free ones to their ends, and solves for those and the intercept.
  bool solve_free() {
    free_.clear();
    double total = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (sides_[at(i)] == kFree) {
        free_.push_back(i);
      } else {
        s_[i] = sides_[at(i)] == kHigh ? problem_.high[i] : problem_.low[i];
      }
      total += s_[i];
    }
    const bool intercept = problem_.draw > 0.0;
    const Index size = static_cast<Index>(free_.size());
    if (size == 0) {
      if (intercept) return false;  // any of an interval would do
      refresh();
      return true;
    }
    SmallFactor factor(size);
    bool factored = false;
    for (double ridge = 0.0; !factored && ridge < kMostRidge; ridge = ridge > 0.0 ? 10.0 * ridge : kRidge) {
      double* lower = factor.matrix();
      for (Index f = 0; f < size; ++f)
        for (Index g = 0; g <= f; ++g) lower[f * size + g] = problem_.M.row(free_[at(f)])[free_[at(g)]];
      factored = factor.decompose(ridge);
    }
    if (!factored) return false;
    std::vector<double> ones(at(size), 1.0), step(at(size));
    double bend = 0.0;
    if (intercept) {
      factor.solve(ones.data());
      for (const double one : ones) bend += one;
      if (!(bend > 0.0)) return false;
    }
    double least = std::numeric_limits<double>::infinity(), worst = 0.0;
    refresh();
    for (int tried = 0; tried < kRefined; ++tried) {
      double by = 0.0, moved = 0.0;
      for (Index f = 0; f < size; ++f) step[at(f)] = left_[at(free_[at(f)])];
      factor.solve(step.data());
      if (intercept) {
        for (const double one : step) moved += one;
        by = (moved + total) / bend;
        for (Index f = 0; f < size; ++f) step[at(f)] -= by * ones[at(f)];
        centre_ += by;
        total = 0.0;
      }
      for (Index f = 0; f < size; ++f) s_[free_[at(f)]] += step[at(f)];
      if (intercept)
        for (Index i = 0; i < n_; ++i) total += s_[i];
      refresh();
      worst = 0.0;
      for (const Index i : free_) worst = std::max(worst, std::abs(left_[at(i)]));
      if (!(worst < 0.5 * least) || worst <= 1e-15) break;
      least = worst;
    }
    return std::isfinite(worst);
  }

  // Moves rows that are on the wrong side; true where there were none.
  bool settled() {
    double largest = 0.0;
    for (const Index i : free_) largest = std::max(largest, std::min(std::abs(s_[i]), width(i)));
    bool settled = true;
    for (Index i = 0; i < n_; ++i) {
      if (!(problem_.high[i] > problem_.low[i])) continue;
      Side& side = sides_[at(i)];
      const Side before = side;
      const double margin = kAtEnd * std::min(width(i), largest), left = left_[at(i)];
      if (before == kFree)
        side = s_[i] > problem_.high[i] + margin ? kHigh : s_[i] < problem_.low[i] - margin ? kLow : kFree;
      else if (before == kHigh ? left < -kAtEnd : left > kAtEnd)
        side = kFree;
      settled &= side == before;
    }
    return settled;
  }

  double width(Index i) const { return problem_.high[i] - problem_.low[i]; }

  const GramTarget& problem_;
  const Index n_;
  double* s_;
  std::vector<double> left_;  // r
  std::vector<Side> sides_;
  std::vector<Index> free_;
  double centre_ = 0.0, moves_ = 0.0;
};

}  // namespace

GramFit fit_by_products(const GramTarget& target, double tolerance, double relative, double least, Index most,
                        double* s, Stop& stop) {
  GramFit fit{0.0, 0.0, std::numeric_limits<double>::infinity(), 0};
  std::fill_n(s, target.M.rows, 0.0);
  GramDescent descent(target, s);
  double next = 0.0;
  const auto goal = [&] { return std::min(tolerance, std::max(relative * fit.objective, least)); };
  while (fit.epochs < most && !stop.now()) {
    descent.epoch();
    ++fit.epochs;
    descent.measure(fit);
    const bool done = fit.gap <= goal();
    const double factoring = descent.factoring();
    if ((done && factoring <= kCheap) || descent.work() >= std::max(next, kWorth * factoring)) {
      if (descent.solve_sets(goal(), fit, stop)) return fit;
      next = kAgain * descent.work();
    }
    if (done) break;
  }
  descent.refresh();
  descent.measure(fit);
  return fit;
}

}  // namespace sixfold
