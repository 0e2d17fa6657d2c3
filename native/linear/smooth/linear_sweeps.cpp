// One pass over the rows of a linear model: scores, what the loss makes of them, and their sum over the rows.
//
//   loss       s_i = w.x_i + b,   value = sum_i weight_i loss(s_i, y_i),   slope = sum_i weight_i loss'(s_i)
//   z_i curvature  product = sum_i h_i (v.z_i) z_i                             z = (x, 1)
//
// Rows are taken a block at a time, small enough that the second product with them finds them in the cache,
// so X comes from memory once. Chunks depend on the size of the table alone and are added in order: same
// result for any number of threads.
#include "linear/smooth/linear_sweeps.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/threads.hpp"
#include "linear/smooth/smooth_losses.hpp"

namespace sixfold {
namespace {

constexpr Index kMostChunks = 64;
constexpr Index kChunkValues = 1 << 17;  // values of X that are worth a partial sum of their own
constexpr Index kBlockBytes = 1 << 16;   // of rows that are read twice, next to each other
constexpr Index kColumnBytes = 1 << 19;  // the same where columns are contiguous: longer runs, from the L2
constexpr Index kMostBlockRows = 4096;

// Rows next to each other, or columns: the two loops differ in which of them is the inner one.
template <class T>
struct DenseRows {
  const Table<T>& X;

  Index rows() const { return X.rows; }
  Index width() const { return X.columns; }
  bool by_row() const { return X.column_stride == 1 || X.columns == 1; }
  Index values() const { return X.rows * X.columns; }
  // Partial sums take a 16th of X at most.
  Index most_chunks() const { return X.rows / 16; }
  Index block_rows() const {
    const Index bytes = std::max<Index>(X.columns * static_cast<Index>(sizeof(T)), 1);
    return by_row() ? std::clamp<Index>(kBlockBytes / bytes, 1, 256)
                    : std::clamp<Index>(kColumnBytes / bytes, 64, kMostBlockRows);
  }

  void scores(Index first, Index count, const double* __restrict w, double b, double* __restrict s) const {
    const Index d = X.columns;
    if (by_row()) {
      for (Index i = 0; i < count; ++i) {
        const T* __restrict x = X.row(first + i);
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (Index j = 0; j < d; ++j) sum += w[j] * static_cast<double>(x[j]);
        s[i] = b + sum;
      }
      return;
    }
    std::fill_n(s, count, b);
    for (Index j = 0; j < d; ++j) {
      const T* __restrict x = X.row(first) + j * X.column_stride;
      const double factor = w[j];
      if (X.row_stride == 1) {
#pragma omp simd
        for (Index i = 0; i < count; ++i) s[i] += factor * static_cast<double>(x[i]);
      } else {
        for (Index i = 0; i < count; ++i) s[i] += factor * static_cast<double>(x[i * X.row_stride]);
      }
    }
  }

  void add(Index first, Index count, const double* __restrict r, double* __restrict slope) const {
    const Index d = X.columns;
    if (by_row()) {
      for (Index i = 0; i < count; ++i) {
        const T* __restrict x = X.row(first + i);
        const double factor = r[i];
#pragma omp simd
        for (Index j = 0; j < d; ++j) slope[j] += factor * static_cast<double>(x[j]);
      }
      return;
    }
    for (Index j = 0; j < d; ++j) {
      const T* __restrict x = X.row(first) + j * X.column_stride;
      double sum = 0.0;
      if (X.row_stride == 1) {
#pragma omp simd reduction(+ : sum)
        for (Index i = 0; i < count; ++i) sum += r[i] * static_cast<double>(x[i]);
      } else {
        for (Index i = 0; i < count; ++i) sum += r[i] * static_cast<double>(x[i * X.row_stride]);
      }
      slope[j] += sum;
    }
  }

  void add_squares(Index first, Index count, const double* weight, const double* shift, double* sums) const {
    for (Index j = 0; j < X.columns && !by_row(); ++j) {
      const T* x = X.row(first) + j * X.column_stride;
      for (Index i = 0; i < count; ++i) {
        const double value = static_cast<double>(x[i * X.row_stride]) - shift[j];
        sums[j] += weight[i] * value * value;
      }
    }
    for (Index i = 0; i < count && by_row(); ++i) {
      const T* __restrict x = X.row(first + i);
      const double factor = weight[i];
#pragma omp simd
      for (Index j = 0; j < X.columns; ++j) {
        const double value = static_cast<double>(x[j]) - shift[j];
        sums[j] += factor * value * value;
      }
    }
  }
};

template <class T, class I>
struct SparseRows {
  const SparseTable<T, I>& X;

  Index rows() const { return X.rows; }
  Index width() const { return X.width; }
  Index values() const { return static_cast<Index>(X.starts[X.rows] - X.starts[0]); }
  // Partial sums are as long as a row is wide, so clearing and adding them must stay cheap beside the rows.
  Index most_chunks() const { return std::max<Index>(values() / (16 * std::max<Index>(X.width, 1)), 4); }
  Index block_rows() const { return 256; }

  void scores(Index first, Index count, const double* __restrict w, double b, double* __restrict s) const {
    for (Index i = 0; i < count; ++i) {
      const Index begin = X.starts[first + i], entries = X.starts[first + i + 1] - begin;
      const T* __restrict values = X.values + begin;
      const I* __restrict columns = X.columns + begin;
      double sum = 0.0;
#pragma omp simd reduction(+ : sum)
      for (Index at = 0; at < entries; ++at) sum += w[columns[at]] * static_cast<double>(values[at]);
      s[i] = b + sum;
    }
  }

  void add(Index first, Index count, const double* __restrict r, double* __restrict slope) const {
    for (Index i = 0; i < count; ++i) {
      const Index begin = X.starts[first + i], entries = X.starts[first + i + 1] - begin;
      const T* __restrict values = X.values + begin;
      const I* __restrict columns = X.columns + begin;
      const double factor = r[i];
      if (factor == 0.0) continue;
      for (Index at = 0; at < entries; ++at) slope[columns[at]] += factor * static_cast<double>(values[at]);
    }
  }

  void add_squares(Index first, Index count, const double* weight, const double*, double* sums) const {
    for (Index i = 0; i < count; ++i)
      for (I at = X.starts[first + i]; at < X.starts[first + i + 1]; ++at) {
        const double value = static_cast<double>(X.values[at]);
        sums[X.columns[at]] += weight[i] * value * value;
      }
  }
};

// The same rows, of which only the squares are summed.
template <class Rows>
struct SquaredRows {
  const Rows& X;
  const double* shift;

  Index rows() const { return X.rows(); }
  Index width() const { return X.width(); }
  Index values() const { return X.values(); }
  Index most_chunks() const { return X.most_chunks(); }
  Index block_rows() const { return X.block_rows(); }
  void scores(Index, Index, const double*, double, double*) const {}
  void add(Index first, Index count, const double* weight, double* sums) const {
    X.add_squares(first, count, weight, shift, sums);
  }
};

template <class T>
DenseRows<T> read(const Table<T>& X) {
  return {X};
}
template <class T, class I>
SparseRows<T, I> read(const SparseTable<T, I>& X) {
  return {X};
}

// total (width + 2 entries) = sum over the blocks of rows of (sum_i r_i x_i, sum_i r_i, what act returns),
// where act(first, count, score, r) makes factors r of the scores w.x + b.
template <class Rows, class Act>
bool sweep(const Rows& X, const double* w, double b, const Act& act, double* total, Stop& stop) {
  const Index n = X.rows(), d = X.width(), step = X.block_rows();
  const Index chunks =
      std::clamp<Index>(std::min(X.values() / kChunkValues, X.most_chunks()), 1, kMostChunks);
  const int team = team_size(chunks, X.values() + 16.0 * n);
  std::vector<double> sums(static_cast<std::size_t>((chunks - 1) * (d + 2)));  // the first chunk's is total
  std::vector<double> buffer(static_cast<std::size_t>(2 * team * step));
  std::atomic<bool> stopped{stop.now()};
  const auto partial = [&](Index chunk) { return chunk == 0 ? total : sums.data() + (chunk - 1) * (d + 2); };

#pragma omp parallel num_threads(team)
  {
    double* score = buffer.data() + 2 * omp_get_thread_num() * step;
    double* factor = score + step;
#pragma omp for schedule(dynamic)
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      double* sum = partial(chunk);
      std::fill_n(sum, d + 2, 0.0);
      const Index end = cut(n, chunks, chunk + 1);
      for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += step) {
        const Index count = std::min(step, end - first);
        X.scores(first, count, w, b, score);
        sum[d + 1] += act(first, count, score, factor);
        X.add(first, count, factor, sum);
        for (Index i = 0; i < count; ++i) sum[d] += factor[i];
        if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
      }
    }
#pragma omp for schedule(static)
    for (Index j = 0; j < d + 2; ++j)
      for (Index chunk = 1; chunk < chunks; ++chunk) total[j] += partial(chunk)[j];
  }
  return !stopped;
}

}  // namespace

template <class Rows>
bool loss_sweep(const Rows& X, LossCode loss, const double* w, double b, const RowTerms& rows, double* value,
                double* slope, Stop& stop) {
  const auto x = read(X);
  const Index d = x.width();
  std::vector<double> total(static_cast<std::size_t>(d + 2));
  bool finished = false;
  with_smooth_loss(loss, [&]<class Loss>(Loss) {
    const auto act = [&](Index first, Index count, const double* score, double* factor) {
      if (rows.score != nullptr) std::copy_n(score, count, rows.score + first);
      return row_losses<Loss>(score, rows.y + first, rows.weight == nullptr ? nullptr : rows.weight + first,
                              count, factor, rows.curvature == nullptr ? nullptr : rows.curvature + first);
    };
    finished = sweep(x, w, b, act, total.data(), stop);
  });
  std::copy_n(total.data(), d + 1, slope);
  *value = total.back();
  return finished;
}

template <class Rows>
bool curvature_sweep(const Rows& X, const double* curvature, const double* v, double c, double* product,
                     Stop& stop) {
  const auto x = read(X);
  const Index d = x.width();
  std::vector<double> total(static_cast<std::size_t>(d + 2));
  const auto act = [&](Index first, Index count, const double* score, double* factor) {
    for (Index i = 0; i < count; ++i) factor[i] = curvature[first + i] * score[i];
    return 0.0;
  };
  const bool finished = sweep(x, v, c, act, total.data(), stop);
  std::copy_n(total.data(), d + 1, product);
  return finished;
}

template <class Rows>
bool column_squares(const Rows& X, const double* weight, const double* shift, double* squares, Stop& stop) {
  const auto x = read(X);
  const Index d = x.width();
  std::vector<double> total(static_cast<std::size_t>(d + 2));
  const auto act = [&](Index first, Index count, const double*, double* factor) {
    for (Index i = 0; i < count; ++i) factor[i] = weight == nullptr ? 1.0 : weight[first + i];
    return 0.0;
  };
  const bool finished = sweep(SquaredRows<decltype(x)>{x, shift}, nullptr, 0.0, act, total.data(), stop);
  std::copy_n(total.data(), d + 1, squares);
  return finished;
}

void losses_along(LossCode loss, const double* from, const double* to, double step, const double* y,
                  const double* weight, Index rows, double* value, double* slope) {
  constexpr Index kRows = 1024;
  const Index parts = (rows + kRows - 1) / kRows;
  std::vector<double> sums(static_cast<std::size_t>(2 * parts));
  with_smooth_loss(loss, [&]<class Loss>(Loss) {
#pragma omp parallel for schedule(static) num_threads(team_size(parts, 16.0 * rows))
    for (Index part = 0; part < parts; ++part) {
      double score[kRows], factor[kRows];
      const Index first = part * kRows, count = std::min(kRows, rows - first);
      for (Index i = 0; i < count; ++i) score[i] = from[first + i] + step * (to[first + i] - from[first + i]);
      sums[2 * part] = row_losses<Loss>(score, y + first, weight == nullptr ? nullptr : weight + first, count,
                                        factor, nullptr);
      double along = 0.0;
#pragma omp simd reduction(+ : along)
      for (Index i = 0; i < count; ++i) along += factor[i] * (to[first + i] - from[first + i]);
      sums[2 * part + 1] = along;
    }
  });
  *value = *slope = 0.0;
  for (Index part = 0; part < parts; ++part) {
    *value += sums[2 * part];
    *slope += sums[2 * part + 1];
  }
}

template bool loss_sweep(const Table<double>&, LossCode, const double*, double, const RowTerms&, double*,
                         double*, Stop&);
template bool loss_sweep(const Table<float>&, LossCode, const double*, double, const RowTerms&, double*,
                         double*, Stop&);
template bool loss_sweep(const SparseTable<double, std::int32_t>&, LossCode, const double*, double,
                         const RowTerms&, double*, double*, Stop&);
template bool loss_sweep(const SparseTable<float, std::int32_t>&, LossCode, const double*, double,
                         const RowTerms&, double*, double*, Stop&);
template bool loss_sweep(const SparseTable<double, Index>&, LossCode, const double*, double, const RowTerms&,
                         double*, double*, Stop&);
template bool loss_sweep(const SparseTable<float, Index>&, LossCode, const double*, double, const RowTerms&,
                         double*, double*, Stop&);
template bool curvature_sweep(const Table<double>&, const double*, const double*, double, double*, Stop&);
template bool curvature_sweep(const Table<float>&, const double*, const double*, double, double*, Stop&);
template bool curvature_sweep(const SparseTable<double, std::int32_t>&, const double*, const double*, double,
                              double*, Stop&);
template bool curvature_sweep(const SparseTable<float, std::int32_t>&, const double*, const double*, double,
                              double*, Stop&);
template bool curvature_sweep(const SparseTable<double, Index>&, const double*, const double*, double,
                              double*, Stop&);
template bool curvature_sweep(const SparseTable<float, Index>&, const double*, const double*, double, double*,
                              Stop&);

template bool column_squares(const Table<double>&, const double*, const double*, double*, Stop&);
template bool column_squares(const Table<float>&, const double*, const double*, double*, Stop&);
template bool column_squares(const SparseTable<double, std::int32_t>&, const double*, const double*, double*,
                             Stop&);
template bool column_squares(const SparseTable<float, std::int32_t>&, const double*, const double*, double*,
                             Stop&);
template bool column_squares(const SparseTable<double, Index>&, const double*, const double*, double*, Stop&);
template bool column_squares(const SparseTable<float, Index>&, const double*, const double*, double*, Stop&);

}  // namespace sixfold
