#include "kernel/landmark_features.hpp"

#include <algorithm>
#include <vector>

#include "kernel/kernel_tiles.hpp"

namespace sixfold {
namespace {

// The products of every row of the chunk with every row of the panel that begins at `column`, over the first
// `depth` coordinates.
template <class T>
void fill_part(const PackedRows<T>& chunk, const PackedRows<T>& B, Index column, Index depth, T* tile) {
  constexpr Index kAcross = kPanelWidth<T>;
  const Index whole = B.columns, strips = pieces(chunk.count, kStripRows);
  const Index step = pieces(kAcross * sizeof(T), strips);
  for (Index from = 0; from < depth; from += kDepth) {
    const Index here = std::min(kDepth, depth - from);
    const T* panel = B.values.data() + (column * whole + from * kAcross);
    const char* next_panel = reinterpret_cast<const char*>(panel + here * kAcross);
    for (Index s = 0; s < strips; ++s) {
      const T* strip = chunk.values.data() + (s * whole + from) * kStripRows;
      const T* next_strip = s + 1 < strips ? strip + kStripRows * whole : chunk.values.data();
      const Ahead ahead{next_strip, next_panel + s * step * here, step};
      T* square = tile + s * kStripRows * kAcross;
      if (from == 0)
        add_products<true>(strip, panel, here, square, ahead);
      else
        add_products<false>(strip, panel, here, square, ahead);
    }
  }
}

template <class T>
double sum_of_squares(const T* values, Index count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (Index j = 0; j < count; ++j) sum += static_cast<double>(values[j]) * static_cast<double>(values[j]);
  return sum;
}

}  // namespace

template <class T>
bool triangle_rows(T* values, Index rows, Index stride, Index rank, const T* triangle, double* squares,
                   Stop& stop) {
  constexpr Index kAcross = kPanelWidth<T>;
  const int team = team_for(rows, rank, rank);
  const PackedRows<T> panels =
      panels_of<T>(ChosenRows<T>{triangle, rank, rank, nullptr, nullptr, rank}, team);
  const ChosenRows<T> all{values, rows, rank, nullptr, nullptr, stride};
  const Index size = chunk_rows<T>(rows, rank, 0, team);
  std::vector<Workspace<T>> workspaces;
  workspaces.reserve(static_cast<std::size_t>(team));
  for (int i = 0; i < team; ++i) workspaces.emplace_back(size, rank, 1, 0);
  return run_tasks(pieces(rows, size), team, &stop, [&](Index task, Watch& watch) {
    Workspace<T>& work = workspaces[static_cast<std::size_t>(omp_get_thread_num())];
    work.take(all, task * size, std::min((task + 1) * size, rows));
    for (Index column = 0; column < rank; column += kAcross) {
      if (watch.over()) return;
      const Index across = std::min(kAcross, rank - column);
      fill_part(work.chunk, panels, column, std::min(column + kAcross, rank), work.tile(0));
      for (Index i = 0; i < work.chunk.count; ++i)
        std::copy_n(work.tile(0) + i * kAcross, across, values + (work.first + i) * stride + column);
    }
    for (Index i = 0; i < work.chunk.count; ++i)
      squares[work.first + i] = sum_of_squares(values + (work.first + i) * stride, rank);
  });
}

template <class T>
void row_lengths(const T* values, Index rows, Index stride, Index columns, double* squares) {
  constexpr Index kRows = 512;  // at a time
  run_tasks(pieces(rows, kRows), team_for(rows, columns, 0), [&](Index task) {
    for (Index i = task * kRows; i < std::min((task + 1) * kRows, rows); ++i)
      squares[i] = sum_of_squares(values + i * stride, columns);
  });
}

template bool triangle_rows(float*, Index, Index, Index, const float*, double*, Stop&);
template bool triangle_rows(double*, Index, Index, Index, const double*, double*, Stop&);
template void row_lengths(const float*, Index, Index, Index, double*);
template void row_lengths(const double*, Index, Index, Index, double*);

}  // namespace sixfold
