// Dual coordinate descent for support vector machines (solvers/margin/dual_coordinate.py states the problem).
//
// One step for row i, with the slope G = y_i (w.x_i + b) - 1 + a_i quadratic_i of the dual in a_i,
//
//     a_i <- clip(a_i - kStep G / (|x_i|^2 / l2 + 1 / rho + quadratic_i), 0, upper_i)
//
// goes a little past the best value, as in successive over-relaxation (with kStep < 2 the dual never falls),
// and keeps w = sum_i a_i y_i x_i / l2 and b = centre + sum_i a_i y_i / rho up to date (Hsieh, Chang, Lin,
// Keerthi and Sundararajan 2008, after whose rule rows are also set aside).
//
// Once hardly any multiplier comes to an end of its range, or leaves one, those between their ends have to
// make their slopes 0, which is a linear system: conjugate gradients solve it as far as is worth it, and
// passes find out whether it was the right one (as in More and Toraldo 1991). An iteration costs what a pass
// does, and the gap falls by a fifth instead of a tenth: 2,000 x 2,000 rows, 1,250 of them between their
// ends, take 75 of both instead of 109 passes, and 4,000 x 2,000 at C = 100 130 instead of 340.
#include "linear/margin/dual_coordinate.hpp"

#include <cmath>
#include <initializer_list>
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
constexpr double kStep = 1.25;     // of the step to the best value: a tenth fewer visits than with 1
constexpr double kSettled = 0.02;  // of the active rows: so few cross the ends of their ranges in a pass
constexpr double kFurther = 0.3;   // of what is enough: the gap at which rows are left to passes again
constexpr double kAsFar =
    20.0;  // times the share of rows that cross an end: how far the gap falls until then
constexpr double kOutside = 0.02;  // of the rows: so many may pass an end
constexpr Index kMostSolved = 60;  // iterations of conjugate gradients in a row
constexpr Index kBetween = 2;      // passes between them, at least
constexpr Index kAhead = 2;        // rows between asking for a row and visiting it

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

// Whether a row is at an end of its range and so far beyond that it will stay there.
bool stays(double a, double upper, double slope, const Bounds& aside) {
  return (a <= 0.0 && slope > aside.high) || (a >= upper && slope < aside.low);
}

// What a pass finds out on its way: the gap, and the steepest slopes by which a multiplier may still move.
struct Found {
  double gap = 0.0, high = -kInfinity, low = kInfinity;
  Index crossed = 0;  // multipliers that left an end of their range, or came to it
};

bool between(double a, double upper) { return a > 0.0 && a < upper; }

// Moves the multiplier of row i. False if the row is to be set aside.
template <class Rows>
bool visit(const Rows& X, const MarginRows& rows, MarginState& state, Index i, Found& found) {
  const double y = rows.y[i], a = rows.a[i], upper = rows.upper[i], quadratic = rows.quadratic[i];
  const double b = state.centre + state.balance / state.rho;
  const double distance = 1.0 - y * (X.dot(i, rows.w) + b);
  const double slope = a * quadratic - distance;
  if (stays(a, upper, slope, state.aside)) return false;
  const double projected = a <= 0.0 ? std::min(slope, 0.0) : a >= upper ? std::max(slope, 0.0) : slope;
  found.gap += row_slack(distance, a, upper, quadratic);
  found.high = std::max(found.high, projected);
  found.low = std::min(found.low, projected);
  if (projected == 0.0) return true;
  const double curvature = rows.square[i] / state.l2 + 1.0 / state.rho + quadratic;
  const double moved = std::clamp(a - kStep * slope / curvature, 0.0, upper);
  if (moved == a) return true;
  found.crossed += between(a, upper) != between(moved, upper);
  rows.a[i] = moved;
  state.balance += y * (moved - a);
  X.add(i, y * (moved - a) / state.l2, rows.w);
  return true;
}

// Passes over the active rows. One thread does it: two that each take half of the rows with a copy of w, to
// be added up every 10,000 rows, took 2.7 times the processor time on text-like data (on a busy machine).
template <class Rows>
class Descent {
 public:
  Descent(const Rows& X, const MarginRows& rows, MarginState& state) : X_(X), rows_(rows), state_(state) {}

  // Returns the gap summed up on the way.
  double pass(Stop& stop) {
    put_in_order();
    Found found;
    const Index count = state_.active;
    for (Index at = 0; at < count && !((at & 63) == 0 && stop.now()); ++at) {
      if (at + kAhead < count) fetch(rows_in_turn_[static_cast<std::size_t>(at + kAhead)]);
      const Index i = rows_in_turn_[static_cast<std::size_t>(at)];
      if (!visit(X_, rows_, state_, i, found)) state_.order[places_[static_cast<std::size_t>(at)]] = -1;
    }
    state_.aside = {found.high > 0.0 ? kBeyond * found.high : kInfinity,
                    found.low < 0.0 ? kBeyond * found.low : -kInfinity};
    state_.active = std::remove(state_.order, state_.order + count, -1) - state_.order;
    crossed_ = found.crossed;
    return found.gap;
  }

  // Passes to be made before rows between their ends are solved for again.
  Index patience() const { return patience_; }

  // Whether rows hardly cross the ends of their ranges any more, so that equations say where they go.
  bool settled() const { return crossed_ <= kSettled * static_cast<double>(state_.active); }

  // Moves the multipliers between their ends to where their slopes are 0, as far as `enough` asks for, or
  // until too many pass an end; those that do stop there. Undone where the dual falls. Returns the
  // iterations.
  Index solve_free(double enough, Index most, Stop& stop) {
    free_.clear();
    for (Index k = 0; k < state_.active; ++k)
      if (between(rows_.a[state_.order[k]], rows_.upper[state_.order[k]])) free_.push_back(state_.order[k]);
    const std::size_t size = free_.size();
    const auto columns = static_cast<std::size_t>(X_.columns());
    const std::vector<double> w(rows_.w, rows_.w + columns);
    const double balance = state_.balance, value = dual();
    std::vector<double> a(size), slope(size), towards(size), product(size), v(columns);
    const double unsettled = kAsFar * static_cast<double>(crossed_) / static_cast<double>(state_.active);
    double gradient = 0.0, first = 0.0;
    for (std::size_t f = 0; f < size; ++f) {
      const Index i = free_[f];
      a[f] = rows_.a[i];
      slope[f] = rows_.y[i] * (X_.dot(i, rows_.w) + intercept()) - 1.0 + a[f] * rows_.quadratic[i];
      towards[f] = -slope[f] / curvature(i);
      gradient -= slope[f] * towards[f];
    }
    Index made = 0;
    for (; made < most && gradient > 0.0 && !stop.now(); ++made) {
      double turned = 0.0, bend = 0.0, gap = 0.0, next = 0.0;
      std::size_t outside = 0;
      std::fill(v.begin(), v.end(), 0.0);
      for (std::size_t f = 0; f < size; ++f) {
        const double by = rows_.y[free_[f]] * towards[f];
        turned += by;
        X_.add(free_[f], by / state_.l2, v.data());
      }
      for (std::size_t f = 0; f < size; ++f) {
        const Index i = free_[f];
        product[f] =
            rows_.y[i] * (X_.dot(i, v.data()) + turned / state_.rho) + rows_.quadratic[i] * towards[f];
        bend += towards[f] * product[f];
      }
      if (!(bend > 0.0)) break;
      const double length = gradient / bend;
      for (std::size_t j = 0; j < columns; ++j) rows_.w[j] += length * v[j];
      state_.balance += length * turned;
      for (std::size_t f = 0; f < size; ++f) {
        const Index i = free_[f];
        rows_.a[i] += length * towards[f];
        slope[f] += length * product[f];
        gap += row_slack(rows_.a[i] * rows_.quadratic[i] - slope[f],
                         std::clamp(rows_.a[i], 0.0, rows_.upper[i]), rows_.upper[i], rows_.quadratic[i]);
        next += slope[f] * slope[f] / curvature(i);
        outside += rows_.a[i] < 0.0 || rows_.a[i] > rows_.upper[i];
      }
      if (made == 0) first = gap;
      if (gap <= std::max(kFurther * enough, unsettled * first) ||
          static_cast<double>(outside) > kOutside * static_cast<double>(size))
        break;
      for (std::size_t f = 0; f < size; ++f)
        towards[f] = next / gradient * towards[f] - slope[f] / curvature(free_[f]);
      gradient = next;
    }
    for (const Index i : free_) {
      const double inside = std::clamp(rows_.a[i], 0.0, rows_.upper[i]),
                   by = rows_.y[i] * (inside - rows_.a[i]);
      if (by == 0.0) continue;
      rows_.a[i] = inside;
      state_.balance += by;
      X_.add(i, by / state_.l2, rows_.w);
    }
    if (!(dual() >= value)) {
      for (std::size_t f = 0; f < size; ++f) rows_.a[free_[f]] = a[f];
      std::copy(w.begin(), w.end(), rows_.w);
      state_.balance = balance;
      patience_ = 2 * std::max(patience_, made);
    } else {
      patience_ = std::max(made / 4, kBetween);
    }
    return made;
  }

 private:
  double intercept() const { return state_.centre + state_.balance / state_.rho; }

  double curvature(Index i) const {
    return rows_.square[i] / state_.l2 + 1.0 / state_.rho + rows_.quadratic[i];
  }

  // The dual at the multipliers of the active rows: others do not move.
  double dual() const {
    double value = 0.0, square = 0.0;
    for (Index k = 0; k < state_.active; ++k) {
      const Index i = state_.order[k];
      value += rows_.a[i] * (1.0 - 0.5 * rows_.quadratic[i] * rows_.a[i]);
    }
    for (Index j = 0; j < X_.columns(); ++j) square += rows_.w[j] * rows_.w[j];
    return value - 0.5 * state_.l2 * square -
           state_.balance * (state_.centre + 0.5 * state_.balance / state_.rho);
  }

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

  // Asks for what a later visit will read.
  void fetch(Index i) const {
    X_.prefetch(i);
    for (const double* values :
         std::initializer_list<const double*>{rows_.y, rows_.upper, rows_.quadratic, rows_.square, rows_.a})
      __builtin_prefetch(values + i);
  }

  const Rows& X_;
  const MarginRows& rows_;
  MarginState& state_;
  // Runs and places in state.order as they are visited, and the rows there.
  std::vector<std::int32_t> runs_, places_, rows_in_turn_, free_;
  Index crossed_ = 0, patience_ = kBetween;
};

}  // namespace

Index descend_margins(const AnyRows& table, const MarginRows& rows, MarginState& state, double enough,
                      Index passes, Stop& stop) {
  Index made = 0;
  std::visit(
      [&](const auto& X) {
        Descent descent(X, rows, state);
        Index next = kBetween;
        double left = kInfinity, before = 0.0;  // the gap after a pass, and what the one before summed up
        for (; made < passes && left > enough && !stop.now(); ++made) {
          const double gap = descent.pass(stop);
          // Most of the sum is older than the end of the pass: suppose that the gap has shrunk since as it
          // did from pass to pass. After the first few passes over text-like data it was 0.6 to 1.05 of that.
          left = before > 0.0 ? gap * std::min(gap / before, 1.0) : gap;
          before = gap;
          if (left <= enough || made < next || !descent.settled()) continue;
          made += descent.solve_free(enough, kMostSolved, stop);
          next = made + descent.patience();
          before = 0.0;
        }
      },
      table);
  return made;
}

bool margin_gap(const AnyRows& table, const MarginRows& rows, double b, double next, const Bounds& aside,
                std::int32_t* order, MarginGap* found, Stop& stop) {
  std::vector<MarginGap> parts(static_cast<std::size_t>(pieces(rows_of(table))), MarginGap{});
  std::vector<std::uint8_t> active(static_cast<std::size_t>(rows_of(table)));
  const bool finished = for_few_rows(table, stop, [&](const auto& X, Index piece, Index first, Index count) {
    MarginGap& part = parts[static_cast<std::size_t>(piece)];
    for (Index i = first; i < first + count; ++i) {
      const double a = rows.a[i], upper = rows.upper[i], quadratic = rows.quadratic[i];
      if (!(upper > 0.0)) continue;
      const double distance = 1.0 - rows.y[i] * (X.dot(i, rows.w) + b);
      part.loss += row_loss(distance, upper, quadratic);
      part.slack += row_slack(distance, a, upper, quadratic);
      const double slope = a * quadratic - distance + rows.y[i] * (next - b);
      active[static_cast<std::size_t>(i)] = !stays(a, upper, slope, aside);
    }
  });
  *found = MarginGap{};
  for (const MarginGap& part : parts) {
    found->loss += part.loss;
    found->slack += part.slack;
  }
  for (Index i = 0; i < rows_of(table); ++i)
    if (active[static_cast<std::size_t>(i)]) order[found->active++] = static_cast<std::int32_t>(i);
  return finished;
}

}  // namespace sixfold
