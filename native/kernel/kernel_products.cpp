#include "kernel/kernel_products.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/aligned_memory.hpp"
#include "core/non_temporal.hpp"
#include "kernel/kernel_tiles.hpp"

namespace sixfold {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr Index kPackedBytes = 32 << 20;  // of rows of B in scores, which may be all rows there are

// Copies tiles to a matrix, and mirrors them to another, or to the same where only half of it is computed.
template <class T>
struct MatrixSink {
  // Runs of eight panels a row: where they do not begin with a line of the cache, a Gram matrix of 8,128 rows
  // took 42 ms, in runs of one panel 57. Where they do, it takes 28.
  static constexpr Index kPanels = 8, kAcross = kPanelWidth<T>;
  StridedRows<T> out, mirrored;
  Index columns;
  bool same, non_temporal;

  void begin(Workspace<T>&) const {}
  void end(Workspace<T>&) const {
    if (non_temporal) non_temporal_fence();
  }

  void take(const Workspace<T>& work, Index column, Index panels) const {
    alignas(kLineBytes) T run[kPanels * kAcross];
    const Index count = std::min(panels * kAcross, columns - column);
    for (Index i = 0; i < work.chunk.count; ++i) {
      for (Index p = 0; p < panels; ++p) std::copy_n(work.tile(p) + i * kAcross, kAcross, run + p * kAcross);
      write(run, count, out.row(work.first + i) + column);
    }
    if (mirrored.data == nullptr) return;
    const Index computed = same ? work.first + work.chunk.count : 0;  // columns before it, as they are
    for (Index p = 0; p < panels; ++p)
      if (column + p * kAcross >= computed) mirror(work, work.tile(p), column + p * kAcross);
  }

  void mirror(const Workspace<T>& work, const T* tile, Index column) const {
    alignas(kLineBytes) T run[kMostRows];
    for (Index j = 0; j < std::min(kAcross, columns - column); ++j) {
      for (Index i = 0; i < work.chunk.count; ++i) run[i] = tile[i * kAcross + j];
      write(run, work.chunk.count, mirrored.row(column + j) + work.first);
    }
  }

  void write(const T* run, Index count, T* to) const {
    if (non_temporal)
      copy_non_temporal(run, count, to);
    else
      std::copy_n(run, count, to);
  }
};

// Multiplies tiles by coefficients: [panel][column][row of the panel], 0 for rows that are not there. The
// sums of a row are kept lane by lane, and added to `out` in the end.
template <class T>
struct ScoreSink {
  static constexpr Index kPanels = 1, kAcross = kPanelWidth<T>, kVectors = kAcross / kLanes;
  const double* coefficients;
  Index width;
  double* out;

  void begin(Workspace<T>& work) const {
    std::fill_n(work.sums.data(), work.chunk.count * width * kLanes, 0.0);
  }

  void take(const Workspace<T>& work, Index column, Index) const {
    const T* tile = work.tile(0);
    double* sums = work.sums.data();
    for (Index i = 0; i < work.chunk.count; ++i, tile += kAcross) {
      Lanes entries[kVectors];
      for (Index v = 0; v < kVectors; ++v) entries[v] = load(tile + v * kLanes);
      const double* factors = coefficients + column * width;
      for (Index c = 0; c < width; ++c, factors += kAcross, sums += kLanes) {
        Lanes sum = load(sums);
        for (Index v = 0; v < kVectors; ++v) sum += entries[v] * load(factors + v * kLanes);
        store(sums, sum);
      }
    }
  }

  void end(const Workspace<T>& work) const {
    for (Index entry = 0; entry < work.chunk.count * width; ++entry)
      out[work.first * width + entry] += sum(load(work.sums.data() + entry * kLanes));
  }
};

double largest_of(Lanes values) {
  double largest = values[0];
  for (Index k = 1; k < kLanes; ++k) largest = std::max(largest, values[k]);
  return largest;
}

// The kernel of each row with each, computed in T, and zeros up to a whole vector.
template <class T, class S>
std::vector<T> gram_in(const KernelForm& form, const ChosenRows<S>& rows) {
  const std::int32_t never = 0;
  Stop stop(kInfinite, &never);
  std::vector<T> entries(static_cast<std::size_t>(pieces(rows.count * rows.count, kLanes) * kLanes));
  const StridedRows<T> out{entries.data(), rows.count};
  kernel_block(form, rows, rows, true, out, out, stop);
  return entries;
}

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
bool kernel_block(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B, bool same,
                  StridedRows<T> out, StridedRows<T> mirrored, Stop& stop) {
  const int team = team_for(A.count, B.count, A.columns);
  const PackedRows<T> packed = panels_of<T>(B, team);
  const bool non_temporal = A.count * B.count * static_cast<Index>(sizeof(T)) >= kNonTemporalBytes;
  const MatrixSink<T> sink{out, mirrored, B.count, same, non_temporal};
  return for_tiles<T>(form, A, packed, same, 0, team, stop, sink);
}

template <class T, class S>
bool kernel_scores(const KernelForm& form, const ChosenRows<S>& A, const ChosenRows<S>& B,
                   const double* coefficients, Index width, double* out, Stop& stop) {
  constexpr Index kAcross = kPanelWidth<T>;
  const int team = team_for(A.count, B.count, A.columns + width);
  const Index panels = kPackedBytes / (std::max<Index>(A.columns, 1) * kAcross * sizeof(T));
  const Index most = std::max<Index>(panels, 1) * kAcross;
  std::fill_n(out, A.count * width, 0.0);
  for (Index begin = 0; begin < B.count; begin += most) {
    const Index count = std::min(most, B.count - begin);
    const PackedRows<T> packed = panels_of<T>(B.part(begin, count), team);
    const AlignedArray<double> turned = by_panel(coefficients + begin * width, count, width, kAcross);
    const ScoreSink<T> sink{turned.data(), width, out};
    if (!for_tiles<T>(form, A, packed, false, width * kLanes, team, stop, sink)) return false;
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

template <class S>
KernelRounding kernel_rounding(const KernelForm& form, const ChosenRows<S>& sample,
                               const ChosenRows<S>& all) {
  constexpr Index kRowsAtOnce = 256;
  const auto exact = gram_in<double>(form, sample);
  const auto single = gram_in<float>(form, sample);
  Lanes values{}, aparts{};
  for (std::size_t k = 0; k < exact.size(); k += kLanes) {
    const Lanes value = load(exact.data() + k), apart = magnitude(load(single.data() + k) - value);
    values = larger(values, magnitude(value));
    aparts = larger(aparts, apart == apart ? apart : broadcast(kInfinite));
  }
  const Index parts = pieces(all.count, kRowsAtOnce);
  std::vector<double> numbers(static_cast<std::size_t>(parts)), lengths(numbers.size());
  run_tasks(parts, team_for(all.count, 1, all.columns), [&](Index part) {
    double number = 0.0, longest = 0.0;
    for (Index i = part * kRowsAtOnce; i < std::min((part + 1) * kRowsAtOnce, all.count); ++i) {
      const S* x = all.row(i);
      Lanes sizes{}, sums{};
      Index k = 0;
      for (; k + kLanes <= all.columns; k += kLanes) {
        const Lanes value = load(x + k);
        const Lanes about = all.centre != nullptr ? value - load(all.centre + k) : value;
        sizes = larger(sizes, magnitude(value));
        sums += about * about;
      }
      double length = sum(sums);
      for (; k < all.columns; ++k) {
        const double value = x[k], about = all.centre != nullptr ? value - all.centre[k] : value;
        number = std::max(number, std::abs(value));
        length += about * about;
      }
      number = std::max(number, largest_of(sizes));
      longest = std::max(longest, length);
    }
    numbers[static_cast<std::size_t>(part)] = number;
    lengths[static_cast<std::size_t>(part)] = longest;
  });
  KernelRounding found{largest_of(values), largest_of(aparts), 0.0, 0.0};
  for (const double number : numbers) found.number = std::max(found.number, number);
  for (const double length : lengths) found.squared_length = std::max(found.squared_length, length);
  return found;
}

template KernelRounding kernel_rounding(const KernelForm&, const ChosenRows<float>&,
                                        const ChosenRows<float>&);
template KernelRounding kernel_rounding(const KernelForm&, const ChosenRows<double>&,
                                        const ChosenRows<double>&);
template bool kernel_block(const KernelForm&, const ChosenRows<float>&, const ChosenRows<float>&, bool,
                           StridedRows<float>, StridedRows<float>, Stop&);
template bool kernel_block(const KernelForm&, const ChosenRows<float>&, const ChosenRows<float>&, bool,
                           StridedRows<double>, StridedRows<double>, Stop&);
template bool kernel_block(const KernelForm&, const ChosenRows<double>&, const ChosenRows<double>&, bool,
                           StridedRows<float>, StridedRows<float>, Stop&);
template bool kernel_block(const KernelForm&, const ChosenRows<double>&, const ChosenRows<double>&, bool,
                           StridedRows<double>, StridedRows<double>, Stop&);
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
