// Tiles of the kernel matrix of rows A and packed rows B, made by a team of threads in the cache.
//
// Threads share the rows A in chunks that stay, packed, in the L2 cache. A chunk and a panel of B make a tile
// of products, to which the kernel is applied at once; a sink takes the tiles, some panels at a time.
#pragma once

#include <omp.h>

#include <algorithm>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "kernel/kernel_function.hpp"
#include "kernel/row_panels.hpp"

namespace sixfold {

inline constexpr Index kChunkBytes = 640 << 10;  // of packed rows of A: half an L2 cache of 1.25 MiB
inline constexpr Index kMostRows = 96;           // of a chunk, so that tiles are in the cache as well

// Multiply-adds (about 0.2 ms) that are worth waking threads for, the kernel itself counted as 16. On a busy
// machine a team waits for its slowest thread: a Gram matrix of 270 rows took 26 ms instead of 0.1.
inline constexpr Index kParallelWork = 1 << 23;

inline int team_for(Index rows, Index columns, Index depth) {
  return rows * columns * (depth + 16) < kParallelWork ? 1 : threads();
}

// Rows as panels or strips, and their squared lengths.
template <class T>
struct PackedRows {
  AlignedArray<T> values, lengths;
  Index count, columns;

  PackedRows(Index rows, Index width) : values(rows * width), lengths(rows), count(rows), columns(width) {}
};

template <class T, class S>
PackedRows<T> panels_of(const ChosenRows<S>& rows, int team) {
  constexpr Index kPiece = kPanelWidth<T>;
  const Index panels = pieces(rows.count, kPiece);
  PackedRows<T> packed(panels * kPiece, rows.columns);
  packed.count = rows.count;
  run_tasks(panels, team, [&](Index panel) {
    pack_pieces<kPiece>(rows, panel * kPiece, std::min((panel + 1) * kPiece, rows.count),
                        packed.values.data() + panel * kPiece * rows.columns,
                        packed.lengths.data() + panel * kPiece);
  });
  return packed;
}

// Rows of a chunk, a multiple of those of a panel: few enough for the cache, for every thread to have some,
// and for the half of a small Gram matrix that need not be computed. `more` bytes a row are kept beside it.
template <class T>
Index chunk_rows(Index rows, Index columns, Index more, int team) {
  constexpr Index kPiece = kPanelWidth<T>;
  const Index fitting = kChunkBytes / ((columns * static_cast<Index>(sizeof(T)) + more + 1) * kPiece);
  const Index shared = pieces(rows, kPiece) / (4 * team);
  return kPiece * std::clamp<Index>(std::min(fitting, shared), 1, kMostRows / kPiece);
}

// What one thread works with: a packed chunk of A, its tiles with some panels, and what a sink sums up.
template <class T>
struct Workspace {
  Index rows;  // there is room for: whole strips
  PackedRows<T> chunk;
  AlignedArray<T> tiles;  // [panel][row of the chunk][row of the panel]
  AlignedArray<double> sums;
  Index first = 0;  // row of the chunk

  Workspace(Index room, Index columns, Index panels, Index width)
      : rows(pieces(room, kStripRows) * kStripRows),
        chunk(rows, columns),
        tiles(panels * rows * kPanelWidth<T>),
        sums(rows * width) {}

  template <class S>
  void take(const ChosenRows<S>& A, Index begin, Index end) {
    pack_pieces<kStripRows>(A, begin, end, chunk.values.data(), chunk.lengths.data());
    first = begin;
    chunk.count = end - begin;
  }

  // Of the panel-th panel that is kept.
  T* tile(Index panel) const { return tiles.data() + panel * rows * kPanelWidth<T>; }
};

// The kernel in place of the products of a strip and a panel.
template <class T, class Kernel>
void apply_kernel(const Kernel& kernel, const T* strip_lengths, const T* panel_lengths, T* tile) {
  for (Index i = 0; i < kStripRows; ++i)
    for (Index v = 0; v < 3; ++v, tile += kWidth<T>)
      store_pack(tile, kernel(load_pack(tile), strip_lengths[i], load_pack(panel_lengths + v * kWidth<T>)));
}

// The kernel of every row of the chunk with every row of the panel that begins at `column`: kDepth
// coordinates at a time, so that this part of the panel stays in the L1 cache while the chunk goes by.
template <class T, class Kernel>
void fill_tile(const PackedRows<T>& chunk, const PackedRows<T>& B, Index column, const Kernel& kernel,
               T* tile) {
  constexpr Index kAcross = kPanelWidth<T>;
  const Index depth = B.columns, strips = pieces(chunk.count, kStripRows);
  const Index step = pieces(kAcross * sizeof(T), strips);
  for (Index from = 0; from == 0 || from < depth; from += kDepth) {
    const Index here = std::min(kDepth, depth - from), end = from + here;
    const T* panel = B.values.data() + (column * depth + from * kAcross);
    // What follows the panel in memory is what is read next; after the last one it is fetched for nothing.
    const char* next_panel = reinterpret_cast<const char*>(panel + here * kAcross);
    for (Index s = 0; s < strips; ++s) {
      const T* strip = chunk.values.data() + (s * depth + from) * kStripRows;
      const T* next_strip = s + 1 < strips ? strip + kStripRows * depth
                                           : chunk.values.data() + (end < depth ? end : 0) * kStripRows;
      const Ahead ahead{next_strip, next_panel + s * step * here, step};
      T* square = tile + s * kStripRows * kAcross;
      if (from == 0)
        add_products<true>(strip, panel, here, square, ahead);
      else
        add_products<false>(strip, panel, here, square, ahead);
      if (end == depth)
        apply_kernel(kernel, chunk.lengths.data() + s * kStripRows, B.lengths.data() + column, square);
    }
  }
}

// Makes the tiles of all chunks of A with panels of B, from the chunk's own first row on where `same`. For
// each chunk it calls sink.begin(work), sink.take(work, column, panels) for Sink::kPanels panels at a time,
// the first of which begins at that row of B, and sink.end(work). False if `stop` ended it.
template <class T, class S, class Sink>
bool for_tiles(const KernelForm& form, const ChosenRows<S>& A, const PackedRows<T>& B, bool same, Index width,
               int team, Stop& stop, const Sink& sink) {
  constexpr Index kAcross = kPanelWidth<T>;
  const Index rows = chunk_rows<T>(A.count, A.columns, width * static_cast<Index>(sizeof(double)), team);
  std::vector<Workspace<T>> workspaces;
  workspaces.reserve(static_cast<std::size_t>(team));
  for (int i = 0; i < team; ++i) workspaces.emplace_back(rows, A.columns, Sink::kPanels, width);
  return with_kernel<T>(form, [&](const auto& kernel) {
    return run_tasks(pieces(A.count, rows), team, &stop, [&](Index task, Watch& watch) {
      Workspace<T>& work = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
      work.take(A, task * rows, std::min((task + 1) * rows, A.count));
      sink.begin(work);
      for (Index column = same ? work.first : 0; column < B.count; column += Sink::kPanels * kAcross) {
        if (watch.over()) break;
        const Index panels = std::min(Sink::kPanels, pieces(B.count - column, kAcross));
        for (Index p = 0; p < panels; ++p)
          fill_tile(work.chunk, B, column + p * kAcross, kernel, work.tile(p));
        sink.take(work, column, panels);
      }
      sink.end(work);
    });
  });
}

}  // namespace sixfold
