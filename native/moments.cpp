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
// Panels on one side of a task, so that their Gram matrix stays in the L2 cache.
constexpr Index kGroup = 240 / kPanel;
// Up to so many panels, the packed rows of all of them stay there and are packed once for all products.
constexpr Index kWhole = 800 / kPanel;
constexpr Index kChunkRows = 4096;  // a chunk shorter than this is not worth its own partial sum
constexpr Index kMostChunks = 16;
constexpr Index kMirror = 32;
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
};

// One whole panel of a table whose columns are contiguous: squares of kLanes rows and columns are turned in
// registers, so that reads and writes are both of whole vectors.
template <class T>
void pack_transposed(const Source<T>& z, Index first, Index last, Index column, double* out) {
  Index i = first;
  for (; i + kLanes <= last; i += kLanes) {
    for (Index part = 0; part < kPanel; part += kLanes) {
      Lanes square[kLanes];
      for (Index j = 0; j < kLanes; ++j)
        square[j] = load(z.X.data + (column + part + j) * z.X.column_stride + i) - z.shift[column + part + j];
      transpose(square);
      for (Index k = 0; k < kLanes; ++k)
        store(out + (i - first + k) * kPanel + part, square[k] - (z.row_shift ? z.row_shift[i + k] : 0.0));
    }
  }
  for (; i < last; ++i)
    for (Index j = column; j < column + kPanel; ++j)
      out[(i - first) * kPanel + j - column] = static_cast<double>(z.X.data[j * z.X.column_stride + i]) -
                                               z.shift[j] - (z.row_shift ? z.row_shift[i] : 0.0);
}

// Panels that lie within X, of a table whose rows are contiguous: row by row, as memory is read fastest.
template <class T>
void pack_rows(const Source<T>& z, Index first, Index last, Index from, Index to, double* out) {
  for (Index i = first; i < last; ++i) {
    const T* x = z.X.row(i);
    const double off = z.row_shift ? z.row_shift[i] : 0.0;
    double* row = out + (i - first) * kPanel;
    for (Index panel = from; panel < to; ++panel, row += kBlockRows * kPanel) {
      const T* part = x + panel * kPanel;
      const double* shift = z.shift + panel * kPanel;
      for (Index j = 0; j < kPanel; ++j) row[j] = static_cast<double>(part[j]) - shift[j] - off;
    }
  }
}

// A panel of the last columns of X, of y, the ones, and zeros to fill it up.
template <class T>
void pack_edge(const Source<T>& z, Index first, Index last, Index panel, double* out) {
  const Index begin = panel * kPanel, end = begin + kPanel;
  const Index x_end = std::clamp(z.X.columns, begin, end), y_end = std::clamp(z.width - 1, begin, end);
  for (Index i = first; i < last; ++i, out += kPanel) {
    const T* x = z.X.row(i);
    const T* y = z.Y.row(i) - z.X.columns * z.Y.column_stride;
    const double off = z.row_shift ? z.row_shift[i] : 0.0;
    for (Index j = begin; j < x_end; ++j)
      out[j - begin] = static_cast<double>(x[j * z.X.column_stride]) - z.shift[j] - off;
    for (Index j = x_end; j < y_end; ++j)
      out[j - begin] = static_cast<double>(y[j * z.Y.column_stride]) - z.shift[j];
    for (Index j = y_end; j < end; ++j) out[j - begin] = j == z.width - 1 ? 1.0 : 0.0;
  }
}

// Panels [from, to) of rows [first, last) of z, scaled by sqrt(weight).
template <class T>
void pack(const Source<T>& z, Index first, Index last, Index from, Index to, double* out) {
  const Index whole = std::clamp(z.X.columns / kPanel, from, to);
  const auto place = [&](Index panel) { return out + (panel - from) * kBlockRows * kPanel; };
  if (z.X.column_stride == 1) {
    pack_rows(z, first, last, from, whole, out);
  } else {
    for (Index panel = from; panel < whole; ++panel) {
      if (z.X.row_stride == 1)
        pack_transposed(z, first, last, panel * kPanel, place(panel));
      else
        pack_edge(z, first, last, panel, place(panel));
    }
  }
  for (Index panel = whole; panel < to; ++panel) pack_edge(z, first, last, panel, place(panel));
  if (z.weight == nullptr) return;
  for (Index panel = from; panel < to; ++panel) {
    double* row = place(panel);
    for (Index i = first; i < last; ++i, row += kPanel) {
      const double root = std::sqrt(z.weight[i]);
      for (Index j = 0; j < kPanel; ++j) row[j] *= root;
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
  const Index chunks =
      std::clamp<Index>(std::min(n / kChunkRows, kPartialEntries / (stride * stride)), 1, kMostChunks);
  const Index group = chunks > 1 && panels <= kWhole ? panels : kGroup;
  const Index groups = (panels + group - 1) / group, pairs = groups * (groups + 1) / 2;
  const int team = static_cast<int>(std::min<Index>(threads(), chunks * pairs));
  const Buffer sums = zeros(chunks * stride * stride);
  const Index buffer = group * kBlockRows * kPanel;
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
    for (Index from = 0; from < width; from += kMirror)  // in squares, so that both sides stay in the cache
      for (Index across = 0; across <= from; across += kMirror)
        for (Index i = from; i < std::min(width, from + kMirror); ++i)
          for (Index j = across; j < std::min(i, across + kMirror); ++j)
            gram[i * width + j] = gram[j * width + i];
  }
  return !stopped;
}

template bool moments(const Table<double>&, const Table<double>&, const double*, const double*, const double*,
                      double*, Stop&);
template bool moments(const Table<float>&, const Table<float>&, const double*, const double*, const double*,
                      double*, Stop&);

}  // namespace sixfold
