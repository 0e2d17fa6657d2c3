// Dual coordinate descent for support vector machines (solvers/dual_coordinate.py states the problem).
//
// One step for row i, with the slope G = y_i (w.x_i + b) - 1 + a_i quadratic_i of the dual in a_i,
//
//     a_i <- clip(a_i - G / (|x_i|^2 / l2 + 1 / rho + quadratic_i), 0, upper_i)
//
// keeps w = sum_i a_i y_i x_i / l2 and b = centre + sum_i a_i y_i / rho up to date (Hsieh, Chang, Lin,
// Keerthi and Sundararajan 2008, after whose rule rows are also set aside).
#include "dual_coordinate.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace sixfold {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kRun = 8;
// Rows whose slope is beyond this part of the steepest one are set aside. With 1, the safe rule, text-like
// data took 1.5 times as long; a row set aside too early is back after at most a hundred passes.
constexpr double kBeyond = 0.1;
constexpr double kWorth = 6.0;     // entries of a stretch, in columns: adding up costs a tenth of that work
constexpr Index kLarge = 1 << 20;  // entries from which two workers are worth their meetings

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64 (Steele, Lea and Flood 2014)
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

Index draw(Index count, std::uint64_t& random) {
  const auto wide = static_cast<unsigned __int128>(next_random(random)) * static_cast<std::uint64_t>(count);
  return static_cast<Index>(wide >> 64);
}

void shuffle(std::int32_t* values, Index count, std::uint64_t& random) {
  for (Index k = count - 1; k > 0; --k) std::swap(values[k], values[draw(k + 1, random)]);
}

// What a row adds to the gap: its loss, plus the conjugate at a, minus a times the distance to the margin.
double row_slack(double distance, double a, double upper, double quadratic) {
  if (quadratic > 0.0) {  // half the square of the hinge, divided by quadratic
    const double excess = std::max(distance, 0.0) - a * quadratic;
    return 0.5 * excess * excess / quadratic + a * std::max(-distance, 0.0);
  }
  return distance > 0.0 ? (upper - a) * distance : -a * distance;
}

double row_loss(double distance, double upper, double quadratic) {
  const double hinge = std::max(distance, 0.0);
  return quadratic > 0.0 ? 0.5 * hinge * hinge / quadratic : upper * hinge;
}

// One of the two who share the rows of a stretch. Each knows only its own steps until both are added up.
struct Worker {
  double* w;
  double balance, gap, high, low;
};

// Moves the multiplier of row i. False if the row is to be set aside.
template <class Rows>
bool visit(const Rows& X, const MarginRows& rows, const MarginState& state, Index i, Worker& worker) {
  const double y = rows.y[i], a = rows.a[i], upper = rows.upper[i], quadratic = rows.quadratic[i];
  const double b = state.centre + worker.balance / state.rho;
  const double distance = 1.0 - y * (X.dot(i, worker.w) + b);
  const double slope = a * quadratic - distance;
  if ((a <= 0.0 && slope > state.high) || (a >= upper && slope < state.low)) return false;
  const double projected = a <= 0.0 ? std::min(slope, 0.0) : a >= upper ? std::max(slope, 0.0) : slope;
  worker.gap += row_slack(distance, a, upper, quadratic);
  worker.high = std::max(worker.high, projected);
  worker.low = std::min(worker.low, projected);
  if (projected == 0.0) return true;
  const double curvature = rows.square[i] / state.l2 + 1.0 / state.rho + quadratic;
  const double moved = std::clamp(a - slope / curvature, 0.0, upper);
  if (moved == a) return true;
  rows.a[i] = moved;
  worker.balance += y * (moved - a);
  X.add(i, y * (moved - a) / state.l2, worker.w);
  return true;
}

// Passes over the active rows. In a large table two workers take a stretch of rows each, at the same time,
// and their steps are added up before the next: the same processor time on two cores, and 1.0 to 1.1 times
// the passes. Who takes which row depends on the table alone, so one thread does the same as two.
template <class Rows>
class Descent {
 public:
  Descent(const Rows& X, const MarginRows& rows, MarginState& state) : X_(X), rows_(rows), state_(state) {
    const double entries =
        static_cast<double>(X.entries()) / static_cast<double>(std::max<Index>(X.rows(), 1));
    stretch_ = 1 + static_cast<Index>(kWorth * static_cast<double>(X.columns()) / std::max(entries, 1.0));
    workers_ = X.rows() >= 2 * stretch_ && X.entries() >= kLarge ? 2 : 1;
    if (workers_ == 1) return;
    copies_.resize(static_cast<std::size_t>(2 * X.columns()));
    for (int k = 0; k < 2; ++k) std::copy_n(rows.w, X.columns(), copy(k));
    before_.resize(static_cast<std::size_t>(X.rows()));
  }

  // Returns the gap summed up on the way.
  double pass(Stop& stop) {
    put_in_order();
    const Index count = state_.active;
    double gap = 0.0, high = -kInfinity, low = kInfinity;
    for (Index first = 0; first < count && !stop.now(); first += workers_ * stretch_) {
      Worker workers[2];
#pragma omp parallel for schedule(static) num_threads(std::min(threads(), workers_)) if (workers_ > 1)
      for (int k = 0; k < workers_; ++k) {
        workers[k] = {workers_ > 1 ? copy(k) : rows_.w, state_.balance, 0.0, -kInfinity, kInfinity};
        work(std::min(first + k * stretch_, count), std::min(first + (k + 1) * stretch_, count), workers[k]);
      }
      if (workers_ > 1) {
        add_up(first, std::min(first + 2 * stretch_, count), workers);
      } else {
        state_.balance = workers[0].balance;
      }
      for (int k = 0; k < workers_; ++k) {
        gap += workers[k].gap;
        high = std::max(high, workers[k].high);
        low = std::min(low, workers[k].low);
      }
    }
    state_.high = high > 0.0 ? kBeyond * high : kInfinity;
    state_.low = low < 0.0 ? kBeyond * low : -kInfinity;
    state_.active = std::remove(state_.order, state_.order + count, -1) - state_.order;
    return gap;
  }

 private:
  double* copy(int worker) { return copies_.data() + worker * X_.columns(); }

  // Runs of kRun rows in random order, and at random within a run. Rows that are near in memory are visited
  // one after the other, which took two thirds of the time of a free order.
  void put_in_order() {
    const Index count = state_.active;
    runs_.resize(static_cast<std::size_t>((count + kRun - 1) / kRun));
    std::iota(runs_.begin(), runs_.end(), 0);
    shuffle(runs_.data(), static_cast<Index>(runs_.size()), state_.random);
    places_.resize(static_cast<std::size_t>(count));
    auto to = places_.begin();
    for (const std::int32_t run : runs_) {
      const Index begin = run * kRun, size = std::min(kRun, count - begin);
      std::iota(to, to + size, static_cast<std::int32_t>(begin));
      shuffle(&*to, size, state_.random);
      to += size;
    }
    rows_in_turn_.resize(places_.size());
    for (std::size_t at = 0; at < places_.size(); ++at) rows_in_turn_[at] = state_.order[places_[at]];
  }

  void work(Index begin, Index end, Worker& result) {
    Worker worker = result;  // on this thread's own cache line while it changes with every row
    for (Index at = begin; at < end; ++at) {
      const Index i = rows_in_turn_[static_cast<std::size_t>(at)];
      if (at + 1 < end) X_.prefetch(rows_in_turn_[static_cast<std::size_t>(at + 1)]);
      if (workers_ > 1) before_[static_cast<std::size_t>(at)] = rows_.a[i];
      if (!visit(X_, rows_, state_, i, worker)) state_.order[places_[static_cast<std::size_t>(at)]] = -1;
    }
    result = worker;
  }

  // Adds the steps of both workers, shortened if together they went too far: the dual never falls.
  void add_up(Index first, Index last, const Worker (&workers)[2]) {
    double along = 0.0, square = 0.0;
    double* __restrict w = rows_.w, * __restrict one = copy(0), * __restrict two = copy(1);
#pragma omp simd reduction(+ : along, square)
    for (Index j = 0; j < X_.columns(); ++j) {
      const double step = (one[j] - w[j]) + (two[j] - w[j]);
      along += w[j] * step;
      square += step * step;
    }
    const double balance = (workers[0].balance - state_.balance) + (workers[1].balance - state_.balance);
    double gain = -state_.l2 * along - balance * (state_.centre + state_.balance / state_.rho);
    double curvature = state_.l2 * square + balance * balance / state_.rho;
    for (Index at = first; at < last; ++at) {
      const Index i = rows_in_turn_[static_cast<std::size_t>(at)];
      const double a = before_[static_cast<std::size_t>(at)], step = rows_.a[i] - a;
      gain += step * (1.0 - a * rows_.quadratic[i]);
      curvature += step * step * rows_.quadratic[i];
    }
    const double length = curvature > 0.0 ? std::clamp(gain / curvature, 0.0, 1.0) : 1.0;
#pragma omp simd
    for (Index j = 0; j < X_.columns(); ++j) {
      w[j] += length * ((one[j] - w[j]) + (two[j] - w[j]));
      one[j] = two[j] = w[j];
    }
    state_.balance += length * balance;
    if (length == 1.0) return;
    for (Index at = first; at < last; ++at) {
      double& a = rows_.a[rows_in_turn_[static_cast<std::size_t>(at)]];
      a = before_[static_cast<std::size_t>(at)] + length * (a - before_[static_cast<std::size_t>(at)]);
    }
  }

  const Rows& X_;
  const MarginRows& rows_;
  MarginState& state_;
  int workers_;
  Index stretch_;
  std::vector<double> copies_, before_;  // of w, one a worker; multipliers before the stretch
  // Runs and places in state.order as they are visited, and the rows there.
  std::vector<std::int32_t> runs_, places_, rows_in_turn_;
};

}  // namespace

void descend_margins(const AnyRows& table, const MarginRows& rows, MarginState& state, double enough,
                     Index passes, Stop& stop) {
  std::visit(
      [&](const auto& X) {
        Descent descent(X, rows, state);
        double gap = kInfinity;
        for (Index made = 0; made < passes && gap > enough && !stop.now(); ++made) gap = descent.pass(stop);
      },
      table);
}

bool margin_gap(const AnyRows& table, const MarginRows& rows, double b, MarginGap* found, Stop& stop) {
  std::vector<MarginGap> parts(static_cast<std::size_t>(pieces(rows_of(table))), MarginGap{});
  const bool finished = for_few_rows(table, stop, [&](const auto& X, Index piece, Index first, Index count) {
    MarginGap& part = parts[static_cast<std::size_t>(piece)];
    for (Index i = first; i < first + count; ++i) {
      if (!(rows.upper[i] > 0.0)) continue;
      const double distance = 1.0 - rows.y[i] * (X.dot(i, rows.w) + b);
      part.loss += row_loss(distance, rows.upper[i], rows.quadratic[i]);
      part.slack += row_slack(distance, rows.a[i], rows.upper[i], rows.quadratic[i]);
    }
  });
  *found = MarginGap{};
  for (const MarginGap& part : parts) *found = {found->loss + part.loss, found->slack + part.slack};
  return finished;
}

}  // namespace sixfold
