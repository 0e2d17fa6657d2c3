// Newton steps on working sets of columns: few weights are not zero, and a call from Python takes longer than
// a pass over those. One step minimises over the working set
//
//   sum_i u_i a_i + sum_i h_i a_i^2 / 2 + penalty(w + d),     a = Z d + e,  u_i = q_i loss', h_i = q_i loss''
//
// by coordinate descent on v = -u - h Z d (Lee, Sun and Saunders 2014; Yuan, Ho and Lin 2012): the best
// change e of the intercept is `-lift`, where v + lift h sums to zero, so that no entry that is zero is ever
// touched. Steps are halved until they bring enough of what the model promises. Steps on a set end where its
// gap is small beside that of all columns, whose slopes g = -Z'u are then found anew; those above l1 join the
// set, so many at a time as twice the weights that are not zero (Massias et al. 2018).
//
// The gap is estimated from weights and slopes; the bound of sixfold.risk.bounds decides in the end. What
// does not come to its end here is left to the solvers in Python.
#include "linear/l1/proximal_newton.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/threads.hpp"
#include "core/vector_math.hpp"
#include "linear/l1/conjugate_steps.hpp"
#include "linear/smooth/smooth_losses.hpp"

namespace sixfold {
namespace {

constexpr double kModelPart = 0.1;  // of what is left: what the minimum of the model may be short of
constexpr double kSetPart = 0.3;    // of the gap of all columns: where steps on the set end
constexpr Index kEpochs = 8;        // over the set, and then so many conjugate steps on the signs found
constexpr Index kConjugateSteps = 10;
constexpr Index kRounds = 5;  // of both, for one model
constexpr Index kFewestFirst = 100,
                kMostFirst = 400;  // columns of the first set, a fifth of the rows; then twice the weights
constexpr double kNear = 0.9;      // of l1: slopes of columns that stay, though they have no weight
constexpr Index kSetSteps = 20;
constexpr double kRest = 0.3;  // of the goal: what is asked of a set
// Passes over sets for half of the gap, beyond which columns nearly depend on each other: as many as there
// are rows, as long as a Gram matrix of as many columns takes, which helps then. In all, some times as many.
constexpr Index kFewestPasses = 100, kMostPasses = 2000, kMostTimes = 4;
constexpr Index kMostStale = 3;  // passes over all columns that bring nothing: that is rounding then
constexpr Index kMostHalvings = 30;
constexpr double kSufficient = 1e-4;
constexpr double kShort = 0.25;  // of a step: where it is shortened to less, the next model bends more
constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kLeastCurvature = 1e-15;  // of a row: keeps every column bent, also where no row is
constexpr double kTiny = 1e-300;

using Values = std::vector<double>;

struct SlopeSizes {
  double largest = 0.0, excess = 0.0;  // sum of squares above l1

  void add(double slope, double l1) {
    const double above = std::max(slope - l1, 0.0);
    largest = std::max(largest, slope);
    excess += above * above;
  }
};

template <class Columns, class Loss>
class Search {
 public:
  Search(const Columns& Z, const ScoreProblem& of, double* w, double* c, Stop& stop)
      : Z_(Z),
        of_(of),
        w_(w),
        c_(c),
        stop_(stop),
        score_(size(Z.rows), *c),
        moved_(score_),
        u_(score_),
        h_(score_),
        root_(score_),
        along_(score_),
        v_(size(Z.rows + kLanes)),
        g_(size(Z.columns)),
        listed_(size(Z.columns)),
        scaled_(scaled_form(Z)) {}

  ProximalEnd run(const ProximalReport& report) {
    for (Index j = 0; j < Z_.columns; ++j) {
      if (w_[j] == 0.0) continue;
      add(Z_, j, w_[j], score_.data());
      listed_[size(j)] = 1;
      ids_.push_back(j);
    }
    value_ = losses(score_);
    if (of_.intercept && ids_.empty()) settle();
    double least = std::numeric_limits<double>::infinity(), lowest = least;
    for (Index steps = 0, stale = 0;; ++steps) {
      if (!find_slopes()) return ProximalEnd::stopped;
      const double left = left_of_all(), objective = value_ + penalty();
      const bool done = left <= of_.goal;
      if ((steps > 0 || done) && report(objective, std::min(left, objective)) && !done)
        return ProximalEnd::stopped;
      if (done) return ProximalEnd::done;
      const bool halved = left < 0.5 * least;
      stale = halved || objective < (1.0 - 1e-14) * lowest ? 0 : stale + 1;
      least = halved ? left : least;
      lowest = objective;
      if (halved) halved_at_ = passes_;
      if (!std::isfinite(left) || stale == kMostStale || crawls()) return ProximalEnd::stuck;
      grow();
      const double enough = std::max(kSetPart * left, kRest * of_.goal);
      double of_set = left;
      for (Index step = 0; step < kSetSteps && of_set > enough && !crawls(); ++step) {
        const bool lower = move(of_set);
        if (stop_.now()) return ProximalEnd::stopped;
        // Where the set is most of the table all slopes cost hardly more.
        if (!lower || 2 * static_cast<Index>(ids_.size()) > Z_.columns) break;
        of_set = left_of_set();
      }
    }
  }

 private:
  static std::size_t size(Index count) { return static_cast<std::size_t>(count); }

  bool crawls() const { return passes_ - halved_at_ > patience_ || passes_ > kMostTimes * patience_; }

  // Slopes and second derivatives at scores; returns the value.
  double losses(const Values& score) {
    return row_losses<Loss>(score.data(), of_.y, of_.q, Z_.rows, u_.data(), h_.data());
  }

  // The best intercept beside no weights.
  void settle() {
    for (Index tried = 0; tried < 20; ++tried) {
      double slope = 0.0, total = 0.0;
      for (Index i = 0; i < Z_.rows; ++i) slope += u_[size(i)], total += h_[size(i)];
      if (!(total > 0.0) || 0.5 * slope * slope <= 1e-8 * of_.goal * total) return;
      const double move = std::clamp(-slope / total, -2.0, 2.0);
      *c_ += move;
      for (double& s : score_) s += move;
      value_ = losses(score_);
    }
  }

  bool find_slopes() {
    const int team = team_size(Z_.columns, static_cast<double>(Z_.entries()));
#pragma omp parallel for num_threads(team) schedule(static) if (team > 1)
    for (Index j = 0; j < Z_.columns; ++j) g_[size(j)] = -dot(Z_, j, u_.data());
    return !stop_.now();
  }

  double penalty() const {
    double absolute = 0.0, squared = 0.0;
    for (const Index j : ids_) absolute += std::abs(w_[j]), squared += w_[j] * w_[j];
    return of_.l1 * absolute + 0.5 * of_.l2 * squared;
  }

  double slope_size(Index j) const { return of_.positive ? g_[size(j)] : std::abs(g_[size(j)]); }

  double left_of_all() const {
    SlopeSizes sizes;
    for (Index j = 0; j < Z_.columns; ++j) sizes.add(slope_size(j), of_.l1);
    return left(sizes);
  }

  double left_of_set() {
    SlopeSizes sizes;
    for (const Index j : ids_) {
      g_[size(j)] = -dot(Z_, j, u_.data());
      sizes.add(slope_size(j), of_.l1);
    }
    return left(sizes);
  }

  // About what the bound will be, from weights and slopes alone; slopes of the rows have to balance besides.
  double left(const SlopeSizes& sizes) const {
    double along = 0.0, total = 0.0;
    for (const Index j : ids_) along += g_[size(j)] * w_[j];
    for (const double u : u_) total += u;
    const double unbalanced = of_.intercept ? 2.0 * std::abs(total) : 0.0;
    if (of_.l2 > 0.0) return std::abs(penalty() + sizes.excess / (2.0 * of_.l2) - along) + unbalanced;
    const double t = std::min(1.0, of_.l1 / std::max(sizes.largest, kTiny));
    return std::abs(penalty() - t * along) + (1.0 - t) * (1.0 - t) * value_ + unbalanced;
  }

  // Adds the columns whose slopes are above l1 most; those without a weight or such a slope leave.
  void grow() {
    std::vector<Index> fresh;
    Index weighted = 0, kept = 0;
    for (Index j = 0; j < Z_.columns; ++j) {
      const bool stays = listed_[size(j)] && (w_[j] != 0.0 || slope_size(j) > kNear * of_.l1);
      if (!stays && slope_size(j) > of_.l1) fresh.push_back(j);
      weighted += w_[j] != 0.0;
      kept += stays;
      listed_[size(j)] = stays;
    }
    const Index first = std::clamp(Z_.rows / 5, kFewestFirst, kMostFirst);
    const auto most = static_cast<std::ptrdiff_t>(std::max(std::max(first, 2 * weighted) - kept, first / 2));
    if (static_cast<std::ptrdiff_t>(fresh.size()) > most) {
      std::nth_element(fresh.begin(), fresh.begin() + most, fresh.end(), [&](Index a, Index b) {
        const double one = slope_size(a), other = slope_size(b);
        return one != other ? one > other : a < b;
      });
      fresh.resize(size(most));
    }
    for (const Index j : fresh) listed_[size(j)] = 1;
    ids_.clear();
    for (Index j = 0; j < Z_.columns; ++j)
      if (listed_[size(j)]) ids_.push_back(j);
  }

  // Moves towards the minimum of the model on the set; false if there is no way down.
  bool move(double left) {
    const double pull = to_minimum_of_model(left), before = penalty();
    std::fill(along_.begin(), along_.end(), pull);
    double absolute = 0.0, squared = 0.0;
    for (std::size_t k = 0; k < ids_.size(); ++k) {
      const double w = there_[k], change = w - w_[ids_[k]];
      if (change != 0.0) add(Z_, ids_[k], change, along_.data());
      absolute += std::abs(w), squared += w * w;
    }
    double promised = before - of_.l1 * absolute - 0.5 * of_.l2 * squared;
    for (std::size_t i = 0; i < score_.size(); ++i) promised -= u_[i] * along_[i];
    const double objective = value_ + before, noise = 8.0 * kEps * objective;
    const Values from(weights());
    double length = 1.0;
    for (Index halved = 0; halved < kMostHalvings; ++halved, length *= 0.5) {
      for (std::size_t i = 0; i < score_.size(); ++i) moved_[i] = score_[i] + length * along_[i];
      for (std::size_t k = 0; k < ids_.size(); ++k)  // at full length with the zeros of the minimum
        w_[ids_[k]] = length == 1.0 ? there_[k] : from[k] + length * (there_[k] - from[k]);
      value_ = losses(moved_);
      if (value_ + penalty() - objective <= noise - kSufficient * length * promised) {
        *c_ += length * pull;
        score_.swap(moved_);
        damping_ = length < kShort ? std::min(std::max(8.0 * damping_, 1e-4), 1.0)
                                   : std::max(damping_ / 8.0, kLeastCurvature);
        return true;
      }
    }
    for (std::size_t k = 0; k < ids_.size(); ++k) w_[ids_[k]] = from[k];
    value_ = losses(score_);
    return false;
  }

  Values weights() const {
    Values w;
    w.reserve(ids_.size());
    for (const Index j : ids_) w.push_back(w_[j]);
    return w;
  }

  // Puts the weights of the set at the minimum of the model, nearly, and returns the change of the intercept.
  double to_minimum_of_model(double left) {
    double total = 0.0, slope = 0.0;
    for (std::size_t i = 0; i < score_.size(); ++i) {
      const double h = std::max(h_[i], damping_ * of_.q[i]);
      root_[i] = std::sqrt(h);
      total += h;
      slope += u_[i];
    }
    double pull = of_.intercept ? -slope / total : 0.0;
    for (std::size_t i = 0; i < score_.size(); ++i)
      v_[i] = root_[i] > 0.0 ? -u_[i] / root_[i] - root_[i] * pull : 0.0;
    std::fill(v_.begin() + static_cast<std::ptrdiff_t>(score_.size()), v_.end(), 0.0);
    scaled_.take(Z_, ids_, root_.data(), of_.intercept ? total : 0.0, v_.data());
    there_ = weights();
    double most = 0.0, absolute = 0.0;
    for (std::size_t k = 0; k < ids_.size(); ++k) {
      most = std::max(most, scaled_.curvatures[k]);
      absolute += std::abs(there_[k]);
    }
    // Errors e of slopes leave a gap of about |w|_1 max |e|; a move changes its slope by curvature * move.
    const double off = kModelPart * left / std::max(absolute, left / std::max(of_.l1, kTiny));
    const Descent descent{of_.l1, of_.l2, of_.positive, kEpochs, off * off / std::max(most, kTiny)};
    const Index count = static_cast<Index>(ids_.size());
    for (Index round = 0; round < kRounds; ++round) {
      const Index epochs = descend(scaled_, count, there_.data(), descent, stop_).epochs;
      passes_ += epochs;
      if (epochs < kEpochs) break;
      passes_ += conjugate_steps(scaled_, count, there_.data(), descent, kConjugateSteps, stop_);
    }
    for (std::size_t k = 0; k < ids_.size(); ++k) pull -= (there_[k] - w_[ids_[k]]) * scaled_.means[k];
    return of_.intercept ? pull : 0.0;
  }

  const Columns& Z_;
  const ScoreProblem& of_;
  double *w_, *c_;
  Stop& stop_;
  Values score_, moved_, u_, h_, root_, along_, v_, g_;
  std::vector<char> listed_;
  std::vector<Index> ids_;
  Values there_;
  decltype(scaled_form(std::declval<Columns>())) scaled_;
  double value_ = 0.0;
  double damping_ = kLeastCurvature;  // second derivatives of a row are at least that
  Index patience_ = std::clamp(Z_.rows, kFewestPasses, kMostPasses);
  Index passes_ = 0, halved_at_ = 0;  // over sets: all, and those until the gap had halved last
};

}  // namespace

template <class Columns>
ProximalEnd proximal_newton(const Columns& Z, const ScoreProblem& problem, double* w, double* c,
                            const ProximalReport& report, Stop& stop) {
  ProximalEnd end = ProximalEnd::stuck;
  with_smooth_loss(problem.loss, [&]<class Loss>(Loss) {
    end = Search<Columns, Loss>(Z, problem, w, c, stop).run(report);
  });
  return end;
}

template ProximalEnd proximal_newton(const ShiftedColumns<double>&, const ScoreProblem&, double*, double*,
                                     const ProximalReport&, Stop&);
template ProximalEnd proximal_newton(const ShiftedColumns<float>&, const ScoreProblem&, double*, double*,
                                     const ProximalReport&, Stop&);
template ProximalEnd proximal_newton(const SparseColumns<double, std::int32_t>&, const ScoreProblem&, double*,
                                     double*, const ProximalReport&, Stop&);
template ProximalEnd proximal_newton(const SparseColumns<double, std::int64_t>&, const ScoreProblem&, double*,
                                     double*, const ProximalReport&, Stop&);
template ProximalEnd proximal_newton(const SparseColumns<float, std::int32_t>&, const ScoreProblem&, double*,
                                     double*, const ProximalReport&, Stop&);
template ProximalEnd proximal_newton(const SparseColumns<float, std::int64_t>&, const ScoreProblem&, double*,
                                     double*, const ProximalReport&, Stop&);

}  // namespace sixfold
