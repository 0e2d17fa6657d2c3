#include "exact_distance.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "double_double.hpp"
#include "simd.hpp"

namespace sixfold {
namespace {

// kLanes sums of doubles, each with the rounding errors it has made so far (Knuth's two-sum).
struct LaneSums {
  Lanes sum = {}, error = {};

  void add(Lanes x) {
    const Lanes next = sum + x, part = next - sum;
    error += (sum - (next - part)) + (x - part);
    sum = next;
  }

  DoubleDouble total() const {
    DoubleDouble all;
    for (Index k = 0; k < kLanes; ++k) {
      all.add(sum[k]);
      all.lo += error[k];
    }
    return all;
  }
};

template <class T>
Lanes load_as_double(const T* from) {
  Lanes value;
  for (Index k = 0; k < kLanes; ++k) value[k] = static_cast<double>(from[k]);
  return value;
}

// sum_j term(x_j - q_j), rounded once.
template <class T, class Term>
double rounded_once(const T* x, const double* q, Index columns, Term term) {
  LaneSums sums;
  Index j = 0;
  for (; j + kLanes <= columns; j += kLanes) sums.add(term(load_as_double(x + j) - load(q + j)));
  DoubleDouble total;
  if (j > 0) total = sums.total();  // 70 ns of 80 where there are four columns
  for (; j < columns; ++j) total.add(term(static_cast<double>(x[j]) - q[j]));
  return total.value();
}

template <class T>
double largest(const T* x, const double* q, Index columns) {
  double most = 0.0;
#pragma omp simd reduction(max : most)
  for (Index j = 0; j < columns; ++j) most = std::max(most, std::abs(static_cast<double>(x[j]) - q[j]));
  return most;
}

template <class T>
double power_sum(const T* x, const double* q, Index columns, double p) {
  DoubleDouble total;
  for (Index j = 0; j < columns; ++j) total.add(std::pow(std::abs(static_cast<double>(x[j]) - q[j]), p));
  return total.value();
}

template <class T, class Q>
double unequal(const T* x, const Q* q, Index columns) {
  Index count = 0;
  for (Index j = 0; j < columns; ++j) count += static_cast<Q>(x[j]) != q[j];
  return static_cast<double>(count);
}

struct Square {
  template <class V>
  V operator()(V difference) const {
    return difference * difference;
  }
};

struct Absolute {
  template <class V>
  V operator()(V difference) const {
    return difference < 0 ? -difference : difference;
  }
};

double reported(const Measure& measure, double raw) {
  if (!measure.root) return raw;
  return measure.family == Family::power ? std::pow(raw, 1.0 / measure.p) : std::sqrt(raw);
}

}  // namespace

Measure measure_of(const std::string& family, double p, bool root) {
  if (family == "squares") return {Family::squares, 2.0, root};
  if (family == "absolute") return {Family::absolute, 1.0, false};
  if (family == "largest") return {Family::largest, 1.0, false};
  if (family == "count") return {Family::count, 1.0, false};
  if (family == "power" && p > 0.0) return {Family::power, p, root};
  throw std::invalid_argument("sixfold native loop: no measure is called " + family);
}

template <class T>
double exact_distance(const Measure& measure, const T* x, const double* q, Index columns) {
  switch (measure.family) {
    case Family::squares:
      return reported(measure, rounded_once(x, q, columns, Square()));
    case Family::absolute:
      return rounded_once(x, q, columns, Absolute());
    case Family::largest:
      return largest(x, q, columns);
    case Family::power:
      return reported(measure, power_sum(x, q, columns, measure.p));
    default:
      return unequal(x, q, columns);
  }
}

template double exact_distance(const Measure&, const double*, const double*, Index);
template double exact_distance(const Measure&, const float*, const double*, Index);
template double exact_distance(const Measure&, const std::uint8_t*, const double*, Index);

double exact_distance(const Measure& measure, const std::uint8_t* x, const std::uint8_t* q, Index columns) {
  constexpr Index kRun = 1 << 15;  // whose sum of squares, at most 2^31, fits
  if (measure.family == Family::count) return unequal(x, q, columns);
  std::int64_t total = 0;
  std::int32_t most = 0;
  for (Index from = 0; from < columns; from += kRun) {
    const Index to = std::min(columns, from + kRun);
    std::uint32_t part = 0;
    for (Index j = from; j < to; ++j) {
      const std::int32_t difference = std::int32_t{x[j]} - std::int32_t{q[j]};
      const std::int32_t size = std::abs(difference);
      part += static_cast<std::uint32_t>(measure.family == Family::squares ? difference * difference : size);
      most = std::max(most, size);
    }
    total += part;
  }
  if (measure.family == Family::largest) return static_cast<double>(most);
  return reported(measure, static_cast<double>(total));
}

double raw_limit(const Measure& measure, double distance) {
  if (!measure.root) return distance;
  // The root is rounded up to an ulp, which its power stretches p times, and so is the power itself.
  if (measure.family != Family::power) return distance * distance * (1.0 + 4 * DBL_EPSILON) + DBL_MIN;
  // 1/p is rounded too, which changes a root by |log(sum)| / p roundings: |log| of a double is below 746.
  return std::pow(distance, measure.p) * (1.0 + 4 * (measure.p + 2.0 + 746.0) * DBL_EPSILON) + DBL_MIN;
}

}  // namespace sixfold
