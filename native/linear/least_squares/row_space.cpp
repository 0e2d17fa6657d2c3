// Products of wide tables with vectors, and conjugate gradients on the products of their rows.
//
//   (K + l2 I) a = t,     K = B B',     B = sqrt(q) (x - mean)          (rows x rows, never formed)
//
// Tables go by in panels of columns: B'v and then B (B'v) of a panel while it is in the cache, so that a
// product with K reads the table once. Panels in single precision take half of that: of 1,000 x 10,000 a
// product takes 1.6 ms, the matrix K 170. What single precision leaves is for the caller to see, from a
// product in double.
//
// Panels are shared between threads in parts that depend on their number alone, and parts are added in order:
// same result for any number of threads.
#include "linear/least_squares/row_space.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/simd.hpp"
#include "core/threads.hpp"

namespace sixfold {
namespace {

constexpr Index kMostParts = 16;
constexpr Index kSums = 8;          // registers that a panel is wide
constexpr Index kFirstJudged = 3;   // steps after which the rate is believed
constexpr double kStepShare = 8.0;  // of the time of a first pass, that a step takes for as many values
constexpr Index kDoublePanel = kSums * kLanes;

FloatLanes load_lanes(const float* from) { return load_floats(from); }
Lanes load_lanes(const double* from) { return load(from); }
void store_lanes(float* to, FloatLanes value) { store_floats(to, value); }
void store_lanes(double* to, Lanes value) { store(to, value); }

// A panel of `rows` rows, kWidth columns next to each other, in registers of kCount values.
template <class V>
struct Panel {
  using Register = decltype(load_lanes(static_cast<const V*>(nullptr)));
  static constexpr Index kCount = sizeof(Register) / sizeof(V), kWidth = kSums * kCount;

  const V* data;
  Index rows;

  // sums_j = sum_i v_i x_ij
  void sums(const V* __restrict v, V* __restrict sums) const {
    Register total[kSums] = {};
    for (Index i = 0; i < rows; ++i) {
      const Register by = v[i] - Register{};
#pragma GCC unroll 8
      for (Index k = 0; k < kSums; ++k) total[k] += by * load_lanes(data + i * kWidth + k * kCount);
    }
    for (Index k = 0; k < kSums; ++k) store_lanes(sums + k * kCount, total[k]);
  }

  // The lanes of `scores`, kCount a row, += those of x_i.w
  void add_scores(const V* __restrict w, V* __restrict scores) const {
    Register by[kSums];
    for (Index k = 0; k < kSums; ++k) by[k] = load_lanes(w + k * kCount);
    for (Index i = 0; i < rows; ++i) {
      Register even = load_lanes(scores + i * kCount), odd = {};
#pragma GCC unroll 8
      for (Index k = 0; k < kSums; k += 2) {
        even += by[k] * load_lanes(data + i * kWidth + k * kCount);
        odd += by[k + 1] * load_lanes(data + i * kWidth + (k + 1) * kCount);
      }
      store_lanes(scores + i * kCount, even + odd);
    }
  }
};

// Calls work(row, column, x) for `count` columns from `first` on, in the order in which they lie in memory.
template <class T, class Work>
void for_entries(const Table<T>& X, Index first, Index count, const Work& work) {
  if (X.column_stride == 1) {
    for (Index i = 0; i < X.rows; ++i) {
      const T* __restrict x = X.row(i) + first;
#pragma omp simd
      for (Index j = 0; j < count; ++j) work(i, j, static_cast<double>(x[j]));
    }
    return;
  }
  for (Index j = 0; j < count; ++j) {
    const T* x = X.data + (first + j) * X.column_stride;
    for (Index i = 0; i < X.rows; ++i) work(i, j, static_cast<double>(x[i * X.row_stride]));
  }
}

// Adds up the lanes of all parts for each row.
template <class V>
void add_parts(const V* lanes, Index parts, Index rows, double* scores) {
  constexpr Index kCount = Panel<V>::kCount;
  for (Index i = 0; i < rows; ++i) {
    double total = 0.0;
    for (Index part = 0; part < parts; ++part)
      for (Index l = 0; l < kCount; ++l) total += static_cast<double>(lanes[(part * rows + i) * kCount + l]);
    scores[i] = total;
  }
}

// Calls work(part, panel) for all panels, the parts shared between threads; false if stopped.
template <class Work>
bool for_panels(Index panels, Index parts, double values, Stop& stop, const Work& work) {
  std::atomic<bool> stopped{stop.now()};
#pragma omp parallel for schedule(dynamic) num_threads(team_size(parts, values))
  for (Index part = 0; part < parts; ++part)
    for (Index panel = cut(panels, parts, part); panel < cut(panels, parts, part + 1) && !stopped; ++panel) {
      work(part, panel);
      if (omp_get_thread_num() == 0 && stop.now()) stopped = true;
    }
  return !stopped;
}

double dot(const double* one, const double* other, Index size) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (Index i = 0; i < size; ++i) total += one[i] * other[i];
  return total;
}

}  // namespace

template <class T>
bool centre_rows(const Table<T>& X, const double* q, bool centred, double* mean, double* square,
                 float* panels, Stop& stop) {
  const Index n = X.rows, d = X.columns, count = (d + kRowPanel - 1) / kRowPanel;
  return for_panels(
      count, std::min(count, kMostParts), static_cast<double>(n) * d, stop, [&](Index, Index panel) {
        const Index first = panel * kRowPanel, width = std::min(kRowPanel, d - first);
        double middle[kRowPanel] = {}, total[kRowPanel] = {};
        if (centred) for_entries(X, first, width, [&](Index i, Index j, double x) { middle[j] += q[i] * x; });
        if (panels == nullptr) {
          for_entries(X, first, width, [&](Index i, Index j, double x) {
            total[j] += q[i] * ((x - middle[j]) * (x - middle[j]));
          });
        } else {
          float* to = panels + panel * n * kRowPanel;
          if (width < kRowPanel) std::fill_n(to, n * kRowPanel, 0.0f);
          for_entries(X, first, width, [&](Index i, Index j, double x) {
            const double apart = x - middle[j];
            total[j] += q[i] * (apart * apart);
            to[i * kRowPanel + j] = static_cast<float>(apart);
          });
        }
        std::copy_n(middle, width, mean + first);
        std::copy_n(total, width, square + first);
      });
}

template <class T>
bool centred_products(const Table<T>& X, const double* mean, const double* v, Index targets, double* w,
                      double* scores, Stop& stop) {
  const Index n = X.rows, d = X.columns, count = (d + kDoublePanel - 1) / kDoublePanel;
  const Index parts = std::min(count, kMostParts), lanes = targets * n * kLanes;
  const AlignedArray<double> sums = aligned_zeros(parts * lanes);
  const AlignedArray<double> room = aligned_zeros(parts * n * kDoublePanel);
  const bool finished =
      for_panels(count, parts, static_cast<double>(n) * d, stop, [&](Index part, Index number) {
        const Index first = number * kDoublePanel, width = std::min(kDoublePanel, d - first);
        double* to = room.data() + part * n * kDoublePanel;
        if (width < kDoublePanel) std::fill_n(to, n * kDoublePanel, 0.0);
        for_entries(X, first, width,
                    [&](Index i, Index j, double x) { to[i * kDoublePanel + j] = x - mean[first + j]; });
        const Panel<double> panel{to, n};
        for (Index k = 0; k < targets; ++k) {
          double found[kDoublePanel] = {};
          if (v != nullptr) {
            panel.sums(v + k * n, found);
            std::copy_n(found, width, w + k * d + first);
          } else {
            std::copy_n(w + k * d + first, width, found);
          }
          panel.add_scores(found, sums.data() + part * lanes + k * n * kLanes);
        }
      });
  for (Index k = 0; k < targets && finished; ++k) {
    // The parts of a target are `lanes` apart.
    for (Index i = 0; i < n; ++i) {
      double total = 0.0;
      for (Index part = 0; part < parts; ++part)
        for (Index l = 0; l < kLanes; ++l) total += sums.data()[part * lanes + (k * n + i) * kLanes + l];
      scores[k * n + i] = total;
    }
  }
  return finished;
}

RowDescent descend_rows(const float* panels, Index n, Index d, const double* root_q, bool centred, double l2,
                        double goal, Index most, double* left, double* a, Stop& stop) {
  const Index count = (d + kRowPanel - 1) / kRowPanel, parts = std::min(count, kMostParts);
  const Index lanes = n * kFloatLanes;
  const auto size = static_cast<std::size_t>(n);
  const AlignedArray<float> sums(parts * lanes), along(n);
  std::vector<double> p(left, left + n), image(size);
  const double start = dot(left, left, n);
  double length = start;
  RowDescent done{0, start == 0.0, false};
  std::fill_n(a, n, 0.0);
  while (!done.reached && done.steps < most) {
    double largest = 0.0;
    for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(root_q[i] * p[i]));
    if (!(largest > 0.0)) break;
    for (Index i = 0; i < n; ++i) along.data()[i] = static_cast<float>(root_q[i] * p[i] / largest);
    std::fill_n(sums.data(), parts * lanes, 0.0f);
    // A step is short, and threads that meet after each wait for the one that was held up.
    done.stopped = !for_panels(count, parts, static_cast<double>(n) * d / kStepShare, stop,
                               [&](Index part, Index number) {
                                 const Panel<float> panel{panels + number * n * kRowPanel, n};
                                 float found[kRowPanel];
                                 panel.sums(along.data(), found);
                                 panel.add_scores(found, sums.data() + part * lanes);
                               });
    if (done.stopped) break;
    add_parts(sums.data(), parts, n, image.data());
    for (Index i = 0; i < n; ++i) image[i] *= largest * root_q[i];
    const double shift = centred ? dot(image.data(), root_q, n) : 0.0;
    for (Index i = 0; i < n; ++i) image[i] += l2 * p[i] - shift * root_q[i];
    const double curvature = dot(p.data(), image.data(), n);
    if (!(curvature > 0.0)) break;
    const double step = length / curvature;
    for (Index i = 0; i < n; ++i) {
      a[i] += step * p[i];
      left[i] -= step * image[i];
    }
    const double before = length;
    length = dot(left, left, n);
    ++done.steps;
    done.reached = length <= goal * goal * start;
    // So many steps at the rate so far, which is more often slower than that to come.
    const double rate = std::log(length / start) / static_cast<double>(done.steps);
    const bool hopeless = !(rate * static_cast<double>(most) <= 2.0 * std::log(goal));
    if (!done.reached && done.steps >= kFirstJudged && hopeless) break;
    for (Index i = 0; i < n; ++i) p[i] = left[i] + length / before * p[i];
  }
  return done;
}

template bool centre_rows(const Table<double>&, const double*, bool, double*, double*, float*, Stop&);
template bool centre_rows(const Table<float>&, const double*, bool, double*, double*, float*, Stop&);
template bool centred_products(const Table<double>&, const double*, const double*, Index, double*, double*,
                               Stop&);
template bool centred_products(const Table<float>&, const double*, const double*, Index, double*, double*,
                               Stop&);

}  // namespace sixfold
