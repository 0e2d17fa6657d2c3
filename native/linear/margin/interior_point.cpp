// The sweeps of an interior-point method for piecewise linear losses (solvers/margin/central_path.py states
// it).
//
// With residuals t - Z theta = p - m and multipliers a, a Newton step towards given products of p (high - a)
// and m (a - low) has, once theta moves by v,
//
//     da = -weight (z.v + push_p / (high - a) - push_m / (a - low))
//     dp = (push_p + p da) / (high - a)        dm = (push_m - m da) / (a - low)
//
// The right-hand side of the corrector is linear in its aim, so the predictor's sweep collects both parts of
// it and X is read once for the predictor and once for the corrector.
#include "linear/margin/interior_point.hpp"

#include <cmath>
#include <vector>

#include "core/threads.hpp"

namespace sixfold {
namespace {

// The distances to both ends; 1 where the row does not count, so that nothing is divided by zero.
struct Room {
  double up, down;
};

inline Room room(const InteriorRows& rows, Index i) {
  const bool counts = rows.high[i] > rows.low[i];
  return {counts ? rows.high[i] - rows.a[i] : 1.0, counts ? rows.a[i] - rows.low[i] : 1.0};
}

// Adds the partial sums of all pieces, in order.
void add_pieces(const std::vector<double>& parts, Index count, double* out) {
  std::fill_n(out, count, 0.0);
  for (std::size_t at = 0; at < parts.size(); at += static_cast<std::size_t>(count))
    for (Index j = 0; j < count; ++j) out[j] += parts[at + static_cast<std::size_t>(j)];
}

std::vector<double> partial_sums(Index rows, Index count) {
  return std::vector<double>(static_cast<std::size_t>(pieces(rows) * count), 0.0);
}

}  // namespace

bool predict_step(const AnyRows& table, const double* v, const InteriorRows& rows, double* sums,
                  Prediction* found, Stop& stop) {
  const Index n = rows_of(table), width = 4 * (columns_of(table) + 1);
  std::vector<double> slopes = partial_sums(n, width);
  std::vector<Prediction> parts(static_cast<std::size_t>(pieces(n)), Prediction{});
  const bool finished = for_few_rows(table, stop, [&](const auto& X, Index piece, Index first, Index count) {
    double score[kFewRows], g[4 * kFewRows];
    X.scores(first, count, v, score);
    Prediction& part = parts[static_cast<std::size_t>(piece)];
    double largest_primal = part.largest_primal, largest_dual = part.largest_dual;
    double primal = 0.0, dual = 0.0, both = 0.0;
#pragma omp simd reduction(max : largest_primal, largest_dual) reduction(+ : primal, dual, both)
    for (Index k = 0; k < count; ++k) {
      const Index i = first + k;
      const auto [up, down] = room(rows, i);
      const double p = rows.p[i], m = rows.m[i], weight = rows.weight[i];
      const double da = -weight * (score[k] - (p - m));
      const double over_up = 1.0 / up, over_down = 1.0 / down;
      const double dp = p * (da * over_up - 1.0), dm = -m * (1.0 + da * over_down);
      largest_primal = std::max(largest_primal, 1.0 + std::max(-da * over_up, da * over_down));
      largest_dual = std::max(largest_dual, std::max(da * over_up, -da * over_down));
      primal += dp * up + dm * down;
      dual += da * (m - p);
      both += da * (dm - dp);
      rows.da[i] = da;
      g[k] = rows.a[i];
      g[kFewRows + k] = weight * (p - m);
      g[2 * kFewRows + k] = weight * (over_up - over_down);
      g[3 * kFewRows + k] = weight * da * (dp * over_up + dm * over_down);
    }
    part = {largest_primal, largest_dual, part.primal + primal, part.dual + dual, part.both + both};
    X.template add_slopes<4>(first, count, g, slopes.data() + piece * width);
  });
  add_pieces(slopes, width, sums);
  *found = Prediction{};
  for (const Prediction& part : parts)
    *found = {std::max(found->largest_primal, part.largest_primal),
              std::max(found->largest_dual, part.largest_dual), found->primal + part.primal,
              found->dual + part.dual, found->both + part.both};
  return finished;
}

bool correct_step(const AnyRows& table, const double* v, double aim, const InteriorRows& rows,
                  Lengths* largest, Stop& stop) {
  const Index n = rows_of(table);
  std::vector<Lengths> parts(static_cast<std::size_t>(pieces(n)), Lengths{});
  const bool finished = for_few_rows(table, stop, [&](const auto& X, Index piece, Index first, Index count) {
    double score[kFewRows];
    X.scores(first, count, v, score);
    Lengths& part = parts[static_cast<std::size_t>(piece)];
    double primal = part.primal, dual = part.dual;
#pragma omp simd reduction(max : primal, dual)
    for (Index k = 0; k < count; ++k) {
      const Index i = first + k;
      const auto [up, down] = room(rows, i);
      const double p = rows.p[i], m = rows.m[i], weight = rows.weight[i], predicted = rows.da[i];
      const double over_up = 1.0 / up, over_down = 1.0 / down;
      const double live = weight > 0.0 ? 1.0 : 0.0;
      const double push_p = live * aim - p * up + p * (predicted * over_up - 1.0) * predicted;
      const double push_m = live * aim - m * down + m * (1.0 + predicted * over_down) * predicted;
      const double da = -weight * (score[k] + push_p * over_up - push_m * over_down);
      const double dp = (push_p + p * da) * over_up, dm = (push_m - m * da) * over_down;
      primal = std::max(primal, std::max(-dp / (live > 0.0 ? p : 1.0), -dm / (live > 0.0 ? m : 1.0)));
      dual = std::max(dual, std::max(da * over_up, -da * over_down));
      rows.da[i] = da;
      rows.dp[i] = dp;
      rows.dm[i] = dm;
    }
    part = {primal, dual};
  });
  *largest = Lengths{};
  for (const Lengths& part : parts)
    *largest = {std::max(largest->primal, part.primal), std::max(largest->dual, part.dual)};
  return finished;
}

State take_step(double primal, double dual, const InteriorRows& rows, Index count) {
  const Index parts = pieces(count);
  std::vector<State> states(static_cast<std::size_t>(parts), State{});
#pragma omp parallel for schedule(static) num_threads(team_size(parts, 16.0 * count))
  for (Index piece = 0; piece < parts; ++piece) {
    double loss = 0.0, slack = 0.0, products = 0.0;
#pragma omp simd reduction(+ : loss, slack, products)
    for (Index i = cut(count, parts, piece); i < cut(count, parts, piece + 1); ++i) {
      const double p = rows.p[i] + primal * rows.dp[i], m = rows.m[i] + primal * rows.dm[i];
      rows.p[i] = p;
      rows.m[i] = m;
      rows.a[i] += dual * rows.da[i];
      const auto [up, down] = room(rows, i);
      const bool counts = rows.high[i] > rows.low[i];
      rows.weight[i] = counts ? 1.0 / (p / up + m / down) : 0.0;
      const double residual = p - m;
      const double cost = (residual > 0.0 ? rows.high[i] : rows.low[i]) * residual;
      loss += cost;
      slack += cost - rows.a[i] * residual;
      products += p * up + m * down;
    }
    states[static_cast<std::size_t>(piece)] = {loss, slack, products};
  }
  State total{};
  for (const State& part : states)
    total = {total.loss + part.loss, total.slack + part.slack, total.products + part.products};
  return total;
}

bool row_scores(const AnyRows& table, const double* v, double* out, Stop& stop) {
  return for_few_rows(table, stop, [&](const auto& X, Index, Index first, Index count) {
    X.scores(first, count, v, out + first);
  });
}

bool row_slope(const AnyRows& table, const double* g, double* out, Stop& stop) {
  const Index width = columns_of(table) + 1;
  std::vector<double> slopes = partial_sums(rows_of(table), width);
  const bool finished = for_few_rows(table, stop, [&](const auto& X, Index piece, Index first, Index count) {
    X.template add_slopes<1>(first, count, g + first, slopes.data() + piece * width);
  });
  add_pieces(slopes, width, out);
  return finished;
}

}  // namespace sixfold
