// Value, slope and curvature of a linear model's loss in one pass: all that a step of Newton's method needs.
//
//   value = sum_i weight_i loss(s_i),   slope = sum_i weight_i loss'(s_i) z_i,   gram = sum_i weight_i
//   loss''(s_i) z_i z_i'
//
// with z = (x - shift, 1) and s = theta.z. Rows are packed for the Gram kernel as in moments.cpp; scores,
// losses and slope are taken from the packed block, which is in the L2 cache, before it is scaled by the
// roots of the curvatures and multiplied with itself. They add little to the products
// (37 ms together at 200,000 x 100, 33 for the products alone), where a pass of their own would read X from
// memory again.
//
// Chunks depend on the size of the table alone and are added in order: same result for any number of threads.
#include "linear/smooth/newton_sweep.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/threads.hpp"
#include "linear/least_squares/packed_rows.hpp"
#include "linear/smooth/smooth_losses.hpp"

namespace sixfold {
namespace {

constexpr Index kChunkRows = 1024;
constexpr Index kMostChunks = 16;
constexpr Index kPartialEntries = 1 << 22;

// slope += sum_i factor_i z_i, and z_i *= root_i.
void add_slope_and_scale(double* packed, Index panels, Index rows, const double* factor, const double* root,
                         double* slope) {
  for (Index p = 0; p < panels; ++p) {
    double* row = packed + p * kBlockRows * kPanel;
    Lanes sums[3];
    for (Index v = 0; v < 3; ++v) sums[v] = load(slope + p * kPanel + v * kLanes);
    for (Index i = 0; i < rows; ++i, row += kPanel) {
      for (Index v = 0; v < 3; ++v) {
        const Lanes z = load(row + v * kLanes);
        sums[v] += factor[i] * z;
        store(row + v * kLanes, root[i] * z);
      }
    }
    for (Index v = 0; v < 3; ++v) store(slope + p * kPanel + v * kLanes, sums[v]);
  }
}

}  // namespace

template <class T>
bool newton_sweep(const Table<T>& X, LossCode loss, const double* theta, const double* shift,
                  const RowTerms& rows, double* value, double* slope, double* gram, Stop& stop) {
  const Index n = X.rows, width = X.columns + 1;
  const Table<T> nothing{X.data, n, 0, 0, 0};
  const Source<T> z{X, nothing, nullptr, shift, nullptr, width};
  const Index panels = (width + kPanel - 1) / kPanel, stride = panels * kPanel;
  const Index chunks =
      std::clamp<Index>(std::min(n / kChunkRows, kPartialEntries / (stride * stride)), 1, kMostChunks);
  const int team = team_size(chunks, n * width * (1.0 + width / 32.0));
  const AlignedArray<double> grams = aligned_zeros(chunks * stride * stride),
                             slopes = aligned_zeros(chunks * stride);
  const AlignedArray<double> buffers = aligned_zeros(team * panels * kBlockRows * kPanel),
                             padded = aligned_zeros(stride);
  std::copy_n(theta, width, padded.data());
  std::vector<double> values(static_cast<std::size_t>(chunks), 0.0);
  std::atomic<bool> stopped{stop.now()};

  with_smooth_loss(loss, [&]<class Loss>(Loss) {
#pragma omp parallel num_threads(team)
    {
      double* packed = buffers.data() + omp_get_thread_num() * panels * kBlockRows * kPanel;
      double score[kBlockRows], factor[kBlockRows], root[kBlockRows];
#pragma omp for schedule(dynamic)
      for (Index chunk = 0; chunk < chunks; ++chunk) {
        const Index end = cut(n, chunks, chunk + 1);
        for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += kBlockRows) {
          const Index count = std::min(kBlockRows, end - first);
          pack(z, first, first + count, Index{0}, panels, packed);
          packed_scores(packed, panels, count, padded.data(), score);
          if (rows.score != nullptr) std::copy_n(score, count, rows.score + first);
          values[static_cast<std::size_t>(chunk)] +=
              row_losses<Loss>(score, rows.y + first, rows.weight == nullptr ? nullptr : rows.weight + first,
                               count, factor, root);
          for (Index i = 0; i < count; ++i) root[i] = std::sqrt(root[i]);
          add_slope_and_scale(packed, panels, count, factor, root, slopes.data() + chunk * stride);
          multiply(packed, 0, panels, packed, 0, panels, count, width, grams.data() + chunk * stride * stride,
                   stride);
          if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
        }
      }
      add_partial_grams(grams.data(), chunks, stride, width, gram);
    }
  });
  *value = 0.0;
  std::fill_n(slope, width, 0.0);
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    *value += values[static_cast<std::size_t>(chunk)];
    for (Index j = 0; j < width; ++j) slope[j] += slopes.data()[chunk * stride + j];
  }
  return !stopped;
}

template bool newton_sweep(const Table<double>&, LossCode, const double*, const double*, const RowTerms&,
                           double*, double*, double*, Stop&);
template bool newton_sweep(const Table<float>&, LossCode, const double*, const double*, const RowTerms&,
                           double*, double*, double*, Stop&);

}  // namespace sixfold
