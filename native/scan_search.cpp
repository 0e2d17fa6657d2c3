#include "scan_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "simd.hpp"

namespace sixfold {
namespace {

// -- terms ---------------------------------------------------------------------------------------------

template <class A>
inline constexpr Index kWidth = kLanes * Index{sizeof(double)} / Index{sizeof(A)};

// As many numbers as a register holds.
template <class A>
struct PackOf {
  using Type [[gnu::vector_size(kLanes * sizeof(double))]] = A;
};
template <class A>
using Pack = typename PackOf<A>::Type;

template <class A, class T>
inline Pack<A> load_as(const T* from) {
  using Loose [[gnu::vector_size(kWidth<A> * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  return __builtin_convertvector(*reinterpret_cast<const Loose*>(from), Pack<A>);
}

// The terms take a difference as a pack or as one number.
struct SquareTerm {
  template <class V>
  V operator()(V difference) const {
    return difference * difference;
  }
};

struct AbsoluteTerm {
  template <class V>
  V operator()(V difference) const {
    if constexpr (std::is_floating_point_v<V>) {
      return std::abs(difference);
    } else {  // without the sign bit: one operation, where a comparison takes three
      using Bits = decltype(difference < difference);
      return reinterpret_cast<V>(reinterpret_cast<Bits>(difference) & ~(reinterpret_cast<Bits>(-V{})));
    }
  }
};

struct CountTerm {
  template <class V>
  V operator()(V difference) const {
    return difference != 0 ? V{} + 1 : V{};
  }
};

// |difference|^(whole + 1/2 or + 0) by multiplications.
struct HalfPowerTerm {
  int whole;
  bool half;

  template <class V>
  V operator()(V difference) const {
    V base = AbsoluteTerm()(difference), power = V{} + 1;
    if (half) power = root(base);
    for (int left = whole; left > 0; left /= 2) {
      if (left % 2 == 1) power *= base;
      if (left > 1) base *= base;
    }
    return power;
  }

 private:
  template <class V>
  static V root(V value) {
    if constexpr (std::is_floating_point_v<V>) {
      return std::sqrt(value);
    } else {
      for (std::size_t i = 0; i < sizeof(V) / sizeof(value[0]); ++i) value[i] = std::sqrt(value[i]);
      return value;
    }
  }
};

struct PowerTerm {
  double p;

  template <class V>
  V operator()(V difference) const {
    V value = AbsoluteTerm()(difference);
    if constexpr (std::is_floating_point_v<V>) {
      value = std::pow(value, static_cast<V>(p));
    } else {
      using A = std::remove_reference_t<decltype(value[0])>;
      for (std::size_t i = 0; i < sizeof(V) / sizeof(A); ++i)
        value[i] = std::pow(value[i], static_cast<A>(p));
    }
    return value;
  }
};

struct Sum {
  template <class V>
  V operator()(V a, V b) const {
    return a + b;
  }
};

struct Maximum {
  template <class V>
  V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};

// -- one row -------------------------------------------------------------------------------------------

// All lanes put together, by halves.
template <class A, Index kCount, class Join, class V, Index... k>
inline A across(V value, Join join, std::integer_sequence<Index, k...>) {
  if constexpr (kCount == 1) {
    return value[0];
  } else {
    constexpr Index kHalf = kCount / 2;
    const auto lower = __builtin_shufflevector(value, value, k...);
    const auto upper = __builtin_shufflevector(value, value, (kHalf + k)...);
    return across<A, kHalf>(join(lower, upper), join, std::make_integer_sequence<Index, kHalf / 2>());
  }
}

template <class A, class Join>
inline A across(Pack<A> value, Join join) {
  return across<A, kWidth<A>>(value, join, std::make_integer_sequence<Index, kWidth<A> / 2>());
}

// The terms of a row put together, or -1 as soon as those so far are above the bound.
template <class A, class T, class Term, class Join>
inline A plain_measure(const T* x, const A* q, Index columns, A bound, Term term, Join join) {
  constexpr Index kStep = kWidth<A>;
  Pack<A> a{}, b{}, c{}, d{};
  const auto add = [&](Pack<A>& sum, Index j) {
    sum = join(sum, term(load_as<A>(x + j) - load_as<A>(q + j)));
  };
  Index j = 0;
  // To add up the lanes costs about as much as two steps: asked after eight.
  for (; j + 8 * kStep <= columns; j += 8 * kStep) {
    add(a, j), add(b, j + kStep), add(c, j + 2 * kStep), add(d, j + 3 * kStep);
    add(a, j + 4 * kStep), add(b, j + 5 * kStep), add(c, j + 6 * kStep), add(d, j + 7 * kStep);
    if (across<A>(join(join(a, b), join(c, d)), join) > bound) return -1;
  }
  for (; j + kStep <= columns; j += kStep) add(a, j);
  A all = columns < kStep ? 0 : across<A>(join(join(a, b), join(c, d)), join);
  for (; j < columns; ++j) all = join(all, term(static_cast<A>(x[j]) - q[j]));
  return all;
}

// -- bounds --------------------------------------------------------------------------------------------

// Sums above this are of rows that are farther than `distance`; see the header.
template <class A>
A plain_bound(const Measure& measure, Index columns, double distance) {
  const double u = std::numeric_limits<A>::epsilon() / 2, p = measure.family == Family::power ? measure.p : 2;
  const double m = static_cast<double>(columns) + 4 * p + 16;
  const double tiny = static_cast<double>(columns) * std::numeric_limits<A>::min();
  const double bound = raw_limit(measure, distance) * (1 + 4 * m * u) + tiny;
  if (!(m * u <= 1.0 / 16) || !(bound <= std::numeric_limits<A>::max()))
    return std::numeric_limits<A>::infinity();
  return std::nextafter(static_cast<A>(bound), std::numeric_limits<A>::infinity());
}

// -- all rows ------------------------------------------------------------------------------------------

constexpr Index kBlockBytes = 1 << 17;  // of rows that stay in the cache while the queries of a group go by

template <class T, class A>
Shares shares_of(const Scan<T, A>& scan, Index most) {
  const double terms =
      static_cast<double>(scan.rows) * static_cast<double>(scan.columns) * static_cast<double>(scan.queries);
  return {scan.rows, scan.queries, terms, std::min<Index>({32, most, (Index{1} << 15) / scan.columns})};
}

// Goes through a share, a block of rows at a time: keep(query, row, distance) gets those that are not above
// bound(query). Returns how many had all their terms added up.
template <class T, class A, class Term, class Join, class Bound, class Keep>
Index go_through(const Scan<T, A>& scan, const Share& share, Term term, Join join, Watch& watch, Bound bound,
                 Keep keep) {
  // Counts are whole numbers, as the definition has them.
  constexpr bool kExact = std::is_same_v<Term, CountTerm>;
  const Index d = scan.columns, block = std::max<Index>(1, kBlockBytes / (d * Index{sizeof(T)}));
  Index computed = 0;
  for (Index start = share.from; start < share.to; start += block) {
    const Index end = std::min(share.to, start + block);
    for (Index i = share.first; i < share.last; ++i) {
      if (watch.over()) return computed;
      A limit = bound(i);
      for (Index row = start; row < end; ++row) {
        const T* x = scan.X + row * d;
        const A sum = plain_measure<A>(x, scan.plain + i * d, d, limit, term, join);
        if (sum < 0) continue;
        ++computed;
        if (sum > limit) continue;
        keep(i, row, kExact ? static_cast<double>(sum) : exact_distance(scan.measure, x, scan.Q + i * d, d));
        limit = bound(i);
      }
    }
  }
  return computed;
}

// Calls use(term, join) with what the measure puts together.
template <class Use>
auto with_terms(const Measure& measure, const Use& use) {
  switch (measure.family) {
    case Family::squares:
      return use(SquareTerm(), Sum());
    case Family::absolute:
      return use(AbsoluteTerm(), Sum());
    case Family::largest:
      return use(AbsoluteTerm(), Maximum());
    case Family::count:
      return use(CountTerm(), Sum());
    default:
      const double twice = 2 * measure.p;
      if (twice == std::floor(twice) && twice <= 128)
        return use(HalfPowerTerm{static_cast<int>(twice) / 2, static_cast<int>(twice) % 2 == 1}, Sum());
      return use(PowerTerm{measure.p}, Sum());
  }
}

}  // namespace

template <class T, class A>
Index scan_nearest(const Scan<T, A>& scan, Index k, double* distances, Index* rows, Stop& stop) {
  const auto look = [&](const Share& share, Nearest* nearest, Watch& watch) {
    const auto bound = [&](Index i) {
      return plain_bound<A>(scan.measure, scan.columns, nearest[i - share.first].worst());
    };
    const auto keep = [&](Index i, Index row, double distance) {
      nearest[i - share.first].offer(distance, row);
    };
    return with_terms(scan.measure, [&](auto term, auto join) {
      return go_through(scan, share, term, join, watch, bound, keep);
    });
  };
  return nearest_of_all(shares_of(scan, (Index{1} << 20) / k), k, distances, rows, stop, look);
}

template <class T, class A>
Index scan_within(const Scan<T, A>& scan, double radius, Around& around, Stop& stop) {
  const A bound = plain_bound<A>(scan.measure, scan.columns, radius);
  const auto look = [&](const Share& share, const auto& found, Watch& watch) {
    const auto keep = [&](Index i, Index row, double distance) {
      if (distance <= radius) found(i, row, distance);
    };
    return with_terms(scan.measure, [&](auto term, auto join) {
      return go_through(scan, share, term, join, watch, [&](Index) { return bound; }, keep);
    });
  };
  return around_of_all(shares_of(scan, 32), around, stop, look);
}

template Index scan_nearest(const Scan<double, double>&, Index, double*, Index*, Stop&);
template Index scan_nearest(const Scan<float, double>&, Index, double*, Index*, Stop&);
template Index scan_nearest(const Scan<float, float>&, Index, double*, Index*, Stop&);
template Index scan_nearest(const Scan<std::uint8_t, double>&, Index, double*, Index*, Stop&);
template Index scan_nearest(const Scan<std::uint8_t, float>&, Index, double*, Index*, Stop&);
template Index scan_within(const Scan<double, double>&, double, Around&, Stop&);
template Index scan_within(const Scan<float, double>&, double, Around&, Stop&);
template Index scan_within(const Scan<float, float>&, double, Around&, Stop&);
template Index scan_within(const Scan<std::uint8_t, double>&, double, Around&, Stop&);
template Index scan_within(const Scan<std::uint8_t, float>&, double, Around&, Stop&);

}  // namespace sixfold
