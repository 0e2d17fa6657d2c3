#include "sparse_search.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <limits>
#include <new>

#include "blas.hpp"
#include "nearest.hpp"

namespace sixfold {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kBlock = 1 << 15;      // places whose sums, 128 KB, stay in the second cache
constexpr Index kGroup = 64;           // places that one comparison may rule out
constexpr Index kCandidates = 1 << 9;  // places that wait for their exact distance
constexpr double kLong = 1e150;        // squares of greater lengths overflow

// What rounding can do to the bounds of one query. Write a, b for the computed lengths of x and q, m for the
// entries of q, N for the most entries of any row or query, u = 2^-24 for float and 2^-53 for double.
//
// (1) u_j and v_j are rounded to float (each within 1.01 u), their product once and the sum at most m + 1
//     times, so the computed c is off by at most gamma_(m+6) sum_j |x_j q_j| / (a b) <= gamma_(m+6) (1 +
//     1e-9) (Higham, Accuracy and Stability, 3.1). Numbers below the normal floats add at most 2^-149 a term,
//     which the two roundings that `in_cosine` has to spare cover many times.
// (2) |x|^2 = a^2 (1 + e) with |e| <= (N + 9) u, and the same for q; evaluating the bound costs a few u of
//     a^2 + b^2 + 2 a b <= 2 (a^2 + b^2); rounding the terms of the exact distance, 4 u of |x - q|^2, which
//     is at most 2 (a^2 + b^2). In all less than in_squares = (3 N + 64) u of a^2 + b^2.
// (3) Squares that underflow are off by DBL_MIN at most, one for each of the 2 N columns and a few more.
// (4) A row shorter than kShort is taken for zero, which misses at most 2 kShort b: less than u b^2, of which
//     (2) has some to spare, if b > 1e-270, and less than DBL_MIN if not. So is a short query.
//
// Where squares of lengths would overflow, or m is in the millions, nothing is ruled out.
struct Margin {
  double in_cosine, in_squares, absolute;

  static Margin of(Index entries, Index most, double longest, double b) {
    const double steps = static_cast<double>(entries + 8) * (FLT_EPSILON / 2);
    const double N = static_cast<double>(std::max(entries, most));
    if (steps > 0.25 || longest > kLong || b > kLong) return {kInfinity, 0.0, 0.0};
    return {steps / (1.0 - steps) * 1.01, (3.0 * N + 64.0) * (DBL_EPSILON / 2), (2.0 * N + 16.0) * DBL_MIN};
  }
};

struct Waiting {
  double lower;  // bound of the sum of squares
  Index row;
};

// Ends a loop early: the thread that called asks, the others are told.
struct Halt {
  Stop* stop;  // null for the others
  std::atomic<bool>* stopped;

  bool now() const {
    if (stop != nullptr && stop->now()) *stopped = true;
    return stopped->load(std::memory_order_relaxed);
  }
};

// What one thread needs to answer one query after the other.
template <class T>
class QueryScan {
 public:
  QueryScan(const SparseRows<T>& X, const InvertedLists& lists, Index most_entries)
      : X_(X),
        lists_(lists),
        sums_(static_cast<std::size_t>(std::min(kBlock, X.count))),
        rest_(static_cast<std::size_t>(lists.rest_columns)),
        cursors_(static_cast<std::size_t>(most_entries)),
        rest_used_(static_cast<std::size_t>(most_entries)) {}

  // Shows every place of first ... last that the sink's limit does not rule out to the sink.
  template <class Sink>
  void scan(const SparseRow<double>& q, Index first, Index last, Sink& sink, const Halt& halt) {
    open(q, first);
    for (Index from = first; from < last && !halt.now(); from += kBlock) {
      const Index to = std::min(from + kBlock, last);
      add_lists(from, to);
      for (Index at = from; at < to; at += kGroup) {
        const Index end = std::min(at + kGroup, to);
        if (may_hold(at, end, from, sink.limit))
          for (Index place = at; place < end; ++place) show(place, sums_[place - from], sink);
      }
    }
    for (Index k = 0; k < rest_count_; ++k) rest_[rest_used_[k]] = 0.0F;
  }

 private:
  struct Cursor {
    Index at, end;
    float value;
  };

  // Divides the query by its length and finds where its lists reach the first place.
  void open(const SparseRow<double>& q, Index first) {
    b_ = length(q);
    margin_ = Margin::of(q.count, lists_.most, lists_.lengths[X_.count - 1], b_);
    cursor_count_ = rest_count_ = 0;
    double rest_square = 0.0;
    for (Index j = 0; b_ > 0.0 && j < q.count; ++j) {
      const float value = static_cast<float>(q.values[j] / b_);
      const std::int32_t column = q.columns[j], rest = lists_.rest_of[column];
      if (rest >= 0) {
        rest_[rest] = value;
        rest_used_[rest_count_++] = rest;
        rest_square += static_cast<double>(value) * value;
        continue;
      }
      Cursor cursor{lists_.lists.starts[column], lists_.lists.starts[column + 1], value};
      if (first > 0) cursor.at = reach(cursor, first);
      if (cursor.at < cursor.end) cursors_[cursor_count_++] = cursor;
    }
    rest_length_ = static_cast<float>(std::sqrt(rest_square) * (1.0 + 1e-6));
  }

  Index reach(const Cursor& cursor, Index place) const {
    const std::int32_t* places = lists_.lists.columns;
    return std::lower_bound(places + cursor.at, places + cursor.end, place) - places;
  }

  // sums[i] = sum_j u_j v_j over the lists.
  void add_lists(Index from, Index to) {
    float* sums = sums_.data();
    std::fill_n(sums, to - from, 0.0F);
    sums -= from;
    const std::int32_t* places = lists_.lists.columns;
    const float* values = lists_.lists.values;
    for (Index j = 0; j < cursor_count_; ++j) {
      Cursor& cursor = cursors_[j];
      const Index end = to == X_.count ? cursor.end : reach(cursor, to);
      const float value = cursor.value;
      // The places of a list differ, so no sum waits for the one before.
#pragma GCC ivdep
#pragma GCC unroll 4
      for (Index k = cursor.at; k < end; ++k) sums[places[k]] += values[k] * value;
      cursor.at = end;
    }
  }

  // A lower bound of the squares that a row of length a has from the query, if c is not below its cosine.
  double lower(double a, double c) const {
    return (a * a + b_ * b_) * (1.0 - margin_.in_squares) - 2.0 * a * b_ * (c + margin_.in_cosine) -
           margin_.absolute;
  }

  double upper(double a, double c) const {
    return (a * a + b_ * b_) * (1.0 + margin_.in_squares) - 2.0 * a * b_ * (c - margin_.in_cosine) +
           margin_.absolute;
  }

  // Whether a row of this group may be within the limit. lower(a, c) > limit for every c below
  //     (a (1 - in_squares) + (b^2 (1 - in_squares) - absolute - limit) / a) / (2 b) - in_cosine,
  // whose least value over the group is bounded by the least and greatest a.
  bool may_hold(Index at, Index end, Index from, double limit) const {
    const double shortest = lists_.lengths[at], longest = lists_.lengths[end - 1];
    if (b_ == 0.0 || shortest == 0.0 || !(limit < kLong * kLong)) return true;
    const double kept = 1.0 - margin_.in_squares;
    const double numerator = b_ * b_ * kept - margin_.absolute - limit * (1.0 + 8.0 * DBL_EPSILON);
    const double least = (shortest * kept + numerator / (numerator > 0.0 ? longest : shortest)) / (2.0 * b_) -
                         margin_.in_cosine;
    // Down by more than a rounding to float.
    const float bar = static_cast<float>(least - 1e-7 * std::abs(least) - 1e-30);
    const float* sums = sums_.data() - from;
    const float rest_length = rest_length_;
    int count = 0;
#pragma omp simd reduction(+ : count)
    for (Index i = at; i < end; ++i) count += !(sums[i] + lists_.rest_lengths[i] * rest_length < bar);
    return count > 0;
  }

  template <class Sink>
  void show(Index place, float sum, Sink& sink) const {
    const double a = lists_.lengths[place];
    if (lower(a, sum + lists_.rest_lengths[place] * rest_length_) > sink.limit) return;
    const SparseRow<float> rest = lists_.rest.row(place);
    float added = 0.0F;
    for (Index k = 0; k < rest.count; ++k) added += rest.values[k] * rest_[rest.columns[k]];
    const double cosine = sum + added, least = lower(a, cosine);
    if (!(least > sink.limit)) sink.take(lists_.order[place], least, upper(a, cosine));
  }

  const SparseRows<T>& X_;
  const InvertedLists& lists_;
  std::vector<float> sums_, rest_;
  std::vector<Cursor> cursors_;
  std::vector<std::int32_t> rest_used_;
  Index cursor_count_ = 0, rest_count_ = 0;
  double b_ = 0.0;
  float rest_length_ = 0.0F;
  Margin margin_{};
};

// Keeps the k nearest. Upper bounds of k rows are a limit at once; exact distances are computed last, when
// few rows are left within it.
template <class T>
class NearestSink {
 public:
  double limit = kInfinity;
  Index computed = 0;

  NearestSink(const SparseRows<T>& X, const SparseRow<double>& q, const Measure& measure, Index k,
              Near* bounds, Near* nearest, Waiting* waiting, const Halt& halt)
      : X_(X),
        q_(q),
        measure_(measure),
        bounds_(bounds, k),
        nearest_(nearest, k),
        waiting_(waiting),
        halt_(halt) {}

  void take(Index row, double lower, double upper) {
    if (count_ == kCandidates) settle();
    waiting_[count_++] = {lower, row};
    if (upper < bounds_.worst()) {
      bounds_.offer(upper, row);
      // Of rows that are equally far once the root is rounded the lower number is nearer.
      const double worst = bounds_.worst();
      tighten(measure_.root ? std::sqrt(worst) : worst);
    }
  }

  // Computes what waits.
  void settle() {
    const bool stopped = halt_.now();
    for (Index i = 0; i < count_ && !stopped; ++i) {
      if (waiting_[i].lower > limit) continue;
      nearest_.offer(exact_distance(measure_, X_.row(waiting_[i].row), q_), waiting_[i].row);
      tighten(nearest_.worst());
      ++computed;
    }
    count_ = 0;
  }

  Index size() const { return nearest_.size(); }

 private:
  void tighten(double distance) { limit = std::min(limit, raw_limit(measure_, distance)); }

  const SparseRows<T>& X_;
  SparseRow<double> q_;
  const Measure& measure_;
  Nearest bounds_, nearest_;
  Waiting* waiting_;
  Index count_ = 0;
  const Halt& halt_;
};

// Keeps every row within the radius.
template <class T>
struct WithinSink {
  const SparseRows<T>& X;
  SparseRow<double> q;
  const Measure& measure;
  double radius;
  std::vector<Found>* found;
  double limit;
  Index computed = 0;

  void take(Index row, double, double) {
    const double distance = exact_distance(measure, X.row(row), q);
    if (distance <= radius) found->push_back({distance, row});
    ++computed;
  }
};

Index most_entries(const Index* starts, Index count) {
  Index most = 0;
  for (Index i = 0; i < count; ++i) most = std::max(most, starts[i + 1] - starts[i]);
  return most;
}

// Few queries are cut along the places as well, so that every thread has work: by size alone, so that the
// same distances are computed for any number of threads.
Index slices_for(Index queries, Index rows, Index k) {
  constexpr Index kFew = 16, kSlice = 1 << 14;
  return queries >= kFew || k > kSlice / 4 ? 1 : std::clamp<Index>(rows / kSlice, 1, kFew);
}

// Writes the nearest of what was found in the slices of a query, `sizes` of them in rooms of k.
void merge(const Near* found, const Index* sizes, Index slices, Index k, Near* room, double* distances,
           Index* rows) {
  Nearest best(room, k);
  for (Index slice = 0; slice < slices; ++slice)
    for (Index n = 0; n < sizes[slice]; ++n)
      best.offer(found[slice * k + n].distance, found[slice * k + n].row);
  best.write(distances, rows);
}

}  // namespace

template <class T>
double length(const SparseRow<T>& row) {
  double greatest = 0.0;
  for (Index j = 0; j < row.count; ++j)
    greatest = std::max(greatest, std::abs(static_cast<double>(row.values[j])));
  if (greatest == 0.0) return 0.0;
  double sum = 0.0;
  for (Index j = 0; j < row.count; ++j) {
    const double part = static_cast<double>(row.values[j]) / greatest;
    sum += part * part;
  }
  const double found = greatest * std::sqrt(sum);
  return found < kShort ? 0.0 : found;
}

template <class T>
bool sparse_nearest(const SparseRows<T>& X, const InvertedLists& lists, const SparseRows<double>& queries,
                    const Measure& measure, Index k, double* distances, Index* rows, Index* computed,
                    Stop& stop) {
  const Index slices = slices_for(queries.count, X.count, k), tasks = queries.count * slices;
  const int team = static_cast<int>(std::clamp<Index>(tasks, 1, threads()));
  const auto each = [](Index count, Index room) { return static_cast<std::size_t>(count * room); };
  std::vector<QueryScan<T>> scans(each(team, 1), {X, lists, most_entries(queries.starts, queries.count)});
  std::vector<Near> bounds(each(team, k)), found(each(slices == 1 ? team : tasks, k));
  std::vector<Waiting> waiting(each(team, kCandidates));
  std::vector<Index> sizes(each(tasks, 1));
  std::atomic<bool> stopped{false};
  Index total = 0;
#pragma omp parallel for schedule(dynamic) num_threads(team) reduction(+ : total)
  for (Index task = 0; task < tasks; ++task) {
    const int me = omp_get_thread_num();
    const Halt halt{me == 0 ? &stop : nullptr, &stopped};
    const Index query = task / slices, slice = task % slices;
    Near* room = bounds.data() + me * k;
    Near* mine = found.data() + (slices == 1 ? me : task) * k;
    NearestSink<T> sink(X, queries.row(query), measure, k, room, mine, waiting.data() + me * kCandidates,
                        halt);
    scans[me].scan(queries.row(query), cut(X.count, slices, slice), cut(X.count, slices, slice + 1), sink,
                   halt);
    sink.settle();
    sizes[task] = sink.size();
    total += sink.computed;
    if (slices == 1) merge(mine, &sizes[task], 1, k, room, distances + query * k, rows + query * k);
  }
  *computed += total;
  for (Index query = 0; slices > 1 && query < queries.count; ++query)
    merge(found.data() + query * slices * k, &sizes[query * slices], slices, k, bounds.data(),
          distances + query * k, rows + query * k);
  return !stopped;
}

template <class T>
bool sparse_within(const SparseRows<T>& X, const InvertedLists& lists, const SparseRows<double>& queries,
                   const Measure& measure, double radius, std::vector<std::vector<Found>>* found,
                   Index* computed, Stop& stop) {
  const int team = static_cast<int>(std::clamp<Index>(queries.count, 1, threads()));
  std::vector<QueryScan<T>> scans(static_cast<std::size_t>(team),
                                  {X, lists, most_entries(queries.starts, queries.count)});
  found->assign(static_cast<std::size_t>(queries.count), {});
  std::atomic<bool> stopped{false}, full{false};
  Index total = 0;
#pragma omp parallel for schedule(dynamic) num_threads(team) reduction(+ : total)
  for (Index i = 0; i < queries.count; ++i) {
    const int me = omp_get_thread_num();
    const Halt halt{me == 0 ? &stop : nullptr, &stopped};
    std::vector<Found>& mine = (*found)[i];
    WithinSink<T> sink{X, queries.row(i), measure, radius, &mine, raw_limit(measure, radius)};
    try {
      scans[me].scan(sink.q, 0, X.count, sink, halt);
      std::sort(mine.begin(), mine.end(), [](const Found& a, const Found& b) { return a.row < b.row; });
    } catch (const std::bad_alloc&) {  // must not leave the thread
      full = stopped = true;
    }
    total += sink.computed;
  }
  *computed += total;
  if (full) throw std::bad_alloc();
  return !stopped;
}

template double length(const SparseRow<double>&);
template double length(const SparseRow<float>&);
template bool sparse_nearest(const SparseRows<double>&, const InvertedLists&, const SparseRows<double>&,
                             const Measure&, Index, double*, Index*, Index*, Stop&);
template bool sparse_nearest(const SparseRows<float>&, const InvertedLists&, const SparseRows<double>&,
                             const Measure&, Index, double*, Index*, Index*, Stop&);
template bool sparse_within(const SparseRows<double>&, const InvertedLists&, const SparseRows<double>&,
                            const Measure&, double, std::vector<std::vector<Found>>*, Index*, Stop&);
template bool sparse_within(const SparseRows<float>&, const InvertedLists&, const SparseRows<double>&,
                            const Measure&, double, std::vector<std::vector<Found>>*, Index*, Stop&);

}  // namespace sixfold
