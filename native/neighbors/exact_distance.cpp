#include "neighbors/exact_distance.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/double_double.hpp"
#include "core/simd.hpp"

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

  // By halves: one after the other, the lanes would take longer than 64 columns.
  DoubleDouble total() {
    join_halves<kLanes / 2>(std::make_integer_sequence<Index, kLanes>());
    return {sum[0], error[0]};
  }

 private:
  template <Index kStep, Index... k>
  void join_halves(std::integer_sequence<Index, k...> lanes) {
    const Lanes others = __builtin_shufflevector(error, error, (k ^ kStep)...);
    add(__builtin_shufflevector(sum, sum, (k ^ kStep)...));
    error += others;
    if constexpr (kStep > 1) join_halves<kStep / 2>(lanes);
  }
};

// The sum of any doubles rounded once: partial sums that do not overlap (Shewchuk 1997), so few that they
// always fit, added from the greatest down.
class ExactSum {
 public:
  void add(double x) {
    Index kept = 0;
    for (Index i = 0; i < count_; ++i) {
      DoubleDouble pair{parts_[i], 0.0};
      pair.add(x);
      if (pair.lo != 0.0) parts_[kept++] = pair.lo;
      x = pair.hi;
    }
    parts_[kept++] = x;
    count_ = kept;
  }

  double value() const {
    DoubleDouble sum;
    Index left = count_;
    while (left > 0 && sum.lo == 0.0) sum.add(parts_[--left]);
    // Half an ulp is rounded to even; a part below it decides in its own direction.
    const double twice = sum.hi + 2.0 * sum.lo;
    if (left > 0 && (sum.lo < 0.0) == (parts_[left - 1] < 0.0) && twice - sum.hi == 2.0 * sum.lo)
      return twice;
    return sum.hi;
  }

 private:
  double parts_[64];  // 53 bits each of the 2,098 that doubles reach over
  Index count_ = 0;
};

// A sum of terms that are not negative, rounded once; `repeat` gives the terms again, one by one.
//
// Two-sum leaves no error: the sum is hi plus errors, at most n + 16 (those of the lanes included) and each
// at most u hi, that lo has added up. That addition is off by less than (n + 16)^2 u^2 hi, and evaluating the
// ends of the interval by less than the factor 4. Where both ends round to the same double, nearly always, so
// does the sum between them.
template <class Repeat>
double rounded(const DoubleDouble& total, Index n, Repeat repeat) {
  if (std::isinf(total.hi)) return total.hi;
  const double terms = static_cast<double>(n + 16), doubt = 0x1p-104 * terms * terms * total.hi;
  const double low = total.hi + (total.lo - doubt), high = total.hi + (total.lo + doubt);
  if (low == high) return low;
  ExactSum sum;
  repeat([&](double term) { sum.add(term); });
  return sum.value();
}

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
  DoubleDouble total, rest;  // the rest need not wait for the lanes
  for (Index i = j; i < columns; ++i) rest.add(term(static_cast<double>(x[i]) - q[i]));
  if (j > 0) total = sums.total();  // few columns fill no vector
  total.add(rest);
  return rounded(total, columns, [&](auto add) {
    for (Index i = 0; i < columns; ++i) add(term(static_cast<double>(x[i]) - q[i]));
  });
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
  const auto each = [&](auto add) {
    for (Index j = 0; j < columns; ++j) add(std::pow(std::abs(static_cast<double>(x[j]) - q[j]), p));
  };
  each([&](double term) { total.add(term); });
  return rounded(total, columns, each);
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

template <class T>
double exact_distance(const Measure& measure, const SparseRow<T>& x, const SparseRow<double>& q) {
  const Square square;
  const auto each = [&](auto add) {
    Index i = 0, j = 0;
    // Which row has the next column is as good as random: chosen without a branch.
    while (i < x.count && j < q.count) {
      const std::int32_t left = x.columns[i], right = q.columns[j];
      const double value = left <= right ? static_cast<double>(x.values[i]) : 0.0;
      add(square(value - (right <= left ? q.values[j] : 0.0)));
      i += left <= right;
      j += right <= left;
    }
    for (; i < x.count; ++i) add(square(static_cast<double>(x.values[i])));
    for (; j < q.count; ++j) add(square(q.values[j]));
  };
  DoubleDouble total;
  each([&](double term) { total.add(term); });
  return reported(measure, rounded(total, x.count + q.count, each));
}

template double exact_distance(const Measure&, const SparseRow<double>&, const SparseRow<double>&);
template double exact_distance(const Measure&, const SparseRow<float>&, const SparseRow<double>&);

double raw_limit(const Measure& measure, double distance) {
  if (!measure.root) return distance;
  // The root is rounded up to an ulp, which its power stretches p times, and so is the power itself.
  if (measure.family != Family::power) return distance * distance * (1.0 + 4 * DBL_EPSILON) + DBL_MIN;
  // A root is off by less than the step to the next double. Among subnormal numbers, which roots reach if
  // p < 1, that step is no small part of the root: the limit is the power of the next double, not a factor.
  // 1/p is rounded too, which changes a root by |log(sum)| / p roundings: |log| of a double is below 746.
  const double next = std::nextafter(distance, std::numeric_limits<double>::infinity());
  return std::pow(next, measure.p) * (1.0 + 4 * (measure.p + 2.0 + 746.0) * DBL_EPSILON) + DBL_MIN;
}

}  // namespace sixfold
