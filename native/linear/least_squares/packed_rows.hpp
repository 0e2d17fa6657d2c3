// Blocks of rows packed for the Gram kernel: a table of any layout, shifted and weighted, as panels of
// columns.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/table.hpp"
#include "core/vector_math.hpp"
#include "linear/least_squares/gram_kernel.hpp"

namespace sixfold {

inline constexpr Index kBlockRows = 96;  // two panels of these fit into the L1 cache

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

// Row i of a packed block lies in `panels` pieces; score_i = theta.z_i.
inline void packed_scores(const double* packed, Index panels, Index rows, const double* theta,
                          double* score) {
  for (Index i = 0; i < rows; ++i) {
    Lanes sums[3] = {};
    const double* row = packed + i * kPanel;
    for (Index p = 0; p < panels; ++p, row += kBlockRows * kPanel)
      for (Index v = 0; v < 3; ++v) sums[v] += load(row + v * kLanes) * load(theta + p * kPanel + v * kLanes);
    score[i] = sum(sums[0] + sums[1] + sums[2]);
  }
}

// Adds the products of panels left (rows of c) with panels right (columns of c), lower triangle only.
inline void multiply(const double* left, Index left_from, Index left_to, const double* right,
                     Index right_from, Index right_to, Index rows, Index width, double* c, Index stride) {
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

// gram (width x width) = the sum of the lower triangles of `chunks` matrices, added in order, and mirrored.
// To be called by every thread of a parallel region, which share the work.
inline void add_partial_grams(const double* sums, Index chunks, Index stride, Index width, double* gram) {
  constexpr Index kMirror = 32;
#pragma omp for schedule(static)
  for (Index j = 0; j < width; ++j) {
    double* row = gram + j * width;
    for (Index i = j; i < width; ++i) row[i] = sums[j * stride + i];
    for (Index chunk = 1; chunk < chunks; ++chunk) {
      const double* more = sums + chunk * stride * stride + j * stride;
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

}  // namespace sixfold
