// Features of rows whose differences bound distances from below, with every rounding error accounted for.
//
// With a centre c and a power of two s let z = s (x - c), w = s (q - c), so |z - w| = s |x - q|. Two maps:
//
//   identity   phi(z) = z
//   projected  phi(z) = (Q'z, max(|z - QQ'z| - t, 0))    Q'Q = I, t a constant
//
// Both satisfy |phi(z) - phi(w)| <= |z - w|. What is stored is a float vector f(z) with
// |f(z) - phi(z)| <= e(z). If |z - w| <= T, then |f(z) - f(w)| <= T + e(z) + e(w), so for any a > 0
//
//   |f(z) - f(w)|^2 <= (1 + a) T^2 + 2 (1 + 1/a) (e(z)^2 + e(w)^2), (1)
//
// and a row that violates (1) is farther than T: of the k nearest, or of a radius. With one more coordinate a
// row, h(z), against a 1 of the query, the test is one product and one comparison,
//
//   f(z).f(w) + h(z) < base(w) - (1 + a) T^2 / 2,
//   h(z) = -|f(z)|^2 / 2 + margins of the row,  base(w) = |f(w)|^2 / 2 - margins of the query. (2)
//
// The product is summed in floats: of n terms it is wrong by at most g (|f(z)| |f(w)| + |h(z)|), with
// g = n u / (1 - n u), u = 2^-24, whatever the order, and |f(z)| |f(w)| <= (|f(z)|^2 + |f(w)|^2) / 2 splits
// that into a margin of the row and one of the query. No margin depends on any other row.
//
// The errors e(z), for |z| <= 2^30 and d <= 2^20 columns; a row or query outside is never ruled out. Numbers
// below 2^-126 may be flushed to zero, which adds less than 2^-100 to a feature vector.
//   identity   z is rounded to floats: e = 2^-23 |z|, twice u for the arithmetic in doubles before.
//   projected  V is a float matrix, |V'V - I| <= skew. With R^2 = V'V and Q = V R^-1,
//                |V'z - Q'z| <= skew |z|.
//              V'z is summed in floats over runs of kRun columns and then over the runs, so each of the m
//              directions is wrong by at most g |v| |z|, n = kRun + d / kRun + 1:
//                e_1 = (skew + 1.02 (sqrt(m) g + u)) |z|.
//              |z - QQ'z|^2 = |z|^2 - |Q'z|^2 is then wrong by at most b = e_1 (2 |z| + e_1) + 2^-30 |z|^2,
//              its root r by b / r, and max(r - t, 0) by nothing if r^2 + b <= t^2, else by b / max(r, t):
//              without t, rows that lie in the span of V would have an r of nothing but noise, wrong by
//              sqrt(b).
//
// Of the identity the product bounds distances from above, too. Let W = |w|, D = |f(z) - f(w)|, and let the
// product as it is summed, h included, be p. With |f(z)| |f(w)| split as above, and 2 h(z) + |f(z)|^2 at most
// (2.1 G + 2.3 2^-22) |z|^2, where G = g + 2^-22 <= 1/64 (262,000 columns),
//
//   D^2 <= W^2 (1 + 2 G) + 5 G |z|^2 - 2 p + 2^-97,
//
// and since |z| is at most W + D but for rounding, |z|^2 <= 2.01 (W^2 + D^2) + 2^-98: it can be left out,
//
//   D^2 (1 - 10.05 G) <= W^2 (1 + 12.05 G) - 2 p + 2^-96.
//
// |z - w| <= D + e(z) + e(w), whose squares are below 2^-45 (W^2 + D^2), is (1) the other way round with
// a = 2^-14, so
//
//   |z - w|^2 <= (1 + 2^-14) (1 + 13 G) (W^2 (1 + 13 G) - 2 p + 2^-95). (3)
//
// W^2 is at most 2 (base(w) + 2^-59) (1 + 1.02 G). So k products give a threshold without one distance.
//
// Hwang, Han and Ahn (CVPR 2012) bound distances so by mean and deviation, which is one direction and its
// residual; principal directions and the margins are what is added here.
#pragma once

#include "core/table.hpp"

namespace sixfold {

// Features of the two levels: leading directions, then the residual and h.
inline constexpr Index kCoarseWidth = 32, kFineWidth = 128;
inline constexpr Index kCoarseDirections = kCoarseWidth - 2, kDirections = kFineWidth - 2;

inline constexpr double kSpread = 1.0 / 1024;  // a of (1): 0.1% of the distance pays for most rounding

// How rows become the vectors z.
struct Frame {
  const double* centre;
  double scale;  // a power of two
  Index columns;
};

struct Directions {
  const float* values;  // [column][kFineWidth], V and two columns that are not used
  double skew;          // at least |V'V - I|
  double quiet;         // t
};

// The features of `rows` rows; the last coordinate is h for training rows and 1 for queries, which have
// `base`.
struct Features {
  float* coarse;        // training rows: [panel][width][kPanelRows]; queries: [query][width]
  float* fine;          // [row][kFineWidth]; null for the identity
  double* coarse_base;  // queries only
  double* fine_base;
};

// Features of the identity whose products bound distances from above: G of (3) is small enough, ...
bool bounds_above(Index coordinates);

// ... a product is below this (a row that is never ruled out has a greater one) ...
inline constexpr float kMostProduct = 0x1p64f;

// ... and then |z - w|^2 is at most this.
double squares_at_most(double base, double product, Index coordinates);

// Projected features (both levels) of all rows of X; T is double, float or std::uint8_t.
template <class T>
void projected_features(const T* X, Index rows, const Frame& frame, const Directions& directions,
                        bool queries, const Features& out);

// The rows themselves as features; coarse has columns + 1 coordinates.
template <class T>
void identity_features(const T* X, Index rows, const Frame& frame, bool queries, const Features& out);

}  // namespace sixfold
