// One step for row i, with the slope G = y_i (w.phi_i + b) - 1 of the dual in a_i,
//
//     a_i <- clip(a_i - kStep G / (|phi_i|^2 + 1 / rho), 0, upper_i)
//
// goes a little past the best value, as in successive over-relaxation, and keeps w and b up to date (Hsieh,
// Chang, Lin, Keerthi and Sundararajan 2008, after whose rule rows are also set aside).
#include "kernel/landmark_descent.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernel/packs.hpp"

namespace sixfold {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kLine = 64;     // bytes
constexpr double kStep = 1.25;  // of the step to the best value
constexpr Index kAhead = 2;     // rows between asking for a row and visiting it

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64 (Steele, Lea and Flood 2014)
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void shuffle(std::vector<std::int32_t>& values, std::uint64_t& random) {
  for (std::size_t k = values.size(); k > 1; --k) {
    const auto wide = static_cast<unsigned __int128>(next_random(random)) * k;
    std::swap(values[k - 1], values[static_cast<std::size_t>(wide >> 64)]);
  }
}

double sum_of(Lanes value) {
  double total = 0.0;
  for (Index l = 0; l < kLanes; ++l) total += value[l];
  return total;
}
double sum_of(FloatLanes value) { return static_cast<double>(sum_of_lanes(value)); }

// x.w in four sums, so that additions need not wait for each other.
template <class T>
double dot(const T* x, const T* w, Index count) {
  constexpr Index kStep = kWidth<T>;
  Pack<T> sums[4] = {};
  Index j = 0;
  for (; j + 4 * kStep <= count; j += 4 * kStep)
    for (Index s = 0; s < 4; ++s) sums[s] += load_pack(x + j + s * kStep) * load_pack(w + j + s * kStep);
  for (; j + kStep <= count; j += kStep) sums[0] += load_pack(x + j) * load_pack(w + j);
  double total = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; j < count; ++j) total += static_cast<double>(x[j]) * static_cast<double>(w[j]);
  return total;
}

template <class T>
void add(const T* x, T factor, T* w, Index count) {
  constexpr Index kStep = kWidth<T>;
  Index j = 0;
  for (; j + kStep <= count; j += kStep) store_pack(w + j, load_pack(w + j) + factor * load_pack(x + j));
  for (; j < count; ++j) w[j] += factor * x[j];
}

// What a pass finds out on its way: the gap, and the steepest slopes by which a multiplier may still move.
struct Found {
  double gap = 0.0, high = -kInfinity, low = kInfinity;
};

// Whether a row is at an end of its range and beyond the steepest slopes of the pass before.
bool stays(double a, double upper, double slope, double high, double low) {
  return (a <= 0.0 && slope > high) || (a >= upper && slope < low);
}

// Moves the multiplier of one row. False if the row is to be set aside.
template <class T>
bool visit(const FeatureRows<T>& rows, T* w, FeatureState& state, Index i, double high, double low,
           Found& found) {
  const T* x = rows.features + rows.index[i] * rows.columns;
  const double y = rows.y[i], a = rows.a[i], upper = rows.upper[i];
  const double b = state.centre + state.balance / state.rho;
  const double slope = y * (dot(x, w, rows.columns) + b) - 1.0;
  found.gap += slope < 0.0 ? (a - upper) * slope : a * slope;
  if (stays(a, upper, slope, high, low)) return false;
  const double projected = a <= 0.0 ? std::min(slope, 0.0) : a >= upper ? std::max(slope, 0.0) : slope;
  found.high = std::max(found.high, projected);
  found.low = std::min(found.low, projected);
  const double moved = std::clamp(a - kStep * slope / (rows.square[i] + 1.0 / state.rho), 0.0, upper);
  if (moved == a) return true;
  rows.a[i] = moved;
  state.balance += y * (moved - a);
  add(x, static_cast<T>(y * (moved - a)), w, rows.columns);
  return true;
}

template <class T>
void fetch(const FeatureRows<T>& rows, Index i) {
  const char* x = reinterpret_cast<const char*>(rows.features + rows.index[i] * rows.columns);
  const Index bytes = rows.columns * static_cast<Index>(sizeof(T));
  for (Index at = 0; at < bytes; at += kLine) __builtin_prefetch(x + at);
}

}  // namespace

template <class T>
Descent descend_features(const FeatureRows<T>& rows, T* w, FeatureState& state, double enough, Index most,
                         Stop& stop) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows.count)), kept;
  std::iota(order.begin(), order.end(), 0);
  kept.reserve(order.size());
  Descent made{0, kInfinity};
  double high = kInfinity, low = -kInfinity;
  bool all = true, ended = stop.now();
  while (!ended && made.passes < most) {
    shuffle(order, state.random);
    Found found;
    kept.clear();
    const Index count = static_cast<Index>(order.size());
    for (Index at = 0; at < count; ++at) {
      if ((at & 63) == 0 && stop.now()) {
        ended = true;
        kept.insert(kept.end(), order.begin() + at, order.end());
        break;
      }
      if (at + kAhead < count) fetch(rows, order[static_cast<std::size_t>(at + kAhead)]);
      const std::int32_t i = order[static_cast<std::size_t>(at)];
      if (visit(rows, w, state, i, high, low, found)) kept.push_back(i);
    }
    ++made.passes;
    state.centre += state.balance / state.rho;
    made.gap = found.gap;
    if (found.gap <= enough) {
      if (all) break;
      // What was set aside may have moved since.
      order.resize(static_cast<std::size_t>(rows.count));
      std::iota(order.begin(), order.end(), 0);
      high = kInfinity, low = -kInfinity;
      all = true;
      continue;
    }
    all = false;
    order.swap(kept);
    high = found.high > 0.0 ? found.high : kInfinity;
    low = found.low < 0.0 ? found.low : -kInfinity;
  }
  return made;
}

template Descent descend_features(const FeatureRows<float>&, float*, FeatureState&, double, Index, Stop&);
template Descent descend_features(const FeatureRows<double>&, double*, FeatureState&, double, Index, Stop&);

}  // namespace sixfold
