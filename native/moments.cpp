// Second moments of a tall table in one pass: sum_i weight_i z_i z_i', z = (x - shift, y - shift, 1).
//
// Rows are packed a block at a time into a buffer that stays in the L2 cache, with the shift (a rough mean)
// subtracted on the way, and BLAS multiplies the buffer with itself; X is read once and never copied whole.
// The trailing 1 makes the sums and the weight sum part of the same product.
//
// Rows are cut into chunks and columns into tiles by the size of the table alone, and partial sums are added
// in order, so the result does not depend on the number of threads.
#include "moments.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "blas.hpp"

namespace sixfold {
namespace {

constexpr Index kBlockRows = 256;
constexpr Index kTile = 384;        // columns of one tile of the Gram matrix
constexpr Index kChunkRows = 4096;  // a chunk shorter than this is not worth its own partial sum
constexpr Index kMostChunks = 16;
constexpr Index kPartialEntries = 1 << 22;  // 32 MB for all partial Gram matrices together

// Columns [from, to) of rows [first, last) of z, scaled by sqrt(weight), row after row.
template <class T>
void pack(const Table<T>& X, const Table<T>& Y, const double* weight, const double* shift,
          const double* row_shift, Index first, Index last, Index from, Index to, double* out) {
  const Index d = X.columns, dt = d + Y.columns, width = to - from;
  const Index x_end = std::min(to, d), y_begin = std::max(from, d), y_end = std::min(to, dt);
  if (X.column_stride == 1 || X.columns == 1) {
    for (Index i = first; i < last; ++i) {
      const T* x = X.row(i);
      double* row = out + (i - first) * width;
      for (Index j = from; j < x_end; ++j) row[j - from] = static_cast<double>(x[j]) - shift[j];
    }
  } else {
    for (Index j = from; j < x_end; ++j) {
      const T* x = X.data + j * X.column_stride;
      for (Index i = first; i < last; ++i)
        out[(i - first) * width + j - from] = static_cast<double>(x[i * X.row_stride]) - shift[j];
    }
  }
  for (Index i = first; i < last; ++i) {
    double* row = out + (i - first) * width;
    for (Index j = y_begin; j < y_end; ++j)
      row[j - from] = static_cast<double>(Y.row(i)[(j - d) * Y.column_stride]) - shift[j];
    if (to > dt) row[dt - from] = 1.0;
    if (row_shift != nullptr) {
      for (Index j = from; j < x_end; ++j) row[j - from] -= row_shift[i];
    }
    if (weight != nullptr) {
      const double root = std::sqrt(weight[i]);
      for (Index j = 0; j < width; ++j) row[j] *= root;
    }
  }
}

// c (wa x wb, column-major) += a' b for row-packed a (rows x wa) and b (rows x wb); only one triangle if a is
// b.
void multiply(double* a, Index wa, double* b, Index wb, Index rows, double* c, Index stride) {
  char upper = 'U', plain = 'N', transposed = 'T';
  int m = static_cast<int>(wa), n = static_cast<int>(wb), k = static_cast<int>(rows),
      ldc = static_cast<int>(stride);
  double one = 1.0;
  if (a == b)
    blas::dsyrk(&upper, &plain, &m, &k, &one, a, &m, &one, c, &ldc);
  else
    blas::dgemm(&plain, &transposed, &m, &n, &k, &one, a, &m, b, &n, &one, c, &ldc);
}

}  // namespace

template <class T>
bool moments(const Table<T>& X, const Table<T>& Y, const double* weight, const double* shift,
             const double* row_shift, double* gram, Stop& stop) {
  const Index n = X.rows, p = X.columns + Y.columns + 1;
  const Index tiles = (p + kTile - 1) / kTile, pairs = tiles * (tiles + 1) / 2;
  const Index chunks =
      std::clamp<Index>(std::min({n / kChunkRows, kMostChunks, kPartialEntries / (p * p)}), 1, kMostChunks);
  std::vector<double> partial(chunks > 1 ? (chunks - 1) * p * p : 0, 0.0);
  std::fill_n(gram, p * p, 0.0);
  const Index width = (p + tiles - 1) / tiles;
  const int team = static_cast<int>(std::min<Index>(threads(), chunks * pairs));
  std::vector<double> buffers(static_cast<std::size_t>(team) * 2 * kBlockRows * width);
  std::atomic<bool> stopped{false};
  blas::SingleThreaded single;

#pragma omp parallel num_threads(team)
  {
    double* a = buffers.data() + static_cast<std::size_t>(omp_get_thread_num()) * 2 * kBlockRows * width;
    double* b = a + kBlockRows * width;
#pragma omp for collapse(2) schedule(dynamic)
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      for (Index pair = 0; pair < pairs; ++pair) {
        Index right = 0;
        while ((right + 1) * (right + 2) / 2 <= pair) ++right;
        const Index left = pair - right * (right + 1) / 2;
        const Index left_from = left * width, left_to = std::min(p, left_from + width);
        const Index right_from = right * width, right_to = std::min(p, right_from + width);
        double* sum = chunk == 0 ? gram : partial.data() + (chunk - 1) * p * p;
        const Index end = cut(n, chunks, chunk + 1);
        for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += kBlockRows) {
          const Index last = std::min(end, first + kBlockRows);
          pack(X, Y, weight, shift, row_shift, first, last, left_from, left_to, a);
          if (left != right) pack(X, Y, weight, shift, row_shift, first, last, right_from, right_to, b);
          multiply(a, left_to - left_from, left == right ? a : b, right_to - right_from, last - first,
                   sum + right_from * p + left_from, p);
          if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
        }
      }
    }
#pragma omp for schedule(static)
    for (Index k = 0; k < p; ++k) {  // column k of the upper triangle
      for (Index chunk = 1; chunk < chunks; ++chunk) {
        const double* sum = partial.data() + (chunk - 1) * p * p + k * p;
        for (Index j = 0; j <= k; ++j) gram[k * p + j] += sum[j];
      }
    }
#pragma omp for schedule(static)
    for (Index j = 0; j < p; ++j)
      for (Index k = j + 1; k < p; ++k) gram[j * p + k] = gram[k * p + j];
  }
  return !stopped;
}

template bool moments(const Table<double>&, const Table<double>&, const double*, const double*, const double*,
                      double*, Stop&);
template bool moments(const Table<float>&, const Table<float>&, const double*, const double*, const double*,
                      double*, Stop&);

}  // namespace sixfold
