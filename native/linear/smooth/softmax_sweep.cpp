// Value and slope of the softmax loss of a linear model in one pass over the rows.
//
//   s_i = W'x_i + b,   p_i = softmax(s_i),   value = sum_i weight_i (log sum_c exp(s_ic) - s_iy),
//   slope = sum_i weight_i (x_i, 1) (p_i - onehot(y_i))'
//
// or, with probabilities moved between the classes, the terms of a duality gap; and the product of the second
// derivatives with a direction, sum_i weight_i (x_i, 1) (p_i * (t_i - p_i.t_i))' with t_i = V'x_i + c.
//
// Both products with X are of one shape, c[m] += sum_k a(m, k) b[k] with rows b[k], c[m] of whole vectors
// over the classes (filled up), so one kernel serves both, and X may lie either way. A block of rows stays in
// the L2 cache between them, so X comes from memory once. Chunks depend on the size of the table alone and
// are added in order: same result for any number of threads.
#include "linear/smooth/softmax_sweep.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/threads.hpp"
#include "core/vector_math.hpp"
#include "linear/least_squares/packed_rows.hpp"

namespace sixfold {
namespace {

constexpr Index kMostChunks = 64;
constexpr Index kChunkWork = 1 << 20;            // multiplications worth a partial sum of their own
constexpr Index kBlockBytes = 1 << 18;           // of rows that are read twice
constexpr Index kTiles = kLanes == 8 ? 24 : 12;  // accumulators that the registers hold

// c[m] += sum_k a(m, k) b[k] for kRows rows m; a(m, k) = a[m * a_row + k * a_step]. The next rows are
// fetched meanwhile, straight through where they lie one after the other: 3.6 instead of 4.2 ms a pass at
// 20,000 x 100 with 10 classes on one thread, and 3.2 instead of 5.4 where columns are contiguous.
template <Index kRows, Index kVectors, class T>
[[gnu::noinline]] void add_tile_product(const T* __restrict a, Index a_row, Index a_step, Index steps,
                                        const double* __restrict b, Index stride, double* __restrict c) {
  Lanes sums[kRows][kVectors];
#pragma GCC unroll 24
  for (Index m = 0; m < kRows; ++m)
#pragma GCC unroll 3
    for (Index v = 0; v < kVectors; ++v) sums[m][v] = load(c + m * stride + v * kLanes);
  const T* next = a + (a_row == 1 ? 2 : 1) * kRows * a_row;
  const Index pace = a_step == 1 && a_row == steps ? kRows : a_step;
  for (Index k = 0; k < steps; ++k, a += a_step, b += stride, next += pace) {
    __builtin_prefetch(next);
    __builtin_prefetch(next + 64 / sizeof(T));
    Lanes row[kVectors];
#pragma GCC unroll 3
    for (Index v = 0; v < kVectors; ++v) row[v] = load(b + v * kLanes);
#pragma GCC unroll 24
    for (Index m = 0; m < kRows; ++m) {
      const double factor = static_cast<double>(a[m * a_row]);
#pragma GCC unroll 3
      for (Index v = 0; v < kVectors; ++v) sums[m][v] += factor * row[v];
    }
  }
#pragma GCC unroll 24
  for (Index m = 0; m < kRows; ++m)
#pragma GCC unroll 3
    for (Index v = 0; v < kVectors; ++v) store(c + m * stride + v * kLanes, sums[m][v]);
}

template <Index kVectors, class T>
void add_columns(const T* a, Index a_row, Index a_step, Index rows, Index steps, const double* b,
                 Index stride, double* c) {
  constexpr Index kTall = kTiles / kVectors;
  Index m = 0;
  for (; m + kTall <= rows; m += kTall)
    add_tile_product<kTall, kVectors>(a + m * a_row, a_row, a_step, steps, b, stride, c + m * stride);
  for (; m + 4 <= rows; m += 4)
    add_tile_product<4, kVectors>(a + m * a_row, a_row, a_step, steps, b, stride, c + m * stride);
  for (; m < rows; ++m)
    add_tile_product<1, kVectors>(a + m * a_row, a_row, a_step, steps, b, stride, c + m * stride);
}

// c (rows x stride) += a (rows x steps) b (steps x stride), three vectors of columns at a time.
template <class T>
void add_product(const T* a, Index a_row, Index a_step, Index rows, Index steps, const double* b,
                 Index stride, double* c) {
  Index v = 0;
  for (; v + 3 * kLanes <= stride && v + 4 * kLanes != stride; v += 3 * kLanes)
    add_columns<3>(a, a_row, a_step, rows, steps, b + v, stride, c + v);
  for (; v + 2 * kLanes <= stride; v += 2 * kLanes)
    add_columns<2>(a, a_row, a_step, rows, steps, b + v, stride, c + v);
  if (v < stride) add_columns<1>(a, a_row, a_step, rows, steps, b + v, stride, c + v);
}

template <class T>
struct DenseScores {
  const Table<T>& X;

  Index rows() const { return X.rows; }
  Index width() const { return X.columns; }
  Index values() const { return X.rows * X.columns; }
  Index most_chunks(Index stride) const { return X.rows / (16 * stride); }
  Index block_rows() const {
    const Index bytes = std::max<Index>(X.columns * static_cast<Index>(sizeof(T)), 1);
    return std::clamp<Index>(kBlockBytes / bytes / kTiles, 1, 16) * kTiles;
  }
  void scores(Index first, Index count, const double* w, Index stride, double* s) const {
    add_product(X.row(first), X.row_stride, X.column_stride, count, X.columns, w, stride, s);
  }
  void add(Index first, Index count, const double* r, Index stride, double* slope) const {
    add_product(X.row(first), X.column_stride, X.row_stride, X.columns, count, r, stride, slope);
  }
};

template <class T, class I>
struct SparseScores {
  const SparseTable<T, I>& X;

  Index rows() const { return X.rows; }
  Index width() const { return X.width; }
  Index values() const { return static_cast<Index>(X.starts[X.rows] - X.starts[0]); }
  Index most_chunks(Index) const { return std::max<Index>(values() / (4 * std::max<Index>(X.width, 1)), 4); }
  Index block_rows() const { return 64; }
  void scores(Index first, Index count, const double* w, Index stride, double* s) const {
    in_vectors(stride, [&]<Index kVectors>(Index v) {
      for (Index i = 0; i < count; ++i) {
        Lanes sums[kVectors];
        for (Index k = 0; k < kVectors; ++k) sums[k] = load(s + i * stride + v + k * kLanes);
        for (I at = X.starts[first + i]; at < X.starts[first + i + 1]; ++at) {
          const double factor = static_cast<double>(X.values[at]);
          const double* row = w + static_cast<Index>(X.columns[at]) * stride + v;
          for (Index k = 0; k < kVectors; ++k) sums[k] += factor * load(row + k * kLanes);
        }
        for (Index k = 0; k < kVectors; ++k) store(s + i * stride + v + k * kLanes, sums[k]);
      }
    });
  }
  void add(Index first, Index count, const double* r, Index stride, double* slope) const {
    in_vectors(stride, [&]<Index kVectors>(Index v) {
      for (Index i = 0; i < count; ++i) {
        Lanes row[kVectors];
        for (Index k = 0; k < kVectors; ++k) row[k] = load(r + i * stride + v + k * kLanes);
        for (I at = X.starts[first + i]; at < X.starts[first + i + 1]; ++at) {
          const double factor = static_cast<double>(X.values[at]);
          double* to = slope + static_cast<Index>(X.columns[at]) * stride + v;
          for (Index k = 0; k < kVectors; ++k)
            store(to + k * kLanes, load(to + k * kLanes) + factor * row[k]);
        }
      }
    });
  }
  // Classes as many vectors at a time as registers hold: 150 us instead of 235 a pass over 2,000 rows of 20
  // entries with 10 classes.
  template <class Run>
  static void in_vectors(Index stride, Run run) {
    Index v = 0;
    for (; v + 4 * kLanes <= stride; v += 4 * kLanes) run.template operator()<4>(v);
    for (; v + 2 * kLanes <= stride; v += 2 * kLanes) run.template operator()<2>(v);
    if (v < stride) run.template operator()<1>(v);
  }
};

template <class T>
DenseScores<T> read(const Table<T>& X) {
  return {X};
}
template <class T, class I>
SparseScores<T, I> read(const SparseTable<T, I>& X) {
  return {X};
}

// Swaps rows and classes of kLanes rows of scores in place, a square of registers at a time.
void turn(double* s, Index stride) {
  for (Index v = 0; v < stride; v += kLanes) {
    Lanes square[kLanes];
#pragma GCC unroll 8
    for (Index k = 0; k < kLanes; ++k) square[k] = load(s + k * stride + v);
    transpose(square);
#pragma GCC unroll 8
    for (Index k = 0; k < kLanes; ++k) store(s + k * stride + v, square[k]);
  }
}

// What is to be made of scores: classes padded to stride, and the two vectors of a moved probability, or
// null.
struct Classes {
  Index count, stride;
  const double* kept;
  const double* share;
};

// Where class c of kLanes rows is after `turn`.
double* of_class(double* s, Index stride, Index c) { return s + c % kLanes * stride + c / kLanes * kLanes; }

// Turns the scores of kLanes rows into weight (p - onehot(y)), adds that to ones (kLanes numbers a class),
// and returns weight times their losses. The rows lie side by side meanwhile: maxima and sums over the
// classes are then sums of vectors, and only classes that exist are exponentiated.
Lanes add_softmax(double* s, Index stride, Index classes, Lanes y, Lanes weight, double* ones) {
  turn(s, stride);
  Lanes most = load(s), own = most, mine{}, others{};
  for (Index c = 1; c < classes; ++c) {
    const Lanes score = load(of_class(s, stride, c));
    most = larger(most, score);
    own = y == static_cast<double>(c) ? score : own;
  }
  for (Index c = 0; c < classes; ++c) {
    const Lanes e = exponential(load(of_class(s, stride, c)) - most);
    const auto is_own = y == static_cast<double>(c);
    mine = is_own ? e : mine;
    const Lanes other = is_own ? Lanes{} : e;
    others += other;
    store(of_class(s, stride, c), other);
  }
  // p_y - 1 is minus the sum of the others, which keeps its digits when p_y is nearly 1; so does the loss.
  const Lanes scale = weight / (others + mine), own_slope = -others * scale;
  for (Index c = 0; c < classes; ++c) {
    const Lanes slope = y == static_cast<double>(c) ? own_slope : load(of_class(s, stride, c)) * scale;
    store(ones + c * kLanes, load(ones + c * kLanes) + slope);
    store(of_class(s, stride, c), slope);
  }
  turn(s, stride);
  const Lanes rest = own == most ? others : larger(others + mine - 1.0, Lanes{});
  return weight * (log_of_one_plus(rest) + (most - own));
}

// What a chunk of the rows adds up to beside the slope: the value, and where probabilities are moved the
// smallest log r and log p, and weight |r - onehot(y)|^2.
struct ChunkTerms {
  Lanes value{}, least{}, squares{};
};

// The same with moved probabilities r: weight (r - onehot(y)), and weight times the divergence of r from p,
// as a sum of terms r log(r / p) - r + p of which none is negative. p is worked out again where it is used.
Lanes add_divergence(double* s, const Classes& of, Lanes y, Lanes weight, double* ones, ChunkTerms& terms) {
  const Index stride = of.stride;
  turn(s, stride);
  Lanes most = load(s), total{}, freed{}, divergence{}, squares{};
  for (Index c = 1; c < of.count; ++c) most = larger(most, load(of_class(s, stride, c)));
  for (Index c = 0; c < of.count; ++c) {
    const Lanes e = exponential(load(of_class(s, stride, c)) - most);
    total += e;
    freed += e * (1.0 - of.kept[c]);
  }
  const Lanes log_total = logarithm(total), scale = 1.0 / total;
  freed *= scale;
  for (Index c = 0; c < of.count; ++c) {
    const Lanes score = load(of_class(s, stride, c)) - most, p = exponential(score) * scale;
    const Lanes r = p * of.kept[c] + freed * of.share[c], log_r = logarithm(r), log_p = score - log_total;
    terms.least = smaller(terms.least, smaller(log_r, log_p));
    divergence += larger(r * (log_r - log_p) - r + p, Lanes{});
    const Lanes u = y == static_cast<double>(c) ? r - 1.0 : r, slope = weight * u;
    squares += u * u;
    store(ones + c * kLanes, load(ones + c * kLanes) + slope);
    store(of_class(s, stride, c), slope);
  }
  turn(s, stride);
  terms.squares += weight * squares;
  return weight * divergence;
}

// One of the two for a block of rows, of which the last few may not fill a vector.
void add_rows(double* s, const Classes& of, Index count, const double* y, const double* weight, double* ones,
              ChunkTerms& terms) {
  const auto add = [&](double* rows, Lanes row_y, Lanes row_weight) {
    return of.kept == nullptr ? add_softmax(rows, of.stride, of.count, row_y, row_weight, ones)
                              : add_divergence(rows, of, row_y, row_weight, ones, terms);
  };
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes)
    terms.value += add(s + i * of.stride, load(y + i), weight == nullptr ? broadcast(1.0) : load(weight + i));
  if (i < count) {
    Lanes some_y{}, some_weight{};
    for (Index k = 0; i + k < count; ++k) {
      some_y[k] = y[i + k];
      some_weight[k] = weight == nullptr ? 1.0 : weight[i + k];
    }
    terms.value += add(s + i * of.stride, some_y, some_weight);
  }
}

// slope ((width + 1) x classes) = sum_i (x_i, 1) r_i', where act(first, count, score, ones, terms) makes r of
// the scores W'x + b of a block of rows in place, `classes` filled up to `stride`, and adds their sums to
// `ones`, kLanes numbers a class.
template <class Rows, class Act>
bool sweep(const Rows& x, Index classes, Index stride, const double* w, const double* b, const Act& act,
           std::vector<ChunkTerms>& terms, double* slope, Stop& stop) {
  const Index n = x.rows(), d = x.width(), step = x.block_rows(), size = (d + 1) * stride;
  const Index chunks =
      std::clamp<Index>(std::min(x.values() * stride / kChunkWork, x.most_chunks(stride)), 1, kMostChunks);
  const int team = team_size(chunks, x.values() * stride / 8.0);
  const Index room = step * stride + stride * kLanes;  // scores of a block, and the slope of the intercepts
  const AlignedArray<double> padded = aligned_zeros(size), sums = aligned_zeros(chunks * size),
                             buffers = aligned_zeros(team * room);
  for (Index j = 0; j < d; ++j) std::copy_n(w + j * classes, classes, padded.data() + j * stride);
  std::copy_n(b, classes, padded.data() + d * stride);
  terms.assign(static_cast<std::size_t>(chunks), {});
  std::atomic<bool> stopped{stop.now()};

#pragma omp parallel num_threads(team)
  {
    double* score = buffers.data() + omp_get_thread_num() * room;
    double* ones = score + step * stride;
    const double* bias = padded.data() + d * stride;
#pragma omp for schedule(dynamic)
    for (Index chunk = 0; chunk < chunks; ++chunk) {
      double* total = sums.data() + chunk * size;
      std::fill_n(ones, stride * kLanes, 0.0);
      const Index end = cut(n, chunks, chunk + 1);
      for (Index first = cut(n, chunks, chunk); first < end && !stopped; first += step) {
        const Index count = std::min(step, end - first), whole = (count + kLanes - 1) / kLanes * kLanes;
        for (Index i = 0; i < whole; ++i) std::copy_n(bias, stride, score + i * stride);
        x.scores(first, count, padded.data(), stride, score);
        act(first, count, score, ones, terms[static_cast<std::size_t>(chunk)]);
        x.add(first, count, score, stride, total);
        if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
      }
      for (Index c = 0; c < classes; ++c) total[d * stride + c] = sum(load(ones + c * kLanes));
    }
#pragma omp for schedule(static)
    for (Index j = 0; j < d + 1; ++j) {
      std::copy_n(sums.data() + j * stride, classes, slope + j * classes);
      for (Index chunk = 1; chunk < chunks; ++chunk) {
        const double* more = sums.data() + chunk * size + j * stride;
        for (Index k = 0; k < classes; ++k) slope[j * classes + k] += more[k];
      }
    }
  }
  return !stopped;
}

Index padded_classes(Index classes) { return (classes + kLanes - 1) / kLanes * kLanes; }

}  // namespace

template <class Rows>
bool softmax_sweep(const Rows& X, const double* y, const double* weight, Index classes, const double* w,
                   const double* b, const double* kept, const double* share, SoftmaxSums* found,
                   double* slope, double* chance, Stop& stop) {
  const auto x = read(X);
  const Index n = x.rows(), stride = padded_classes(classes);
  const Classes of{classes, stride, kept, share};
  std::vector<ChunkTerms> terms;
  const auto act = [&](Index first, Index count, double* s, double* ones, ChunkTerms& part) {
    const double* row_weight = weight == nullptr ? nullptr : weight + first;
    add_rows(s, of, count, y + first, row_weight, ones, part);
    if (chance == nullptr) return;
    for (Index i = 0; i < count; ++i) {  // p = weight (p - onehot(y)) / weight + onehot(y)
      const double each = row_weight == nullptr ? 1.0 : row_weight[i];
      double* p = chance + (first + i) * classes;
      for (Index c = 0; c < classes; ++c) p[c] = each > 0.0 ? s[i * stride + c] / each : 0.0;
      p[static_cast<Index>(y[first + i])] += 1.0;
    }
  };
  const bool finished = sweep(x, classes, stride, w, b, act, terms, slope, stop);
  const auto chunks = static_cast<Index>(terms.size());
  *found = {0.0, 0.0, 0.0, (n + chunks - 1) / chunks + chunks + kLanes};
  for (const ChunkTerms& part : terms) {
    found->value += sum(part.value);
    found->squares += sum(part.squares);
    for (Index k = 0; k < kLanes; ++k) found->log_chance = std::max(found->log_chance, -part.least[k]);
  }
  return finished;
}

template <class Rows>
bool softmax_product(const Rows& X, const double* chance, const double* weight, Index classes,
                     const double* v, const double* c, double* product, Stop& stop) {
  std::vector<ChunkTerms> terms;
  const Index stride = padded_classes(classes);
  const auto act = [&](Index first, Index count, double* t, double* ones, ChunkTerms&) {
    for (Index i = 0; i < count; ++i, t += stride) {
      const double* p = chance + (first + i) * classes;
      const double each = weight == nullptr ? 1.0 : weight[first + i];
      double mean = 0.0;
      for (Index k = 0; k < classes; ++k) mean += p[k] * t[k];
      for (Index k = 0; k < classes; ++k) {
        t[k] = each * p[k] * (t[k] - mean);
        ones[k * kLanes] += t[k];
      }
    }
  };
  return sweep(read(X), classes, stride, v, c, act, terms, product, stop);
}

template bool softmax_sweep(const Table<double>&, const double*, const double*, Index, const double*,
                            const double*, const double*, const double*, SoftmaxSums*, double*, double*,
                            Stop&);
template bool softmax_product(const Table<double>&, const double*, const double*, Index, const double*,
                              const double*, double*, Stop&);
template bool softmax_sweep(const Table<float>&, const double*, const double*, Index, const double*,
                            const double*, const double*, const double*, SoftmaxSums*, double*, double*,
                            Stop&);
template bool softmax_product(const Table<float>&, const double*, const double*, Index, const double*,
                              const double*, double*, Stop&);
template bool softmax_sweep(const SparseTable<double, std::int32_t>&, const double*, const double*, Index,
                            const double*, const double*, const double*, const double*, SoftmaxSums*, double*,
                            double*, Stop&);
template bool softmax_product(const SparseTable<double, std::int32_t>&, const double*, const double*, Index,
                              const double*, const double*, double*, Stop&);
template bool softmax_sweep(const SparseTable<float, std::int32_t>&, const double*, const double*, Index,
                            const double*, const double*, const double*, const double*, SoftmaxSums*, double*,
                            double*, Stop&);
template bool softmax_product(const SparseTable<float, std::int32_t>&, const double*, const double*, Index,
                              const double*, const double*, double*, Stop&);
template bool softmax_sweep(const SparseTable<double, Index>&, const double*, const double*, Index,
                            const double*, const double*, const double*, const double*, SoftmaxSums*, double*,
                            double*, Stop&);
template bool softmax_product(const SparseTable<double, Index>&, const double*, const double*, Index,
                              const double*, const double*, double*, Stop&);
template bool softmax_sweep(const SparseTable<float, Index>&, const double*, const double*, Index,
                            const double*, const double*, const double*, const double*, SoftmaxSums*, double*,
                            double*, Stop&);
template bool softmax_product(const SparseTable<float, Index>&, const double*, const double*, Index,
                              const double*, const double*, double*, Stop&);

}  // namespace sixfold
