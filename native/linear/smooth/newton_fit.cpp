// Newton's method from the start to the end, for dense tables of few columns: calls from Python, several a
// step, would take longer than the arithmetic of small ones (100 x 4 takes 10 us a fit), and products of
// matrices longer than sums of vectors.
//
//   step:  H delta = -g,    g = sum_i q_i loss'(s_i) z_i + l2 (w, 0),   H = sum_i q_i loss''(s_i) z_i z_i' +
//   l2 D
//
// with z = (x - mean, 1), D the identity without its entry for the intercept, and for softmax one block
// Z' diag(q p_k ([k = l] - p_l)) Z a pair of classes k, l. The same number added to the weights of all
// classes changes no score: the mean curvature of a column is given to that direction, in which g is 0.
//
// Rows lie side by side in lanes, a column of a block of rows after the other: scores, losses and
// probabilities are sums of vectors then, and so are the products of columns, 4 x 4 of them at a time in
// registers. A step that does not bring what it promises is shortened to where the slope along it is 0, on
// scores that are known. What does not end well (a matrix without factor, a line without descent, too many
// steps) is left to the solvers in Python, which begin again.
//
// The last pass is about the model as it is kept: rounded, and with an intercept that is put together in
// doubled precision, so that the bound (sixfold.risk.slope_bound) speaks of what is published.
#include "linear/smooth/newton_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/double_double.hpp"
#include "linear/small_systems.hpp"
#include "linear/smooth/newton_models.hpp"

namespace sixfold {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kSettled = 1e-14;    // of the scale: after a step that promises less, all digits are there
constexpr double kQuadratic = 0.25;   // of the decrease before: Newton's method is not converging faster
constexpr double kSufficient = 1e-4;  // share of the promised decrease that a step has to bring (Armijo)
constexpr double kNoise = 64.0;       // roundings of the value: steps that promise less cannot be seen in it
constexpr double kFlat = 0.1;         // of the slope at the start of a line: what may be left at its end
constexpr double kCaution = 4.0;      // times the estimated gap must be within what is asked for
constexpr double kMisled = 1.01;    // times the scale: a start that is worse is left for that without weights
constexpr Index kWeightSum = 40;    // roundings in the sum of the weights, added up in pairs
constexpr Index kMostLengths = 60;  // of one step, that are tried

// The length at which an increasing slope, `below` at 0, is nearly 0, by secants; the step is too long there.
template <class Slope>
double root_of_slope(Slope slope, double below) {
  double low = 0.0, high = 0.0, above = 0.0, length = 1.0;
  const double flat = kFlat * -below;
  for (Index tried = 0; tried < kMostLengths; ++tried) {
    const double now = slope(length);
    if (std::abs(now) <= flat) break;
    if (now < 0.0) {
      low = length;
      below = now;
    } else {
      high = length;
      above = now;
    }
    if (high == 0.0) return 1.0;  // it falls all the way: the value has not fallen by rounding alone
    const double width = high - low, secant = width * below / (below - above);
    length = low + std::min(std::max(secant, 0.1 * width), 0.9 * width);
  }
  return length;
}

// A point of the descent: what one pass finds.
struct Place {
  AlignedArray<double> theta, gradient, curvature, score;
  double value = 0.0;

  Place(Index size, Index scores)
      : theta(aligned_zeros(size)), gradient(size), curvature(size * size), score(aligned_zeros(scores)) {}
};

template <class Model>
void visit(Model& model, Place& place) {
  const Index columns = model.of.columns, width = model.of.width, order = model.size();
  double* theta = place.theta.data();
  double* gradient = place.gradient.data();
  place.value = model.pass(theta, place.score.data(), gradient, place.curvature.data(), nullptr);
  for (Index k = 0; k < model.scores; ++k)
    for (Index j = 0; j < columns; ++j) {
      const Index at = k * width + j;
      place.value += 0.5 * model.l2 * theta[at] * theta[at];
      gradient[at] += model.l2 * theta[at];
      place.curvature.data()[at * (order + 1)] += model.l2;
    }
}

// An estimate of the gap: what the slope of the columns costs, that of the intercept added to it since rows
// are brought into balance by giving it to the columns; probability that is moved to another class costs
// more.
template <class Model>
double gap_estimate(const Model& model, const double* gradient, double decrease) {
  double columns = 0.0, ones = 0.0, size = 0.0;
  for (Index k = 0; k < model.scores; ++k) {
    const double* part = gradient + k * model.of.width;
    columns += dot(part, part, model.of.columns);
    if (model.of.width == model.of.columns) continue;
    const double one = part[model.of.columns];
    ones += one * one;
    size += std::abs(one);
  }
  const double length = std::sqrt(columns) + model.of.spread * std::sqrt(ones);
  if (model.l2 == 0.0) return 0.5 * decrease;
  const double gap = std::max(0.5 * length * length / model.l2, 0.5 * decrease);
  return model.scores > 1 ? gap + size : gap;
}

// Puts `there` where the step of length 1, which does not bring enough, is shortened to; false if nothing
// falls.
template <class Model>
bool shorten(Model& model, const Place& here, Place& there, const double* delta, double decrease) {
  const double* theta = here.theta.data();
  double bent = 0.0, straight = 0.0;  // the penalty's part of the slope along the step
  for (Index k = 0; k < model.scores; ++k) {
    const double* way = delta + k * model.of.width;
    straight += model.l2 * dot(theta + k * model.of.width, way, model.of.columns);
    bent += model.l2 * dot(way, way, model.of.columns);
  }
  const auto slope = [&](double length) {
    return model.slope_along(here.score.data(), there.score.data(), length) + straight + length * bent;
  };
  const double length = root_of_slope(slope, -decrease);
  for (Index j = 0; j < model.size(); ++j) there.theta.data()[j] = theta[j] + length * delta[j];
  visit(model, there);
  return there.value < here.value;
}

// By how much a step moves the score of any row that counts at most.
template <class Model>
double largest_move(const Model& model, const double* delta) {
  const Index columns = model.of.columns, width = model.of.width;
  double most = 0.0;
  for (Index k = 0; k < model.scores; ++k, delta += width) {
    double move = width > columns ? std::abs(delta[columns]) : 0.0;
    for (Index j = 0; j < columns; ++j) move += model.of.reach[j] * std::abs(delta[j]);
    most = std::max(most, move);
  }
  return most;
}

// Goes from `here` to the minimum.
template <class Model, class Options>
NewtonEnd descend(Model& model, Place& here, Place& there, const Options& options, Index target,
                  const NewtonReport& report, Stop& stop, double& move) {
  const Index order = model.size();
  std::vector<double> room(static_cast<std::size_t>(order));
  double* delta = room.data();
  double before = std::numeric_limits<double>::infinity();
  visit(model, here);
  if (options.started && !(here.value <= kMisled * options.scale)) {
    std::fill_n(here.theta.data(), order, 0.0);
    visit(model, here);
  }
  for (Index step = 0; step < options.most_steps; ++step) {
    if (stop.now()) return NewtonEnd::stopped;
    const double* gradient = here.gradient.data();
    if (!std::isfinite(here.value) ||
        !factor_upper(here.curvature.data(), order, static_cast<double>(order) * kEps))
      return NewtonEnd::stuck;
    for (Index j = 0; j < order; ++j) delta[j] = -gradient[j];
    solve_transposed(here.curvature.data(), order, delta);
    solve_upper(here.curvature.data(), order, delta);
    const double decrease = -dot(gradient, delta, order);
    if (!(decrease >= 0.0)) return NewtonEnd::stuck;
    const double gap = std::min(kCaution * gap_estimate(model, gradient, decrease), here.value);
    if (report(target, here.value, gap)) return NewtonEnd::stopped;
    for (Index j = 0; j < order; ++j) there.theta.data()[j] = here.theta.data()[j] + delta[j];
    if (gap <= options.enough && (decrease <= kSettled * options.scale || decrease > kQuadratic * before)) {
      std::swap(here, there);  // the step costs nothing any more, and doubles the digits
      move = std::max(move, largest_move(model, delta));
      return NewtonEnd::done;
    }
    const bool noise = decrease <= kNoise * kEps * std::abs(here.value);
    if (noise && decrease > 0.5 * before) return NewtonEnd::stuck;
    visit(model, there);
    const bool short_of_it = !noise && !(there.value <= here.value - kSufficient * decrease);
    if (short_of_it && !shorten(model, here, there, delta, decrease)) return NewtonEnd::stuck;
    std::swap(here, there);
    before = decrease;
  }
  return NewtonEnd::stuck;
}

// The model to begin with, about the means.
template <class Model>
void begin(const Model& model, Place& place, Index first, Index stride, const NewtonModel& from) {
  const Index columns = model.of.columns, width = model.of.width;
  for (Index k = 0; k < model.scores; ++k) {
    double* theta = place.theta.data() + k * width;
    for (Index j = 0; j < columns; ++j) theta[j] = from.w[j * stride + first + k];
    if (width == columns) continue;
    theta[columns] = from.b[first + k];
    for (Index j = 0; j < columns; ++j) theta[columns] += from.means[j] * theta[j];
  }
}

// Rounds the model to what T holds, unless it is taken as it is given, and writes it and the sums behind its
// objective and bound.
template <class T, class Model>
void conclude(Model& model, const Place& place, Place& spare, bool given, Index first, Index stride,
              const NewtonModel& to, NewtonOutcome& outcome) {
  const Index columns = model.of.columns, width = model.of.width;
  const bool intercept = width > columns;
  std::vector<Moments> moments(static_cast<std::size_t>(model.scores));
  double* rounded = spare.theta.data();
  for (Index k = 0; k < model.scores; ++k) {
    const double* theta = place.theta.data() + k * width;
    double moved = 0.0;
    for (Index j = 0; j < columns; ++j) {
      const double w = given ? theta[j] : static_cast<double>(static_cast<T>(theta[j]));
      to.w[j * stride + first + k] = rounded[k * width + j] = w;
      moved += to.means[j] * w;
    }
    const double known = to.b[first + k];
    to.b[first + k] = 0.0;
    if (!intercept) continue;
    const double b = given ? known : static_cast<double>(static_cast<T>(theta[columns] - moved));
    DoubleDouble c{b, 0.0};
    for (Index j = 0; j < columns; ++j) c.add_product(to.means[j], rounded[k * width + j]);
    to.b[first + k] = b;
    rounded[k * width + columns] = c.value();
  }
  double* curvature = to.curvature == nullptr ? nullptr : to.curvature + first * width * width;
  const double loss =
      model.pass(rounded, spare.score.data(), spare.gradient.data(), curvature, moments.data());
  for (Index k = 0; k < model.scores; ++k) {
    double* sums = to.sums + (first + k) * kSums;
    moments[static_cast<std::size_t>(k)].write(sums);
    sums[kLoss] = k == 0 ? loss : 0.0;
    sums[kCentred] = intercept ? rounded[k * width + columns] : 0.0;
    for (Index j = 0; j < columns; ++j)
      to.slope[j * stride + first + k] = spare.gradient.data()[k * width + j];
  }
  outcome.wrong += model.wrong(spare.score.data());
  outcome.log_chance = model.log_chance();
  Lanes largest{};
  for (Index k = 0; k < model.scores; ++k)
    for (Index r = 0; r < model.of.padded; r += kLanes) {
      const Lanes size = magnitude(load(spare.score.data() + k * model.of.padded + r));
      largest = larger(largest, load(model.of.q.data() + r) > 0.0 ? size : Lanes{});
    }
  for (Index v = 0; v < kLanes; ++v) outcome.largest = std::max(outcome.largest, largest[v]);
}

// One target, or all classes: from the start to the model.
template <class T, class Model>
NewtonEnd fit(Model model, const NewtonProblem<T>& problem, Index first, const NewtonModel& to,
              const NewtonReport& report, Stop& stop, NewtonOutcome& outcome) {
  const Index scores = model.of.padded * model.scores;
  Place here(model.size(), scores), there(model.size(), scores);
  const bool given = problem.most_steps == 0;
  if (problem.started || given) begin(model, here, first, problem.scores, to);
  // What is left when the work is stopped has the model it begins with.
  const NewtonEnd end = outcome.end == NewtonEnd::stopped ? NewtonEnd::stopped
                        : given ? NewtonEnd::done
                                : descend(model, here, there, problem, first, report, stop, outcome.move);
  if (end != NewtonEnd::stuck) conclude<T>(model, here, there, given, first, problem.scores, to, outcome);
  return end;
}

// sum_i q_i z_ij^2 of every column and its largest |z_ij| in a row that counts, the sums in the order of the
// passes: of a chunk's blocks, then of the chunks.
void measure_columns(const Packed& rows, double* lengths, double* reach) {
  const Index chunks = rows.chunks(), columns = rows.columns;
  const auto size = static_cast<std::size_t>(chunks * columns);
  std::vector<double> sums(size), farthest(size);
  const int team = team_size(chunks, static_cast<double>(rows.rows * rows.width));
#pragma omp parallel num_threads(team) if (team > 1)
  {
    const AlignedArray<double> buffer = aligned_zeros(rows.room());
#pragma omp for schedule(dynamic)
    for (Index c = 0; c < chunks; ++c) {
      for (Index block = cut(rows.blocks, chunks, c); block < cut(rows.blocks, chunks, c + 1); ++block) {
        const double* z = rows.block(block, buffer.data());
        const double* q = rows.q.data() + block * kBlock;
        for (Index j = 0; j < columns; ++j) {
          Lanes total{}, largest{};
          for (Index r = 0; r < rows.count(block); r += kLanes) {
            const Lanes one = load(z + j * kBlock + r), share = load(q + r);
            total += share * one * one;
            largest = larger(largest, share > 0.0 ? magnitude(one) : Lanes{});
          }
          const auto at = static_cast<std::size_t>(c * columns + j);
          sums[at] += sum(total);
          for (Index v = 0; v < kLanes; ++v) farthest[at] = std::max(farthest[at], largest[v]);
        }
      }
    }
  }
  std::fill_n(lengths, columns, 0.0);
  std::fill_n(reach, columns, 0.0);
  for (Index c = 0; c < chunks; ++c) {
    for (Index j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(c * columns + j);
      lengths[j] += sums[at];
      reach[j] = std::max(reach[j], farthest[at]);
    }
  }
}

}  // namespace

template <class T>
NewtonOutcome newton_fit(const NewtonProblem<T>& problem, const NewtonModel& model,
                         const NewtonReport& report, Stop& stop) {
  NewtonOutcome outcome;
  Packed rows = pack_rows(problem, model.means);
  measure_columns(rows, model.lengths, model.reach);
  rows.reach = model.reach;
  double squares = 0.0;
  for (Index j = 0; j < rows.columns; ++j) squares += model.lengths[j];
  if (!std::isfinite(squares)) return outcome;
  rows.spread = std::sqrt(squares);
  // Of a chunk's blocks one after the other, of its lanes, and of the chunks.
  const Index in_a_block = std::min(kBlock, rows.rows) / kLanes + kLanes;
  outcome.depth = std::min(rows.rows, in_a_block + rows.blocks / rows.chunks() + rows.chunks());
  if (problem.weight != nullptr) outcome.depth += kWeightSum;
  outcome.end = NewtonEnd::done;
  if (problem.loss == LossCode::softmax) {
    outcome.end = fit(AllClasses(rows, rows.y.data(), problem.l2, problem.scores), problem, 0, model, report,
                      stop, outcome);
    return outcome;
  }
  with_smooth_loss(problem.loss, [&]<class Loss>(Loss) {
    for (Index k = 0; k < problem.scores && outcome.end != NewtonEnd::stuck; ++k) {
      OneScore<Loss> target(rows, rows.y.data() + k * rows.padded, problem.l2);
      const NewtonEnd end = fit(std::move(target), problem, k, model, report, stop, outcome);
      outcome.end = end == NewtonEnd::done ? outcome.end : end;
    }
  });
  return outcome;
}

template NewtonOutcome newton_fit(const NewtonProblem<double>&, const NewtonModel&, const NewtonReport&,
                                  Stop&);
template NewtonOutcome newton_fit(const NewtonProblem<float>&, const NewtonModel&, const NewtonReport&,
                                  Stop&);

}  // namespace sixfold
