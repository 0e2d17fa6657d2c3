#include "scan_search.hpp"

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <limits>
#include <type_traits>

#include "blas.hpp"
#include "simd.hpp"
#include "tasks.hpp"

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
    return difference < 0 ? -difference : difference;
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

template <class A, class Join>
inline A across(Pack<A> value, Join join) {
  A all[kWidth<A>];
  __builtin_memcpy(all, &value, sizeof(value));
  for (Index step = kWidth<A> / 2; step > 0; step /= 2)
    for (Index i = 0; i < step; ++i) all[i] = join(all[i], all[i + step]);
  return all[0];
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
  A all = across<A>(join(join(a, b), join(c, d)), join);
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

// Queries in groups, and the rows in parts if there are too few queries for all threads.
struct Shares {
  int team = 1;
  Index group = 1, groups = 1, parts = 1;

  // `most` queries in a group.
  template <class T, class A>
  Shares(const Scan<T, A>& scan, Index most) {
    const double work = static_cast<double>(scan.rows) * static_cast<double>(scan.columns) *
                        static_cast<double>(scan.queries);
    if (work > 1 << 18) team = threads();  // below, which takes 50 us, a team costs more than it brings
    most = std::max<Index>(1, std::min(most, (Index{1} << 15) / scan.columns));
    const bool few = team > 1 && scan.queries < 4 * team;
    if (few) parts = std::min<Index>(team, scan.rows);
    group = std::clamp<Index>(few ? scan.queries : scan.queries / (4 * team), 1, most);
    groups = (scan.queries + group - 1) / group;
  }
};

// Goes through rows [from, to) for queries [first, last), a block of rows at a time: keep(query, row,
// distance) gets those that are not above bound(query). Returns how many had all their terms added up.
template <class T, class A, class Term, class Join, class Bound, class Keep>
Index go_through(const Scan<T, A>& scan, Index from, Index to, Index first, Index last, Term term, Join join,
                 Watch& watch, Bound bound, Keep keep) {
  // Counts are whole numbers, as the definition has them.
  constexpr bool kExact = std::is_same_v<Term, CountTerm>;
  const Index d = scan.columns, block = std::max<Index>(1, kBlockBytes / (d * Index{sizeof(T)}));
  Index computed = 0;
  for (Index start = from; start < to; start += block) {
    const Index end = std::min(to, start + block);
    for (Index i = first; i < last; ++i) {
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
  const Shares shares(scan, (Index{1} << 20) / k);
  std::vector<std::vector<Near>> rooms(static_cast<std::size_t>(shares.groups * shares.parts));
  std::atomic<Index> computed{0};
  const auto task = [&](Index number, Watch& watch) {
    const Index group = number / shares.parts, part = number % shares.parts;
    const Index first = group * shares.group, last = std::min(scan.queries, first + shares.group);
    const Index from = cut(scan.rows, shares.parts, part), to = cut(scan.rows, shares.parts, part + 1);
    const Index most = std::min(k, to - from);
    std::vector<Near>& room = rooms[static_cast<std::size_t>(number)];
    room.resize(static_cast<std::size_t>((last - first) * most));
    std::vector<Nearest> nearest;
    for (Index i = first; i < last; ++i) nearest.emplace_back(room.data() + (i - first) * most, most);
    const auto of = [&](Index i) -> Nearest& { return nearest[static_cast<std::size_t>(i - first)]; };
    computed += with_terms(scan.measure, [&](auto term, auto join) {
      return go_through(
          scan, from, to, first, last, term, join, watch,
          [&](Index i) { return plain_bound<A>(scan.measure, scan.columns, of(i).worst()); },
          [&](Index i, Index row, double distance) { of(i).offer(distance, row); });
    });
    if (shares.parts > 1 || watch.over()) return;
    for (Index i = first; i < last; ++i) of(i).write(distances + i * k, rows + i * k);
    std::vector<Near>().swap(room);
  };
  if (!run_tasks(shares.groups * shares.parts, shares.team, stop, task)) return -1;
  if (shares.parts == 1) return computed;

  std::vector<Near> room(static_cast<std::size_t>(k));
  for (Index i = 0; i < scan.queries; ++i) {
    Nearest nearest(room.data(), k);
    const Index group = i / shares.group, place = i % shares.group;
    for (Index part = 0; part < shares.parts; ++part) {
      const auto& all = rooms[static_cast<std::size_t>(group * shares.parts + part)];
      const Index most =
          std::min(k, cut(scan.rows, shares.parts, part + 1) - cut(scan.rows, shares.parts, part));
      for (Index j = place * most; j < (place + 1) * most; ++j)
        nearest.offer(all[static_cast<std::size_t>(j)].distance, all[static_cast<std::size_t>(j)].row);
    }
    nearest.write(distances + i * k, rows + i * k);
  }
  return computed;
}

template <class T, class A>
Index scan_within(const Scan<T, A>& scan, double radius, Around& around, Stop& stop) {
  const Shares shares(scan, 32);
  const A bound = plain_bound<A>(scan.measure, scan.columns, radius);
  std::vector<std::vector<Near>> parts(static_cast<std::size_t>(scan.queries * shares.parts));
  std::atomic<Index> computed{0};
  const auto task = [&](Index number, Watch& watch) {
    const Index group = number / shares.parts, part = number % shares.parts;
    const Index first = group * shares.group, last = std::min(scan.queries, first + shares.group);
    const Index from = cut(scan.rows, shares.parts, part), to = cut(scan.rows, shares.parts, part + 1);
    computed += with_terms(scan.measure, [&](auto term, auto join) {
      return go_through(
          scan, from, to, first, last, term, join, watch, [&](Index) { return bound; },
          [&](Index i, Index row, double distance) {
            if (distance <= radius)
              parts[static_cast<std::size_t>(i * shares.parts + part)].push_back({distance, row});
          });
    });
  };
  if (!run_tasks(shares.groups * shares.parts, shares.team, stop, task)) return -1;
  around.ends.assign(1, 0);
  for (Index i = 0; i < scan.queries; ++i) {
    for (Index part = 0; part < shares.parts; ++part)
      for (const Near& near : parts[static_cast<std::size_t>(i * shares.parts + part)]) {
        around.distances.push_back(near.distance);
        around.rows.push_back(near.row);
      }
    around.ends.push_back(static_cast<Index>(around.rows.size()));
  }
  return computed;
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
