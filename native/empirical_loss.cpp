// The loss of a linear model over a table in one pass: sum_i weight_i loss(w.x_i + b, y_i).
//
// Products, losses and their sum are one loop, so X is read once and no score is stored. Chunks depend on the
// number of rows alone and are added in order: same result for any number of threads.
#include "empirical_loss.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "blas.hpp"

namespace sixfold {
namespace {

constexpr Index kChunkRows = 2048;
constexpr Index kMostChunks = 64;
constexpr Index kPollRows = 256;

template <class T>
double dot(const double* __restrict w, const T* __restrict x, Index d) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < d; ++j) sum += w[j] * static_cast<double>(x[j]);
  return sum;
}

}  // namespace

template <class T>
bool empirical_loss(const Table<T>& X, const double* y, Index targets, const double* weight, LossCode loss,
                    const double* w, const double* b, Index scores, double* total, Stop& stop) {
  const Index n = X.rows, d = X.columns, chunks = std::clamp<Index>(n / kChunkRows, 1, kMostChunks);
  std::vector<double> sums(static_cast<std::size_t>(chunks), 0.0);
  std::vector<double> score(static_cast<std::size_t>(chunks * scores));
  std::atomic<bool> stopped{false};
  with_loss(loss, [&]<class Loss>(Loss) {
#pragma omp parallel for schedule(dynamic) num_threads(static_cast<int>(std::min<Index>(threads(), chunks)))
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      double* s = score.data() + chunk * scores;
      double sum = 0.0;
      for (Index i = cut(n, chunks, chunk); i < cut(n, chunks, chunk + 1) && !stopped; ++i) {
        for (Index k = 0; k < scores; ++k) s[k] = b[k] + dot(w + k * d, X.row(i), d);
        sum += (weight == nullptr ? 1.0 : weight[i]) * row_loss<Loss>(s, y + i * targets, scores);
        if (i % kPollRows == 0 && omp_get_thread_num() == 0 && stop.now()) stopped = true;
      }
      sums[static_cast<std::size_t>(chunk)] = sum;
    }
    return true;
  });
  *total = 0.0;
  for (const double sum : sums) *total += sum;
  return !stopped;
}

template bool empirical_loss(const Table<double>&, const double*, Index, const double*, LossCode,
                             const double*, const double*, Index, double*, Stop&);
template bool empirical_loss(const Table<float>&, const double*, Index, const double*, LossCode,
                             const double*, const double*, Index, double*, Stop&);

}  // namespace sixfold
