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

// What one thread works with: a packed chunk of A, and the tile of it and one panel.
template <class T>
struct Workspace {
  PackedRows<T> chunk;
  AlignedArray<T> tile;       // [row of the chunk][row of the panel]
  AlignedArray<double> sums;  // [row of the chunk][column of the coefficients][lane]
  Index first = 0;            // row of the chunk

  Workspace(Index rows, Index columns, Index width)
      : chunk(rows, columns), tile(rows * kPanelWidth<T>), sums(rows * width * kLanes) {}

  template <class S>
  void take(const ChosenRows<S>& A, Index begin, Index end) {
    pack_pieces<kStripRows>(A, begin, end, chunk.values.data(), chunk.lengths.data());
    first = begin;
    chunk.count = end - begin;
  }
};

// The kernel in place of the products of a strip and a panel.
template <class T, class Kernel>
void apply_kernel(const Kernel& kernel, const T* strip_lengths, const T* panel_lengths, T* tile) {
  for (Index i = 0; i < kStripRows; ++i)
    for (Index v = 0; v < 3; ++v, tile += kWidth<T>)
      store_pack(tile, kernel(load_pack(tile), strip_lengths[i], load_pack(panel_lengths + v * kWidth<T>)));
}

// The kernel of every row of the chunk with every row of the panel that begins at `column`: kDepth
// coordinates at a time, so that this part of the panel stays in the L1 cache while the chunk goes by. Each
// strip is handed to the sink while it is in the cache.
template <class T, class Kernel, class Sink>
void fill_tile(Workspace<T>& work, const PackedRows<T>& B, Index column, const Kernel& kernel,
               const Sink& sink) {
  constexpr Index kAcross = kPanelWidth<T>;
  const Index depth = B.columns, strips = pieces(work.chunk.count, kStripRows);
  for (Index from = 0; from == 0 || from < depth; from += kDepth) {
    const Index here = std::min(kDepth, depth - from), end = from + here;
    const T* panel = B.values.data() + (column * depth + from * kAcross);
    const Index step = pieces(kAcross * sizeof(T), strips);
    for (Index s = 0; s < strips; ++s) {
      const Index row = s * kStripRows;
      const T* strip = work.chunk.values.data() + row * depth + from * kStripRows;
      const T* next_strip = s + 1 < strips ? strip + kStripRows * depth
                                           : work.chunk.values.data() + (end < depth ? end : 0) * kStripRows;
      // What follows the panel in memory is what is read next; after the last one it is fetched for nothing.
      const Ahead ahead{next_strip, reinterpret_cast<const char*>(panel + here * kAcross) + s * step * here,
                        step};
      T* tile = work.tile.data() + row * kAcross;
      if (from == 0)
        add_products<true>(strip, panel, here, tile, ahead);
      else
        add_products<false>(strip, panel, here, tile, ahead);
      if (end < depth) continue;
      apply_kernel(kernel, work.chunk.lengths.data() + row, B.lengths.data() + column, tile);
      sink.take_strip(work, row, column);
    }
  }
  sink.take_tile(work, column);
}

// Makes the tiles of all chunks of A with panels of B, from the chunk's own first row on where `same`.
template <class T, class S, class Sink>
bool for_tiles(const KernelForm& form, const ChosenRows<S>& A, const PackedRows<T>& B, bool same, Index width,
               int team, Stop& stop, const Sink& sink) {
  const Index rows = chunk_rows<T>(A.count, A.columns, width * kLanes * sizeof(double), team);
  std::vector<Workspace<T>> workspaces;
  workspaces.reserve(static_cast<std::size_t>(team));
  for (int i = 0; i < team; ++i) workspaces.emplace_back(rows, A.columns, width);
  return with_kernel<T>(form, [&](const auto& kernel) {
    return run_tasks(pieces(A.count, rows), team, &stop, [&](Index task, Watch& watch) {
      Workspace<T>& work = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
      work.take(A, task * rows, std::min((task + 1) * rows, A.count));
      sink.begin(work);
      for (Index column = same ? work.first : 0; column < B.count; column += kPanelWidth<T>) {
        if (watch.over()) return;
        fill_tile(work, B, column, kernel, sink);
      }
      sink.end(work);
    });
  });
}

// -- what becomes of the tiles -----------------------------------------------------------------------------

// They are copied to a matrix, and mirrored where only half of it is computed.
template <class T>
struct MatrixSink {
  static constexpr Index kAcross = kPanelWidth<T>;
  T* out;
  Index columns, stride;
  bool same;

  void begin(Workspace<T>&) const {}
  void end(Workspace<T>&) const {}

  void take_strip(const Workspace<T>& work, Index row, Index column) const {
    const Index last = std::min(row + kStripRows, work.chunk.count),
                across = std::min(kAcross, columns - column);
    const T* from = work.tile.data() + row * kAcross;
    T* to = out + (work.first + row) * stride + column;
    for (; row < last; ++row, from += kAcross, to += stride) {
      if (across == kAcross)  // a size the compiler knows
        std::copy_n(from, kAcross, to);
      else
        std::copy_n(from, across, to);
    }
  }

  void take_tile(const Workspace<T>& work, Index column) const {
    constexpr Index kRun = 16;  // rows at a time, so that what is read stays in the L1 cache
    const Index rows = work.chunk.count, across = std::min(kAcross, columns - column);
    if (!same || column < work.first + rows) return;  // squares on the diagonal are computed whole
    for (Index begin = 0; begin < rows; begin += kRun)
      for (Index j = 0; j < across; ++j) {
        const T* from = work.tile.data() + begin * kAcross + j;
        T* to = out + (column + j) * stride + work.first + begin;
        for (Index i = 0; i < std::min(kRun, rows - begin); ++i) to[i] = from[i * kAcross];
      }
  }
};

// They are multiplied by coefficients: [panel][column][row of the panel], and what is missing is 0.
template <class T>
struct ScoreSink {
  static constexpr Index kAcross = kPanelWidth<T>;
  const double* coefficients;
  Index width;
  double* out;

  void begin(Workspace<T>& work) const {
    std::fill_n(work.sums.data(), work.chunk.count * width * kLanes, 0.0);
  }

  void take_strip(const Workspace<T>& work, Index row, Index column) const {
    const Index last = std::min(row + kStripRows, work.chunk.count);
    for (; row < last; ++row) {
      Lanes entries[kAcross / kLanes];
      for (Index v = 0; v < kAcross / kLanes; ++v)
        entries[v] = load(work.tile.data() + row * kAcross + v * kLanes);
      const double* factors = coefficients + column * width;
      double* sums = work.sums.data() + row * width * kLanes;
      for (Index c = 0; c < width; ++c, factors += kAcross, sums += kLanes) {
        Lanes sum = load(sums);
        for (Index v = 0; v < kAcross / kLanes; ++v) sum += entries[v] * load(factors + v * kLanes);
        store(sums, sum);
      }
    }
  }

  void take_tile(const Workspace<T>&, Index) const {}

  void end(const Workspace<T>& work) const {
    for (Index entry = 0; entry < work.chunk.count * width; ++entry)
      out[work.first * width + entry] += sum(load(work.sums.data() + entry * kLanes));
  }
};

// Coefficients (rows x width) as a ScoreSink reads them.
AlignedArray<double> by_panel(const double* coefficients, Index rows, Index width, Index panel) {
  const Index size = pieces(rows, panel) * panel * width;
  AlignedArray<double> turned(size);
  std::fill_n(turned.data(), size, 0.0);
  for (Index j = 0; j < rows; ++j)
    for (Index c = 0; c < width; ++c)
      turned.data()[(j / panel * width + c) * panel + j % panel] = coefficients[j * width + c];
  return turned;
}

}  // namespace

template <class S, class T>
bool kernel_block(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B, bool same, T* out,
                  Index stride, Stop& stop) {
  const int team = team_for(A.count, B.count, A.columns);
  const PackedRows<T> packed = panels_of<T>(B, team);
  return for_tiles<T>(form, A, packed, same, 0, team, stop, MatrixSink<T>{out, B.count, stride, same});
}

template <class T, class S>
bool kernel_scores(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B,
                   const double* coefficients, Index width, double* out, Stop& stop) {
  constexpr Index kAcross = kPanelWidth<T>;
  const int team = team_for(A.count, B.count, A.columns + width);
  const Index panels = kPanelBytes / (std::max<Index>(A.columns, 1) * kAcross * sizeof(T));
  const Index most = std::max<Index>(panels, 1) * kAcross;
  std::fill_n(out, A.count * width, 0.0);
  for (Index begin = 0; begin < B.count; begin += most) {
    const Index count = std::min(most, B.count - begin);
    const PackedRows<T> packed = panels_of<T>(B.part(begin, count), team);
    const AlignedArray<double> turned = by_panel(coefficients + begin * width, count, width, kAcross);
    const ScoreSink<T> sink{turned.data(), width, out};
    if (!for_tiles<T>(form, A, packed, false, width, team, stop, sink)) return false;
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
