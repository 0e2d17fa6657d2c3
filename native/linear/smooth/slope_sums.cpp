// One pass over the rows for all that bounds how far a model is from the minimum (sixfold.risk.slope_bound):
//
//   sum_i q_i loss(s_i),   sum_i q_i u_i z_i,   sum_i q_i z_i^2,   sum_i q_i s_i^2,   sum_i q_i u_i^2,   ...
//
// Rows are packed about the shift as in newton_sweep.cpp, of which this is the part without the products:
// 200,000 x 100 take 9 ms on one thread. c = b + shift.w is put together in doubled precision, so that scores
// are right to the spread of the columns, whatever their offset. Chunks depend on the size of the table alone
// and are added in order: same result for any number of threads.
#include "linear/smooth/slope_sums.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/double_double.hpp"
#include "core/threads.hpp"
#include "linear/least_squares/packed_rows.hpp"
#include "linear/smooth/newton_models.hpp"
#include "linear/smooth/newton_sweep.hpp"

namespace sixfold {
namespace {

constexpr Index kSumChunkRows = 1024;
constexpr Index kSumChunks = 16;
constexpr Index kOfWeights = 40;  // roundings in the sum of the weights, added up in pairs

// slope += sum_i factor_i z_i and lengths += sum_i share_i z_i^2, each from a sum over the block.
void add_slope_and_lengths(const double* packed, Index panels, Index rows, const double* factor,
                           const double* share, double* slope, double* lengths) {
  for (Index p = 0; p < panels; ++p) {
    const double* row = packed + p * kBlockRows * kPanel;
    Lanes sums[3] = {}, squares[3] = {};
    for (Index i = 0; i < rows; ++i, row += kPanel)
      for (Index v = 0; v < 3; ++v) {
        const Lanes z = load(row + v * kLanes);
        sums[v] += factor[i] * z;
        squares[v] += share[i] * (z * z);
      }
    for (Index v = 0; v < 3; ++v) {
      const Index at = p * kPanel + v * kLanes;
      store(slope + at, load(slope + at) + sums[v]);
      store(lengths + at, load(lengths + at) + squares[v]);
    }
  }
}

// What one chunk of the rows adds up to; slope and lengths are elsewhere.
struct ChunkSums {
  Lanes loss{};
  Moments moments;

  // Rows of a block, filled up with rows of weight 0; factor_i = q_i u_i.
  template <class Loss>
  void add_rows(const double* score, const double* share, const double* y, Index count, double* factor) {
    for (Index i = 0; i < count; i += kLanes) {
      const Lanes q = load(share + i), s = load(score + i);
      const LossTerms terms = Loss::at(s, load(y + i));
      loss += q * terms.value;
      store(factor + i, q * terms.slope);
      moments.add(q, s, terms.slope);
    }
  }
};

}  // namespace

template <class T>
bool slope_sums(const Table<T>& X, const double* y, const double* weight, double weight_sum, LossCode loss,
                const double* w, double b, const double* shift, double* slope, double* lengths, double* sums,
                Index* depth, Stop& stop) {
  const Index n = X.rows, d = X.columns, width = d + 1;
  const Table<T> nothing{X.data, n, 0, 0, 0};
  const Source<T> z{X, nothing, nullptr, shift, nullptr, width};
  const Index panels = (width + kPanel - 1) / kPanel, stride = panels * kPanel;
  const Index chunks = std::clamp<Index>(n / kSumChunkRows, 1, kSumChunks);
  const int team = team_size(chunks, static_cast<double>(n * width));
  const AlignedArray<double> totals = aligned_zeros(chunks * 2 * stride), theta = aligned_zeros(stride),
                             buffers = aligned_zeros(team * panels * kBlockRows * kPanel);
  DoubleDouble centred{b, 0.0};
  for (Index j = 0; j < d; ++j) centred.add_product(shift[j], w[j]);
  std::copy_n(w, d, theta.data());
  theta.data()[d] = centred.value();
  std::vector<ChunkSums> parts(static_cast<std::size_t>(chunks));
  std::atomic<bool> stopped{stop.now()};

  with_smooth_loss(loss, [&]<class Loss>(Loss) {
#pragma omp parallel num_threads(team)
    {
      double* packed = buffers.data() + omp_get_thread_num() * panels * kBlockRows * kPanel;
      double score[kBlockRows], factor[kBlockRows], share[kBlockRows], label[kBlockRows];
#pragma omp for schedule(dynamic)
      for (Index chunk = 0; chunk < chunks; ++chunk) {
        ChunkSums& part = parts[static_cast<std::size_t>(chunk)];
        double* total = totals.data() + chunk * 2 * stride;
        const Index end = cut(n, chunks, chunk + 1);
        for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += kBlockRows) {
          const Index count = std::min(kBlockRows, end - first);
          std::fill_n(score, kBlockRows, 0.0);
          std::fill_n(share, kBlockRows, 0.0);
          std::fill_n(label, kBlockRows, 1.0);
          for (Index i = 0; i < count; ++i)
            share[i] = (weight == nullptr ? 1.0 : weight[first + i]) / weight_sum;
          std::copy_n(y + first, count, label);
          pack(z, first, first + count, Index{0}, panels, packed);
          packed_scores(packed, panels, count, theta.data(), score);
          part.add_rows<Loss>(score, share, label, whole(count, kLanes), factor);
          add_slope_and_lengths(packed, panels, count, factor, share, total, total + stride);
          if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
        }
      }
    }
  });
  std::fill_n(slope, d, 0.0);
  std::fill_n(lengths, d, 0.0);
  ChunkSums all;
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    const double* total = totals.data() + chunk * 2 * stride;
    for (Index j = 0; j < d; ++j) slope[j] += total[j];
    for (Index j = 0; j < d; ++j) lengths[j] += total[stride + j];
    all.loss += parts[static_cast<std::size_t>(chunk)].loss;
    all.moments.add(parts[static_cast<std::size_t>(chunk)].moments);
  }
  all.moments.write(sums);
  sums[kLoss] = sum(all.loss);
  sums[kCentred] = centred.value();
  // Of a block's rows, of a chunk's blocks, of the chunks, and of lanes.
  const Index most = (n + chunks - 1) / chunks;
  *depth = std::min(n, kBlockRows) + most / kBlockRows + 1 + chunks + kLanes +
           (weight == nullptr ? 0 : kOfWeights);
  return !stopped;
}

template bool slope_sums(const Table<double>&, const double*, const double*, double, LossCode, const double*,
                         double, const double*, double*, double*, double*, Index*, Stop&);
template bool slope_sums(const Table<float>&, const double*, const double*, double, LossCode, const double*,
                         double, const double*, double*, double*, double*, Index*, Stop&);

}  // namespace sixfold
