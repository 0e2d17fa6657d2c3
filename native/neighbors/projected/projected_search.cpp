#include "neighbors/projected/projected_search.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cfloat>
#include <cmath>
#include <memory>
#include <type_traits>

#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "neighbors/projected/candidates.hpp"
#include "neighbors/projected/lower_bounds.hpp"
#include "neighbors/projected/tile_products.hpp"

namespace sixfold {
namespace {

// Features of a block of rows: a quarter of a usual second-level cache.
constexpr Index kBlockBytes = 1 << 18;
constexpr Index kMostBlockRows = 512;
constexpr Index kPrefetched = 1 << 13;  // bytes of a row
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The rows that give a query its first threshold, where rows cannot wait for one by their products: of one
// panel in `every`, the `tried` k with the least coarse bounds, of which the fine bound, if there is one,
// chooses about k to be computed. Products of whole rows cost too much for a large sample. Projected bounds
// are cheap, and so loose that rows with the least of them are not the nearest: one panel in 4 left 15% fewer
// distances than one in 32. A sample of n / every rows costs as many products and leaves about k every rows,
// each of which takes as long as 30 products: for 5 neighbours the sum is least at every = sqrt(n / 150).
struct Sample {
  Index every, tried;

  Sample(bool projected, Index rows)
      : every(projected ? 4
                        : std::clamp<Index>(static_cast<Index>(std::sqrt(static_cast<double>(rows) / 150.0)),
                                            4, 32)),
        tried(projected ? 4 : 1) {}
  bool serves(Index rows, Index k) const { return panels_of(rows) >= 2 * every && rows >= 2 * every * k; }
};

// -- sums of squares in the rows' own precision -------------------------------------------------------------

// Floats where rows and query are floats, else doubles.
template <class T, class Q>
using Working = std::conditional_t<std::is_same_v<T, float> && std::is_same_v<Q, float>, float, double>;

template <class T, class Q>
Working<T, Q> plain_squares(const T* __restrict x, const Q* __restrict q, Index columns) {
  using Real = Working<T, Q>;
  constexpr Index kSums = 4 * kFloatLanes;
  Real sums[kSums] = {};
  Index j = 0;
  for (; j + kSums <= columns; j += kSums) {
#pragma GCC unroll 4
    for (Index part = 0; part < kSums; part += kFloatLanes) {
#pragma omp simd
      for (Index l = part; l < part + kFloatLanes; ++l) {
        const Real difference = static_cast<Real>(x[j + l]) - static_cast<Real>(q[j + l]);
        sums[l] += difference * difference;
      }
    }
  }
  Real total = 0;
  for (; j < columns; ++j) {
    const Real difference = static_cast<Real>(x[j]) - static_cast<Real>(q[j]);
    total += difference * difference;
  }
  for (Index half = kSums / 2; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) sums[l] += sums[l + half];
  return total + sums[0];
}

// Whether the row is farther than `limit`, an upper bound of the real sum of squares of rows that are not.
//
// Differences, squares and sums of d terms, none negative, are right to g = n u / (1 - n u), n = d + 4, so a
// sum above limit (1 + 2 g) is of a farther row; each term may also lose the smallest normal number. A sum
// that overflows says nothing.
template <class T, class Q>
bool surely_farther(const T* x, const Q* q, Index columns, double limit) {
  using Real = Working<T, Q>;
  constexpr double kUnit = std::numeric_limits<Real>::epsilon() / 2;
  const double n = static_cast<double>(columns + 4);
  if (n * kUnit > 0.125) return false;
  const double sum = static_cast<double>(plain_squares(x, q, columns));
  return sum < kInfinity && sum > limit * (1.0 + 3.0 * n * kUnit) + n * std::numeric_limits<Real>::min();
}

// -- one group of queries against one part of the rows --------------------------------------------------

template <class T, class Q>
class Sweep {
 public:
  Sweep(const SearchTables<T, Q>& tables, Index first, Index last)
      : tables_(tables), sample_(tables.fine != nullptr, tables.rows), first_(first), count_(last - first) {
    const Index strips = (count_ + kStripQueries - 1) / kStripQueries;
    const Index width = tables.coarse_width;
    strips_.assign(static_cast<std::size_t>(strips * width * kStripQueries), 0.0f);
    least_.assign(static_cast<std::size_t>(strips * kStripQueries), std::numeric_limits<float>::infinity());
    fine_least_.assign(static_cast<std::size_t>(count_), -std::numeric_limits<float>::infinity());
    limits_.assign(static_cast<std::size_t>(count_), kInfinity);
    for (Index i = 0; i < count_; ++i)
      for (Index j = 0; j < width; ++j)
        strips_[static_cast<std::size_t>((i / kStripQueries * width + j) * kStripQueries +
                                         i % kStripQueries)] = tables.query_coarse[(first + i) * width + j];
    if constexpr (!std::is_same_v<T, std::uint8_t> || !std::is_same_v<Q, std::uint8_t>) {
      if constexpr (!std::is_same_v<Q, double>)
        converted_.assign(tables.queries + first * tables.columns, tables.queries + last * tables.columns);
    }
  }

  Index count() const { return count_; }
  Index strips() const { return (count_ + kStripQueries - 1) / kStripQueries; }
  const Passed& passed() const { return passed_; }

  // Rules out, from now on, rows whose reported distance from query i of the group is above `distance`.
  void limit(Index i, double distance) {
    // The reported sum is the real one but for 8 roundings and what underflows.
    const double real = raw_limit(tables_.measure, distance) * (1.0 + 0x1p-45) + DBL_MIN;
    limits_[static_cast<std::size_t>(i)] = real;
    const double scaled = 0.5 * (1.0 + kSpread) * (1.0 + 0x1p-40) * (real * tables_.scale) * tables_.scale;
    least_[static_cast<std::size_t>(i)] = rounded_down(tables_.coarse_base[first_ + i] - scaled);
    if (tables_.fine != nullptr)
      fine_least_[static_cast<std::size_t>(i)] = rounded_down(tables_.fine_base[first_ + i] - scaled);
  }

  // Calls take(query of the group, distance, row) for all rows of the panels that no bound rules out.
  template <class Take>
  void visit(Index strip, Index first_panel, Index last_panel, Take&& take) {
    std::uint32_t passed[kStripQueries];
    for (Index panel = first_panel; panel < last_panel; ++panel) {
      tile_products<false>(panel_at(panel), strip_at(strip), tables_.coarse_width, least_at(strip), passed,
                           nullptr);
      for (Index j = 0; j < kStripQueries; ++j) {
        if (passed[j] != 0) check(strip * kStripQueries + j, panel, passed[j] & there(panel), take);
      }
    }
  }

  // Before the first collect().
  void make_room(Index k) {
    k_ = k;
    candidates_.make_room(strips() * kStripQueries, k);
  }

  // Keeps the rows of the panels that no product rules out as candidates. Those of a query that are too many
  // although their products have been compared go to take(query of the group, distance, row).
  template <class Take>
  void collect(Index strip, Index first_panel, Index last_panel, Take&& take) {
    for (Index panel = first_panel; panel < last_panel; ++panel) {
      const Index first = strip * kStripQueries;
      std::uint32_t full = candidates_.add(panel_at(panel), strip_at(strip), tables_.coarse_width,
                                           least_at(strip), first, panel * kPanelRows, there(panel));
      for (; full != 0; full &= full - 1) {
        const Index i = first + std::countr_zero(full);
        lower_limit(i, k_ / 8);
        if (candidates_.crowded(i)) check_candidates(i, take);
        candidates_.wait(i);
      }
    }
  }

  // Calls take for all candidates of a query that are left.
  template <class Take>
  void check_candidates(Index i, Take&& take) {
    const std::int32_t* rows = candidates_.rows_of(i);
    const float* products = candidates_.products_of(i);
    for (Index c = 0; c < candidates_.size(i); ++c)
      if (products[c] >= least_[static_cast<std::size_t>(i)]) measure(i, rows[c], take);
    candidates_.clear(i);
  }

  // The same of candidates by the fine bound: the k rows that it says are nearest rule out most others.
  template <class Take>
  void check_best_first(Index i, Take&& take) {
    const Index count = candidates_.size(i);
    const std::int32_t* rows = candidates_.rows_of(i);
    const float* products = candidates_.products_of(i);
    const float best = count > k_ ? candidates_.kth_product(i, k_, k_ / 8) : -FLT_MAX;
    for (Index c = 0; c < count; ++c) {
      if (c + 1 < count) prefetch(rows[c + 1]);
      if (products[c] < best) continue;
      ++passed_.fine;
      take(i, distance(i, rows[c]), rows[c]);  // few of these are farther than the k-th
    }
    for (Index c = 0; c < count; ++c)
      if (products[c] < best && products[c] >= fine_least_[static_cast<std::size_t>(i)])
        measure(i, rows[c], take);
    candidates_.clear(i);
  }

  template <class Take>
  void check_last_candidates(Index i, Take&& take) {
    lower_limit(i, k_ / 32);
    check_candidates(i, take);
  }

  // Instead, if none has been taken before: writes the k nearest of them.
  void write_candidates(Index i, double* distances, Index* rows) {
    lower_limit(i, k_ / 32);
    const Index count = candidates_.size(i);
    const std::int32_t* numbers = candidates_.rows_of(i);
    double* found = nearest_.make_room(count);
    for (Index c = 0; c < count; ++c) {
      if (c + 1 < count) prefetch(numbers[c + 1]);
      found[c] = distance(i, numbers[c]);
    }
    passed_.coarse += count;
    passed_.fine += count;
    nearest_.write(numbers, count, k_, distances, rows);
  }

  // worst[query]: the k-th nearest of the rows in the sample that have the least bounds.
  void sample_worst(Index strip, Index k, double* worst) {
    const Index first = strip * kStripQueries, here = std::min(kStripQueries, count_ - first);
    const Index tried = sample_.tried * k, few = k + k / 4 + 1;
    sampled_.make_room(kStripQueries, tried);
    float least[kStripQueries];
    std::fill_n(least, kStripQueries, std::numeric_limits<float>::infinity());
    std::fill_n(least, here, -FLT_MAX);
    for (Index panel = 0; panel < panels_of(tables_.rows); panel += sample_.every) {
      std::uint32_t full = sampled_.add(panel_at(panel), strip_at(strip), tables_.coarse_width, least, 0,
                                        panel * kPanelRows, there(panel));
      for (; full != 0; full &= full - 1) {
        const Index j = std::countr_zero(full);
        least[j] = sampled_.keep_greatest(j);
      }
    }
    for (Index j = 0; j < here; ++j) {
      const std::int32_t* rows = sampled_.rows_of(j);
      float* products = sampled_.products_of(j);
      if (sampled_.size(j) < k) continue;
      if (sampled_.size(j) > tried) sampled_.drop_below(j, sampled_.kth_product(j, tried, tried / 8));
      if (tables_.fine != nullptr && sampled_.size(j) > few) {  // which knows better what is near
        for (Index c = 0; c < sampled_.size(j); ++c) products[c] = fine_product(first + j, rows[c]);
        sampled_.drop_below(j, sampled_.kth_product(j, few, k / 8));
      }
      distances_.clear();
      for (Index c = 0; c < sampled_.size(j); ++c) {
        if (c + 1 < sampled_.size(j)) prefetch(rows[c + 1]);
        distances_.push_back(at_most(first + j, rows[c]));
      }
      std::nth_element(distances_.begin(), distances_.begin() + (k - 1), distances_.end());
      worst[first + j] = distances_[static_cast<std::size_t>(k - 1)];
    }
  }

 private:
  static float rounded_down(double value) {
    if (!(value > -double{FLT_MAX})) return -std::numeric_limits<float>::infinity();
    return std::nextafter(static_cast<float>(std::min(value, double{FLT_MAX})), -FLT_MAX);
  }

  const float* panel_at(Index panel) const {
    return tables_.coarse + panel * tables_.coarse_width * kPanelRows;
  }
  const float* strip_at(Index strip) const {
    return strips_.data() + strip * tables_.coarse_width * kStripQueries;
  }
  const float* least_at(Index strip) const { return least_.data() + strip * kStripQueries; }

  // The rows that a panel has, as bits.
  std::uint32_t there(Index panel) const {
    const Index left = tables_.rows - panel * kPanelRows;
    return left >= kPanelRows ? ~std::uint32_t{0} : (std::uint32_t{1} << left) - 1;
  }

  // The row will be needed next.
  void prefetch(Index row) const {
    const auto* from = reinterpret_cast<const char*>(tables_.X + row * tables_.columns);
    const Index bytes = std::min<Index>(tables_.columns * static_cast<Index>(sizeof(T)), kPrefetched);
    for (Index byte = 0; byte < bytes; byte += 64) __builtin_prefetch(from + byte);
  }

  double distance(Index i, Index row) const {
    const T* x = tables_.X + row * tables_.columns;
    if constexpr (std::is_same_v<T, std::uint8_t> && std::is_same_v<Q, std::uint8_t>)
      return exact_distance(tables_.measure, x, query(i), tables_.columns);
    else if constexpr (std::is_same_v<Q, double>)
      return exact_distance(tables_.measure, x, query(i), tables_.columns);
    else
      return exact_distance(tables_.measure, x, converted_.data() + i * tables_.columns, tables_.columns);
  }

  // A distance that is no less than the reported one (by the proof above): of rows in a sample nothing more
  // has to be known, and the time of a query falls by a sixth.
  double at_most(Index i, Index row) const {
    if constexpr (std::is_same_v<T, std::uint8_t> && std::is_same_v<Q, std::uint8_t>) {
      return distance(i, row);
    } else {
      using Real = Working<T, Q>;
      const double n = static_cast<double>(tables_.columns + 4);
      const double slack = 3.0 * n * std::numeric_limits<Real>::epsilon() / 2;
      const double sum = double{plain_squares(tables_.X + row * tables_.columns, query(i), tables_.columns)};
      if (slack > 0.25 || !(sum < kInfinity)) return distance(i, row);
      const double raw = sum * (1.0 + slack) + n * std::numeric_limits<Real>::min();
      return tables_.measure.root ? std::sqrt(raw) * (1.0 + 4 * DBL_EPSILON) : raw;
    }
  }

  const Q* query(Index i) const { return tables_.queries + (first_ + i) * tables_.columns; }

  float fine_product(Index i, Index row) const {
    const float* f = tables_.fine + row * kFineWidth;
    const float* g = tables_.query_fine + (first_ + i) * kFineWidth;
    FloatLanes sum = {}, other = {};
#pragma GCC unroll 20
    for (Index j = 0; j < kFineWidth; j += kFloatLanes) {
      FloatLanes& to = j / kFloatLanes % 2 == 0 ? sum : other;
      to += load_floats(f + j) * load_floats(g + j);
    }
    return sum_of_lanes(sum + other);
  }

  // Lowers the limit of a query to what the products of its candidates allow, and drops those it rules out.
  void lower_limit(Index i, Index extra) {
    const double base = tables_.coarse_base[first_ + i];
    if (candidates_.size(i) <= k_ + extra || !(base > -kInfinity)) return;
    const float product = candidates_.kth_product(i, k_, extra, kMostProduct);
    if (!(product < kMostProduct)) return;  // rows that are never ruled out say nothing about others
    const double squares = squares_at_most(base, double{product}, tables_.coarse_width);
    const double raw = squares / tables_.scale / tables_.scale * (1.0 + 0x1p-45) + DBL_MIN;
    const double distance = tables_.measure.root ? std::sqrt(raw) * (1.0 + 4 * DBL_EPSILON) : raw;
    if (raw < limits_[static_cast<std::size_t>(i)]) limit(i, distance);
    candidates_.drop_below(i, least_[static_cast<std::size_t>(i)]);
  }

  // Rows of a panel that have passed the coarse bound. Those that pass the fine one too wait, if there is
  // room.
  template <class Take>
  void check(Index i, Index panel, std::uint32_t bits, Take& take) {
    for (; bits != 0; bits &= bits - 1) {
      const Index row = panel * kPanelRows + std::countr_zero(bits);
      ++passed_.coarse;
      if (tables_.fine == nullptr) {
        measure(i, row, take);
        continue;
      }
      const float product = fine_product(i, row);
      if (product < fine_least_[static_cast<std::size_t>(i)]) continue;
      if (k_ == 0)
        measure(i, row, take);
      else if (candidates_.add(i, product, row))
        check_best_first(i, take);
    }
  }

  // A row that has passed all bounds.
  template <class Take>
  void measure(Index i, Index row, Take& take) {
    ++passed_.fine;
    if constexpr (!std::is_same_v<T, std::uint8_t> || !std::is_same_v<Q, std::uint8_t>) {
      if (surely_farther(tables_.X + row * tables_.columns, query(i), tables_.columns,
                         limits_[static_cast<std::size_t>(i)]))
        return;
    }
    take(i, distance(i, row), row);
  }

  SearchTables<T, Q> tables_;
  Sample sample_;
  Index first_, count_;
  std::vector<float> strips_, least_, fine_least_;  // [strip][coordinate][query of the strip]; a query
  std::vector<double> limits_, converted_;          // a query; queries as doubles
  Index k_ = 0;
  Candidates candidates_, sampled_;
  std::vector<double> distances_;
  NearestFirst nearest_;
  Passed passed_;
};

// -- groups of queries and parts of rows, dealt out to threads ------------------------------------------

struct Plan {
  Index group, groups, parts, block;  // queries a group; groups; parts the rows are cut into; panels a block

  template <class T, class Q>
  explicit Plan(const SearchTables<T, Q>& tables) {
    const Index team = threads(), bytes = tables.coarse_width * static_cast<Index>(sizeof(float));
    // Four groups a thread even out what they take; larger ones than 1 MB of features would not stay in
    // cache.
    const Index even = (tables.query_count + 4 * team - 1) / (4 * team);
    const Index most = std::clamp<Index>((1 << 20) / bytes, 2 * kStripQueries, 100 * kStripQueries);
    group = (std::clamp<Index>(even, 1, most) + kStripQueries - 1) / kStripQueries * kStripQueries;
    groups = (tables.query_count + group - 1) / group;
    parts = groups >= team ? 1 : std::min(team, panels_of(tables.rows));
    block = std::clamp<Index>(kBlockBytes / (bytes * kPanelRows), 1, kMostBlockRows / kPanelRows);
  }
};

// Runs work(sweep, first query, part, watch, visit) for every group and part; visit(look) goes through the
// part's rows block by block, look(strip, first panel, last panel), up to where the loop has to end.
template <class T, class Q, class Work>
bool deal_out(const SearchTables<T, Q>& tables, const Plan& plan, Passed& passed, Stop& stop, Work&& work) {
  const Index panels = panels_of(tables.rows), tasks = plan.groups * plan.parts;
  const int team = static_cast<int>(std::clamp<Index>(tasks, 1, threads()));
  std::atomic<Index> coarse = 0, fine = 0;
  const bool finished = run_tasks(tasks, team, &stop, [&](Index task, Watch& watch) {
    const Index group = task / plan.parts, part = task % plan.parts;
    const Index first = group * plan.group, last = std::min(tables.query_count, first + plan.group);
    Sweep<T, Q> sweep(tables, first, last);
    const auto visit = [&](auto&& look) {
      const Index end = cut(panels, plan.parts, part + 1);
      for (Index panel = cut(panels, plan.parts, part); panel < end; panel += plan.block)
        for (Index strip = 0; strip < sweep.strips(); ++strip) {
          if (watch.over()) return;
          look(strip, panel, std::min(end, panel + plan.block));
        }
    };
    work(sweep, first, part, watch, visit);
    coarse += sweep.passed().coarse;
    fine += sweep.passed().fine;
  });
  passed = {coarse, fine};
  return finished;
}

}  // namespace

template <class T, class Q>
bool nearest_by_bounds(const SearchTables<T, Q>& tables, Index k, double* distances, Index* rows,
                       Passed& passed, Stop& stop) {
  const Plan plan(tables);
  const Index count = tables.query_count;
  const auto room = std::make_unique_for_overwrite<Near[]>(static_cast<std::size_t>(count * plan.parts * k));
  std::vector<Nearest> heaps;
  for (Index i = 0; i < count * plan.parts; ++i) heaps.emplace_back(room.get() + i * k, k);
  const bool numbered = tables.rows <= std::numeric_limits<std::int32_t>::max();
  const bool waits = k <= kMostCandidates && numbered;
  const bool collects = waits && tables.fine == nullptr && bounds_above(tables.coarse_width);
  const bool sampled =
      !collects && numbered && Sample(tables.fine != nullptr, tables.rows).serves(tables.rows, k);
  const bool finished = deal_out(
      tables, plan, passed, stop, [&](auto& sweep, Index first, Index part, Watch& watch, auto&& visit) {
        std::vector<double> worst(static_cast<std::size_t>(sweep.count()), kInfinity);
        const auto heap_of = [&](Index i) -> Nearest& {
          return heaps[static_cast<std::size_t>((first + i) * plan.parts + part)];
        };
        const auto take = [&](Index i, double distance, Index row) {
          Nearest& heap = heap_of(i);
          heap.offer(distance, row);
          if (heap.worst() < worst[static_cast<std::size_t>(i)])
            sweep.limit(i, worst[static_cast<std::size_t>(i)] = heap.worst());
        };
        if (collects || (waits && tables.fine != nullptr)) sweep.make_room(k);
        if (!collects) {
          for (Index strip = 0; sampled && strip < sweep.strips() && !watch.over(); ++strip)
            sweep.sample_worst(strip, k, worst.data());
          for (Index i = 0; i < sweep.count(); ++i) sweep.limit(i, worst[static_cast<std::size_t>(i)]);
          visit([&](Index strip, Index from, Index to) { sweep.visit(strip, from, to, take); });
          for (Index i = 0; waits && tables.fine != nullptr && i < sweep.count() && !watch.over(); ++i)
            sweep.check_best_first(i, take);
          return;
        }
        for (Index i = 0; i < sweep.count(); ++i) sweep.limit(i, kInfinity);
        visit([&](Index strip, Index from, Index to) { sweep.collect(strip, from, to, take); });
        for (Index i = 0; i < sweep.count() && !watch.over(); ++i) {
          if (plan.parts > 1 || heap_of(i).size() > 0)
            sweep.check_last_candidates(i, take);
          else
            sweep.write_candidates(i, distances + (first + i) * k, rows + (first + i) * k);
        }
      });
  if (!finished) return false;
  for (Index i = 0; i < count; ++i) {
    Nearest& all = heaps[static_cast<std::size_t>(i * plan.parts)];
    for (Index part = 1; part < plan.parts; ++part) {
      const Near* from = room.get() + (i * plan.parts + part) * k;
      const Index size = heaps[static_cast<std::size_t>(i * plan.parts + part)].size();
      for (Index j = 0; j < size; ++j) all.offer(from[j].distance, from[j].row);
    }
    all.write(distances + i * k, rows + i * k);  // nothing where candidates were written
  }
  return true;
}

template <class T, class Q>
bool within_by_bounds(const SearchTables<T, Q>& tables, double radius, std::vector<std::vector<Near>>& found,
                      Passed& passed, Stop& stop) {
  const Plan plan(tables);
  const Index count = tables.query_count;
  std::vector<std::vector<Near>> parts(static_cast<std::size_t>(count * plan.parts));
  const bool finished =
      deal_out(tables, plan, passed, stop, [&](auto& sweep, Index first, Index part, Watch&, auto&& visit) {
        for (Index i = 0; i < sweep.count(); ++i) sweep.limit(i, radius);
        const auto take = [&](Index i, double distance, Index row) {
          if (distance <= radius)
            parts[static_cast<std::size_t>((first + i) * plan.parts + part)].push_back({distance, row});
        };
        visit([&](Index strip, Index from, Index to) { sweep.visit(strip, from, to, take); });
      });
  if (!finished) return false;
  found.resize(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) {  // blocks, panels, bits and parts go up: already by row number
    auto& all = found[static_cast<std::size_t>(i)];
    for (Index part = 0; part < plan.parts; ++part) {
      const auto& some = parts[static_cast<std::size_t>(i * plan.parts + part)];
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  return true;
}

template bool nearest_by_bounds(const SearchTables<float, float>&, Index, double*, Index*, Passed&, Stop&);
template bool nearest_by_bounds(const SearchTables<float, double>&, Index, double*, Index*, Passed&, Stop&);
template bool nearest_by_bounds(const SearchTables<double, double>&, Index, double*, Index*, Passed&, Stop&);
template bool nearest_by_bounds(const SearchTables<std::uint8_t, std::uint8_t>&, Index, double*, Index*,
                                Passed&, Stop&);
template bool nearest_by_bounds(const SearchTables<std::uint8_t, double>&, Index, double*, Index*, Passed&,
                                Stop&);
template bool within_by_bounds(const SearchTables<float, float>&, double, std::vector<std::vector<Near>>&,
                               Passed&, Stop&);
template bool within_by_bounds(const SearchTables<float, double>&, double, std::vector<std::vector<Near>>&,
                               Passed&, Stop&);
template bool within_by_bounds(const SearchTables<double, double>&, double, std::vector<std::vector<Near>>&,
                               Passed&, Stop&);
template bool within_by_bounds(const SearchTables<std::uint8_t, std::uint8_t>&, double,
                               std::vector<std::vector<Near>>&, Passed&, Stop&);
template bool within_by_bounds(const SearchTables<std::uint8_t, double>&, double,
                               std::vector<std::vector<Near>>&, Passed&, Stop&);

}  // namespace sixfold
