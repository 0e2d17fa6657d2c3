#include "neighbors/sparse/sparse_search.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/threads.hpp"
#include "neighbors/sparse/sparse_scan.hpp"

namespace sixfold {
namespace {

constexpr Index kCandidates = 1 << 9;  // places that wait for their exact distance

struct Candidate {
  double lower;  // bound of the sum of squares
  Index row;
};

// Keeps the k nearest. Upper bounds of k rows are a limit at once; exact distances are computed last, when
// few rows are left within it.
template <class T>
class NearestSink {
 public:
  double limit = kInfinity;
  Index computed = 0;

  NearestSink(const SparseRows<T>& X, const SparseRow<double>& q, const Measure& measure, Index k,
              Near* bounds, Near* nearest, Candidate* candidates, Watch& watch)
      : X_(X),
        q_(q),
        measure_(measure),
        bounds_(bounds, k),
        nearest_(nearest, k),
        candidates_(candidates),
        watch_(watch) {}

  void take(Index row, double lower, double upper) {
    if (count_ == kCandidates) settle();
    candidates_[count_++] = {lower, row};
    if (upper < bounds_.worst()) {
      bounds_.offer(upper, row);
      // Of rows that are equally far once the root is rounded the lower number is nearer.
      const double worst = bounds_.worst();
      tighten(measure_.root ? std::sqrt(worst) : worst);
    }
  }

  // Computes what waits.
  void settle() {
    const bool stopped = watch_.over();
    for (Index i = 0; i < count_ && !stopped; ++i) {
      if (candidates_[i].lower > limit) continue;
      nearest_.offer(exact_distance(measure_, X_.row(candidates_[i].row), q_), candidates_[i].row);
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
  Candidate* candidates_;
  Index count_ = 0;
  Watch& watch_;
};

// Keeps every row within the radius.
template <class T>
struct WithinSink {
  const SparseRows<T>& X;
  SparseRow<double> q;
  const Measure& measure;
  double radius;
  std::vector<Near>* found;
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
void fill_lists(const SparseRows<T>& X, const EmptyLists& to) {
  Index rest_end = 0;
  to.rest_starts[0] = 0;
  for (Index place = 0; place < X.count; ++place) {
    const SparseRow<T> row = X.row(to.order[place]);
    const double length = to.lengths[place];
    double rest_square = 0.0;
    for (Index k = 0; k < row.count; ++k) {
      const float value =
          length > 0.0 ? static_cast<float>(static_cast<double>(row.values[k]) / length) : 0.0F;
      const std::int32_t column = row.columns[k], rest = to.rest_of[column];
      if (rest >= 0) {
        to.rest_columns[rest_end] = rest;
        to.rest_values[rest_end++] = value;
        rest_square += static_cast<double>(value) * value;
      } else {
        const Index at = to.cursors[column]++;
        to.list_places[at] = static_cast<std::int32_t>(place);
        to.list_values[at] = value;
      }
    }
    to.rest_starts[place + 1] = rest_end;
    to.rest_lengths[place] = rounded_up(rest_square);
  }
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
  std::vector<Candidate> candidates(each(team, kCandidates));
  std::vector<Index> sizes(each(tasks, 1));
  std::atomic<Index> total{0};
  const bool finished = run_tasks(tasks, team, &stop, [&](Index task, Watch& watch) {
    const int me = omp_get_thread_num();
    const Index query = task / slices, slice = task % slices;
    Near* room = bounds.data() + me * k;
    Near* mine = found.data() + (slices == 1 ? me : task) * k;
    NearestSink<T> sink(X, queries.row(query), measure, k, room, mine, candidates.data() + me * kCandidates,
                        watch);
    scans[me].scan(queries.row(query), cut(X.count, slices, slice), cut(X.count, slices, slice + 1), sink,
                   watch);
    sink.settle();
    sizes[task] = sink.size();
    total += sink.computed;
    if (slices == 1) merge(mine, &sizes[task], 1, k, room, distances + query * k, rows + query * k);
  });
  *computed += total;
  if (!finished) return false;
  for (Index query = 0; slices > 1 && query < queries.count; ++query)
    merge(found.data() + query * slices * k, &sizes[query * slices], slices, k, bounds.data(),
          distances + query * k, rows + query * k);
  return true;
}

template <class T>
bool sparse_within(const SparseRows<T>& X, const InvertedLists& lists, const SparseRows<double>& queries,
                   const Measure& measure, double radius, std::vector<std::vector<Near>>* found,
                   Index* computed, Stop& stop) {
  const int team = static_cast<int>(std::clamp<Index>(queries.count, 1, threads()));
  std::vector<QueryScan<T>> scans(static_cast<std::size_t>(team),
                                  {X, lists, most_entries(queries.starts, queries.count)});
  found->assign(static_cast<std::size_t>(queries.count), {});
  std::atomic<Index> total{0};
  const bool finished = run_tasks(queries.count, team, &stop, [&](Index i, Watch& watch) {
    std::vector<Near>& mine = (*found)[i];
    WithinSink<T> sink{X, queries.row(i), measure, radius, &mine, raw_limit(measure, radius)};
    scans[omp_get_thread_num()].scan(sink.q, 0, X.count, sink, watch);
    std::sort(mine.begin(), mine.end(), [](const Near& a, const Near& b) { return a.row < b.row; });
    total += sink.computed;
  });
  *computed += total;
  return finished;
}

template double length(const SparseRow<double>&);
template double length(const SparseRow<float>&);
template void fill_lists(const SparseRows<double>&, const EmptyLists&);
template void fill_lists(const SparseRows<float>&, const EmptyLists&);
template bool sparse_nearest(const SparseRows<double>&, const InvertedLists&, const SparseRows<double>&,
                             const Measure&, Index, double*, Index*, Index*, Stop&);
template bool sparse_nearest(const SparseRows<float>&, const InvertedLists&, const SparseRows<double>&,
                             const Measure&, Index, double*, Index*, Index*, Stop&);
template bool sparse_within(const SparseRows<double>&, const InvertedLists&, const SparseRows<double>&,
                            const Measure&, double, std::vector<std::vector<Near>>*, Index*, Stop&);
template bool sparse_within(const SparseRows<float>&, const InvertedLists&, const SparseRows<double>&,
                            const Measure&, double, std::vector<std::vector<Near>>*, Index*, Stop&);

}  // namespace sixfold
