// Products with the columns of a dense table, for solvers that look at columns rather than rows.
//
// The shift (a column's mean, or its first value) is taken off every entry before it is multiplied: a column
// with a large mean loses no digits, and a constant column gives exact zeros. It costs nothing, since all
// three loops wait for memory or for BLAS.
//
// Tables are cut by their shape alone and partial sums are added in order: same result for any number of
// threads.
#include "linear/l1/columns.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/blas.hpp"
#include "core/threads.hpp"

namespace sixfold {
namespace {

constexpr Index kTileColumns = 512;  // 4 KB of sums, beside 4 rows of 4 KB, stay in the L1 cache
constexpr Index kChunkRows = 16384;  // a chunk of v stays in the L2 cache
constexpr Index kMostChunks = 16;
constexpr Index kPackedRows = 256;
constexpr Index kGramTile = 256;
constexpr Index kGramTasks = 8;
constexpr Index kPartialEntries = 1 << 22;  // 32 MB for all partial Gram matrices together

// Rows after one another: four at a time, so that a sum is loaded and stored once for four products.
template <class T>
void correlate_rows(const Table<T>& X, const double* shift, const double* v, Index first, Index last,
                    Index from, Index to, double* out) {
  const Index width = to - from;
  const double* s = shift + from;
  std::fill_n(out, width, 0.0);
  Index i = first;
  for (; i + 4 <= last; i += 4) {
    const T *a = X.row(i) + from, *b = X.row(i + 1) + from, *c = X.row(i + 2) + from,
            *d = X.row(i + 3) + from;
    const double va = v[i], vb = v[i + 1], vc = v[i + 2], vd = v[i + 3];
#pragma omp simd
    for (Index j = 0; j < width; ++j)
      out[j] += (va * (a[j] - s[j]) + vb * (b[j] - s[j])) + (vc * (c[j] - s[j]) + vd * (d[j] - s[j]));
  }
  for (; i < last; ++i) {
    const T* a = X.row(i) + from;
#pragma omp simd
    for (Index j = 0; j < width; ++j) out[j] += v[i] * (a[j] - s[j]);
  }
}

// Columns after one another: four at a time, so that v is loaded once for four products.
template <class T>
void correlate_columns(const Table<T>& X, const Index* chosen, const double* shift, const double* v,
                       Index first, Index last, Index from, Index to, double* out) {
  const auto column = [&](Index j) { return X.data + (chosen ? chosen[j] : j) * X.column_stride; };
  Index j = from;
  for (; j + 4 <= to; j += 4) {
    const T *a = column(j), *b = column(j + 1), *c = column(j + 2), *d = column(j + 3);
    const double sa = shift[j], sb = shift[j + 1], sc = shift[j + 2], sd = shift[j + 3];
    double ta = 0.0, tb = 0.0, tc = 0.0, td = 0.0;
#pragma omp simd reduction(+ : ta, tb, tc, td)
    for (Index i = first; i < last; ++i) {
      ta += v[i] * (a[i] - sa);
      tb += v[i] * (b[i] - sb);
      tc += v[i] * (c[i] - sc);
      td += v[i] * (d[i] - sd);
    }
    out[j - from] = ta, out[j - from + 1] = tb, out[j - from + 2] = tc, out[j - from + 3] = td;
  }
  for (; j < to; ++j) {
    const T* a = column(j);
    double t = 0.0;
#pragma omp simd reduction(+ : t)
    for (Index i = first; i < last; ++i) t += v[i] * (a[i] - shift[j]);
    out[j - from] = t;
  }
}

// The entries root_i,group_k (x_i,chosen_k - shift_k) of rows [first, last), in the memory order of X: row
// after row where columns are next to each other, else column after column.
template <class T>
void pack(const Table<T>& X, const RowRoots& roots, const Index* chosen, Index count, const double* shift,
          Index first, Index last, double* __restrict packed) {
  if (X.column_stride == 1) {
    for (Index i = first; i < last; ++i, packed += count) {
      const T* x = X.row(i);
      const double* root = roots.root + i * roots.groups;
      for (Index k = 0; k < count; ++k)
        packed[k] = root[roots.group[k]] * ((chosen[k] < 0 ? 1.0 : x[chosen[k]]) - shift[k]);
    }
    return;
  }
  const Index rows = last - first, groups = roots.groups;
  for (Index k = 0; k < count; ++k, packed += rows) {
    const double* root = roots.root + first * groups + roots.group[k];
    if (chosen[k] < 0) {
      for (Index i = 0; i < rows; ++i) packed[i] = root[i * groups];
      continue;
    }
    const T* x = X.data + first * X.row_stride + chosen[k] * X.column_stride;
    const double centre = shift[k];
    if (groups == 1) {
#pragma omp simd
      for (Index i = 0; i < rows; ++i) packed[i] = root[i] * (x[i] - centre);
    } else {
      for (Index i = 0; i < rows; ++i) packed[i] = root[i * groups] * (x[i] - centre);
    }
  }
}

}  // namespace

template <class T>
bool correlations(const Table<T>& X, const Index* chosen, Index columns, const double* shift, const double* v,
                  Index count, double* out, Stop& stop) {
  const Index n = X.rows, d = columns;
  const Index chunks = std::clamp<Index>(n / kChunkRows, 1, kMostChunks);
  const Index tiles = std::max<Index>((d + kTileColumns - 1) / kTileColumns, 1);
  std::vector<double> partial(static_cast<std::size_t>(chunks - 1) * count * d);
  std::atomic<bool> stopped{stop.now()};
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(team_size(chunks* tiles, 1.0 * n * d))
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    for (Index tile = 0; tile < tiles; ++tile) {
      if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
      if (stopped) continue;
      double* sum = chunk == 0 ? out : partial.data() + (chunk - 1) * count * d;
      const Index first = cut(n, chunks, chunk), last = cut(n, chunks, chunk + 1);
      const Index from = cut(d, tiles, tile), to = cut(d, tiles, tile + 1);
      for (Index k = 0; k < count; ++k) {
        if (!chosen && X.column_stride == 1)
          correlate_rows(X, shift, v + k * n, first, last, from, to, sum + k * d + from);
        else
          correlate_columns(X, chosen, shift, v + k * n, first, last, from, to, sum + k * d + from);
      }
    }
  }
  for (Index chunk = 1; chunk < chunks; ++chunk)
    for (Index j = 0; j < count * d; ++j) out[j] += partial[(chunk - 1) * count * d + j];
  return !stopped;
}

template <class T>
bool combination(const Table<T>& X, const Index* chosen, Index count, const double* shift, const double* w,
                 double* out, Stop& stop) {
  const Index n = X.rows, parts = (n + kPackedRows - 1) / kPackedRows;
  std::atomic<bool> stopped{stop.now()};
#pragma omp parallel for schedule(static) num_threads(team_size(parts, 1.0 * n * count))
  for (Index part = 0; part < parts; ++part) {
    if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
    if (stopped) continue;
    const Index first = cut(n, parts, part), last = cut(n, parts, part + 1);
    std::fill(out + first, out + last, 0.0);
    if (X.column_stride == 1) {
      for (Index i = first; i < last; ++i) {
        double sum = 0.0;
        for (Index k = 0; k < count; ++k) sum += w[k] * (X.row(i)[chosen[k]] - shift[k]);
        out[i] = sum;
      }
    } else {
      for (Index k = 0; k < count; ++k) {
        const T* x = X.data + chosen[k] * X.column_stride;
#pragma omp simd
        for (Index i = first; i < last; ++i) out[i] += w[k] * (x[i] - shift[k]);
      }
    }
  }
  return !stopped;
}

template <class T>
bool gram_rows(const Table<T>& X, const RowRoots& roots, const Index* chosen, Index old, Index count,
               const double* shift, double* gram, Stop& stop) {
  const Index n = X.rows, fresh = count - old, entries = fresh * count;
  const Index chunks = std::clamp<Index>(
      std::min(n / kPackedRows, kPartialEntries / std::max<Index>(entries, 1)), 1, kMostChunks);
  const Index tiles = std::max<Index>((fresh + kGramTile - 1) / kGramTile, 1);
  // Tiles in one group are multiplied from one packing; more groups than these leave threads nothing to win.
  const Index groups = std::min(tiles, (kGramTasks + chunks - 1) / chunks);
  const int team = blas::can_limit_threads() ? team_size(chunks * groups, n * entries / 16.0) : 1;
  std::vector<double> partial(static_cast<std::size_t>((chunks - 1) * entries), 0.0);
  std::vector<double> buffers(static_cast<std::size_t>(team * kPackedRows * count));
  std::fill_n(gram, entries, 0.0);
  std::atomic<bool> stopped{stop.now()};
  blas::SingleThreaded single;
  const bool by_rows = X.column_stride == 1;
  char left_form = by_rows ? 'N' : 'T', right_form = by_rows ? 'T' : 'N';
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(team)
  for (Index chunk = 0; chunk < chunks; ++chunk) {
    for (Index group = groups - 1; group >= 0; --group) {  // the longest first
      double* packed = buffers.data() + omp_get_thread_num() * kPackedRows * count;
      double* sum = chunk == 0 ? gram : partial.data() + (chunk - 1) * entries;
      const Index first_tile = cut(tiles, groups, group), last_tile = cut(tiles, groups, group + 1),
                  width = old + cut(fresh, tiles, last_tile), end = cut(n, chunks, chunk + 1);
      for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += kPackedRows) {
        const Index last = std::min(end, first + kPackedRows);
        pack(X, roots, chosen, width, shift, first, last, packed);
        for (Index tile = first_tile; tile < last_tile; ++tile) {
          const Index from = cut(fresh, tiles, tile), to = cut(fresh, tiles, tile + 1);
          int left = static_cast<int>(old + to), right = static_cast<int>(to - from);  // the rest by symmetry
          int rows = static_cast<int>(last - first), stride = static_cast<int>(count);
          int packed_stride = by_rows ? static_cast<int>(width) : rows;
          double one = 1.0;
          blas::dgemm(&left_form, &right_form, &left, &right, &rows, &one, packed, &packed_stride,
                      packed + (old + from) * (by_rows ? 1 : rows), &packed_stride, &one, sum + from * count,
                      &stride);
          if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
        }
      }
    }
  }
  for (Index chunk = 1; chunk < chunks; ++chunk)
    for (Index k = 0; k < entries; ++k) gram[k] += partial[(chunk - 1) * entries + k];
  for (Index k = 0; k < fresh; ++k)
    for (Index l = k + 1; l < fresh; ++l) gram[k * count + old + l] = gram[l * count + old + k];
  return !stopped;
}

template bool correlations(const Table<double>&, const Index*, Index, const double*, const double*, Index,
                           double*, Stop&);
template bool correlations(const Table<float>&, const Index*, Index, const double*, const double*, Index,
                           double*, Stop&);
template bool combination(const Table<double>&, const Index*, Index, const double*, const double*, double*,
                          Stop&);
template bool combination(const Table<float>&, const Index*, Index, const double*, const double*, double*,
                          Stop&);
template bool gram_rows(const Table<double>&, const RowRoots&, const Index*, Index, Index, const double*,
                        double*, Stop&);
template bool gram_rows(const Table<float>&, const RowRoots&, const Index*, Index, Index, const double*,
                        double*, Stop&);

}  // namespace sixfold
