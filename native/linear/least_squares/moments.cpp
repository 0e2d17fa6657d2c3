// Second moments of a tall table in one pass: sum_i weight_i z_i z_i', z = (x - shift - row_shift, y - shift,
// 1).
//
// Rows are packed a block at a time into panels that stay in the L2 cache, with the shift (a rough mean)
// subtracted on the way, and the kernel multiplies the panels with each other; X is read once and never
// copied whole. The trailing 1 makes the sums and the weight sum part of the same product. OpenBLAS's syrk on
// the same blocks needs 1.3 times as long, since it packs what is packed already.
//
// Rows are cut into chunks and columns into groups of panels by the size of the table alone, and partial sums
// are added in order, so the result does not depend on the number of threads.
#include "linear/least_squares/moments.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>

#include "core/aligned_memory.hpp"
#include "core/threads.hpp"
#include "linear/least_squares/packed_rows.hpp"

namespace sixfold {
namespace {

// Panels on one side of a task, so that their Gram matrix stays in the L2 cache.
constexpr Index kGroup = 240 / kPanel;
// Up to so many panels, the packed rows of all of them stay there and are packed once for all products.
constexpr Index kWhole = 800 / kPanel;
constexpr Index kChunkRows = 4096;  // a chunk shorter than this is not worth its own partial sum
constexpr Index kMostChunks = 16;
constexpr Index kPartialEntries = 1 << 22;  // 32 MB for all partial Gram matrices together

}  // namespace

template <class T>
bool moments(const Table<T>& X, const Table<T>& Y, const double* weight, const double* shift,
             const double* row_shift, double* gram, Stop& stop) {
  const Index n = X.rows, width = X.columns + Y.columns + 1;
  const Source<T> z{X, Y, weight, shift, row_shift, width};
  const Index panels = (width + kPanel - 1) / kPanel, stride = panels * kPanel;
  const Index chunks =
      std::clamp<Index>(std::min(n / kChunkRows, kPartialEntries / (stride * stride)), 1, kMostChunks);
  const Index group = chunks > 1 && panels <= kWhole ? panels : kGroup;
  const Index groups = (panels + group - 1) / group, pairs = groups * (groups + 1) / 2;
  const int team = static_cast<int>(std::min<Index>(threads(), chunks * pairs));
  const AlignedArray<double> sums = aligned_zeros(chunks * stride * stride);
  const Index buffer = group * kBlockRows * kPanel;
  const AlignedArray<double> buffers = aligned_zeros(team * 2 * buffer);
  std::atomic<bool> stopped{stop.now()};

#pragma omp parallel num_threads(team)
  {
    double* left = buffers.data() + omp_get_thread_num() * 2 * buffer;
    double* right = left + buffer;
#pragma omp for collapse(2) schedule(dynamic)
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      for (Index pair = 0; pair < pairs; ++pair) {
        Index down = 0;  // the group on the left; the group on the right comes no later
        while ((down + 1) * (down + 2) / 2 <= pair) ++down;
        const Index across = pair - down * (down + 1) / 2;
        const Index left_from = cut(panels, groups, down), left_to = cut(panels, groups, down + 1);
        const Index right_from = cut(panels, groups, across), right_to = cut(panels, groups, across + 1);
        const Index end = cut(n, chunks, chunk + 1);
        for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += kBlockRows) {
          const Index last = std::min(end, first + kBlockRows);
          pack(z, first, last, left_from, left_to, left);
          if (down != across) pack(z, first, last, right_from, right_to, right);
          multiply(left, left_from, left_to, down == across ? left : right, right_from, right_to,
                   last - first, width, sums.data() + chunk * stride * stride, stride);
          if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
        }
      }
    }
    add_partial_grams(sums.data(), chunks, stride, width, gram);
  }
  return !stopped;
}

template bool moments(const Table<double>&, const Table<double>&, const double*, const double*, const double*,
                      double*, Stop&);
template bool moments(const Table<float>&, const Table<float>&, const double*, const double*, const double*,
                      double*, Stop&);

}  // namespace sixfold
