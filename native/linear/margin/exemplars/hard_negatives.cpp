// The dual of an exemplar machine, without the exemplar's own multiplier A = sum_i a_i:
//
//   maximise  2 A - |u|^2 / 2 - sum_i a_i^2 / 4 c_i - A^2 / 4 C_e,    u = sum_i a_i z_i,  z_i = x_i - x_e,  a
//   >= 0
//
// With w = -u and b = 1 - w.x_e - A / 2 C_e its slope in a_i is 1 + w.x_i + b - a_i / 2 c_i, and the gap is
// the sum over all rows of c max(0, 1 + s)^2 + a^2 / 4 c - a (1 + s). Of 20,000 negatives some dozens to
// hundreds have a_i > 0, so that a machine's own problem fits into a cache: coordinate ascent finds out which
// (Hsieh et al. 2008), and conjugate gradients on these find their values, which may take thousands of sweeps
// otherwise.
#include "linear/margin/exemplars/hard_negatives.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "core/vector_math.hpp"

namespace sixfold {
namespace {

constexpr int kMostSweeps = 60;          // of a round; the next one goes on where it ends
constexpr int kMostConjugate = 200;      // steps of conjugate gradients
constexpr double kConjugateGoal = 1e-2;  // of the residual, in lengths
constexpr int kHalvings = 5;             // of a step that leaves the allowed region

double dot(const double* a, const double* b, Index count) {
  Lanes sums[4] = {};
  Index j = 0;
  for (; j + 4 * kLanes <= count; j += 4 * kLanes)
    for (Index v = 0; v < 4; ++v) sums[v] += load(a + j + v * kLanes) * load(b + j + v * kLanes);
  for (; j + kLanes <= count; j += kLanes) sums[0] += load(a + j) * load(b + j);
  double total = sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; j < count; ++j) total += a[j] * b[j];
  return total;
}

void add(double factor, const double* from, Index count, double* to) {
#pragma omp simd
  for (Index j = 0; j < count; ++j) to[j] += factor * from[j];
}

// The problem of one machine on its working set.
class Dual {
 public:
  Dual(const HardNegatives& all, Index machine, const std::vector<std::int32_t>& rows,
       const std::vector<double>& start)
      : count_(static_cast<Index>(rows.size())),
        columns_(all.X.columns),
        own_(0.5 / all.own_cost[machine]),
        z_(static_cast<std::size_t>(count_ * columns_)),
        u_(static_cast<std::size_t>(columns_)),
        a_(start),
        cost_(start.size()),
        soft_(start.size()),
        square_(start.size()) {
    const double* e = all.exemplars + machine * columns_;
    for (Index i = 0; i < count_; ++i) {
      const double* x = all.X.row(rows[static_cast<std::size_t>(i)]);
      double* z = row(i);
#pragma omp simd
      for (Index j = 0; j < columns_; ++j) z[j] = x[j] - e[j];
      at(cost_, i) = all.cost[rows[static_cast<std::size_t>(i)]];
      at(soft_, i) = 0.5 / at(cost_, i);
      at(square_, i) = dot(z, z, columns_) + at(soft_, i) + own_;
    }
    renew();
  }

  // Sweeps until the gap of the working set is about so small.
  void solve(double goal, Watch& watch) {
    for (int pass = 0; pass < kMostSweeps && !watch.over(); ++pass) {
      if (sweep() <= goal) break;
      if (pass > 0) conjugate();
    }
    renew();
  }

  double bound() const {
    double bent = 0.0;
    for (Index i = 0; i < count_; ++i) bent += value(a_, i) * value(soft_, i) * value(a_, i);
    const double bracket = 0.5 * (bent + own_ * total_ * total_ + dot(u_.data(), u_.data(), columns_));
    return bracket > 0.0 ? total_ * total_ / bracket : 0.0;
  }

  const std::vector<double>& multipliers() const { return a_; }
  const std::vector<double>& u() const { return u_; }
  double total() const { return total_; }

 private:
  static double& at(std::vector<double>& values, Index i) { return values[static_cast<std::size_t>(i)]; }
  static double value(const std::vector<double>& values, Index i) {
    return values[static_cast<std::size_t>(i)];
  }
  double* row(Index i) { return z_.data() + i * columns_; }
  const double* row(Index i) const { return z_.data() + i * columns_; }

  // u and A from a, without what many small changes have rounded.
  void renew() {
    std::fill(u_.begin(), u_.end(), 0.0);
    total_ = 0.0;
    for (Index i = 0; i < count_; ++i) {
      if (value(a_, i) == 0.0) continue;
      add(value(a_, i), row(i), columns_, u_.data());
      total_ += value(a_, i);
    }
  }

  // One step in every coordinate; returns about the gap before it.
  double sweep() {
    double gap = 0.0;
    for (Index i = 0; i < count_; ++i) {
      const double a = value(a_, i);
      const double g = 2.0 - dot(row(i), u_.data(), columns_) - a * value(soft_, i) - own_ * total_;
      if (a == 0.0 && g <= 0.0) continue;
      gap += value(cost_, i) * g * g;
      const double next = std::max(0.0, a + g / value(square_, i));
      if (next == a) continue;
      add(next - a, row(i), columns_, u_.data());
      total_ += next - a;
      at(a_, i) = next;
    }
    return gap;
  }

  double dual() const {
    double bent = 0.0;
    for (Index i = 0; i < count_; ++i) bent += value(a_, i) * value(soft_, i) * value(a_, i);
    return 2.0 * total_ - 0.5 * (bent + own_ * total_ * total_ + dot(u_.data(), u_.data(), columns_));
  }

  // The least squares among rows with a > 0, and as far towards it as a >= 0 and the dual allow.
  void conjugate() {
    std::vector<Index> free;
    for (Index i = 0; i < count_; ++i)
      if (value(a_, i) > 0.0) free.push_back(i);
    const std::size_t size = free.size();
    std::vector<double> residual(size), move(size, 0.0), direction(size), product(size),
        v(static_cast<std::size_t>(columns_));
    double energy = 0.0;
    for (std::size_t k = 0; k < size; ++k) {
      const Index i = free[k];
      residual[k] = 2.0 - dot(row(i), u_.data(), columns_) - value(a_, i) * value(soft_, i) - own_ * total_;
      direction[k] = residual[k] / value(square_, i);
      energy += residual[k] * direction[k];
    }
    const double goal = kConjugateGoal * kConjugateGoal * energy;
    for (int step = 0; step < kMostConjugate && energy > goal; ++step) {
      std::fill(v.begin(), v.end(), 0.0);
      double sum_of = 0.0, curvature = 0.0;
      for (std::size_t k = 0; k < size; ++k) {
        add(direction[k], row(free[k]), columns_, v.data());
        sum_of += direction[k];
      }
      for (std::size_t k = 0; k < size; ++k) {
        product[k] =
            dot(row(free[k]), v.data(), columns_) + direction[k] * value(soft_, free[k]) + own_ * sum_of;
        curvature += direction[k] * product[k];
      }
      if (!(curvature > 0.0)) break;
      const double factor = energy / curvature;
      double after = 0.0;
      for (std::size_t k = 0; k < size; ++k) {
        move[k] += factor * direction[k];
        residual[k] -= factor * product[k];
        after += residual[k] * residual[k] / value(square_, free[k]);
      }
      const double ratio = after / energy;
      for (std::size_t k = 0; k < size; ++k)
        direction[k] = residual[k] / value(square_, free[k]) + ratio * direction[k];
      energy = after;
    }
    const double before = dual();
    const std::vector<double> kept = a_;
    double t = 1.0;
    for (int halving = 0; halving < kHalvings; ++halving, t *= 0.25) {
      for (std::size_t k = 0; k < size; ++k)
        at(a_, free[k]) = std::max(0.0, value(kept, free[k]) + t * move[k]);
      renew();
      if (dual() > before) return;
    }
    a_ = kept;
    renew();
  }

  Index count_, columns_;
  double own_;  // 1 / 2 C_e
  std::vector<double> z_, u_, a_, cost_, soft_, square_;
  double total_ = 0.0;
};

// The best bound along the ray of a_j = 2 c_j (1 + s_j).
double bound_of(const HardNegatives& all, Index e, const std::vector<std::int32_t>& inside, double loss) {
  const Index d = all.X.columns;
  std::vector<double> u(static_cast<std::size_t>(d), 0.0);
  double total = 0.0;
  for (const std::int32_t j : inside) {
    const double a = 2.0 * all.cost[j] * (1.0 + all.scores[e * all.X.rows + j]);
    add(a, all.X.row(j), d, u.data());
    total += a;
  }
  add(-total, all.exemplars + e * d, d, u.data());
  const double bracket = loss + 0.25 * total * total / all.own_cost[e] + 0.5 * dot(u.data(), u.data(), d);
  return bracket > 0.0 ? total * total / bracket : 0.0;
}

void round_of(const HardNegatives& all, Index e, Watch& watch) {
  const Index n = all.X.rows, d = all.X.columns;
  const double* scores = all.scores + e * n;
  double loss = 0.0;
  std::vector<std::int32_t> inside;
  for (Index j = 0; j < n; ++j) {
    const double in = 1.0 + scores[j];
    if (!(in > 0.0)) continue;
    loss += all.cost[j] * in * in;
    inside.push_back(static_cast<std::int32_t>(j));
  }
  const double* x = all.exemplars + e * d;
  double* w = all.w + e * d;
  const double own = 1.0 - dot(w, x, d) - all.b[e], square = dot(w, w, d);
  all.objective[e] = 0.5 * square + loss + (own > 0.0 ? all.own_cost[e] * own * own : 0.0);
  const double gap = all.objective[e] - all.bound[e];
  // A machine is judged by the multipliers that its own scores stand for, as the checker will.
  all.done[e] = gap <= all.goals[e] && all.objective[e] - bound_of(all, e, inside, loss) <= all.goals[e];
  if (all.done[e] || watch.over()) return;

  std::int32_t* known = all.rows + e * all.room;
  double* known_a = all.multipliers + e * all.room;
  std::vector<std::int32_t> rows(known, known + all.counts[e]);
  std::vector<double> a(known_a, known_a + all.counts[e]);
  // The others that are inside the margin, those that cost most first.
  std::vector<std::int32_t> sorted = rows;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int32_t> fresh;
  std::set_difference(inside.begin(), inside.end(), sorted.begin(), sorted.end(), std::back_inserter(fresh));
  const auto dearer = [&](std::int32_t i, std::int32_t j) {
    const double left = all.cost[i] * (1.0 + scores[i]), right = all.cost[j] * (1.0 + scores[j]);
    return left != right ? left > right : i < j;
  };
  // As many as there are already: a set that is far too small doubles.
  const Index most_new = std::min(std::max<Index>(all.most_new, all.counts[e]), all.room - all.counts[e]);
  if (most_new == 0 && !fresh.empty()) {  // there are too many for such a set
    all.counts[e] = -1;
    return;
  }
  if (static_cast<Index>(fresh.size()) > most_new) {
    std::nth_element(fresh.begin(), fresh.begin() + most_new, fresh.end(), dearer);
    fresh.resize(static_cast<std::size_t>(most_new));
  }
  std::sort(fresh.begin(), fresh.end(), dearer);
  rows.insert(rows.end(), fresh.begin(), fresh.end());
  a.resize(rows.size(), 0.0);
  Dual dual(all, e, rows, a);
  // No better than what the others, which are not in the working set, will make of it.
  dual.solve(std::max(1e-6 * all.goals[e], 1e-5 * gap), watch);
  Index count = 0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    if (dual.multipliers()[k] == 0.0) continue;
    known[count] = rows[k];
    known_a[count++] = dual.multipliers()[k];
  }
  all.counts[e] = static_cast<std::int32_t>(count);
  all.bound[e] = std::max(all.bound[e], dual.bound());
  for (Index j = 0; j < d; ++j) w[j] = -dual.u()[static_cast<std::size_t>(j)];
  all.b[e] = 1.0 - dot(w, x, d) - 0.5 * dual.total() / all.own_cost[e];
}

}  // namespace

bool hard_negative_round(const HardNegatives& round, Index machines, Stop& stop) {
  const double values = static_cast<double>(machines) * static_cast<double>(round.X.rows);
  return run_tasks(machines, team_size(machines, 16.0 * values), &stop, [&](Index e, Watch& watch) {
    if (round.counts[e] >= 0) round_of(round, e, watch);
  });
}

}  // namespace sixfold
