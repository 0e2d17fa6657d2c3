// What searches that go through all rows share: who looks at which rows for which queries, and how the
// answers are put together. Nothing here depends on the number of threads but the time it takes.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "neighbors/nearest.hpp"

namespace sixfold {

// All rows near each query: those of query i are at ends[i] to ends[i + 1] of the other two, by number.
struct RadiusResult {
  std::vector<Index> ends;
  std::vector<double> distances;
  std::vector<Index> rows;
};

// Rows [from, to) and queries [first, last): one task.
struct WorkItem {
  Index from, to, first, last;
};

inline constexpr Near kNowhere{std::numeric_limits<double>::infinity(), std::numeric_limits<Index>::max()};

// Queries in groups, and the rows in parts if there are too few queries for all threads.
class WorkPartition {
 public:
  // `terms`: what a plain loop would add up, which decides whether threads are worth their start; `most`
  // queries in a group; parts begin at multiples of `unit` rows.
  WorkPartition(Index rows, Index queries, double terms, Index most, Index unit = 1)
      : rows_(rows), queries_(queries), unit_(unit) {
    if (terms > 1 << 18) team_ = threads();  // up to there, one thread takes some 50 us
    const bool few = team_ > 1 && queries < 4 * team_;
    if (few) parts_ = std::min<Index>(team_, (rows + unit - 1) / unit);
    group_ = std::clamp<Index>(few ? queries : queries / (4 * team_), 1, std::max<Index>(most, 1));
    groups_ = (queries + group_ - 1) / group_;
  }

  int team() const { return team_; }
  Index parts() const { return parts_; }
  Index count() const { return groups_ * parts_; }
  Index part(Index number) const { return number % parts_; }
  Index queries() const { return queries_; }

  WorkItem item(Index number) const {
    const Index first = number / parts_ * group_;
    return {start(part(number)), start(part(number) + 1), first, std::min(queries_, first + group_)};
  }

  // The task that has this query and this part of the rows.
  Index number(Index query, Index part) const { return query / group_ * parts_ + part; }

 private:
  Index start(Index part) const {
    return std::min(rows_, cut((rows_ + unit_ - 1) / unit_, parts_, part) * unit_);
  }

  Index rows_, queries_, unit_;
  int team_ = 1;
  Index group_ = 1, groups_ = 1, parts_ = 1;
};

// Calls look(item, nearest, watch) for every item, with a heap for each of its queries, and writes the k
// nearest rows of each query (queries x k): of all items together each query must be offered those. Returns
// the sum of what look returns, or -1 if it was stopped.
template <class Look>
Index nearest_of_all(const WorkPartition& partition, Index k, double* distances, Index* rows, Stop& stop,
                     const Look& look) {
  std::vector<std::vector<Near>> rooms(static_cast<std::size_t>(partition.count()));
  std::atomic<Index> computed{0};
  const auto task = [&](Index number, Watch& watch) {
    const WorkItem item = partition.item(number);
    const Index most = std::min(k, item.to - item.from);
    std::vector<Near>& room = rooms[static_cast<std::size_t>(number)];
    // A part of the rows need not fill its heaps, if look knows that other rows are nearer.
    room.assign(static_cast<std::size_t>((item.last - item.first) * most), kNowhere);
    std::vector<Nearest> nearest;
    for (Index i = item.first; i < item.last; ++i)
      nearest.emplace_back(room.data() + (i - item.first) * most, most);
    computed += look(item, nearest.data(), watch);
    if (partition.parts() > 1 || watch.over()) return;
    for (Index i = item.first; i < item.last; ++i)
      nearest[static_cast<std::size_t>(i - item.first)].write(distances + i * k, rows + i * k);
    std::vector<Near>().swap(room);
  };
  if (!run_tasks(partition.count(), partition.team(), &stop, task)) return -1;
  if (partition.parts() == 1) return computed;

  std::vector<Near> room(static_cast<std::size_t>(k));
  for (Index i = 0; i < partition.queries(); ++i) {
    Nearest nearest(room.data(), k);
    for (Index part = 0; part < partition.parts(); ++part) {
      const Index number = partition.number(i, part);
      const WorkItem item = partition.item(number);
      const Index most = std::min(k, item.to - item.from);
      const Near* found = rooms[static_cast<std::size_t>(number)].data() + (i - item.first) * most;
      for (Index j = 0; j < most; ++j) nearest.offer(found[j].distance, found[j].row);
    }
    nearest.write(distances + i * k, rows + i * k);
  }
  return computed;
}

// Calls look(item, found, watch) for every item, where found(query, row, distance) takes rows of a query in
// the order of their numbers. Returns as nearest_of_all.
template <class Look>
Index within_of_all(const WorkPartition& partition, RadiusResult& result, Stop& stop, const Look& look) {
  std::vector<std::vector<Near>> lists(static_cast<std::size_t>(partition.queries() * partition.parts()));
  std::atomic<Index> computed{0};
  const auto task = [&](Index number, Watch& watch) {
    const auto found = [&](Index query, Index row, double distance) {
      const Index list = query * partition.parts() + partition.part(number);
      lists[static_cast<std::size_t>(list)].push_back({distance, row});
    };
    computed += look(partition.item(number), found, watch);
  };
  if (!run_tasks(partition.count(), partition.team(), &stop, task)) return -1;
  result.ends.assign(1, 0);
  for (Index i = 0; i < partition.queries(); ++i) {
    for (Index part = 0; part < partition.parts(); ++part)
      for (const Near& near : lists[static_cast<std::size_t>(i * partition.parts() + part)]) {
        result.distances.push_back(near.distance);
        result.rows.push_back(near.row);
      }
    result.ends.push_back(static_cast<Index>(result.rows.size()));
  }
  return computed;
}

}  // namespace sixfold
