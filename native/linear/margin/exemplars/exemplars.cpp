// One pass over a table of scores each: machines x rows, a machine's scores next to each other.
//
// Sums over the rows of a machine are made of pieces whose size depends on nothing but the table, added in
// order: same result for any number of threads.
#include "linear/margin/exemplars/exemplars.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "core/vector_math.hpp"

namespace sixfold {
namespace {

constexpr Index kPieceRows = 2048;  // 16 KB of scores: with slopes and costs they stay in the L1 and L2 cache
constexpr int kMostSteps = 60;      // of a search along a line; Newton's method takes two to five
constexpr double kFlat = 1e-4;      // a derivative that is this part of the first one is flat enough
constexpr int kMostNewton = 60;     // steps of a sigmoid's fit, of which it takes five to ten
constexpr double kNearlyThere = 1e-9;  // a fall of the value, relative to it
constexpr double kMostSlope = 1e8;     // of a sigmoid of scores that are all on the right side

Index pieces_of(Index rows) { return (rows + kPieceRows - 1) / kPieceRows; }

struct Sums {
  double loss, slope, curvature;
};

// One machine's scores of one piece of the rows.
Sums slopes_of(const double* scores, const double* cost, Index count, double* slopes, std::uint8_t* active,
               std::int32_t* share) {
  double loss = 0.0, slope = 0.0, curvature = 0.0;
#pragma omp simd reduction(+ : loss, slope, curvature)
  for (Index j = 0; j < count; ++j) {
    const double inside = std::max(0.0, 1.0 + scores[j]);
    const bool on = inside > 0.0 && cost[j] > 0.0;
    const double pull = 2.0 * cost[j] * inside;
    slopes[j] = pull;
    active[j] = on;
    share[j] += on;
    loss += 0.5 * pull * inside;
    slope += pull;
    curvature += on ? 2.0 * cost[j] : 0.0;
  }
  return {loss, slope, curvature};
}

// First and second derivative along the line.
struct Derivatives {
  double first, second;
};

Derivatives derivatives_at(double t, const double* scores, const double* moves, Index rows,
                           const double* cost, const ExemplarLine& line) {
  double first = 0.0, second = 0.0;
#pragma omp simd reduction(+ : first, second)
  for (Index j = 0; j < rows; ++j) {
    const double inside = 1.0 + scores[j] + t * moves[j];
    const double pull = inside > 0.0 ? 2.0 * cost[j] * moves[j] : 0.0;
    first += pull * inside;
    second += pull * moves[j];
  }
  first += line.slope + t * line.curvature;
  second += line.curvature;
  const double inside = 1.0 - line.score - t * line.move;
  if (inside > 0.0) {
    first -= 2.0 * line.cost * line.move * inside;
    second += 2.0 * line.cost * line.move * line.move;
  }
  return {first, second};
}

// The derivative grows with t and is linear between kinks: Newton's method in a bracket.
double step_of(const double* scores, const double* moves, Index rows, const double* cost,
               const ExemplarLine& line) {
  const double start = derivatives_at(0.0, scores, moves, rows, cost, line).first;
  if (!(start < 0.0)) return 0.0;
  double low = 0.0, high = INFINITY, t = 1.0;
  for (int step = 0; step < kMostSteps; ++step) {
    const Derivatives at = derivatives_at(t, scores, moves, rows, cost, line);
    if (!(std::abs(at.first) > -kFlat * start)) break;
    (at.first < 0.0 ? low : high) = t;
    const double next = at.second > 0.0 ? t - at.first / at.second : INFINITY;
    const double middle = std::isinf(high) ? 4.0 * t : 0.5 * (low + high);
    const double after = next > low && next < high && (!std::isinf(high) || next < 16.0 * t) ? next : middle;
    if (after == t) break;
    t = after;
  }
  return std::isfinite(t) ? t : 0.0;
}

// The rows that a sigmoid is fitted to: score, target and weight.
struct SigmoidRows {
  std::vector<double> score, target, weight;
};

struct SigmoidTerms {
  double value, slope, offset, slope_slope, slope_offset, offset_offset;
};

SigmoidTerms sigmoid_terms(const SigmoidRows& rows, double slope, double offset) {
  SigmoidTerms sums{};
  Lanes parts[6] = {};
  const Index count = static_cast<Index>(rows.score.size());
  for (Index j = 0; j < count; j += kLanes) {
    const Lanes s = load(&rows.score[static_cast<std::size_t>(j)]);
    const Lanes target = load(&rows.target[static_cast<std::size_t>(j)]);
    const Lanes weight = load(&rows.weight[static_cast<std::size_t>(j)]);
    const Lanes f = slope * s + offset, size = magnitude(f), small = exponential(-size);
    const Lanes p = (f > 0.0 ? broadcast(1.0) : small) / (1.0 + small);
    const Lanes curvature = weight * small / ((1.0 + small) * (1.0 + small));
    const Lanes miss = weight * (p - target);
    parts[0] += weight * (larger(f, Lanes{}) - target * f + log_of_one_plus(small));
    parts[1] += miss * s;
    parts[2] += miss;
    parts[3] += curvature * s * s;
    parts[4] += curvature * s;
    parts[5] += curvature;
  }
  return {sum(parts[0]), sum(parts[1]), sum(parts[2]), sum(parts[3]), sum(parts[4]), sum(parts[5])};
}

// Newton's method with halved steps (Lin, Lin and Weng 2007); slope = 0 where a positive one does not help.
void fit_sigmoid(const SigmoidRows& rows, double positive, double negative, double spread, double* slope,
                 double* offset) {
  const double prior = std::log((positive + 1.0) / (negative + 1.0));
  double a = 0.0, b = prior;
  int last = 0;
  SigmoidTerms at = sigmoid_terms(rows, a, b);
  for (int step = 0; step < kMostNewton; ++step) {
    const double ridge = 1e-12 * (at.slope_slope + spread * spread);
    const double aa = at.slope_slope + ridge, bb = at.offset_offset + 1e-12;
    const double determinant = aa * bb - at.slope_offset * at.slope_offset;
    const bool held = a <= 0.0 && at.slope >= 0.0;  // at the bound, and pushed against it
    const double da = held ? 0.0 : -(bb * at.slope - at.slope_offset * at.offset) / determinant;
    const double db = held ? -at.offset / bb : -(aa * at.offset - at.slope_offset * at.slope) / determinant;
    const double fall = at.slope * da + at.offset * db;
    if (!(fall < 0.0)) break;
    // So near the end steps are right to rounding, and values no longer tell them apart.
    if (fall > -kNearlyThere * (1.0 + std::abs(at.value))) {
      a = std::clamp(a + da, 0.0, kMostSlope / spread);
      b += db;
      at = sigmoid_terms(rows, a, b);
      if (++last == 2) break;
      continue;
    }
    bool moved = false;
    for (double t = 1.0; t > 1e-10; t *= 0.5) {
      const double next_a = std::clamp(a + t * da, 0.0, kMostSlope / spread), next_b = b + t * db;
      const SigmoidTerms next = sigmoid_terms(rows, next_a, next_b);
      if (next.value <= at.value + 1e-4 * t * fall) {
        moved = next_a != a || next_b != b;
        a = next_a;
        b = next_b;
        at = next;
        break;
      }
    }
    if (!moved) break;
  }
  *slope = a;
  *offset = b;
}

}  // namespace

bool exemplar_slopes(const double* scores, Index machines, Index rows, const double* cost, double* slopes,
                     std::uint8_t* active, std::int32_t* share, double* sums, Stop& stop) {
  const Index pieces = pieces_of(rows);
  std::vector<Sums> parts(static_cast<std::size_t>(pieces * machines));
  std::fill_n(share, rows, 0);
  const int team = team_size(pieces, static_cast<double>(machines) * static_cast<double>(rows));
  const bool finished = run_tasks(pieces, team, &stop, [&](Index piece, Watch& watch) {
    const Index first = piece * kPieceRows, count = std::min(kPieceRows, rows - first);
    for (Index e = 0; e < machines && !watch.ended(); ++e) {
      const Index at = e * rows + first;
      parts[static_cast<std::size_t>(e * pieces + piece)] =
          slopes_of(scores + at, cost + first, count, slopes + at, active + at, share + first);
    }
  });
  for (Index e = 0; e < machines; ++e) {
    Sums total{};
    for (Index piece = 0; piece < pieces; ++piece) {
      const Sums& part = parts[static_cast<std::size_t>(e * pieces + piece)];
      total = {total.loss + part.loss, total.slope + part.slope, total.curvature + part.curvature};
    }
    std::copy_n(&total.loss, 3, sums + 3 * e);
  }
  return finished;
}

template <class T>
bool mask_products(T* products, Index machines, Index rows, const double* cost, const std::uint8_t* active,
                   Stop& stop) {
  std::vector<T> factor(static_cast<std::size_t>(rows));
  for (Index j = 0; j < rows; ++j) factor[static_cast<std::size_t>(j)] = static_cast<T>(2.0 * cost[j]);
  const int team = team_size(machines, static_cast<double>(machines) * static_cast<double>(rows));
  return run_tasks(machines, team, &stop, [&](Index e, Watch&) {
    T* row = products + e * rows;
    const std::uint8_t* on = active + e * rows;
    const T* times = factor.data();
#pragma omp simd
    for (Index j = 0; j < rows; ++j) row[j] = on[j] ? row[j] * times[j] : T{0};
  });
}

template bool mask_products(float*, Index, Index, const double*, const std::uint8_t*, Stop&);
template bool mask_products(double*, Index, Index, const double*, const std::uint8_t*, Stop&);

bool exemplar_steps(double* scores, const double* moves, Index machines, Index rows, const double* cost,
                    const ExemplarLine* lines, double* steps, Stop& stop) {
  const int team = team_size(machines, static_cast<double>(machines) * static_cast<double>(rows));
  return run_tasks(machines, team, &stop, [&](Index e, Watch&) {
    double* own = scores + e * rows;
    const double* move = moves + e * rows;
    const double t = step_of(own, move, rows, cost, lines[e]);
    steps[e] = t;
#pragma omp simd
    for (Index j = 0; j < rows; ++j) own[j] += t * move[j];
  });
}

bool fit_sigmoids(const double* scores, Index machines, Index rows, const double* weight,
                  const std::uint8_t* own, double least, double* parameters, Stop& stop) {
  const int team = team_size(machines, static_cast<double>(machines) * static_cast<double>(rows));
  return run_tasks(machines, team, &stop, [&](Index e, Watch&) {
    const double* row = scores + e * rows;
    SigmoidRows some;
    double positive = 0.0, negative = 0.0, spread = 0.0;
    for (Index j = 0; j < rows; ++j) {
      if (!(row[j] > least && weight[j] > 0.0)) continue;
      some.score.push_back(row[j]);
      some.target.push_back(own[j]);
      some.weight.push_back(weight[j]);
      (own[j] ? positive : negative) += weight[j];
      spread = std::max(spread, std::abs(row[j]));
    }
    for (double& target : some.target)
      target = target > 0.0 ? (positive + 1.0) / (positive + 2.0) : 1.0 / (negative + 2.0);
    while (some.score.size() % kLanes != 0) {
      some.score.push_back(0.0);
      some.target.push_back(0.0);
      some.weight.push_back(0.0);
    }
    fit_sigmoid(some, positive, negative, spread > 0.0 ? spread : 1.0, parameters + 2 * e,
                parameters + 2 * e + 1);
  });
}

}  // namespace sixfold
