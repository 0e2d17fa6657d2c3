#include "kernel/gram_moves.hpp"

#include <algorithm>
#include <cstring>

#include "core/non_temporal.hpp"
#include "core/tasks.hpp"
#include "core/threads.hpp"

namespace sixfold {
namespace {

constexpr Index kParallelBytes = 4 << 20;  // about 0.3 ms: less is not worth waking threads for
constexpr Index kRowsAtOnce = 16;

// Calls move(i) for rows [first, last), of so many bytes each.
template <class Move>
void for_rows(Index first, Index last, Index bytes, const Move& move) {
  const Index rows = last - first;
  run_tasks((rows + kRowsAtOnce - 1) / kRowsAtOnce, rows * bytes < kParallelBytes ? 1 : threads(),
            [&](Index task) {
              const Index begin = first + task * kRowsAtOnce, end = std::min(begin + kRowsAtOnce, last);
              for (Index i = begin; i < end; ++i) move(i);
              non_temporal_fence();
            });
}

}  // namespace

template <class T>
void fill_holes(T* square, Index stride, Index kept, const Index* holes, const Index* movers, Index count) {
  const auto fill = [&](const T* from, T* to) {
    for (Index k = 0; k < count; ++k) to[holes[k]] = from[movers[k]];
  };
  const Index bytes = kept * static_cast<Index>(sizeof(T));
  for_rows(0, kept, bytes, [&](Index i) {
    T* row = square + i * stride;
    const Index* hole = std::lower_bound(holes, holes + count, i);
    if (hole == holes + count || *hole != i) return fill(row, row);
    const T* mover = square + movers[hole - holes] * stride;
    std::copy_n(mover, kept, row);
    fill(mover, row);
  });
}

template <class T>
void widen_rows(T* square, Index rows, Index stride, Index wider) {
  const Index bytes = rows * static_cast<Index>(sizeof(T));
  const bool non_temporal = rows * bytes >= kNonTemporalBytes;
  // The last rows first. Those whose places begin after the end of all that have not moved go at once.
  for (Index end = rows; end > 1;) {
    const Index apart = (end * stride + wider - 1) / wider, begin = std::clamp<Index>(apart, 1, end - 1);
    for_rows(begin, end, bytes, [&](Index i) {
      const T* from = square + i * stride;
      T* to = square + i * wider;
      if (non_temporal && to - from >= rows)
        copy_non_temporal(from, rows, to);
      else
        std::memmove(to, from, static_cast<std::size_t>(bytes));
    });
    end = begin;
  }
}

template void fill_holes(float*, Index, Index, const Index*, const Index*, Index);
template void fill_holes(double*, Index, Index, const Index*, const Index*, Index);
template void widen_rows(float*, Index, Index, Index);
template void widen_rows(double*, Index, Index, Index);

}  // namespace sixfold
