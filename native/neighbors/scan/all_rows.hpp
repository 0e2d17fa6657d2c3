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
struct Around {
  std::vector<Index> ends;
  std::vector<double> distances;
  std::vector<Index> rows;
};

// Rows [from, to) and queries [first, last): one task.
struct Share {
  Index from, to, first, last;
};

inline constexpr Near kNowhere{std::numeric_limits<double>::infinity(), std::numeric_limits<Index>::max()};

// Queries in groups, and the rows in parts if there are too few queries for all threads.
class Shares {
 public:
  // `terms`: what a plain loop would add up, which decides whether threads are worth their start; `most`
  // queries in a group; parts begin at multiples of `unit` rows.
  Shares(Index rows, Index queries, double terms, Index most, Index unit = 1)
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

  Share share(Index number) const {
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

// Calls look(share, nearest, watch) for every share, with a heap for each of its queries, and writes the k
// nearest rows of each query (queries x k): of all shares together each query must be offered those. Returns
// the sum of what look returns, or -1 if it was stopped.
template <class Look>
Index nearest_of_all(const Shares& shares, Index k, double* distances, Index* rows, Stop& stop,
                     const Look& look) {
  std::vector<std::vector<Near>> rooms(static_cast<std::size_t>(shares.count()));
  std::atomic<Index> computed{0};
  const auto task = [&](Index number, Watch& watch) {
    const Share share = shares.share(number);
    const Index most = std::min(k, share.to - share.from);
    std::vector<Near>& room = rooms[static_cast<std::size_t>(number)];
    // A part of the rows need not fill its heaps, if look knows that other rows are nearer.
    room.assign(static_cast<std::size_t>((share.last - share.first) * most), kNowhere);
    std::vector<Nearest> nearest;
    for (Index i = share.first; i < share.last; ++i)
      nearest.emplace_back(room.data() + (i - share.first) * most, most);
    computed += look(share, nearest.data(), watch);
    if (shares.parts() > 1 || watch.over()) return;
    for (Index i = share.first; i < share.last; ++i)
      nearest[static_cast<std::size_t>(i - share.first)].write(distances + i * k, rows + i * k);
    std::vector<Near>().swap(room);
  };
  if (!run_tasks(shares.count(), shares.team(), &stop, task)) return -1;
  if (shares.parts() == 1) return computed;

  std::vector<Near> room(static_cast<std::size_t>(k));
  for (Index i = 0; i < shares.queries(); ++i) {
    Nearest nearest(room.data(), k);
    for (Index part = 0; part < shares.parts(); ++part) {
      const Index number = shares.number(i, part);
      const Share share = shares.share(number);
      const Index most = std::min(k, share.to - share.from);
      const Near* found = rooms[static_cast<std::size_t>(number)].data() + (i - share.first) * most;
      for (Index j = 0; j < most; ++j) nearest.offer(found[j].distance, found[j].row);
    }
    nearest.write(distances + i * k, rows + i * k);
  }
  return computed;
}

// Calls look(share, found, watch) for every share, where found(query, row, distance) takes rows of a query in
// the order of their numbers. Returns as nearest_of_all.
template <class Look>
Index around_of_all(const Shares& shares, Around& around, Stop& stop, const Look& look) {
  std::vector<std::vector<Near>> lists(static_cast<std::size_t>(shares.queries() * shares.parts()));
  std::atomic<Index> computed{0};
  const auto task = [&](Index number, Watch& watch) {
    const auto found = [&](Index query, Index row, double distance) {
      const Index list = query * shares.parts() + shares.part(number);
      lists[static_cast<std::size_t>(list)].push_back({distance, row});
    };
    computed += look(shares.share(number), found, watch);
  };
  if (!run_tasks(shares.count(), shares.team(), &stop, task)) return -1;
  around.ends.assign(1, 0);
  for (Index i = 0; i < shares.queries(); ++i) {
    for (Index part = 0; part < shares.parts(); ++part)
      for (const Near& near : lists[static_cast<std::size_t>(i * shares.parts() + part)]) {
        around.distances.push_back(near.distance);
        around.rows.push_back(near.row);
      }
    around.ends.push_back(static_cast<Index>(around.rows.size()));
  }
  return computed;
}

}  // namespace sixfold
