// Second moments of a tall table in one pass: sum_i weight_i z_i z_i', z = (x - shift - row_shift, y - shift,
// 1).
//
// Rows are packed a block at a time into panels that stay in the L2 cache, with the shift (a rough mean)
// subtracted on the way, and the kernel multiplies the panels with each other; X is read once and never
// copied whole. The trailing 1 makes the sums and the weight sum part of the same product. OpenBLAS's syrk on
// the same blocks needs 1.5 times as long, since it packs what is packed already.
//
// Rows are cut into chunks and columns into groups of panels by the size of the table alone, and partial sums
// are added in order, so the result does not depend on the number of threads.
#include "moments.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "blas.hpp"
#include "gram_kernel.hpp"

namespace sixfold {
namespace {

constexpr Index kBlockRows = 96;  // two panels of these fit into the L1 cache
constexpr Index kGroup =
    240 / kPanel;                   // panels on one side of a task: their Gram matrix stays in the L2 cache
constexpr Index kChunkRows = 4096;  // a chunk shorter than this is not worth its own partial sum
constexpr Index kMostChunks = 16;
constexpr Index kPartialEntries = 1 << 22;  // 32 MB for all partial Gram matrices together

struct Free {
  void operator()(double* pointer) const { std::free(pointer); }
};
using Buffer = std::unique_ptr<double[], Free>;

// Zeros, aligned so that no vector straddles two cache lines.
Buffer zeros(Index size) {
  const std::size_t bytes =
      (static_cast<std::size_t>(std::max<Index>(size, 1)) * sizeof(double) + 63) / 64 * 64;
  auto* pointer = static_cast<double*>(std::aligned_alloc(64, bytes));
  if (pointer == nullptr) throw std::bad_alloc();
  std::fill_n(pointer, bytes / sizeof(double), 0.0);
  return Buffer(pointer);
}

template <class T>
struct Source {
  const Table<T>& X;
  const Table<T>& Y;
  const double* weight;
  const double* shift;
  const double* row_shift;
  Index width;  // of z

  double entry(Index i, Index j) const {
    if (j < X.columns)
      return static_cast<double>(X.row(i)[j * X.column_stride]) - shift[j] - (row_shift ? row_shift[i] : 0.0);
    if (j + 1 < width) return static_cast<double>(Y.row(i)[(j - X.columns) * Y.column_stride]) - shift[j];
    return j < width ? 1.0 : 0.0;
  }
};

// Panels [from, to) of rows [first, last) of z, scaled by sqrt(weight).
template <class T>
void pack(const Source<T>& z, Index first, Index last, Index from, Index to, double* out) {
  const Table<T>& X = z.X;
  for (Index panel = from; panel < to; ++panel, out += kBlockRows * kPanel) {
    const Index column = panel * kPanel;
    if (column + kPanel <= X.columns && X.column_stride == 1) {
      const double* shift = z.shift + column;
      for (Index i = first; i < last; ++i) {
        const T* x = X.row(i) + column;
        double* row = out + (i - first) * kPanel;
        const double off = z.row_shift ? z.row_shift[i] : 0.0;
        for (Index j = 0; j < kPanel; ++j) row[j] = static_cast<double>(x[j]) - shift[j] - off;
      }
    } else if (column + kPanel <= X.columns) {
      for (Index j = 0; j < kPanel; ++j) {
        const T* x = X.data + (column + j) * X.column_stride;
        for (Index i = first; i < last; ++i) {
          const double off = z.row_shift ? z.row_shift[i] : 0.0;
          out[(i - first) * kPanel + j] =
              static_cast<double>(x[i * X.row_stride]) - z.shift[column + j] - off;
        }
      }
    } else {
      for (Index i = first; i < last; ++i)
        for (Index j = 0; j < kPanel; ++j) out[(i - first) * kPanel + j] = z.entry(i, column + j);
    }
    if (z.weight != nullptr) {
      for (Index i = first; i < last; ++i) {
        const double root = std::sqrt(z.weight[i]);
        for (Index j = 0; j < kPanel; ++j) out[(i - first) * kPanel + j] *= root;
      }
    }
  }
}

// Adds the products of panels left (rows of c) with panels right (columns of c), lower triangle only.
void multiply(const double* left, Index left_from, Index left_to, const double* right, Index right_from,
              Index right_to, Index rows, Index width, double* c, Index stride) {
  for (Index q = right_from; q < right_to; ++q) {
    for (Index p = std::max(q, left_from); p < left_to; ++p) {
      const double* a = left + (p - left_from) * kBlockRows * kPanel;
      const double* b = right + (q - right_from) * kBlockRows * kPanel;
      const Index vectors = std::min<Index>(3, (width - p * kPanel + kLanes - 1) / kLanes);
      const Index strips = std::min<Index>(3, (width - q * kPanel + kStrip - 1) / kStrip);
      for (Index strip = 0; strip < strips; ++strip)
        add_vectors(a, b + strip * kStrip, rows, c + (q * kPanel + strip * kStrip) * stride + p * kPanel,
                    stride, p == q ? strip : 0, vectors);
    }
  }
}

}  // namespace

template <class T>
bool moments(const Table<T>& X, const Table<T>& Y, const double* weight, const double* shift,
             const double* row_shift, double* gram, Stop& stop) {
  const Index n = X.rows, width = X.columns + Y.columns + 1;
  const Source<T> z{X, Y, weight, shift, row_shift, width};
  const Index panels = (width + kPanel - 1) / kPanel, stride = panels * kPanel;
  const Index groups = (panels + kGroup - 1) / kGroup, pairs = groups * (groups + 1) / 2;
  const Index chunks =
      std::clamp<Index>(std::min(n / kChunkRows, kPartialEntries / (stride * stride)), 1, kMostChunks);
  const int team = static_cast<int>(std::min<Index>(threads(), chunks * pairs));
  const Buffer sums = zeros(chunks * stride * stride);
  const Index buffer = kGroup * kBlockRows * kPanel;
  const Buffer buffers = zeros(team * 2 * buffer);
  std::atomic<bool> stopped{false};

#pragma omp parallel num_threads(team)
  {
    double* left = buffers.get() + omp_get_thread_num() * 2 * buffer;
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
                   last - first, width, sums.get() + chunk * stride * stride, stride);
          if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
        }
      }
    }
#pragma omp for schedule(static)
    for (Index j = 0; j < width; ++j) {
      double* row = gram + j * width;
      for (Index i = j; i < width; ++i) row[i] = sums[j * stride + i];
      for (Index chunk = 1; chunk < chunks; ++chunk) {
        const double* more = sums.get() + chunk * stride * stride + j * stride;
        for (Index i = j; i < width; ++i) row[i] += more[i];
      }
    }
#pragma omp for schedule(static)
    for (Index i = 0; i < width; ++i)
      for (Index j = 0; j < i; ++j) gram[i * width + j] = gram[j * width + i];
  }
  return !stopped;
}

template bool moments(const Table<double>&, const Table<double>&, const double*, const double*, const double*,
                      double*, Stop&);
template bool moments(const Table<float>&, const Table<float>&, const double*, const double*, const double*,
                      double*, Stop&);

}  // namespace sixfold
