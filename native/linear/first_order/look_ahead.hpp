// Updates whose scores do not wait for them. With row x_t seen at w_t, and w_{t+1} = w_t - g_t x_t,
//
//     w_{t+1}.x_{t+1} = w_t.x_{t+1} - g_t (x_t.x_{t+1})
//
// so both products of the next row are there before g_t is, and from one score to the next is one
// multiplication instead of an update and a sum over the columns. Neither loop has a branch that depends on
// who is wrong, which nobody could foresee: a visit of ten columns takes 4 ns instead of 12 with one score,
// and 6 instead of 60 with four.
//
//     one score      columns side by side in registers: few of them
//     many scores    scores side by side, one vector of weights a column
//
// For plain updates (no metric, penalty or average) of rows that are read where they are.
#pragma once

#include <algorithm>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/simd.hpp"
#include "core/vector_math.hpp"
#include "linear/first_order/row_access.hpp"
#include "linear/first_order/stochastic_gradient.hpp"

namespace sixfold {

constexpr Index kFewColumns = 16;    // whose weights and three rows fit the registers
constexpr Index kFewWeights = 1024;  // of all scores

// Whether a loss has a gradient in one score that does not depend on the others, for numbers or for vectors.
template <class Loss, class V>
concept HasGradient = requires(V s) { Loss::gradient(s, s); };

// Loops over the visits, kPollOperations between two looks at the clock; false once stopped before the last.
template <class Visit>
bool each_visit(Index count, Index operations, Stop& stop, Visit visit) {
  const Index poll = kPollOperations / operations + 1;
  for (Index at = 0; at < count;) {
    for (const Index end = std::min(at + poll, count); at < end; ++at) visit(at);
    if (at < count && stop.now()) return false;
  }
  return true;
}

// kParts vectors hold the d columns of a row, and zeros.
template <Index kParts>
struct ShortRow {
  Lanes part[kParts];

  template <class T>
  static ShortRow read(const T* x, Index d) {
    ShortRow row;
    for (Index p = 0; p < kParts; ++p)
      row.part[p] = load_first(x + p * kLanes, std::clamp<Index>(d - p * kLanes, 0, kLanes));
    return row;
  }
  double dot(const ShortRow& other) const {
    Lanes products = part[0] * other.part[0];
    for (Index p = 1; p < kParts; ++p) products += part[p] * other.part[p];
    return pairwise_sum(products);
  }
  void write(double* x, Index d) const {
    double columns[kParts * kLanes];
    for (Index p = 0; p < kParts; ++p) store(columns + p * kLanes, part[p]);
    std::copy_n(columns, d, x);
  }
  void subtract(double g, const ShortRow& other) {
    for (Index p = 0; p < kParts; ++p) part[p] -= g * other.part[p];
  }
};

template <class Loss, Index kParts, class T>
bool visit_short_rows(const RowsInPlace<T>& rows, const RowOrder& order, const DescentRule& rule,
                      Model& model, double* w, Index d, Stop& stop) {
  using Row = ShortRow<kParts>;
  const bool constant = rule.schedule == Schedule::constant;
  const double one = rule.fit_intercept ? 1.0 : 0.0;
  double b = model.b[0];
  Row weights = Row::read(w, d);
  Row x = Row::read(rows.at(0), d), next = Row::read(rows.at(std::min<Index>(1, order.count - 1)), d);
  double score = weights.dot(x) + b, before = weights.dot(next) + b;  // the next one's, but for this update
  Index mistakes = 0;
  const bool whole = each_visit(order.count, d + 16, stop, [&](Index at) {
    const T* ahead = rows.ahead_of(at);
    __builtin_prefetch(ahead);
    __builtin_prefetch(ahead + d - 1);
    const Row after = Row::read(rows.at(std::min(at + 2, order.count - 1)), d);
    const Index i = order.row[at];
    const double y = order.y[i], weight = weight_of(order, i), product = x.dot(next) + one;
    const double eta = constant ? rule.eta0 : step_size(rule, model.updates);
    const double g = eta * weight * Loss::gradient(score, y);
    mistakes += weight > 0.0 ? wrong_side<Loss>(score, y) : 0;
    weights.subtract(g, x);
    b -= one * g;
    score = before - g * product;
    before = weights.dot(after) + b;
    x = next;
    next = after;
    ++model.updates;
  });
  weights.write(w, d);
  model.b[0] = b;
  model.mistakes[0] += mistakes;
  return whole;
}

// kLanes scores from number `first` on, of which there are `count`.
struct ScoreGroup {
  Index first, count;
  Lanes score{}, before{}, gradient{}, b{};
  LanesBits mistakes{};
};

template <class Loss, class T>
class ScoresInLanes {
 public:
  ScoresInLanes(const RowsInPlace<T>& rows, const RowOrder& order, const DescentRule& rule, Model& model,
                const std::vector<double*>& w, Index d)
      : rows_(rows), order_(order), rule_(rule), model_(model), w_(w), d_(d) {
    for (Index first = 0; first < model.scores; first += kLanes)
      groups_.push_back(ScoreGroup{.first = first, .count = std::min(kLanes, model.scores - first)});
    weights_.assign(groups_.size() * static_cast<std::size_t>(d * kLanes), 0.0);
    for (Index k = 0; k < model.scores; ++k)
      for (Index j = 0; j < d; ++j) weight(k, j) = w[k][j];
    const T *x = rows.at(0), *next = rows.at(std::min<Index>(1, order.count - 1));
    for (ScoreGroup& group : groups_) {
      group.b = load_first(model.b + group.first, group.count);
      group.score = update_and_dot(group, x, x) + group.b;  // the gradient is still 0
      group.before = update_and_dot(group, x, next) + group.b;
    }
  }

  bool visit(Stop& stop) {
    const bool constant = rule_.schedule == Schedule::constant;
    const double one = rule_.fit_intercept ? 1.0 : 0.0;
    const bool whole = each_visit(order_.count, d_ * model_.scores + 16, stop, [&](Index at) {
      const Index i = order_.row[at], last = order_.count - 1;
      const T *x = rows_.at(at), *next = rows_.at(std::min(at + 1, last)),
              *after = rows_.at(std::min(at + 2, last));
      const double* y = order_.y + i * order_.targets;
      const double weight = weight_of(order_, i);
      const double eta = weight * (constant ? rule_.eta0 : step_size(rule_, model_.updates));
      const double product = one + sum_columns(d_, rows_.ahead_of(at), [=](Index j) {
                               return static_cast<double>(x[j]) * static_cast<double>(next[j]);
                             });
      for (ScoreGroup& group : groups_) {
        const Lanes label = load_first(y + group.first, group.count);
        group.gradient = eta * Loss::gradient(group.score, label);
        if (weight > 0.0) group.mistakes -= wrong_side<Loss>(group.score, label);
        group.score = group.before - product * group.gradient;
        group.b -= one * group.gradient;
        group.before = update_and_dot(group, x, after) + group.b;
      }
      ++model_.updates;
    });
    for (Index k = 0; k < model_.scores; ++k) {
      const ScoreGroup& group = groups_[static_cast<std::size_t>(k / kLanes)];
      for (Index j = 0; j < d_; ++j) w_[k][j] = weight(k, j);
      model_.b[k] = group.b[k % kLanes];
      model_.mistakes[k] += group.mistakes[k % kLanes];
    }
    return whole;
  }

 private:
  double& weight(Index k, Index j) { return weights_[(k / kLanes * d_ + j) * kLanes + k % kLanes]; }

  // Subtracts the gradients times x from the weights; returns their products with another row.
  Lanes update_and_dot(const ScoreGroup& group, const T* x, const T* other) {
    double* w = weights_.data() + group.first * d_;
    const Lanes g = group.gradient;
    Lanes sums[2] = {};
    const auto column = [=](Index j) {
      const Lanes v = load(w + j * kLanes) - g * static_cast<double>(x[j]);
      store(w + j * kLanes, v);
      return v * static_cast<double>(other[j]);
    };
    Index j = 0;
    for (; j + 2 <= d_; j += 2) {
      sums[0] += column(j);
      sums[1] += column(j + 1);
    }
    if (j < d_) sums[0] += column(j);
    return sums[0] + sums[1];
  }

  const RowsInPlace<T>& rows_;
  const RowOrder& order_;
  const DescentRule& rule_;
  Model& model_;
  const std::vector<double*>& w_;
  Index d_;
  std::vector<ScoreGroup> groups_;
  AlignedVector<double> weights_;
};

}  // namespace sixfold
