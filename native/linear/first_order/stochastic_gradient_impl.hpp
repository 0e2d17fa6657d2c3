// Stochastic gradient descent, one row or one small batch B of rows an update:
//
//   g_i = weight_i loss'(w.x_i + b, y_i)                   at the w and b before the update
//   u   = max(0, 1 - eta l2) w - eta mean_{i in B} g_i x_i
//   w   = u - eta l1 sign(u), but never across zero        (positive: and never below zero)
//   b   = b - eta mean_{i in B} g_i
//
// which is the textbook update except that no shrinkage changes a sign. With column factors f_j, eta stands
// for eta f_j in column j and x_j for x_j - center_j: a diagonal change of metric, under which the penalties
// stay those of the original w.
//
// The update of one row and the score of the next are one pass over w.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/threads.hpp"
#include "linear/first_order/empirical_loss.hpp"
#include "linear/first_order/lazy_weights.hpp"
#include "linear/first_order/look_ahead.hpp"
#include "linear/first_order/row_access.hpp"
#include "linear/first_order/stochastic_gradient.hpp"

namespace sixfold {
namespace {

void average(double* __restrict mean, const double* __restrict value, double share, Index count) {
#pragma omp simd
  for (Index j = 0; j < count; ++j) mean[j] += share * (value[j] - mean[j]);
}

// The derivatives of row i in its scores, and its mistakes; rows without weight make none.
template <class Loss>
void find_gradients(const double* score, const RowOrder& order, Index i, Model& model, double* g) {
  const double* y = order.y + i * order.targets;
  gradients<Loss>(score, y, model.scores, g);
  if (order.weight == nullptr || order.weight[i] > 0.0)
    count_mistakes<Loss>(score, y, model.scores, model.mistakes);
}

using FindGradients = void (*)(const double*, const RowOrder&, Index, Model&, double*);

FindGradients pick_gradients(LossCode loss) {
  FindGradients found = nullptr;
  with_loss(loss, [&]<class Loss>(Loss) {
    found = find_gradients<Loss>;
    return true;
  });
  return found;
}

// -- dense rows -------------------------------------------------------------------------------------------

struct Step {
  double gradient;  // eta times the derivative
  double l1, l2;    // eta times the penalty factors
};

enum class Shrink { none, l2, all };

// Column j counts as x_j - center_j, and its step as eta factor_j; both null for x_j and eta.
struct Metric {
  const double *center, *factor;
};

template <class T, bool scaled>
double dot(const double* w, const T* x, const T* ahead, Metric metric, Index d) {
  return sum_columns(d, ahead, [=](Index j) {
    return w[j] * (static_cast<double>(x[j]) - (scaled ? metric.center[j] : 0.0));
  });
}

// Updates w with row x and returns its product with the row to come.
template <class T, bool scaled, Shrink shrink, bool positive>
double update_and_dot(double* w, const T* x, const T* next, const T* ahead, Metric metric, Step step,
                      Index d) {
  return sum_columns(d, ahead, [=](Index j) {
    const double f = scaled ? metric.factor[j] : 1.0, center = scaled ? metric.center[j] : 0.0;
    double v = w[j];
    if constexpr (shrink != Shrink::none) v *= std::max(0.0, 1.0 - step.l2 * f);
    v -= step.gradient * f * (static_cast<double>(x[j]) - center);
    if constexpr (shrink == Shrink::all) {
      // max(v - t, 0) + min(v + t, 0) is the soft threshold without a branch.
      const double t = step.l1 * f, above = std::max(v - t, 0.0), below = std::min(v + t, 0.0);
      v = positive ? above : above + below;
    }
    w[j] = v;
    return v * (static_cast<double>(next[j]) - center);
  });
}

template <class T>
using UpdateAndDot = double (*)(double*, const T*, const T*, const T*, Metric, Step, Index);

template <class T, bool scaled>
UpdateAndDot<T> pick_update(const DescentRule& rule) {
  if (rule.positive) return update_and_dot<T, scaled, Shrink::all, true>;
  if (rule.l1 > 0.0) return update_and_dot<T, scaled, Shrink::all, false>;
  if (rule.l2 > 0.0) return update_and_dot<T, scaled, Shrink::l2, false>;
  return update_and_dot<T, scaled, Shrink::none, false>;
}

template <class T, bool scaled>
class DenseUpdates {
 public:
  DenseUpdates(const RowOrder& order, Metric metric, const DescentRule& rule, Model& model, Index columns)
      : order_(order),
        metric_(metric),
        rule_(rule),
        model_(model),
        d_(columns),
        shrinks_(rule.positive || rule.l1 > 0.0 || rule.l2 > 0.0),
        find_gradients_(pick_gradients(rule.loss)),
        w_(static_cast<std::size_t>(model.scores)),
        score_(static_cast<std::size_t>(model.scores)),
        g_(static_cast<std::size_t>(model.scores)) {
    aligned_.reserve(static_cast<std::size_t>(model.scores));
    for (Index k = 0; k < model.scores; ++k) {
      aligned_.emplace_back(model.w + k * d_, model.w + (k + 1) * d_);
      w_[k] = aligned_.back().data();
    }
  }

  // Hands the weights back.
  void finish() {
    for (Index k = 0; k < model_.scores; ++k) std::copy(w_[k], w_[k] + d_, model_.w + k * d_);
  }

  // Whether there is a loop that looks ahead; see look_ahead.hpp.
  template <class Loss>
  bool can_look_ahead() const {
    if (scaled || shrinks_ || rule_.average_from >= 0) return false;
    if (model_.scores > 1) return HasGradient<Loss, Lanes> && model_.scores * d_ <= kFewWeights;
    return HasGradient<Loss, double> && d_ <= kFewColumns;
  }

  template <class Loss>
  bool visit_ahead(const RowsInPlace<T>& rows, Stop& stop) {
    if constexpr (HasGradient<Loss, Lanes>)
      if (model_.scores > 1) return ScoresInLanes<Loss, T>(rows, order_, rule_, model_, w_, d_).visit(stop);
    if constexpr (HasGradient<Loss, double>) {
      const auto visit = d_ <= kFewColumns / 2 ? visit_short_rows<Loss, kFewColumns / 2 / kLanes, T>
                                               : visit_short_rows<Loss, kFewColumns / kLanes, T>;
      return visit(rows, order_, rule_, model_, w_[0], d_, stop);
    }
    return false;
  }

  // visit_singly for one score, whose loss is compiled in. A visit is few enough instructions for a core to
  // be at the rows to come while it waits for one.
  template <class Loss, class Rows>
  bool visit_one_score(Rows& rows, Stop& stop) {
    const auto update = pick_update<T, scaled>(rule_);
    const RowOrder order = order_;
    const DescentRule rule = rule_;
    const Metric metric = metric_;
    const Index d = d_, poll = kPollOperations / (d + 16) + 1;
    const bool shrinks = shrinks_, constant = rule.schedule == Schedule::constant;
    double *const w = w_[0], b = model_.b[0];
    const T* x = rows.at(0);
    double product = dot<T, scaled>(w, x, x, metric, d);
    Index mistakes = 0, at = 0;
    do {
      for (const Index end = std::min(at + poll, order.count); at < end; ++at) {
        const Index i = order.row[at], coming = std::min(at + 1, order.count - 1);
        const T *next = rows.at(coming), *ahead = rows.ahead_of(coming);
        const double score = product + b, y = order.y[i], weight = weight_of(order, i);
        double g;
        gradients<Loss>(&score, &y, 1, &g);
        if (weight > 0.0) count_mistakes<Loss>(&score, &y, 1, &mistakes);
        const double eta = constant ? rule.eta0 : step_size(rule, model_.updates);
        const double gradient = eta * weight * g;
        if (gradient == 0.0 && !shrinks) {
          product = dot<T, scaled>(w, next, ahead, metric, d);
        } else {
          product = update(w, x, next, ahead, metric, {gradient, eta * rule.l1, eta * rule.l2}, d);
          if (rule.fit_intercept) b -= gradient;
        }
        x = next;
        ++model_.updates;
        if (rule.average_from >= 0) {
          model_.b[0] = b;
          take_average();
        }
      }
    } while (at < order.count && !stop.now());
    model_.b[0] = b;
    model_.mistakes[0] += mistakes;
    return at == order.count;
  }

  // One row an update; false once stopped. The update of one row and the score of the next are one loop.
  template <class Rows>
  bool visit_singly(Rows& rows, Stop& stop) {
    const Index scores = model_.scores;
    const auto update = pick_update<T, scaled>(rule_);
    const T* x = rows.at(0);
    for (Index k = 0; k < scores; ++k) score_[k] = dot<T, scaled>(w_[k], x, x, metric_, d_);
    for (Index at = 0; at < order_.count; ++at) {
      const Index i = order_.row[at];
      const T* next = at + 1 < order_.count ? rows.at(at + 1) : x;
      const T* ahead = rows.ahead_of(at + 1 < order_.count ? at + 1 : at);
      add_intercepts_and_differentiate(i);
      const double eta = step_size(rule_, model_.updates), weighted_eta = eta * weight_of(order_, i);
      for (Index k = 0; k < scores; ++k) {
        const Step step{weighted_eta * g_[k], eta * rule_.l1, eta * rule_.l2};
        score_[k] = step.gradient == 0.0 && !shrinks_ ? dot<T, scaled>(w_[k], next, ahead, metric_, d_)
                                                      : update(w_[k], x, next, ahead, metric_, step, d_);
        if (rule_.fit_intercept) model_.b[k] -= step.gradient;
        ahead = next;  // asked for once
      }
      x = next;
      if (ends(at, stop)) return false;
    }
    return true;
  }

  // Adds up g_i (x_i, 1) over the rows of a batch, then updates with their mean.
  template <class Rows>
  bool visit_in_batches(Rows& rows, Stop& stop) {
    const Index scores = model_.scores, width = d_ + 1;
    const auto update = pick_update<double, scaled>(rule_);
    std::vector<double> sums(static_cast<std::size_t>(width * scores), 0.0);
    const std::vector<double> centred(static_cast<std::size_t>(d_), 0.0);  // what the sums are made of is
    const Metric metric{centred.data(), metric_.factor};
    Index in_batch = 0;
    for (Index at = 0; at < order_.count; ++at) {
      const Index i = order_.row[at];
      const T* x = rows.at(at);
      for (Index k = 0; k < scores; ++k) score_[k] = dot<T, scaled>(w_[k], x, rows.ahead_of(at), metric_, d_);
      add_intercepts_and_differentiate(i);
      for (Index k = 0; k < scores; ++k) add(sums.data() + k * width, x, g_[k] * weight_of(order_, i));
      ++in_batch;
      if (in_batch < rule_.batch_size && at + 1 < order_.count) continue;
      const double eta = step_size(rule_, model_.updates);
      const Step step{eta / static_cast<double>(in_batch), eta * rule_.l1, eta * rule_.l2};
      for (Index k = 0; k < scores; ++k) {
        const double* sum = sums.data() + k * width;
        update(w_[k], sum, sum, sum, metric, step, d_);
        if (rule_.fit_intercept) model_.b[k] -= step.gradient * sum[d_];
      }
      std::fill(sums.begin(), sums.end(), 0.0);
      in_batch = 0;
      if (ends(at, stop)) return false;
    }
    return true;
  }

 private:
  // From the products w.x of row i, which still lack the intercept.
  void add_intercepts_and_differentiate(Index i) {
    for (Index k = 0; k < model_.scores; ++k) score_[k] += model_.b[k];
    find_gradients_(score_.data(), order_, i, model_, g_.data());
  }

  void add(double* __restrict sum, const T* __restrict x, double g) const {
    if (g == 0.0) return;
#pragma omp simd
    for (Index j = 0; j < d_; ++j)
      sum[j] += g * (static_cast<double>(x[j]) - (scaled ? metric_.center[j] : 0.0));
    sum[d_] += g;
  }

  void take_average() {
    if (model_.updates <= rule_.average_from) return;
    const double share = 1.0 / static_cast<double>(model_.updates - rule_.average_from);
    for (Index k = 0; k < model_.scores; ++k) average(model_.mean_w + k * d_, w_[k], share, d_);
    average(model_.mean_b, model_.b, share, model_.scores);
  }

  // Closes an update; true if it was not the last one and the work has to end.
  bool ends(Index at, Stop& stop) {
    ++model_.updates;
    if (rule_.average_from >= 0) take_average();
    operations_ += (d_ * model_.scores + 16) * rule_.batch_size;
    if (operations_ < kPollOperations) return false;
    operations_ = 0;
    return stop.now() && at + 1 < order_.count;
  }

  const RowOrder& order_;
  Metric metric_;
  const DescentRule& rule_;
  Model& model_;
  Index d_;
  bool shrinks_;
  FindGradients find_gradients_;
  Index operations_ = 0;
  std::vector<AlignedVector<double>> aligned_;
  std::vector<double*> w_;
  std::vector<double> score_, g_;
};

template <class T, bool scaled>
bool dense_rows(const Table<T>& X, const RowOrder& order, Metric metric, const DescentRule& rule,
                Model& model, Stop& stop) {
  AlignedVector<double> center, factor;
  if (scaled) {
    center.assign(metric.center, metric.center + X.columns);
    factor.assign(metric.factor, metric.factor + X.columns);
  }
  DenseUpdates<T, scaled> updates(order, {center.data(), factor.data()}, rule, model, X.columns);
  const auto visit = [&](auto rows) {
    if (rule.batch_size > 1) return updates.visit_in_batches(rows, stop);
    return with_loss(rule.loss, [&]<class Loss>(Loss) {
      if constexpr (std::is_same_v<decltype(rows), RowsInPlace<T>>)
        if (updates.template can_look_ahead<Loss>()) return updates.template visit_ahead<Loss>(rows, stop);
      return model.scores > 1 ? updates.visit_singly(rows, stop)
                              : updates.template visit_one_score<Loss>(rows, stop);
    });
  };
  const bool whole = X.column_stride == 1 ? visit(RowsInPlace<T>(X, order)) : visit(PackedRows<T>(X, order));
  updates.finish();
  return whole;
}

// -- sparse rows ------------------------------------------------------------------------------------------

// Calls run(part, first) for scores first, first + 1, ... in parts of 8, 4, 2 and 1, so that a loop over one
// is compiled into registers: a third of the time of sums in memory.
template <Index kScores = 8, class Run>
void each_part(Index scores, Run run, Index first = 0) {
  for (; first + kScores <= scores; first += kScores) run(std::integral_constant<Index, kScores>{}, first);
  if constexpr (kScores > 1) each_part<kScores / 2>(scores, run, first);
}

constexpr Index kSparseRowsAhead = 2;  // that are on their way

// The entries of row i.
template <class T, class I>
struct SparseRow {
  const T* value;
  const I* column;
  Index count;

  SparseRow(const SparseTable<T, I>& X, Index i)
      : value(X.values + X.starts[i]),
        column(X.columns + X.starts[i]),
        count(X.starts[i + 1] - X.starts[i]) {}

  // Asks for them before their turn: rows in random order come slowly from memory. So many entries at a time
  // that most rows of a table are as many times; what lies beyond a row does no harm. Inlined as fetch_label
  // is.
  [[gnu::always_inline]] void fetch() const {
    constexpr Index kEntries = 32, kLine = 64;
    for (Index at = 0; at < count; at += kEntries) {
#pragma GCC unroll 4
      for (Index k = 0; k < kEntries; k += kLine / sizeof(T)) __builtin_prefetch(value + at + k);
#pragma GCC unroll 4
      for (Index k = 0; k < kEntries; k += kLine / sizeof(I)) __builtin_prefetch(column + at + k);
    }
  }
};

// The scores of a row but for scale and intercept. Sums of every fourth entry do not wait for each other.
template <class T, class I>
void score_row(const SparseRow<T, I>& row, LazyWeights& weights, Index scores, double* score) {
  if (weights.lazy())
    for (Index at = 0; at < row.count; ++at) weights.catch_up(row.column[at]);
  each_part(scores, [&]<Index kScores>(std::integral_constant<Index, kScores>, Index first) {
    constexpr Index kChains = 4;
    const double* w = weights.column(0) + first;
    double sum[kChains][kScores] = {};
    const auto add = [&](Index chain, Index at) {
      const double* v = w + row.column[at] * scores;
      for (Index k = 0; k < kScores; ++k) sum[chain][k] += v[k] * static_cast<double>(row.value[at]);
    };
    Index at = 0;
    for (; at + kChains <= row.count; at += kChains)
#pragma GCC unroll 4
      for (Index chain = 0; chain < kChains; ++chain) add(chain, at + chain);
    for (; at < row.count; ++at) add(0, at);
    for (Index k = 0; k < kScores; ++k) score[first + k] = (sum[0][k] + sum[2][k]) + (sum[1][k] + sum[3][k]);
  });
}

// Subtracts g_k times a row from the weights of score k; parts of the scores that are right are left alone.
template <class T, class I>
void subtract_row(const SparseRow<T, I>& row, LazyWeights& weights, Index scores, const double* g) {
  each_part(scores, [&]<Index kScores>(std::integral_constant<Index, kScores>, Index first) {
    double slope[kScores];
    std::copy_n(g + first, kScores, slope);
    if (std::all_of(slope, slope + kScores, [](double value) { return value == 0.0; })) return;
    double* w = weights.column(0) + first;
    for (Index at = 0; at < row.count; ++at) {
      double* v = w + row.column[at] * scores;
      for (Index k = 0; k < kScores; ++k) v[k] -= slope[k] * static_cast<double>(row.value[at]);
    }
  });
}

constexpr Index kPaddedEntries = 16;

// The product of w with a row, so many entries at a time; what lies beyond the row counts as zeros. Nobody
// could foresee how many entries a row has, so that a core guesses the ends of loops over just these wrong: a
// visit of 20 entries or so takes 22 ns instead of 33, one of 5 takes 18 instead of 30.
template <class T, class I>
double padded_dot(const double* w, const SparseRow<T, I>& row) {
  double sum[kSums] = {};
  for (Index at = 0; at < row.count; at += kPaddedEntries) {
    const T* value = row.value + at;
    const I* column = row.column + at;
    const Index rest = row.count - at;
#pragma GCC unroll 16
    for (Index k = 0; k < kPaddedEntries; ++k) {
      const double x = static_cast<double>(value[k]);
      sum[k % kSums] += w[column[k]] * (k < rest ? x : 0.0);
    }
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// One score, one row an update, and neither penalty nor average; false once stopped.
template <class T, class I, class Loss>
bool visit_sparse_rows(const SparseTable<T, I>& X, const RowOrder& order, const DescentRule& rule,
                       Model& model, Stop& stop) {
  double *const w = model.w, b = model.b[0];
  const bool constant = rule.schedule == Schedule::constant;
  const double one = rule.fit_intercept ? 1.0 : 0.0;
  const Index entries = X.starts[X.rows], poll = kPollOperations / (entries / X.rows + 16) + 1;
  Index mistakes = 0, at = 0;
  do {
    for (const Index end = std::min(at + poll, order.count); at < end; ++at) {
      const Index i = order.row[at];
      const SparseRow row(X, i);
      SparseRow(X, order.row[std::min(at + kSparseRowsAhead, order.count - 1)]).fetch();
      double score = b;
      if (X.starts[i + 1] + kPaddedEntries <= entries)
        score += padded_dot(w, row);
      else
        for (Index k = 0; k < row.count; ++k) score += w[row.column[k]] * static_cast<double>(row.value[k]);
      const double y = order.y[i], weight = weight_of(order, i);
      mistakes += weight > 0.0 ? wrong_side<Loss>(score, y) : 0;
      const double eta = constant ? rule.eta0 : step_size(rule, model.updates);
      const double g = eta * weight * Loss::gradient(score, y);
      ++model.updates;
      if (g == 0.0) continue;
      b -= one * g;
      for (Index k = 0; k < row.count; ++k) w[row.column[k]] -= g * static_cast<double>(row.value[k]);
    }
  } while (at < order.count && !stop.now());
  model.b[0] = b;
  model.mistakes[0] += mistakes;
  return at == order.count;
}

template <class T, class I, class Loss>
bool sparse_batches(const SparseTable<T, I>& X, const RowOrder& order, const DescentRule& rule, Model& model,
                    Stop& stop) {
  const Index scores = model.scores;
  LazyWeights weights(rule, model, X.width, order.count / rule.batch_size + 1);
  std::vector<double> score(static_cast<std::size_t>(scores));
  std::vector<double> g(static_cast<std::size_t>(scores * std::min(rule.batch_size, order.count)));
  Index operations = 0, first = 0;
  bool stopped = false;
  for (; first < order.count && !stopped; first += rule.batch_size) {
    const Index size = std::min(rule.batch_size, order.count - first);
    const double eta = step_size(rule, model.updates), share = eta / static_cast<double>(size);
    for (Index r = 0; r < size; ++r) {
      const Index i = order.row[first + r];
      const SparseRow row(X, i);
      SparseRow(X, order.row[std::min(first + r + kSparseRowsAhead, order.count - 1)]).fetch();
      score_row(row, weights, scores, score.data());
      for (Index k = 0; k < scores; ++k) score[k] = score[k] * weights.scale() + model.b[k];
      find_gradients<Loss>(score.data(), order, i, model, g.data() + r * scores);
      for (Index k = 0; k < scores; ++k) g[r * scores + k] *= share * weight_of(order, i);
      operations += (row.count + 16) * scores;
    }
    ++model.updates;
    const bool averaged = rule.average_from >= 0 && model.updates > rule.average_from;
    weights.shrink(eta, averaged);
    for (Index r = 0; r < size; ++r) {
      const Index i = order.row[first + r];
      const double* slopes = g.data() + r * scores;
      if (std::all_of(slopes, slopes + scores, [](double slope) { return slope == 0.0; })) continue;
      for (Index k = 0; k < scores && rule.fit_intercept; ++k) model.b[k] -= g[r * scores + k];
      for (Index k = 0; k < scores; ++k) g[r * scores + k] /= weights.scale();
      subtract_row(SparseRow(X, i), weights, scores, g.data() + r * scores);
    }
    if (averaged)
      average(model.mean_b, model.b, 1.0 / static_cast<double>(model.updates - rule.average_from), scores);
    if (operations > kPollOperations) {
      operations = 0;
      stopped = stop.now();
    }
  }
  weights.settle();
  return first >= order.count;
}

// Runs epochs until one has few enough mistakes; false if one was stopped.
template <class Run>
bool each_epoch(RowOrder visits, Model& model, Epochs& epochs, Run run) {
  bool whole = true;
  Index mistakes = epochs.enough + 1;
  for (; epochs.made < epochs.count && mistakes > epochs.enough && whole; epochs.made += whole) {
    whole = run(visits);
    mistakes = std::accumulate(model.mistakes, model.mistakes + model.scores, Index{0});
    visits.row += visits.count;
    model.mistakes += model.scores;
  }
  return whole;
}

}  // namespace

template <class T>
bool descend_dense(const Table<T>& X, const RowOrder& order, const double* center, const double* factor,
                   const DescentRule& rule, Model& model, Epochs& epochs, ReferenceModel& reference,
                   Stop& stop) {
  if (order.count == 0) {
    epochs.made = epochs.count;
    return true;
  }
  LossSum<T> loss_sum(X, order.y, order.targets, order.weight, rule.loss, reference.w, reference.b,
                      model.scores);
  const bool has_reference = reference.w != nullptr;
  bool whole = true;  // written by the thread that updates
  // Updates are a chain that one thread walks; the other adds up losses, until both do.
#pragma omp parallel num_threads(has_reference ? team_size(2, 1.0 * order.count * X.columns) : 1)
  {
    if (omp_get_thread_num() == 0) {
      whole = each_epoch(order, model, epochs, [&](const RowOrder& visits) {
        return factor == nullptr ? dense_rows<T, false>(X, visits, {}, rule, model, stop)
                                 : dense_rows<T, true>(X, visits, {center, factor}, rule, model, stop);
      });
      if (!whole) loss_sum.cancel();
    }
    if (has_reference) loss_sum.work(omp_get_thread_num() == 0 ? &stop : nullptr);
  }
  whole = whole && !loss_sum.cancelled();
  if (has_reference && whole) reference.loss = loss_sum.total();
  return whole;
}

template <class T, class I>
bool descend_sparse(const SparseTable<T, I>& X, const RowOrder& order, const DescentRule& rule, Model& model,
                    Epochs& epochs, Stop& stop) {
  return with_loss(rule.loss, [&]<class Loss>(Loss) {
    const bool plain = rule.l1 == 0.0 && rule.l2 == 0.0 && !rule.positive && rule.average_from < 0;
    return each_epoch(order, model, epochs, [&](const RowOrder& visits) {
      if constexpr (HasGradient<Loss, double>)
        if (plain && model.scores == 1 && rule.batch_size == 1)
          return visit_sparse_rows<T, I, Loss>(X, visits, rule, model, stop);
      return sparse_batches<T, I, Loss>(X, visits, rule, model, stop);
    });
  });
}

}  // namespace sixfold
