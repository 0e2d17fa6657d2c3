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
// The update of one row and the score of the next are one pass over w, and rows are prefetched along the
// order in which they will be visited.
#include "stochastic_gradient.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "blas.hpp"
#include "lazy_weights.hpp"

namespace sixfold {
namespace {

constexpr Index kPollOperations = 1 << 18;  // multiplications between two looks at the clock
constexpr Index kUnitNumbers = 1 << 12;     // of one packed unit of rows
constexpr Index kRing = 8;          // units that may be packed ahead; all of them stay in the L2 cache
constexpr Index kPrefetchRows = 8;  // rows ahead of the one that is packed

double step_size(const DescentRule& rule, Index t) {
  if (rule.schedule == Schedule::decay) return rule.eta0 / (1.0 + rule.rate * static_cast<double>(t));
  if (rule.schedule == Schedule::invscaling)
    return rule.eta0 * std::pow(static_cast<double>(t + 1), -rule.rate);
  return rule.eta0;
}

double weight_of(const Visits& visits, Index i) { return visits.weight == nullptr ? 1.0 : visits.weight[i]; }

void average(double* __restrict mean, const double* __restrict value, double share, Index count) {
#pragma omp simd
  for (Index j = 0; j < count; ++j) mean[j] += share * (value[j] - mean[j]);
}

// -- dense rows -------------------------------------------------------------------------------------------

struct Step {
  double gradient;  // eta times the derivative
  double l1, l2;    // eta times the penalty factors
};

enum class Shrink { none, l2, all };

double dot(const double* __restrict w, const double* __restrict x, Index d) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < d; ++j) sum += w[j] * x[j];
  return sum;
}

// Updates w with row x and returns its product with the row to come.
template <bool scaled, Shrink shrink, bool positive>
double update_and_dot(double* __restrict w, const double* __restrict x, const double* __restrict next,
                      const double* __restrict factor, Step step, Index d) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < d; ++j) {
    const double f = scaled ? factor[j] : 1.0;
    double v = w[j];
    if constexpr (shrink != Shrink::none) v *= std::max(0.0, 1.0 - step.l2 * f);
    v -= step.gradient * f * x[j];
    if constexpr (shrink == Shrink::all) {
      // max(v - t, 0) + min(v + t, 0) is the soft threshold without a branch.
      const double t = step.l1 * f, above = std::max(v - t, 0.0), below = std::min(v + t, 0.0);
      v = positive ? above : above + below;
    }
    w[j] = v;
    sum += v * next[j];
  }
  return sum;
}

using UpdateAndDot = double (*)(double*, const double*, const double*, const double*, Step, Index);

template <bool scaled>
UpdateAndDot pick_update(const DescentRule& rule) {
  if (rule.positive) return update_and_dot<scaled, Shrink::all, true>;
  if (rule.l1 > 0.0) return update_and_dot<scaled, Shrink::all, false>;
  if (rule.l2 > 0.0) return update_and_dot<scaled, Shrink::l2, false>;
  return update_and_dot<scaled, Shrink::none, false>;
}

// The updates themselves, over rows that were packed one after the other in the order of the visits.
template <class Loss>
class DenseUpdates {
 public:
  DenseUpdates(const Visits& visits, const double* factor, const DescentRule& rule, Model& model,
               Index columns)
      : visits_(visits),
        factor_(factor),
        rule_(rule),
        model_(model),
        d_(columns),
        update_(factor == nullptr ? pick_update<false>(rule) : pick_update<true>(rule)),
        shrinks_(rule.positive || rule.l1 > 0.0 || rule.l2 > 0.0),
        score_(static_cast<std::size_t>(model.scores)),
        g_(static_cast<std::size_t>(model.scores)),
        sum_(static_cast<std::size_t>(rule.batch_size > 1 ? (columns + 1) * model.scores : 0), 0.0) {}

  // Visits `count` rows from visit number `first` on; false once stopped.
  bool visit(const double* rows, Index first, Index count, Stop& stop) {
    return rule_.batch_size == 1 ? visit_singly(rows, first, count, stop)
                                 : visit_in_batches(rows, first, count, stop);
  }

 private:
  bool visit_singly(const double* x, Index first, Index count, Stop& stop) {
    const Index scores = model_.scores;
    for (Index k = 0; k < scores; ++k) score_[k] = dot(model_.w + k * d_, x, d_);
    for (Index at = first; at < first + count; ++at) {
      const Index i = visits_.order[at];
      const double* next = at + 1 < first + count ? x + d_ : x;
      for (Index k = 0; k < scores; ++k) score_[k] += model_.b[k];
      gradients<Loss>(score_.data(), visits_.y + i * visits_.targets, scores, g_.data());
      const double eta = step_size(rule_, model_.updates), weighted_eta = eta * weight_of(visits_, i);
      for (Index k = 0; k < scores; ++k) {
        const Step step{weighted_eta * g_[k], eta * rule_.l1, eta * rule_.l2};
        double* w = model_.w + k * d_;
        score_[k] =
            step.gradient == 0.0 && !shrinks_ ? dot(w, next, d_) : update_(w, x, next, factor_, step, d_);
        if (rule_.fit_intercept) model_.b[k] -= step.gradient;
      }
      x = next;
      if (ends(at, stop)) return false;
    }
    return true;
  }

  // Adds up g_i (x_i, 1) over the rows of a batch, which may begin in one chunk and end in another.
  bool visit_in_batches(const double* x, Index first, Index count, Stop& stop) {
    const Index scores = model_.scores, width = d_ + 1;
    for (Index at = first; at < first + count; ++at, x += d_) {
      const Index i = visits_.order[at];
      for (Index k = 0; k < scores; ++k) score_[k] = dot(model_.w + k * d_, x, d_) + model_.b[k];
      gradients<Loss>(score_.data(), visits_.y + i * visits_.targets, scores, g_.data());
      for (Index k = 0; k < scores; ++k) {
        const double g = g_[k] * weight_of(visits_, i);
        double* sum = sum_.data() + k * width;
        if (g != 0.0) update_and_dot<false, Shrink::none, false>(sum, x, x, nullptr, {-g, 0.0, 0.0}, d_);
        sum[d_] += g;
      }
      ++in_batch_;
      if (in_batch_ < rule_.batch_size && at + 1 < visits_.count) continue;
      const double eta = step_size(rule_, model_.updates);
      const Step step{eta / static_cast<double>(in_batch_), eta * rule_.l1, eta * rule_.l2};
      for (Index k = 0; k < scores; ++k) {
        const double* sum = sum_.data() + k * width;
        update_(model_.w + k * d_, sum, sum, factor_, step, d_);
        if (rule_.fit_intercept) model_.b[k] -= step.gradient * sum[d_];
      }
      std::fill(sum_.begin(), sum_.end(), 0.0);
      in_batch_ = 0;
      if (ends(at, stop)) return false;
    }
    return true;
  }

  // Closes an update; true if it was not the last one and the work has to end.
  bool ends(Index at, Stop& stop) {
    ++model_.updates;
    if (rule_.average_from >= 0 && model_.updates > rule_.average_from) {
      const double share = 1.0 / static_cast<double>(model_.updates - rule_.average_from);
      average(model_.mean_w, model_.w, share, d_ * model_.scores);
      average(model_.mean_b, model_.b, share, model_.scores);
    }
    operations_ += (d_ * model_.scores + 16) * rule_.batch_size;
    if (operations_ < kPollOperations) return false;
    operations_ = 0;
    return stop.now() && at + 1 < visits_.count;
  }

  const Visits& visits_;
  const double* factor_;
  const DescentRule& rule_;
  Model& model_;
  Index d_;
  UpdateAndDot update_;
  bool shrinks_;
  Index in_batch_ = 0, operations_ = 0;
  std::vector<double> score_, g_, sum_;
};

template <class T>
void pack_row(const Table<T>& X, Index i, const double* center, double* __restrict out) {
  const T* __restrict x = X.row(i);
  if (X.column_stride != 1)
    for (Index j = 0; j < X.columns; ++j) out[j] = static_cast<double>(x[j * X.column_stride]);
  else
    for (Index j = 0; j < X.columns; ++j) out[j] = static_cast<double>(x[j]);
  if (center != nullptr)
    for (Index j = 0; j < X.columns; ++j) out[j] -= center[j];
}

template <class T>
void prefetch_row(const Table<T>& X, Index i) {
  const char* row = reinterpret_cast<const char*>(X.row(i));
  const Index bytes = std::min<Index>(X.columns * static_cast<Index>(sizeof(T)), 4096);
  for (Index at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
}

// Packs the rows of the visits, unit after unit, into contiguous memory.
template <class T>
class Packing {
 public:
  Packing(const Table<T>& X, const Visits& visits, const double* center)
      : X_(X),
        visits_(visits),
        center_(center),
        rows_(std::clamp<Index>(kUnitNumbers / X.columns, 1, 256)),
        slots_(static_cast<std::size_t>((kRing + 1) * rows_ * X.columns)) {
    for (auto& unit : ready_) unit = -1;
  }

  Index units() const { return (visits_.count + rows_ - 1) / rows_; }
  Index first(Index unit) const { return unit * rows_; }
  Index count(Index unit) const { return std::min(rows_, visits_.count - first(unit)); }

  // The rows of a unit, for the thread that updates: it never waits, but packs what is not there yet itself.
  const double* take(Index unit) {
    taken_.store(unit, std::memory_order_release);
    if (ready_[unit % kRing].load(std::memory_order_acquire) == unit) return slot(unit % kRing);
    pack(unit, slot(kRing));
    return slot(kRing);
  }

  // Packs ahead of the updates, at most a ring of units, until finish() is called.
  void run_ahead() {
    for (Index unit = 1; unit < units() && !finished_.load(std::memory_order_acquire);) {
      const Index taken = taken_.load(std::memory_order_acquire);
      unit = std::max(unit, taken + 1);
      if (unit >= std::min(taken + kRing, units())) {
        std::this_thread::yield();
        continue;
      }
      pack(unit, slot(unit % kRing));
      ready_[unit % kRing].store(unit, std::memory_order_release);
      ++unit;
    }
  }

  void finish() { finished_.store(true, std::memory_order_release); }

 private:
  double* slot(Index number) { return slots_.data() + number * rows_ * X_.columns; }

  void pack(Index unit, double* out) const {
    const Index begin = first(unit);
    for (Index at = begin; at < begin + count(unit); ++at, out += X_.columns) {
      prefetch_row(X_, visits_.order[std::min(at + kPrefetchRows, visits_.count - 1)]);
      pack_row(X_, visits_.order[at], center_, out);
    }
  }

  const Table<T>& X_;
  const Visits& visits_;
  const double* center_;
  Index rows_;
  std::vector<double> slots_;
  std::array<std::atomic<Index>, kRing> ready_;  // the unit that a slot holds
  std::atomic<Index> taken_{0};
  std::atomic<bool> finished_{false};
};

// Rows in random order come slowly from memory, so a second thread packs the rows to come while the first one
// updates (28 ms instead of 50 for 200,000 x 100). What is computed does not depend on who packed it.
template <class T, class Loss>
bool dense_rows(const Table<T>& X, const Visits& visits, const double* center, const double* factor,
                const DescentRule& rule, Model& model, Stop& stop) {
  Packing<T> packing(X, visits, center);
  DenseUpdates<Loss> updates(visits, factor, rule, model, X.columns);
  const Index units = packing.units();
  bool whole = true;

#pragma omp parallel num_threads(units < kRing ? 1 : std::min(threads(), 2))
  {
    if (omp_get_thread_num() == 0) {
      for (Index unit = 0; unit < units && whole; ++unit)
        whole = updates.visit(packing.take(unit), packing.first(unit), packing.count(unit), stop);
      packing.finish();
    } else {
      packing.run_ahead();
    }
  }
  return whole;
}

// -- sparse rows ------------------------------------------------------------------------------------------

template <class T, class I, class Loss>
bool sparse_batches(const SparseTable<T, I>& X, const Visits& visits, const DescentRule& rule, Model& model,
                    Stop& stop) {
  const Index scores = model.scores;
  LazyWeights weights(rule, model, X.width, visits.count / rule.batch_size + 1);
  std::vector<double> score(static_cast<std::size_t>(scores));
  std::vector<double> g(static_cast<std::size_t>(scores * std::min(rule.batch_size, visits.count)));
  Index operations = 0, first = 0;
  bool stopped = false;
  for (; first < visits.count && !stopped; first += rule.batch_size) {
    const Index size = std::min(rule.batch_size, visits.count - first);
    const double eta = step_size(rule, model.updates), share = eta / static_cast<double>(size);
    for (Index r = 0; r < size; ++r) {
      const Index i = visits.order[first + r];
      std::fill(score.begin(), score.end(), 0.0);
      for (I at = X.starts[i]; at < X.starts[i + 1]; ++at) {
        weights.catch_up(X.columns[at]);
        const double* v = weights.column(X.columns[at]);
        for (Index k = 0; k < scores; ++k) score[k] += v[k] * static_cast<double>(X.values[at]);
      }
      for (Index k = 0; k < scores; ++k) score[k] = score[k] * weights.scale() + model.b[k];
      gradients<Loss>(score.data(), visits.y + i * visits.targets, scores, g.data() + r * scores);
      for (Index k = 0; k < scores; ++k) g[r * scores + k] *= share * weight_of(visits, i);
      operations += (static_cast<Index>(X.starts[i + 1] - X.starts[i]) + 16) * scores;
    }
    ++model.updates;
    const bool averaged = rule.average_from >= 0 && model.updates > rule.average_from;
    weights.shrink(eta, averaged);
    for (Index r = 0; r < size; ++r) {
      const Index i = visits.order[first + r];
      for (Index k = 0; k < scores && rule.fit_intercept; ++k) model.b[k] -= g[r * scores + k];
      for (Index k = 0; k < scores; ++k) g[r * scores + k] /= weights.scale();
      for (I at = X.starts[i]; at < X.starts[i + 1]; ++at) {
        double* v = weights.column(X.columns[at]);
        for (Index k = 0; k < scores; ++k) v[k] -= g[r * scores + k] * static_cast<double>(X.values[at]);
      }
    }
    if (averaged)
      average(model.mean_b, model.b, 1.0 / static_cast<double>(model.updates - rule.average_from), scores);
    if (operations > kPollOperations) {
      operations = 0;
      stopped = stop.now();
    }
  }
  weights.settle();
  return first >= visits.count;
}

}  // namespace

template <class T>
bool descend_dense(const Table<T>& X, const Visits& visits, const double* center, const double* factor,
                   const DescentRule& rule, Model& model, Stop& stop) {
  if (visits.count == 0) return true;
  return with_loss(rule.loss, [&]<class Loss>(Loss) {
    return dense_rows<T, Loss>(X, visits, center, factor, rule, model, stop);
  });
}

template <class T, class I>
bool descend_sparse(const SparseTable<T, I>& X, const Visits& visits, const DescentRule& rule, Model& model,
                    Stop& stop) {
  return with_loss(
      rule.loss, [&]<class Loss>(Loss) { return sparse_batches<T, I, Loss>(X, visits, rule, model, stop); });
}

template bool descend_dense(const Table<double>&, const Visits&, const double*, const double*,
                            const DescentRule&, Model&, Stop&);
template bool descend_dense(const Table<float>&, const Visits&, const double*, const double*,
                            const DescentRule&, Model&, Stop&);
template bool descend_sparse(const SparseTable<double, std::int32_t>&, const Visits&, const DescentRule&,
                             Model&, Stop&);
template bool descend_sparse(const SparseTable<float, std::int32_t>&, const Visits&, const DescentRule&,
                             Model&, Stop&);
template bool descend_sparse(const SparseTable<double, Index>&, const Visits&, const DescentRule&, Model&,
                             Stop&);
template bool descend_sparse(const SparseTable<float, Index>&, const Visits&, const DescentRule&, Model&,
                             Stop&);

}  // namespace sixfold
