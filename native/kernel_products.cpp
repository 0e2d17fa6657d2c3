#include "kernel_products.hpp"

#include <omp.h>

#include <algorithm>
#include <vector>

#include "blas.hpp"
#include "tasks.hpp"

namespace sixfold {
namespace {

constexpr Index kChunkBytes = 640 << 10;  // of packed rows of A: half an L2 cache of 1.25 MiB
constexpr Index kPanelBytes = 32 << 20;   // of packed rows of B in scores, which may be all rows there are
constexpr Index kMostPanels = 8;          // in a chunk
constexpr Index kParallelWork = 1 << 20;  // multiply-adds (about 20 us) that are worth waking threads for

// Packed rows and their squared lengths, in pieces of kPiece rows.
template <class T>
struct PackedRows {
  AlignedArray<T> values, lengths;
  Index count = 0, columns = 0;

  PackedRows() = default;
  PackedRows(Index rows, Index width) : values(rows * width), lengths(rows), columns(width) {}
};

int team_for(Index rows, Index columns, Index depth) {
  return rows * columns * (depth + 16) < kParallelWork ? 1 : threads();
}

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

// Rows of A that are worked on at a time, a multiple of those of a panel: few enough for the cache, and for
// every thread to have some.
template <class T>
Index chunk_rows(Index rows, Index columns, Index row_bytes, int team) {
  constexpr Index kPiece = kPanelWidth<T>;
  const Index fitting = kChunkBytes / std::max<Index>(columns * sizeof(T) + row_bytes, 1) / kPiece;
  const Index shared = team > 1 ? pieces(rows, kPiece) / (4 * team) : kMostPanels;
  return kPiece * std::clamp<Index>(std::min(fitting, shared), 1, kMostPanels);
}

// What one thread works with: a packed chunk of A and the tile of it and one panel.
template <class T>
struct Workspace {
  PackedRows<T> chunk;
  AlignedArray<T> tile;  // [row of the chunk][row of the panel]
  AlignedArray<double> sums;

  Workspace(Index rows, Index columns, Index width)
      : chunk(rows, columns), tile(rows * kPanelWidth<T>), sums(rows * width * kLanes) {}

  template <class S>
  void take(const ChosenRows<S>& A, Index first, Index last) {
    pack_pieces<kStripRows>(A, first, last, chunk.values.data(), chunk.lengths.data());
    chunk.count = last - first;
  }
};

// The kernel of every row of the chunk with every row of a panel.
template <class T, class Kernel>
void fill_tile(const Workspace<T>& work, const T* panel, const T* lengths, const Kernel& kernel) {
  constexpr Index kAcross = kPanelWidth<T>;
  const Index depth = work.chunk.columns;
  for (Index row = 0; row < work.chunk.count; row += kStripRows) {
    const T* strip = work.chunk.values.data() + row * depth;
    T* tile = work.tile.data() + row * kAcross;
    add_products<true>(strip, panel, depth, tile);
    for (Index i = 0; i < kStripRows; ++i)
      for (Index j = 0; j < kAcross; j += kWidth<T>)
        store_pack(tile + i * kAcross + j,
                   kernel(load_pack(tile + i * kAcross + j), work.chunk.lengths.data()[row + i],
                          load_pack(lengths + j)));
  }
}

// Makes the tiles of all chunks of A with panels of B, from the chunk's own first row where `same`, and calls
// use(work, first row, panel) for each; finish(work, first row) after each chunk.
template <class T, class S, class Use, class Finish>
bool for_tiles(const KernelForm& form, const ChosenRows<S>& A, const PackedRows<T>& B, bool same, Index width,
               int team, Stop& stop, const Use& use, const Finish& finish) {
  const Index rows = chunk_rows<T>(A.count, A.columns, width * kLanes * sizeof(double), team);
  std::vector<Workspace<T>> workspaces;
  workspaces.reserve(static_cast<std::size_t>(team));
  for (int i = 0; i < team; ++i) workspaces.emplace_back(rows, A.columns, width);
  return with_kernel<T>(form, [&](const auto& kernel) {
    return run_tasks(pieces(A.count, rows), team, &stop, [&](Index task, Watch& watch) {
      Workspace<T>& work = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
      const Index first = task * rows;
      work.take(A, first, std::min(first + rows, A.count));
      std::fill_n(work.sums.data(), rows * width * kLanes, 0.0);
      for (Index column = same ? first : 0; column < B.count; column += kPanelWidth<T>) {
        if (watch.over()) return;
        fill_tile(work, B.values.data() + column * B.columns, B.lengths.data() + column, kernel);
        use(work, first, column);
      }
      finish(work, first);
    });
  });
}

// sums[i][c] += the tile's row i times column c of the panel's coefficients, lane by lane.
template <class T>
void add_scores(const Workspace<T>& work, const double* coefficients, Index width) {
  constexpr Index kAcross = kPanelWidth<T>;
  for (Index i = 0; i < work.chunk.count; ++i) {
    const T* entries = work.tile.data() + i * kAcross;
    for (Index c = 0; c < width; ++c) {
      double* sums = work.sums.data() + (i * width + c) * kLanes;
      Lanes sum = load(sums);
      for (Index j = 0; j < kAcross; j += kLanes)
        sum += load(entries + j) * load(coefficients + c * kAcross + j);
      store(sums, sum);
    }
  }
}

}  // namespace

template <class S, class T>
bool kernel_block(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B, bool same, T* out,
                  Index stride, Stop& stop) {
  constexpr Index kAcross = kPanelWidth<T>;
  const int team = team_for(A.count, B.count, A.columns);
  const PackedRows<T> packed = panels_of<T>(B, team);
  const auto copy = [&](const Workspace<T>& work, Index first, Index column) {
    const Index last = first + work.chunk.count, across = std::min(kAcross, B.count - column);
    for (Index i = first; i < last; ++i)
      std::copy_n(work.tile.data() + (i - first) * kAcross, across, out + i * stride + column);
    if (!same || column < last) return;  // what is on the diagonal was computed whole
    for (Index j = 0; j < across; ++j)
      for (Index i = first; i < last; ++i)
        out[(column + j) * stride + i] = work.tile.data()[(i - first) * kAcross + j];
  };
  return for_tiles<T>(form, A, packed, same, 0, team, stop, copy, [](const Workspace<T>&, Index) {});
}

template <class T, class S>
bool kernel_scores(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B,
                   const double* coefficients, Index width, double* out, Stop& stop) {
  constexpr Index kAcross = kPanelWidth<T>;
  const int team = team_for(A.count, B.count, A.columns + width);
  std::fill_n(out, A.count * width, 0.0);
  const Index most =
      std::max<Index>(kPanelBytes / std::max<Index>(A.columns * sizeof(T), 1) / kAcross, 1) * kAcross;
  for (Index begin = 0; begin < B.count; begin += most) {
    const Index count = std::min(most, B.count - begin);
    const PackedRows<T> packed = panels_of<T>(B.part(begin, count), team);
    AlignedArray<double> turned(pieces(count, kAcross) * kAcross * width);  // [panel][column][row]
    std::fill_n(turned.data(), pieces(count, kAcross) * kAcross * width, 0.0);
    for (Index j = 0; j < count; ++j)
      for (Index c = 0; c < width; ++c)
        turned.data()[(j / kAcross * width + c) * kAcross + j % kAcross] =
            coefficients[(begin + j) * width + c];
    const auto add = [&](const Workspace<T>& work, Index, Index column) {
      add_scores(work, turned.data() + column * width, width);
    };
    const auto finish = [&](const Workspace<T>& work, Index first) {
      for (Index entry = 0; entry < work.chunk.count * width; ++entry)
        out[first * width + entry] += sum(load(work.sums.data() + entry * kLanes));
    };
    if (!for_tiles<T>(form, A, packed, false, width, team, stop, add, finish)) return false;
  }
  return true;
}

template <class T>
void kernel_apply(const KernelForm& form, T* products, Index rows, Index columns, const T* a_lengths,
                  const T* b_lengths) {
  with_kernel<T>(form, [&](const auto& kernel) {
    run_tasks(rows, team_for(rows, columns, 0), [&](Index i) {
      T* row = products + i * columns;
      const T length = a_lengths != nullptr ? a_lengths[i] : T{0};
      Index j = 0;
      for (; j + kWidth<T> <= columns; j += kWidth<T>)
        store_pack(row + j, kernel(load_pack(row + j), length,
                                   b_lengths != nullptr ? load_pack(b_lengths + j) : Pack<T>{}));
      if (j == columns) return;
      Pack<T> last{}, lengths{};
      for (Index k = j; k < columns; ++k) {
        last[k - j] = row[k];
        if (b_lengths != nullptr) lengths[k - j] = b_lengths[k];
      }
      last = kernel(last, length, lengths);
      for (Index k = j; k < columns; ++k) row[k] = last[k - j];
    });
  });
}

template bool kernel_block(const KernelForm&, const ChosenRows<float>&, const ChosenRows<float>&, bool,
                           float*, Index, Stop&);
template bool kernel_block(const KernelForm&, const ChosenRows<float>&, const ChosenRows<float>&, bool,
                           double*, Index, Stop&);
template bool kernel_block(const KernelForm&, const ChosenRows<double>&, const ChosenRows<double>&, bool,
                           float*, Index, Stop&);
template bool kernel_block(const KernelForm&, const ChosenRows<double>&, const ChosenRows<double>&, bool,
                           double*, Index, Stop&);
template bool kernel_scores<float>(const KernelForm&, const ChosenRows<float>&, const ChosenRows<float>&,
                                   const double*, Index, double*, Stop&);
template bool kernel_scores<float>(const KernelForm&, const ChosenRows<double>&, const ChosenRows<double>&,
                                   const double*, Index, double*, Stop&);
template bool kernel_scores<double>(const KernelForm&, const ChosenRows<float>&, const ChosenRows<float>&,
                                    const double*, Index, double*, Stop&);
template bool kernel_scores<double>(const KernelForm&, const ChosenRows<double>&, const ChosenRows<double>&,
                                    const double*, Index, double*, Stop&);
template void kernel_apply(const KernelForm&, float*, Index, Index, const float*, const float*);
template void kernel_apply(const KernelForm&, double*, Index, Index, const double*, const double*);

}  // namespace sixfold
