// Truncated Newton from the start to the end: Newton's step by conjugate gradients, for wide and for sparse
// tables of one score a row or one a class.
//
//   H delta = -g,    g = sum_i q_i z_i u_i' + l2 (w, 0),    H = sum_i (z_i z_i') x q_i loss''(s_i) + l2 D
//
// with z = (x - shift, 1) and, of classes, loss'' = diag(p) - pp'. The equations are solved as far as the
// step is worth it (Dembo, Eisenstat and Steihaug 1982): a product with H is one pass over the rows, and H is
// never formed. The preconditioner is its diagonal, with the mean curvature of a class in place of that of
// each entry, so that the result does not depend on the units of the columns.
//
// It is what sixfold.solvers.smooth.newton_cg does with passes called from Python, which take longer than the
// arithmetic of 2,000 rows of 20 entries. A step that does not bring what it promises is shortened to where
// secants of the slopes at both ends are 0.
#include "linear/smooth/truncated_newton.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "linear/smooth/linear_sweeps.hpp"
#include "linear/smooth/softmax_sweep.hpp"

namespace sixfold {
namespace {

using Values = std::vector<double>;

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kLoosest = 0.01;     // share of the slope's square that may be left of the equations
constexpr double kSufficient = 1e-4;  // share of the promised decrease that a step has to bring (Armijo)
constexpr double kNoise = 64.0;       // roundings of the value: steps that promise less cannot be seen in it
constexpr double kCaution = 4.0;      // times the estimated gap must be within what is asked for
constexpr double kChecked = 0.7;      // of the gap asked for: columns with so much have the gap worked out
constexpr Index kMostLengths = 20;    // of one step, that are tried

double dot(const Values& one, const Values& other) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (std::size_t j = 0; j < one.size(); ++j) total += one[j] * other[j];
  return total;
}

// A point of the descent: what one pass finds.
struct Place {
  Values theta, slope, bends;  // bends: weight_i loss''(s_i), or the probabilities
  Values mean;                 // curvature of a score over all rows
  double value = 0.0;
};

template <class Rows>
class Descent {
 public:
  Descent(const TruncatedProblem<Rows>& problem, Stop& stop)
      : of_(problem),
        stop_(stop),
        classes_(problem.loss == LossCode::softmax),
        size_(static_cast<std::size_t>((problem.columns + 1) * problem.scores)),
        bar_(kChecked * problem.enough),
        squares_(static_cast<std::size_t>(problem.columns + 1)),
        inverse_(size_),
        bias_(static_cast<std::size_t>(problem.scores)) {}

  NewtonEnd run(double* theta, double* step, const NewtonReport& report) {
    Place here = place(), there = place();
    std::copy_n(theta, size_, here.theta.begin());
    NewtonEnd end = NewtonEnd::stuck;
    if (visit(here) && column_squares(of_.X, of_.weight, of_.shift, squares_.data(), stop_) &&
        std::isfinite(here.value)) {
      for (double& square : squares_) square /= of_.weight_sum;
      end = descend(here, there, step, report);
    }
    std::copy_n(here.theta.begin(), size_, theta);
    return stop_.now() ? NewtonEnd::stopped : end;
  }

 private:
  Place place() const {
    const auto rows = static_cast<std::size_t>(of_.X.rows * of_.scores);
    return {Values(size_), Values(size_), Values(rows), Values(static_cast<std::size_t>(of_.scores)), 0.0};
  }

  NewtonEnd descend(Place& here, Place& there, double* step, const NewtonReport& report) {
    Values delta(size_);
    for (Index taken = 0; taken < of_.most_steps; ++taken) {
      precondition(here);
      const double left = gap(here, squared_length(here.slope));
      if (stop_.now() || report(0, here.value, std::min(left, here.value))) return NewtonEnd::stopped;
      if (left <= of_.enough) return NewtonEnd::done;
      if (!solve(here, left / of_.enough, delta)) return NewtonEnd::stuck;
      const double decrease = -dot(here.slope, delta);
      if (!(decrease > 0.0) || !advance(here, there, delta, decrease)) return NewtonEnd::stuck;
      for (std::size_t j = 0; j < size_; ++j) step[j] = there.theta[j] - here.theta[j];
      std::swap(here, there);
    }
    return NewtonEnd::stuck;
  }

  // to = (w, c - shift.w): where scores of the columns as they are come from.
  const double* unshifted(const Values& theta) {
    const Index d = of_.columns, scores = of_.scores;
    for (Index k = 0; k < scores; ++k) bias_[static_cast<std::size_t>(k)] = theta[d * scores + k];
    for (Index j = 0; j < d; ++j)
      for (Index k = 0; k < scores; ++k)
        bias_[static_cast<std::size_t>(k)] -= of_.shift[j] * theta[j * scores + k];
    return bias_.data();
  }

  // What sums over the rows become by the shift, the weights and the penalty.
  void complete(const Values& theta, Values& sums) const {
    const Index d = of_.columns, scores = of_.scores;
    double* ones = sums.data() + d * scores;
    for (Index j = 0; j < d; ++j)
      for (Index k = 0; k < scores; ++k) {
        double& sum = sums[static_cast<std::size_t>(j * scores + k)];
        sum = (sum - of_.shift[j] * ones[k]) / of_.weight_sum + of_.l2 * theta[j * scores + k];
      }
    for (Index k = 0; k < scores; ++k) ones[k] = of_.intercept ? ones[k] / of_.weight_sum : 0.0;
  }

  // Value, slope and curvatures at a point; false if stopped.
  bool visit(Place& at) {
    const double* bias = unshifted(at.theta);
    const Index n = of_.X.rows, scores = of_.scores;
    std::fill(at.mean.begin(), at.mean.end(), 0.0);
    bool finished = false;
    if (classes_) {
      SoftmaxSums sums{};
      finished = softmax_sweep(of_.X, of_.y, of_.weight, scores, at.theta.data(), bias, nullptr, nullptr,
                               &sums, at.slope.data(), at.bends.data(), stop_);
      at.value = sums.value;
      for (Index i = 0; i < n; ++i)
        for (Index k = 0; k < scores; ++k) {
          const double p = at.bends[static_cast<std::size_t>(i * scores + k)];
          at.mean[static_cast<std::size_t>(k)] +=
              (of_.weight == nullptr ? 1.0 : of_.weight[i]) * p * (1.0 - p);
        }
    } else {
      const RowTerms rows{of_.y, of_.weight, nullptr, at.bends.data()};
      finished = loss_sweep(of_.X, of_.loss, at.theta.data(), *bias, rows, &at.value, at.slope.data(), stop_);
      for (const double bend : at.bends) at.mean[0] += bend;
    }
    for (double& mean : at.mean) mean /= of_.weight_sum;
    complete(at.theta, at.slope);
    double length = 0.0;
    for (Index j = 0; j < of_.columns * scores; ++j) length += at.theta[j] * at.theta[j];
    at.value = at.value / of_.weight_sum + 0.5 * of_.l2 * length;
    return finished;
  }

  // product = H v
  bool multiply(const Place& at, const Values& v, Values& product) {
    const double* c = unshifted(v);
    const bool finished = classes_
                              ? softmax_product(of_.X, at.bends.data(), of_.weight, of_.scores, v.data(), c,
                                                product.data(), stop_)
                              : curvature_sweep(of_.X, at.bends.data(), v.data(), *c, product.data(), stop_);
    complete(v, product);
    return finished;
  }

  // Makes the inverse of the preconditioner at a point.
  void precondition(const Place& at) {
    for (Index j = 0; j <= of_.columns; ++j)
      for (Index k = 0; k < of_.scores; ++k) {
        const double mean = at.mean[static_cast<std::size_t>(k)] * squares_[static_cast<std::size_t>(j)];
        const double diagonal = j < of_.columns ? mean + of_.l2 : of_.intercept ? mean : 0.0;
        inverse_[static_cast<std::size_t>(j * of_.scores + k)] = diagonal > 0.0 ? 1.0 / diagonal : 0.0;
      }
  }

  // The square of a slope's length by the preconditioner.
  double squared_length(const Values& slope) const {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (std::size_t j = 0; j < size_; ++j) total += slope[j] * inverse_[j] * slope[j];
    return total;
  }

  // delta = -H^-1 g as far as it pays: until a tenth of the slope is left or, close to the end, what makes
  // the gap as small as it has to be, which goes with the square of the slope. False if that takes too long.
  bool solve(const Place& at, double excess, Values& delta) {
    Values left(size_), direction(size_), product(size_);
    for (std::size_t j = 0; j < size_; ++j) left[j] = -at.slope[j];
    for (std::size_t j = 0; j < size_; ++j) direction[j] = inverse_[j] * left[j];
    std::fill(delta.begin(), delta.end(), 0.0);
    double size = squared_length(left);
    const double near = std::sqrt(size / std::max(std::abs(at.value), std::numeric_limits<double>::min()));
    const double goal = size * std::max(std::min(kLoosest, near), 0.5 / std::max(excess, 1.0));
    while (products_ < of_.most_products) {
      ++products_;
      if (!multiply(at, direction, product)) return false;
      const double bend = dot(direction, product);
      if (!(bend > 0.0)) return false;
      const double length = size / bend;
      for (std::size_t j = 0; j < size_; ++j) {
        delta[j] += length * direction[j];
        left[j] -= length * product[j];
      }
      const double before = std::exchange(size, squared_length(left));
      if (size <= goal) return true;
      for (std::size_t j = 0; j < size_; ++j)
        direction[j] = inverse_[j] * left[j] + (size / before) * direction[j];
    }
    return false;
  }

  // Puts `there` where the step leads, shortened if need be; false if nothing falls.
  bool advance(const Place& here, Place& there, const Values& delta, double decrease) {
    const bool noise = decrease <= kNoise * kEps * std::abs(here.value);
    double length = 1.0;
    for (Index tried = 0; tried < kMostLengths; ++tried) {
      for (std::size_t j = 0; j < size_; ++j) there.theta[j] = here.theta[j] + length * delta[j];
      if (!visit(there)) return false;
      if (noise) return squared_length(there.slope) < 0.5 * squared_length(here.slope);
      if (there.value <= here.value - kSufficient * length * decrease) return true;
      const double secant = decrease / (decrease + dot(there.slope, delta));
      length *= std::isfinite(secant) ? std::clamp(secant, 0.1, 0.9) : 0.1;
    }
    return false;
  }

  // How far the value is from the minimum at most: an estimate, times the caution, from the slope, which is
  // what balancing the rows gives to the columns; probability that is moved to a class of probability p costs
  // log(1 / p) times as much. That may be 30 times too much, so where columns allow it, it is worked out.
  double gap(const Place& at, double decrease) {
    const Index columns = of_.columns * of_.scores;
    double squares = 0.0, ones = 0.0, moved = 0.0;
    for (Index j = 0; j < columns; ++j) squares += at.slope[j] * at.slope[j];
    for (std::size_t j = static_cast<std::size_t>(columns); j < size_; ++j) {
      ones += at.slope[j] * at.slope[j];
      moved += std::abs(at.slope[j]);
    }
    const double length = std::sqrt(squares) + of_.spread * std::sqrt(ones);
    const double bound = std::max(0.5 * length * length / of_.l2, 0.5 * decrease);
    const double estimate = kCaution * (classes_ ? bound + moved : bound);
    if (!classes_ || estimate <= of_.enough || !(0.5 * squares / of_.l2 <= bar_)) return estimate;
    bar_ *= 0.1;  // a check that fails must not be made at every point from there on
    return std::min(estimate, balanced_gap(at));
  }

  // The gap with probability moved from classes that have too much of it to the others.
  double balanced_gap(const Place& at) {
    const Index scores = of_.scores, columns = of_.columns * scores;
    Values kept(bias_.size(), 1.0), share(bias_.size()), slope(size_);
    double missing = 0.0;
    for (Index k = 0; k < scores && of_.intercept; ++k) {
      double have = 0.0;
      for (Index i = 0; i < of_.X.rows; ++i)
        have += (of_.weight == nullptr ? 1.0 : of_.weight[i]) *
                at.bends[static_cast<std::size_t>(i * scores + k)] / of_.weight_sum;
      const double over = at.slope[columns + k];
      const auto one = static_cast<std::size_t>(k);
      if (over > 0.0) kept[one] = (have - over) / have;
      share[one] = std::max(-over, 0.0);
      missing += share[one];
    }
    for (double& part : share) part = missing > 0.0 ? part / missing : 0.0;
    if (!(missing > 0.0)) std::fill(kept.begin(), kept.end(), 1.0);
    SoftmaxSums sums{};
    if (!softmax_sweep(of_.X, of_.y, of_.weight, scores, at.theta.data(), unshifted(at.theta), kept.data(),
                       share.data(), &sums, slope.data(), nullptr, stop_))
      return std::numeric_limits<double>::infinity();
    complete(at.theta, slope);
    double squares = 0.0;
    for (Index j = 0; j < columns; ++j) squares += slope[j] * slope[j];
    return sums.value / of_.weight_sum + 0.5 * squares / of_.l2;
  }

  const TruncatedProblem<Rows>& of_;
  Stop& stop_;
  bool classes_;
  std::size_t size_;
  double bar_;  // of the gap of the columns alone, below which the gap is worked out
  Values squares_, inverse_, bias_;
  Index products_ = 0;
};

}  // namespace

template <class Rows>
NewtonEnd truncated_newton(const TruncatedProblem<Rows>& problem, double* theta, double* step,
                           const NewtonReport& report, Stop& stop) {
  return Descent<Rows>(problem, stop).run(theta, step, report);
}

template NewtonEnd truncated_newton(const TruncatedProblem<Table<double>>&, double*, double*,
                                    const NewtonReport&, Stop&);
template NewtonEnd truncated_newton(const TruncatedProblem<Table<float>>&, double*, double*,
                                    const NewtonReport&, Stop&);
template NewtonEnd truncated_newton(const TruncatedProblem<SparseTable<double, std::int32_t>>&, double*,
                                    double*, const NewtonReport&, Stop&);
template NewtonEnd truncated_newton(const TruncatedProblem<SparseTable<float, std::int32_t>>&, double*,
                                    double*, const NewtonReport&, Stop&);
template NewtonEnd truncated_newton(const TruncatedProblem<SparseTable<double, Index>>&, double*, double*,
                                    const NewtonReport&, Stop&);
template NewtonEnd truncated_newton(const TruncatedProblem<SparseTable<float, Index>>&, double*, double*,
                                    const NewtonReport&, Stop&);

}  // namespace sixfold
