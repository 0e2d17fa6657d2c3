// Products, losses and their sum are one loop, so X is read once and no score is stored.
#include "linear/first_order/empirical_loss.hpp"

#include <omp.h>

#include <algorithm>

#include "core/threads.hpp"
#include "linear/first_order/column_sums.hpp"

namespace sixfold {
namespace {

constexpr Index kChunkRows = 2048;
constexpr Index kMostChunks = 64;
constexpr Index kPollRows = 256;

}  // namespace

template <class T>
LossSum<T>::LossSum(const Table<T>& X, const double* y, Index targets, const double* weight, LossCode loss,
                    const double* w, const double* b, Index scores)
    : X_(X),
      y_(y),
      targets_(targets),
      weight_(weight),
      loss_(loss),
      w_(w),
      b_(b),
      scores_(scores),
      sums_(static_cast<std::size_t>(std::clamp<Index>(X.rows / kChunkRows, 1, kMostChunks)), 0.0) {}

template <class T>
template <class Loss>
double LossSum<T>::chunk_loss(Index chunk, double* score, Stop* stop) {
  const Index begin = cut(X_.rows, chunks(), chunk), end = cut(X_.rows, chunks(), chunk + 1);
  const Index early = rows_ahead(X_), d = X_.columns;
  double sum = 0.0;
  for (Index i = begin; i < end && !cancelled_; ++i) {
    const T *x = X_.row(i), *ahead = X_.row(std::min(i + early, end - 1));
    for (Index k = 0; k < scores_; ++k) {
      const double* w = w_ + k * d;
      score[k] = b_[k] + sum_columns(d, ahead, [=](Index j) { return w[j] * static_cast<double>(x[j]); });
      ahead = x;  // asked for once
    }
    sum += (weight_ == nullptr ? 1.0 : weight_[i]) * row_loss<Loss>(score, y_ + i * targets_, scores_);
    if (stop != nullptr && i % kPollRows == 0 && stop->now()) cancelled_ = true;
  }
  return sum;
}

template <class T>
void LossSum<T>::work(Stop* stop) {
  with_loss(loss_, [&]<class Loss>(Loss) {
    std::vector<double> score(static_cast<std::size_t>(scores_));
    for (Index chunk = next_++; chunk < chunks() && !cancelled_; chunk = next_++)
      sums_[static_cast<std::size_t>(chunk)] = chunk_loss<Loss>(chunk, score.data(), stop);
    return true;
  });
}

template <class T>
double LossSum<T>::total() const {
  double total = 0.0;
  for (const double sum : sums_) total += sum;
  return total;
}

template <class T>
bool empirical_loss(const Table<T>& X, const double* y, Index targets, const double* weight, LossCode loss,
                    const double* w, const double* b, Index scores, double* total, Stop& stop) {
  if (stop.now()) return false;
  LossSum<T> sum(X, y, targets, weight, loss, w, b, scores);
#pragma omp parallel num_threads(team_size(sum.chunks(), 1.0 * X.rows * X.columns * scores))
  sum.work(omp_get_thread_num() == 0 ? &stop : nullptr);
  *total = sum.total();
  return !sum.cancelled();
}

template class LossSum<double>;
template class LossSum<float>;
template bool empirical_loss(const Table<double>&, const double*, Index, const double*, LossCode,
                             const double*, const double*, Index, double*, Stop&);
template bool empirical_loss(const Table<float>&, const double*, Index, const double*, LossCode,
                             const double*, const double*, Index, double*, Stop&);

}  // namespace sixfold
