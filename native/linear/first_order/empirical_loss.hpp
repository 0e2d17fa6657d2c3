// The loss of a linear model over a table in one pass: sum_i weight_i loss(w.x_i + b, y_i).
#pragma once

#include <atomic>
#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "linear/loss_functions.hpp"

namespace sixfold {

// A sum that any number of threads may work at, each taking chunk after chunk. Chunks depend on the number of
// rows alone and are added in order: same result whoever took them.
//
// Losses are added over scores; w is scores x columns, y rows x targets, weight may be null, and the columns
// of X must be next to each other.
template <class T>
class LossSum {
 public:
  LossSum(const Table<T>& X, const double* y, Index targets, const double* weight, LossCode loss,
          const double* w, const double* b, Index scores);

  Index chunks() const { return static_cast<Index>(sums_.size()); }

  // Works until no chunk is left, or cancel() is called; stop, which may be null, is polled and cancels.
  void work(Stop* stop);
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

  // After all threads have returned from work().
  double total() const;

 private:
  template <class Loss>
  double chunk_loss(Index chunk, double* score, Stop* stop);

  const Table<T>& X_;
  const double* y_;
  Index targets_;
  const double* weight_;
  LossCode loss_;
  const double *w_, *b_;
  Index scores_;
  std::vector<double> sums_;
  std::atomic<Index> next_{0};
  std::atomic<bool> cancelled_{false};
};

// total = the sum over all rows. Returns false if stopped, and total is then worthless.
template <class T>
bool empirical_loss(const Table<T>& X, const double* y, Index targets, const double* weight, LossCode loss,
                    const double* w, const double* b, Index scores, double* total, Stop& stop);

}  // namespace sixfold
