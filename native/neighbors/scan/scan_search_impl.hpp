#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/simd.hpp"
#include "neighbors/scan/scan_search.hpp"

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

struct Minimum {
  template <class V>
  V operator()(V a, V b) const {
    return a < b ? a : b;
  }
};

struct Maximum {
  template <class V>
  V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};

// -- plain sums -------------------------------------------------------------------------------------------

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

// The terms of four packs of rows, whose columns are `stride` apart.
template <class A, class Term, class Join>
inline void plain_measures(const A* x, Index stride, const A* q, Index columns, Pack<A>* sums, Term term,
                           Join join) {
  constexpr Index kStep = kWidth<A>;
  Pack<A> a{}, b{}, c{}, d{};
  for (Index j = 0; j < columns; ++j, x += stride) {
    const Pack<A> same = Pack<A>{} + q[j];
    a = join(a, term(load_as<A>(x) - same));
    b = join(b, term(load_as<A>(x + kStep) - same));
    c = join(c, term(load_as<A>(x + 2 * kStep) - same));
    d = join(d, term(load_as<A>(x + 3 * kStep) - same));
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

// -- bounds --------------------------------------------------------------------------------------------

// Sums above this are of rows that are farther than `distance`; see the header.
template <class A>
A plain_bound(const Measure& measure, Index columns, double distance) {
  const double u = std::numeric_limits<A>::epsilon() / 2, p = measure.family == Family::power ? measure.p : 2;
  const double m = static_cast<double>(columns) + 4 * p + 128;
  const double tiny = static_cast<double>(columns) * std::numeric_limits<A>::min();
  const double bound = raw_limit(measure, distance) * (1 + 4 * m * u) + tiny;
  // A difference that overflows has a power of at least this.
  const double most = p < 1 ? std::pow(std::numeric_limits<A>::max(), p) / 2 : std::numeric_limits<A>::max();
  if (!(m * u <= 1.0 / 16) || !(bound <= most)) return std::numeric_limits<A>::infinity();
  return static_cast<A>(bound);
}

// -- all rows ------------------------------------------------------------------------------------------

constexpr Index kFewColumns = 64;
constexpr Index kBlockBytes = 1 << 17;  // of rows that stay in the cache while the queries of a group go by

template <class T, class A>
WorkPartition partition_of(const Scan<T, A>& scan, Index most) {
  const double terms =
      static_cast<double>(scan.rows) * static_cast<double>(scan.columns) * static_cast<double>(scan.queries);
  return {scan.rows, scan.queries, terms, std::min<Index>({128, most, (Index{1} << 15) / scan.columns})};
}

// What is kept as the distance of a row whose plain sum is this. Counts are whole numbers, as defined.
template <class Term, class T, class A>
double measured(const Scan<T, A>& scan, Index query, Index row, A sum) {
  if constexpr (std::is_same_v<Term, CountTerm>) return static_cast<double>(sum);
  const Index d = scan.columns;
  return exact_distance(scan.measure, scan.X + row * d, scan.Q + query * d, d);
}

// Goes through an item, a block of rows at a time: keep(query, row, distance) gets those that are not above
// bound(query). Returns how many had all their terms added up.
template <class T, class A, class Term, class Join, class Bound, class Keep>
Index row_by_row(const Scan<T, A>& scan, const WorkItem& item, Term term, Join join, Watch& watch,
                 Bound bound, Keep keep) {
  const Index d = scan.columns, block = std::max<Index>(1, kBlockBytes / (d * Index{sizeof(T)}));
  Index computed = 0;
  for (Index start = item.from; start < item.to; start += block) {
    const Index end = std::min(item.to, start + block);
    for (Index i = item.first; i < item.last; ++i) {
      if (watch.over()) return computed;
      A limit = bound(i);
      for (Index row = start; row < end; ++row) {
        const A sum = plain_measure<A>(scan.X + row * d, scan.plain + i * d, d, limit, term, join);
        if (sum < 0) continue;
        ++computed;
        if (sum > limit) continue;
        keep(i, row, measured<Term>(scan, i, row, sum));
        limit = bound(i);
      }
    }
  }
  return computed;
}

// Keeps, of the least sums in each lane, the k least, and puts infinity in their place: their distances bound
// all others, where else every row that is nearer than those before it is measured, some 30 of 1,000. Does
// nothing where that would be no bound.
template <class Term, class T, class A, class Keep>
void keep_first(const Scan<T, A>& scan, Index query, Index start, Index count, Index k, Pack<A>* sums,
                Keep keep) {
  constexpr Index kStep = kWidth<A>, kRows = 4 * kStep;
  if (k > kRows || count < kRows) return;
  Pack<A> least[4], place[4] = {};
  for (Index v = 0; v < 4; ++v) least[v] = sums[v];
  for (Index row = kRows; row + kRows <= count; row += kRows)
    for (Index v = 0; v < 4; ++v) {
      const Pack<A> sum = sums[row / kStep + v];
      const auto nearer = sum < least[v];
      least[v] = nearer ? sum : least[v];
      place[v] = nearer ? Pack<A>{} + static_cast<A>(row) : place[v];
    }
  std::pair<A, Index> found[kRows];
  for (Index r = 0; r < kRows; ++r)
    found[r] = {least[r / kStep][r % kStep], static_cast<Index>(place[r / kStep][r % kStep]) + r};
  std::nth_element(found, found + k - 1, found + kRows);
  double distance[kRows], worst = 0.0;
  for (Index r = 0; r < k; ++r) {
    distance[r] = measured<Term>(scan, query, start + found[r].second, found[r].first);
    worst = std::max(worst, distance[r]);
  }
  constexpr A kInfinity = std::numeric_limits<A>::infinity();
  if (!(plain_bound<A>(scan.measure, scan.columns, worst) < kInfinity)) return;
  for (Index r = 0; r < k; ++r) {
    const Index row = found[r].second;
    keep(query, start + row, distance[r]);
    sums[row / kStep][row % kStep] = kInfinity;
  }
}

// The same with rows in lanes: each block is turned on its side first, which pays for several queries, and
// there are no lanes to be added up, which pays for few columns. `nearest`: how many are asked for, or 0 for
// all within a bound.
template <class T, class A, class Term, class Join, class Bound, class Keep>
Index rows_in_lanes(const Scan<T, A>& scan, const WorkItem& item, Term term, Join join, Watch& watch,
                    Bound bound, Keep keep, Index nearest) {
  constexpr Index kStep = kWidth<A>, kRows = 4 * kStep;
  const Index d = scan.columns, block = (kBlockBytes / 2 / (d * Index{sizeof(A)}) / kRows + 1) * kRows;
  std::vector<A> columns(static_cast<std::size_t>(d * block));
  std::vector<Pack<A>> sums(static_cast<std::size_t>(block / kStep));
  Index computed = 0;
  for (Index start = item.from; start < item.to; start += block) {
    const Index count = std::min(item.to - start, block);
    for (Index row = 0; row < count; ++row)
      for (Index j = 0; j < d; ++j)
        columns[static_cast<std::size_t>(j * block + row)] = static_cast<A>(scan.X[(start + row) * d + j]);
    for (Index i = item.first; i < item.last; ++i) {
      if (watch.over()) return computed;
      A limit = bound(i);
      for (Index row = 0; row < count; row += kRows)
        plain_measures(columns.data() + row, block, scan.plain + i * d, d, sums.data() + row / kStep, term,
                       join);
      if (nearest > 0 && limit == std::numeric_limits<A>::infinity()) {
        keep_first<Term>(scan, i, start, count, nearest, sums.data(), keep);
        limit = bound(i);
      }
      for (Index row = 0; row < count; row += kRows) {
        const Pack<A>* four = sums.data() + row / kStep;
        const Minimum least;
        if (across<A>(least(least(four[0], four[1]), least(four[2], four[3])), least) > limit) continue;
        for (Index r = 0; r < std::min(kRows, count - row); ++r) {
          const A sum = four[r / kStep][r % kStep];
          if (sum > limit) continue;
          keep(i, start + row + r, measured<Term>(scan, i, start + row + r, sum));
          limit = bound(i);
        }
      }
      computed += count;
    }
  }
  return computed;
}

template <class T, class A, class Term, class Join, class Bound, class Keep>
Index go_through(const Scan<T, A>& scan, const WorkItem& item, Term term, Join join, Watch& watch,
                 Bound bound, Keep keep, Index nearest = 0) {
  if (scan.columns <= kFewColumns && item.last - item.first >= 4)
    return rows_in_lanes(scan, item, term, join, watch, bound, keep, nearest);
  return row_by_row(scan, item, term, join, watch, bound, keep);
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
  const auto look = [&](const WorkItem& item, Nearest* nearest, Watch& watch) {
    const auto bound = [&](Index i) {
      return plain_bound<A>(scan.measure, scan.columns, nearest[i - item.first].worst());
    };
    const auto keep = [&](Index i, Index row, double distance) {
      nearest[i - item.first].offer(distance, row);
    };
    return with_terms(scan.measure, [&](auto term, auto join) {
      return go_through(scan, item, term, join, watch, bound, keep, k);
    });
  };
  return nearest_of_all(partition_of(scan, (Index{1} << 20) / k), k, distances, rows, stop, look);
}

template <class T, class A>
Index scan_within(const Scan<T, A>& scan, double radius, RadiusResult& result, Stop& stop) {
  const A bound = plain_bound<A>(scan.measure, scan.columns, radius);
  const auto look = [&](const WorkItem& item, const auto& found, Watch& watch) {
    const auto keep = [&](Index i, Index row, double distance) {
      if (distance <= radius) found(i, row, distance);
    };
    return with_terms(scan.measure, [&](auto term, auto join) {
      return go_through(scan, item, term, join, watch, [&](Index) { return bound; }, keep);
    });
  };
  return within_of_all(partition_of(scan, 32), result, stop, look);
}

}  // namespace sixfold
