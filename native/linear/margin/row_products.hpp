// Products of rows with vectors, a few rows at a time: what loops over rows need of a table, however it lies.
//
// A row is z_i = (x_i - shift, constant); a vector v that meets it has one entry a column and one for the
// constant. The rows of one call stay in the cache, so that scores and slopes of the same rows read memory
// once.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <variant>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "core/threads.hpp"
#include "linear/first_order/stochastic_gradient.hpp"

namespace sixfold {

inline constexpr Index kFewRows = 64;

template <class T>
struct DenseRows {
  Table<T> X;
  const double* shift;
  double constant;

  Index rows() const { return X.rows; }
  Index columns() const { return X.columns; }
  Index entries() const { return X.rows * X.columns; }

  // x_i.w
  double dot(Index i, const double* __restrict w) const {
    const T* __restrict x = X.row(i);
    double sum = 0.0;
    if (X.column_stride != 1) {
      for (Index j = 0; j < X.columns; ++j)
        sum += (static_cast<double>(x[j * X.column_stride]) - shift[j]) * w[j];
      return sum;
    }
#pragma omp simd reduction(+ : sum)
    for (Index j = 0; j < X.columns; ++j) sum += (static_cast<double>(x[j]) - shift[j]) * w[j];
    return sum;
  }

  // w += factor x_i
  void add(Index i, double factor, double* __restrict w) const {
    const T* __restrict x = X.row(i);
#pragma omp simd
    for (Index j = 0; j < X.columns; ++j)
      w[j] += factor * (static_cast<double>(x[j * X.column_stride]) - shift[j]);
  }

  double square(Index i) const {
    double sum = 0.0;
    for (Index j = 0; j < X.columns; ++j) {
      const double value = static_cast<double>(X.row(i)[j * X.column_stride]) - shift[j];
      sum += value * value;
    }
    return sum;
  }

  void prefetch(Index) const {}  // the processor sees a dense row coming by itself

  // out_k = z_k.v for rows first, ..., first + count - 1, at most kFewRows of them.
  void scores(Index first, Index count, const double* __restrict v, double* __restrict out) const {
    const Index d = X.columns;
    const double base = constant * v[d];
    if (X.column_stride == 1) {
      for (Index k = 0; k < count; ++k) out[k] = base + dot(first + k, v);
      return;
    }
    for (Index k = 0; k < count; ++k) out[k] = base;
    for (Index j = 0; j < d; ++j) {
      const T* __restrict x = X.row(first) + j * X.column_stride;
      const double off = shift[j], factor = v[j];
      if (X.row_stride == 1) {
#pragma omp simd
        for (Index k = 0; k < count; ++k) out[k] += (static_cast<double>(x[k]) - off) * factor;
      } else {
        for (Index k = 0; k < count; ++k) out[k] += (static_cast<double>(x[k * X.row_stride]) - off) * factor;
      }
    }
  }

  // sums_c += sum_k g_ck z_k for kVectors vectors g of kFewRows entries and sums of columns + 1.
  template <int kVectors>
  void add_slopes(Index first, Index count, const double* __restrict g, double* __restrict sums) const {
    const Index d = X.columns;
    for (int c = 0; c < kVectors; ++c)
      for (Index k = 0; k < count; ++k) sums[c * (d + 1) + d] += constant * g[c * kFewRows + k];
    if (X.column_stride == 1) {
      Index k = 0;  // four rows at a time: their sums are loaded and stored once
      for (; k + 4 <= count; k += 4) {
        const T* __restrict x = X.row(first + k), * __restrict y = X.row(first + k + 1);
        const T* __restrict z = X.row(first + k + 2), * __restrict u = X.row(first + k + 3);
#pragma omp simd
        for (Index j = 0; j < d; ++j) {
          const double one = static_cast<double>(x[j]) - shift[j], two = static_cast<double>(y[j]) - shift[j];
          const double three = static_cast<double>(z[j]) - shift[j],
                       four = static_cast<double>(u[j]) - shift[j];
          for (int c = 0; c < kVectors; ++c) {
            const double* factor = g + c * kFewRows + k;
            sums[c * (d + 1) + j] +=
                (factor[0] * one + factor[1] * two) + (factor[2] * three + factor[3] * four);
          }
        }
      }
      for (; k < count; ++k)
        for (int c = 0; c < kVectors; ++c) add(first + k, g[c * kFewRows + k], sums + c * (d + 1));
      return;
    }
    for (Index j = 0; j < d; ++j) {
      const T* __restrict x = X.row(first) + j * X.column_stride;
      const double off = shift[j];
      for (int c = 0; c < kVectors; ++c) {
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (Index k = 0; k < count; ++k)
          sum += g[c * kFewRows + k] * (static_cast<double>(x[k * X.row_stride]) - off);
        sums[c * (d + 1) + j] += sum;
      }
    }
  }
};

// Nothing is shifted where most entries are zero.
template <class T, class I>
struct SparseRows {
  SparseTable<T, I> X;
  double constant;

  Index rows() const { return X.rows; }
  Index columns() const { return X.width; }
  Index entries() const { return static_cast<Index>(X.starts[X.rows] - X.starts[0]); }

  double dot(Index i, const double* __restrict w) const {
    const T* __restrict values = X.values;
    const I* __restrict columns = X.columns;
    const I end = X.starts[i + 1];
    I at = X.starts[i];
    const auto term = [&](I k) { return static_cast<double>(values[k]) * w[columns[k]]; };
    // Four sums at a time and no gather instructions, which took 1.2 times as long.
    double one = 0.0, two = 0.0, three = 0.0, four = 0.0;
    for (; at + 4 <= end; at += 4) {
      one += term(at);
      two += term(at + 1);
      three += term(at + 2);
      four += term(at + 3);
    }
    for (; at < end; ++at) one += term(at);
    return (one + two) + (three + four);
  }

  void add(Index i, double factor, double* __restrict w) const {
    for (I at = X.starts[i]; at < X.starts[i + 1]; ++at)
      w[X.columns[at]] += factor * static_cast<double>(X.values[at]);
  }

  double square(Index i) const {
    const I end = X.starts[i + 1];
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (I at = X.starts[i]; at < end; ++at)
      sum += static_cast<double>(X.values[at]) * static_cast<double>(X.values[at]);
    return sum;
  }

  // Rows visited in random order would otherwise each begin with a wait for memory.
  void prefetch(Index i) const {
    const I begin = X.starts[i], end = X.starts[i + 1];
    for (I at = begin; at < end; at += 64 / static_cast<I>(sizeof(T))) __builtin_prefetch(X.values + at);
    for (I at = begin; at < end; at += 64 / static_cast<I>(sizeof(I))) __builtin_prefetch(X.columns + at);
  }

  void scores(Index first, Index count, const double* __restrict v, double* __restrict out) const {
    for (Index k = 0; k < count; ++k) out[k] = constant * v[X.width] + dot(first + k, v);
  }

  template <int kVectors>
  void add_slopes(Index first, Index count, const double* __restrict g, double* __restrict sums) const {
    const Index d = X.width;
    for (Index k = 0; k < count; ++k) {
      for (I at = X.starts[first + k]; at < X.starts[first + k + 1]; ++at)
        for (int c = 0; c < kVectors; ++c)
          sums[c * (d + 1) + X.columns[at]] += g[c * kFewRows + k] * static_cast<double>(X.values[at]);
      for (int c = 0; c < kVectors; ++c) sums[c * (d + 1) + d] += constant * g[c * kFewRows + k];
    }
  }
};

using AnyRows =
    std::variant<DenseRows<double>, DenseRows<float>, SparseRows<double, std::int32_t>,
                 SparseRows<float, std::int32_t>, SparseRows<double, Index>, SparseRows<float, Index>>;

inline Index rows_of(const AnyRows& table) {
  return std::visit([](const auto& X) { return X.rows(); }, table);
}
inline Index columns_of(const AnyRows& table) {
  return std::visit([](const auto& X) { return X.columns(); }, table);
}

// Pieces that rows are cut into by their number alone, so that sums do not depend on the number of threads.
inline Index pieces(Index rows) { return std::clamp<Index>(rows / 2048, 1, 16); }

// Calls work(X, piece, first, count) for all rows, kFewRows at a time, the pieces shared between threads.
// Returns false if stopped before the end.
template <class Work>
bool for_few_rows(const AnyRows& table, Stop& stop, Work&& work) {
  const Index rows = rows_of(table), parts = pieces(rows);
  std::atomic<bool> stopped{stop.now()};
  std::visit(
      [&](const auto& X) {
#pragma omp parallel for schedule(dynamic) num_threads(team_size(parts, X.entries()))
        for (Index piece = 0; piece < parts; ++piece) {
          const Index end = cut(rows, parts, piece + 1);
          for (Index first = cut(rows, parts, piece); first < end && !stopped; first += kFewRows) {
            work(X, piece, first, std::min(kFewRows, end - first));
            if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
          }
        }
      },
      table);
  return !stopped;
}

}  // namespace sixfold
