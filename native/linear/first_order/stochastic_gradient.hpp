#pragma once

#include <cmath>
#include <cstdint>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "linear/loss_functions.hpp"

namespace sixfold {

// How the step shrinks with the updates t = 0, 1, ... made before:
// eta0, eta0 / (1 + rate t) or eta0 / (t + 1)^rate.
enum class Schedule : int { constant, decay, invscaling };

struct DescentRule {
  LossCode loss;
  Schedule schedule;
  double eta0, rate;
  double l1, l2;  // alpha times the factors of |w|_1 and |w|^2 / 2
  bool positive, fit_intercept;
  Index batch_size;
  Index average_from;  // updates after which iterates are averaged; negative for never
};

inline double step_size(const DescentRule& rule, Index t) {
  if (rule.schedule == Schedule::decay) return rule.eta0 / (1.0 + rule.rate * static_cast<double>(t));
  if (rule.schedule == Schedule::invscaling)
    return rule.eta0 * std::pow(static_cast<double>(t + 1), -rule.rate);
  return rule.eta0;
}

// What is learnt. Dense rows keep w score by score (scores x columns), sparse rows column by column, so that
// the innermost loop is always contiguous. The averages are null where nothing is averaged.
struct Model {
  double *w, *b, *mean_w, *mean_b;
  Index* mistakes;  // one count a score, added to: visits with the score on the wrong side
  Index scores;
  Index updates;  // made so far, over all calls
};

// Several passes in one call: the rows of each come after those of the pass before, and so do its counts of
// mistakes. They end after one with at most `enough` mistakes over all scores; `made` are whole.
struct Epochs {
  Index count, enough;
  Index made;
};

// The rows to visit, in this order; y has `targets` entries a row; weight may be null.
struct RowOrder {
  const Index* row;
  Index count;
  const double* y;
  Index targets;
  const double* weight;
};

inline double weight_of(const RowOrder& order, Index i) {
  return order.weight == nullptr ? 1.0 : order.weight[i];
}

constexpr Index kPollOperations = 1 << 18;  // multiplications between two looks at the clock

// Another model over the same centred rows, whose loss is added up along the way; w is null where there is
// none.
struct ReferenceModel {
  const double *w, *b;
  double loss;
};

template <class T, class I>
struct SparseTable {
  const T* values;
  const I* columns;
  const I* starts;  // rows + 1 entries
  Index rows, width;
};

// Passes over the visits. center and factor (one entry a column) make column j count as x_j - center_j with
// its own step eta factor_j; both null for the plain update. Returns false if stopped before the
// last row of a pass. A reference model is for one pass.
template <class T>
bool descend_dense(const Table<T>& X, const RowOrder& order, const double* center, const double* factor,
                   const DescentRule& rule, Model& model, Epochs& epochs, ReferenceModel& reference,
                   Stop& stop);

// The same over sparse rows; an update costs the entries of its rows, whatever the number of columns.
template <class T, class I>
bool descend_sparse(const SparseTable<T, I>& X, const RowOrder& order, const DescentRule& rule, Model& model,
                    Epochs& epochs, Stop& stop);

}  // namespace sixfold
