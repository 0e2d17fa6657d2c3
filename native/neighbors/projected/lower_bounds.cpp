#include "neighbors/projected/lower_bounds.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "neighbors/projected/tile_products.hpp"

namespace sixfold {
namespace {

constexpr Index kRun = 64;               // columns added up in one go
constexpr Index kMostColumns = 1 << 20;  // so that d u is well below 1
constexpr double kMostSquares = 0x1p60;  // |z|^2: products of floats stay far from overflow
constexpr double kFlushed = 0x1p-100;    // what numbers flushed to zero add to an error
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kTogether = 6;  // rows projected at once

#if defined(__AVX512F__)
constexpr Index kAcross = 4;  // registers of directions; with kTogether rows 24 sums
#else
constexpr Index kAcross = 2;
#endif

// n u / (1 - n u) for floats.
double float_gamma(double n) { return n * 0x1p-24 / (1.0 - n * 0x1p-24); }

// z = scale (x - centre) as floats; returns |z|^2, or infinity (and zeros) if its features would not be safe.
template <class T>
double centre_row(const T* __restrict x, const Frame& frame, float* __restrict z) {
  double squares = 0.0;
#pragma omp simd reduction(+ : squares)
  for (Index j = 0; j < frame.columns; ++j) {
    const double value = (static_cast<double>(x[j]) - frame.centre[j]) * frame.scale;
    squares += value * value;
    z[j] = static_cast<float>(value);
  }
  if (squares <= kMostSquares && frame.columns <= kMostColumns) return squares;
  std::fill_n(z, frame.columns, 0.0f);
  return kInfinity;
}

// out[r][j] = sum_k z[r][k] V[k][j] for kTogether rows and all directions, runs of columns added up apart.
[[gnu::noinline]] void project(const float* __restrict z, Index stride, Index columns,
                               const float* __restrict V, float* __restrict out) {
  for (Index first = 0; first < kFineWidth; first += kAcross * kFloatLanes) {
    for (Index from = 0; from < columns; from += kRun) {
      const Index to = std::min(columns, from + kRun);
      FloatLanes sum[kTogether][kAcross] = {};
      for (Index k = from; k < to; ++k) {
        FloatLanes v[kAcross];
#pragma GCC unroll 4
        for (Index c = 0; c < kAcross; ++c) v[c] = load_floats(V + k * kFineWidth + first + c * kFloatLanes);
#pragma GCC unroll 6
        for (Index r = 0; r < kTogether; ++r) {
          const float value = z[r * stride + k];
#pragma GCC unroll 4
          for (Index c = 0; c < kAcross; ++c) sum[r][c] += v[c] * value;
        }
      }
#pragma GCC unroll 6
      for (Index r = 0; r < kTogether; ++r) {
#pragma GCC unroll 4
        for (Index c = 0; c < kAcross; ++c) {
          float* to_add = out + r * kFineWidth + first + c * kFloatLanes;
          store_floats(to_add, from == 0 ? sum[r][c] : load_floats(to_add) + sum[r][c]);
        }
      }
    }
  }
}

// A feature vector: its squared length and how far it may be from what it stands for.
struct Weight {
  double squares, error;
};

// Fills in what is left beside the first m directions, f[m]; `length2` is |z|^2.
Weight add_residual(float* f, Index m, double length2, Index columns, const Directions& V) {
  f[m] = 0.0f;
  if (!(length2 < kInfinity)) return {kInfinity, 0.0};
  double inside = 0.0;
  for (Index j = 0; j < m; ++j) inside += double{f[j]} * f[j];
  const double n = static_cast<double>(kRun + columns / kRun + 1), length = std::sqrt(length2);
  const double relative =
      V.skew + 1.02 * (std::sqrt(static_cast<double>(m)) * float_gamma(n) + 0x1p-24) + 0x1p-30;
  const double error = relative * length + kFlushed;
  const double b = error * (2.0 * length + error) + 0x1p-30 * length2;
  const double left2 = std::max(length2 - inside, 0.0), left = std::sqrt(left2);
  const double shown = std::max(left - V.quiet, 0.0);
  f[m] = static_cast<float>(shown);
  const double error_left =
      left2 + b <= V.quiet * V.quiet ? 0.0 : std::min(std::sqrt(b), b / std::max(left, V.quiet));
  return {inside + shown * shown, error + error_left + 0x1p-23 * left + kFlushed};
}

// g of the header for so many terms, and 2^-22 for rounding features and h to floats after their squares were
// taken.
double product_margin(Index coordinates) { return float_gamma(static_cast<double>(coordinates)) + 0x1p-22; }

float row_end(const Weight& weight, Index coordinates) {
  if (!(weight.squares < kInfinity)) return FLT_MAX;
  const double g = product_margin(coordinates);
  const double margin =
      ((1.0 + 1.0 / kSpread) * weight.error * weight.error + g * weight.squares) * (1.0 + 2.0 * g);
  return static_cast<float>(-0.5 * weight.squares + margin);
}

double query_base(const Weight& weight, Index coordinates) {
  if (!(weight.squares < kInfinity)) return -kInfinity;
  const double g = product_margin(coordinates);
  return 0.5 * weight.squares * (1.0 - g) - (1.0 + 1.0 / kSpread) * weight.error * weight.error - 0x1p-60;
}

// The last coordinate of row i and, of a query, its base.
float end_of(const Weight& weight, Index coordinates, bool queries, double* base, Index i) {
  if (!queries) return row_end(weight, coordinates);
  base[i] = query_base(weight, coordinates);
  return 1.0f;
}

// Rows [first, last) of a panel, coordinate after coordinate; rows that are not there are zeros.
void write_panel(const float* from, Index count, Index width, float* panel) {
  for (Index k = 0; k < width; ++k)
    for (Index i = 0; i < kPanelRows; ++i) panel[k * kPanelRows + i] = i < count ? from[i * width + k] : 0.0f;
}

// Calls work(from, to) for all panels, four at a time, which the threads share if so many values are worth
// it.
template <class Work>
void for_panels(Index rows, double values, const Work& work) {
  constexpr Index kShare = 4;
  const Index panels = panels_of(rows), shares = (panels + kShare - 1) / kShare;
  run_tasks(shares, std::max(1, team_size(shares, values)),
            [&](Index share) { work(share * kShare, std::min(panels, (share + 1) * kShare)); });
}

}  // namespace

bool bounds_above(Index coordinates) {
  return coordinates <= kMostColumns && product_margin(coordinates) <= 1.0 / 64;
}

double squares_at_most(double base, double product, Index coordinates) {
  const double g = product_margin(coordinates);
  const double twice = 2.0 * ((base + 0x1p-58) * (1.0 + 15.0 * g) - product);
  return (1.0 + 0x1p-14) * (1.0 + 13.0 * g) * std::max(twice, 0.0);
}

template <class T>
void projected_features(const T* X, Index rows, const Frame& frame, const Directions& directions,
                        bool queries, const Features& out) {
  const Index d = frame.columns;
  const double products = static_cast<double>(rows) * static_cast<double>(d) * kFineWidth;
  for_panels(rows, products / 16.0, [&](Index from, Index to) {
    std::vector<float> z(static_cast<std::size_t>(kTogether * d)), projected(kTogether * kFineWidth);
    std::vector<float> coarse(kPanelRows * kCoarseWidth);
    for (Index panel = from; panel < to; ++panel) {
      const Index first = panel * kPanelRows, last = std::min(rows, first + kPanelRows);
      for (Index start = first; start < last; start += kTogether) {
        const Index count = std::min(last - start, kTogether);
        double length2[kTogether];
        for (Index r = 0; r < count; ++r)
          length2[r] = centre_row(X + (start + r) * d, frame, z.data() + r * d);
        project(z.data(), d, d, directions.values, projected.data());
        for (Index r = 0; r < count; ++r) {
          const Index i = start + r;
          const float* values = projected.data() + r * kFineWidth;
          float* near = queries ? out.coarse + i * kCoarseWidth : coarse.data() + (i - first) * kCoarseWidth;
          std::copy_n(values, kCoarseDirections, near);
          const Weight rough = add_residual(near, kCoarseDirections, length2[r], d, directions);
          near[kCoarseDirections + 1] = end_of(rough, kCoarseWidth, queries, out.coarse_base, i);
          float* fine = out.fine + i * kFineWidth;
          std::copy_n(values, kDirections, fine);
          const Weight precise = add_residual(fine, kDirections, length2[r], d, directions);
          fine[kDirections + 1] = end_of(precise, kFineWidth, queries, out.fine_base, i);
        }
      }
      if (!queries)
        write_panel(coarse.data(), last - first, kCoarseWidth,
                    out.coarse + panel * kCoarseWidth * kPanelRows);
    }
  });
}

template <class T>
void identity_features(const T* X, Index rows, const Frame& frame, bool queries, const Features& out) {
  const Index d = frame.columns, width = d + 1;
  for_panels(rows, static_cast<double>(rows) * static_cast<double>(d), [&](Index from, Index to) {
    std::vector<float> scratch(queries ? 0 : static_cast<std::size_t>(kPanelRows * width));
    for (Index panel = from; panel < to; ++panel) {
      const Index first = panel * kPanelRows, last = std::min(rows, first + kPanelRows);
      for (Index i = first; i < last; ++i) {
        float* z = queries ? out.coarse + i * width : scratch.data() + (i - first) * width;
        const double squares = centre_row(X + i * d, frame, z);
        const Weight weight{squares, 0x1p-23 * std::sqrt(squares) + kFlushed};
        z[d] = end_of(weight, width, queries, out.coarse_base, i);
      }
      if (!queries) write_panel(scratch.data(), last - first, width, out.coarse + panel * width * kPanelRows);
    }
  });
}

template void projected_features(const double*, Index, const Frame&, const Directions&, bool,
                                 const Features&);
template void projected_features(const float*, Index, const Frame&, const Directions&, bool, const Features&);
template void projected_features(const std::uint8_t*, Index, const Frame&, const Directions&, bool,
                                 const Features&);
template void identity_features(const double*, Index, const Frame&, bool, const Features&);
template void identity_features(const float*, Index, const Frame&, bool, const Features&);
template void identity_features(const std::uint8_t*, Index, const Frame&, bool, const Features&);

}  // namespace sixfold
