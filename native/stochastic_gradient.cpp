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

#include <algorithm>
#include <cmath>
#include <vector>

#include "lazy_weights.hpp"

namespace sixfold {
namespace {

constexpr Index kPollOperations = 1 << 18;  // multiplications between two looks at the clock
constexpr Index kPrefetchRows = 16;         // rows ahead
constexpr Index kPrefetchBytes = 2048;      // of each such row; the hardware goes on from there

double step_size(const DescentRule& rule, Index t) {
  if (rule.schedule == Schedule::decay) return rule.eta0 / (1.0 + rule.rate * static_cast<double>(t));
  if (rule.schedule == Schedule::invscaling)
    return rule.eta0 * std::pow(static_cast<double>(t + 1), -rule.rate);
  return rule.eta0;
}

// -- dense rows -------------------------------------------------------------------------------------------

struct Step {
  double gradient;  // eta times the derivative
  double l1, l2;    // eta times the penalty factors
};

enum class Shrink { none, l2, all };

template <class T, bool scaled>
double dot(const double* __restrict w, const T* __restrict x, const double* __restrict center, Index d) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < d; ++j) sum += w[j] * (static_cast<double>(x[j]) - (scaled ? center[j] : 0.0));
  return sum;
}

// Updates w with row x and returns its product with the row to come.
template <class T, bool scaled, Shrink shrink, bool positive>
double update_and_dot(double* __restrict w, const T* __restrict x, const T* __restrict next,
                      const double* __restrict center, const double* __restrict factor, Step step, Index d) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < d; ++j) {
    const double middle = scaled ? center[j] : 0.0, f = scaled ? factor[j] : 1.0;
    double v = w[j];
    if constexpr (shrink != Shrink::none) v *= std::max(0.0, 1.0 - step.l2 * f);
    v -= step.gradient * f * (static_cast<double>(x[j]) - middle);
    if constexpr (shrink == Shrink::all) {
      // max(v - t, 0) + min(v + t, 0) is the soft threshold without a branch.
      const double t = step.l1 * f, above = std::max(v - t, 0.0), below = std::min(v + t, 0.0);
      v = positive ? above : above + below;
    }
    w[j] = v;
    sum += v * (static_cast<double>(next[j]) - middle);
  }
  return sum;
}

// The same for one row of a batch, whose shrinkage is done once for all its rows.
template <class T, bool scaled>
void add_row(double* __restrict w, const T* __restrict x, const double* __restrict center,
             const double* __restrict factor, double gradient, Index d) {
#pragma omp simd
  for (Index j = 0; j < d; ++j)
    w[j] -=
        gradient * (scaled ? factor[j] * (static_cast<double>(x[j]) - center[j]) : static_cast<double>(x[j]));
}

void average(double* __restrict mean, const double* __restrict value, double share, Index count) {
#pragma omp simd
  for (Index j = 0; j < count; ++j) mean[j] += share * (value[j] - mean[j]);
}

// The loops for one kind of table and penalty, picked once before the first row.
template <class T>
struct Kernels {
  double (*dot)(const double*, const T*, const double*, Index);
  double (*update_and_dot)(double*, const T*, const T*, const double*, const double*, Step, Index);
  void (*add_row)(double*, const T*, const double*, const double*, double, Index);
  bool shrinks;
};

template <class T, bool scaled>
Kernels<T> pick(const DescentRule& rule) {
  Kernels<T> kernels{dot<T, scaled>, update_and_dot<T, scaled, Shrink::none, false>, add_row<T, scaled>,
                     true};
  if (rule.positive)
    kernels.update_and_dot = update_and_dot<T, scaled, Shrink::all, true>;
  else if (rule.l1 > 0.0)
    kernels.update_and_dot = update_and_dot<T, scaled, Shrink::all, false>;
  else if (rule.l2 > 0.0)
    kernels.update_and_dot = update_and_dot<T, scaled, Shrink::l2, false>;
  else
    kernels.shrinks = false;
  return kernels;
}

// Rows as contiguous memory: where columns are not next to each other, the row is copied into a slot.
template <class T>
class Rows {
 public:
  Rows(const Table<T>& X, Index slots)
      : X_(X),
        packed_(X.column_stride != 1 && X.columns > 1),
        buffer_(packed_ ? static_cast<std::size_t>(slots * X.columns) : 0) {}

  const T* get(Index i, Index slot) {
    const T* row = X_.row(i);
    if (!packed_) return row;
    T* copy = buffer_.data() + slot * X_.columns;
    for (Index j = 0; j < X_.columns; ++j) copy[j] = row[j * X_.column_stride];
    return copy;
  }

  void prefetch(Index i) const {
    if (packed_) return;
    const char* row = reinterpret_cast<const char*>(X_.row(i));
    const Index bytes = std::min<Index>(X_.columns * static_cast<Index>(sizeof(T)), kPrefetchBytes);
    for (Index at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
  }

 private:
  const Table<T>& X_;
  bool packed_;
  std::vector<T> buffer_;
};

double weight_of(const Visits& visits, Index i) { return visits.weight == nullptr ? 1.0 : visits.weight[i]; }

void average_model(const DescentRule& rule, Model& model, Index columns) {
  if (rule.average_from < 0 || model.updates <= rule.average_from) return;
  const double share = 1.0 / static_cast<double>(model.updates - rule.average_from);
  average(model.mean_w, model.w, share, columns * model.scores);
  average(model.mean_b, model.b, share, model.scores);
}

template <class T, class Loss>
bool dense_rows(const Table<T>& X, const Visits& visits, const double* center, const double* factor,
                const DescentRule& rule, Model& model, Stop& stop) {
  const Kernels<T> kernels = center == nullptr ? pick<T, false>(rule) : pick<T, true>(rule);
  const Index d = X.columns, scores = model.scores, poll = kPollOperations / (d * scores + 16) + 1;
  Index until_poll = poll;
  Rows<T> rows(X, 2);
  std::vector<double> score(static_cast<std::size_t>(scores)), g(static_cast<std::size_t>(scores));
  const T* x = rows.get(visits.order[0], 0);
  for (Index k = 0; k < scores; ++k) score[k] = kernels.dot(model.w + k * d, x, center, d);
  for (Index at = 0; at < visits.count; ++at) {
    const Index i = visits.order[at];
    const T* next = rows.get(visits.order[std::min(at + 1, visits.count - 1)], (at + 1) % 2);
    rows.prefetch(visits.order[std::min(at + kPrefetchRows, visits.count - 1)]);
    for (Index k = 0; k < scores; ++k) score[k] += model.b[k];
    gradients<Loss>(score.data(), visits.y + i * visits.targets, scores, g.data());
    const double eta = step_size(rule, model.updates), scaled_eta = eta * weight_of(visits, i);
    for (Index k = 0; k < scores; ++k) {
      const Step step{scaled_eta * g[k], eta * rule.l1, eta * rule.l2};
      double* w = model.w + k * d;
      score[k] = step.gradient == 0.0 && !kernels.shrinks
                     ? kernels.dot(w, next, center, d)
                     : kernels.update_and_dot(w, x, next, center, factor, step, d);
      if (rule.fit_intercept) model.b[k] -= step.gradient;
    }
    ++model.updates;
    average_model(rule, model, d);
    x = next;
    if (--until_poll == 0) {
      until_poll = poll;
      if (stop.now()) return at + 1 == visits.count;
    }
  }
  return true;
}

void shrink_all(const DescentRule& rule, double eta, const double* factor, Model& model, Index d, bool l2) {
  for (Index k = 0; k < model.scores; ++k) {
    double* w = model.w + k * d;
    for (Index j = 0; j < d; ++j) {
      const double step = eta * (factor == nullptr ? 1.0 : factor[j]);
      w[j] = l2 ? w[j] * std::max(0.0, 1.0 - step * rule.l2) : soft(w[j], step * rule.l1, rule.positive);
    }
  }
}

template <class T, class Loss>
bool dense_batches(const Table<T>& X, const Visits& visits, const double* center, const double* factor,
                   const DescentRule& rule, Model& model, Stop& stop) {
  const Kernels<T> kernels = center == nullptr ? pick<T, false>(rule) : pick<T, true>(rule);
  const Index d = X.columns, scores = model.scores;
  const Index poll = kPollOperations / ((d * scores + 16) * rule.batch_size) + 1;
  Index until_poll = poll;
  Rows<T> rows(X, 1);
  std::vector<double> score(static_cast<std::size_t>(scores));
  std::vector<double> g(static_cast<std::size_t>(scores * std::min(rule.batch_size, visits.count)));
  for (Index first = 0; first < visits.count; first += rule.batch_size) {
    const Index size = std::min(rule.batch_size, visits.count - first);
    const double eta = step_size(rule, model.updates), share = eta / static_cast<double>(size);
    for (Index r = 0; r < size; ++r) {
      const Index i = visits.order[first + r];
      rows.prefetch(visits.order[std::min(first + r + kPrefetchRows, visits.count - 1)]);
      const T* x = rows.get(i, 0);
      for (Index k = 0; k < scores; ++k) score[k] = kernels.dot(model.w + k * d, x, center, d) + model.b[k];
      gradients<Loss>(score.data(), visits.y + i * visits.targets, scores, g.data() + r * scores);
      for (Index k = 0; k < scores; ++k) g[r * scores + k] *= share * weight_of(visits, i);
    }
    if (rule.l2 > 0.0) shrink_all(rule, eta, factor, model, d, true);
    for (Index r = 0; r < size; ++r) {
      const T* x = rows.get(visits.order[first + r], 0);
      for (Index k = 0; k < scores; ++k) {
        const double step = g[r * scores + k];
        if (step != 0.0) kernels.add_row(model.w + k * d, x, center, factor, step, d);
        if (rule.fit_intercept) model.b[k] -= step;
      }
    }
    if (rule.l1 > 0.0 || rule.positive) shrink_all(rule, eta, factor, model, d, false);
    ++model.updates;
    average_model(rule, model, d);
    if (--until_poll == 0) {
      until_poll = poll;
      if (stop.now()) return first + size == visits.count;
    }
  }
  return true;
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
    return rule.batch_size == 1 ? dense_rows<T, Loss>(X, visits, center, factor, rule, model, stop)
                                : dense_batches<T, Loss>(X, visits, center, factor, rule, model, stop);
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
