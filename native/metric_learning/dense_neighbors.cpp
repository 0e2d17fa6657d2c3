#include <cmath>
#include <limits>

#include "kernel/kernel_tiles.hpp"
#include "metric_learning/soft_neighbors.hpp"

namespace sixfold {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr Index kAcross = kPanelWidth<double>, kVectors = kAcross / kLanes;

// What is known of each row, padded to whole panels with rows of no weight.
struct Columns {
  AlignedArray<double> lengths, labels, log_weights, weights, sums, right;
  Index padded;

  Columns(const SoftRows& rows, const PackedRows<double>& packed)
      : padded(pieces(rows.count, kAcross) * kAcross) {
    for (auto* part : {&lengths, &labels, &log_weights, &weights, &sums, &right})
      *part = AlignedArray<double>(padded);
    for (Index j = 0; j < padded; ++j) {
      const bool there = j < rows.count;
      lengths.data()[j] = there ? packed.lengths.data()[j] : kFar;
      labels.data()[j] = there ? rows.labels[j] : -1.0;
      weights.data()[j] = there ? rows.weights[j] : 0.0;
      log_weights.data()[j] = there ? std::log(rows.weights[j]) : -kFar;
      sums.data()[j] = kFar;
      right.data()[j] = 0.0;
    }
  }
};

inline Lanes squared(double length, Lanes lengths, Lanes product) {
  const Lanes distance = (length + lengths) - 2.0 * product;
  return distance < 0.0 ? Lanes{} : distance;
}

// log sum_k exp(-D_ik) and p_i of each row; a sum is rescaled when a nearer row comes along.
struct SumSink {
  static constexpr Index kPanels = 8;
  const SoftRows& rows;
  Columns& known;

  void begin(Workspace<double>& work) const {
    for (Index i = 0; i < work.chunk.count; ++i) {
      double* state = work.sums.data() + 3 * i;
      state[0] = -std::log(rows.copies[work.first + i]);
      state[1] = state[2] = state[0] < kFar ? 1.0 : 0.0;
    }
  }

  void take(const Workspace<double>& work, Index column, Index panels) const {
    alignas(kLineBytes) double D[kPanels * kAcross];
    for (Index i = 0; i < work.chunk.count; ++i) {
      const Index self = work.first + i - column;
      const double length = known.lengths.data()[work.first + i];
      Lanes least = broadcast(kFar);
      for (Index p = 0; p < panels; ++p) {
        const double* tile = work.tile(p) + i * kAcross;
        for (Index v = 0; v < kVectors; ++v) {
          const Index at = p * kAcross + v * kLanes;
          const Lanes distance =
              squared(length, load(known.lengths.data() + column + at), load(tile + v * kLanes)) -
              load(known.log_weights.data() + column + at);
          store(D + at, distance);
        }
      }
      if (0 <= self && self < panels * kAcross) D[self] = kFar;
      for (Index at = 0; at < panels * kAcross; at += kLanes) least = smaller(least, load(D + at));
      add(work.sums.data() + 3 * i, D, panels * kAcross, least, known.labels.data() + column,
          known.labels.data()[work.first + i]);
    }
  }

  static void add(double* state, const double* D, Index count, Lanes least, const double* labels,
                  double label) {
    double nearest = least[0];
    for (Index l = 1; l < kLanes; ++l) nearest = std::min(nearest, least[l]);
    if (!(nearest < kFar)) return;
    if (nearest < state[0]) {
      const double shrunk = std::exp(nearest - state[0]);
      state[0] = nearest;
      state[1] *= shrunk;
      state[2] *= shrunk;
    }
    Lanes total{}, same{};
    for (Index at = 0; at < count; at += kLanes) {
      const Lanes weight = exponential(state[0] - load(D + at));
      total += weight;
      same += load(labels + at) == label ? weight : Lanes{};
    }
    state[1] += sum(total);
    state[2] += sum(same);
  }

  void end(const Workspace<double>& work) const {
    for (Index i = 0; i < work.chunk.count; ++i) {
      const double* state = work.sums.data() + 3 * i;
      known.sums.data()[work.first + i] = state[1] > 0.0 ? std::log(state[1]) - state[0] : kFar;
      known.right.data()[work.first + i] = state[1] > 0.0 ? state[2] / state[1] : 0.0;
    }
  }
};

// The pulls: tiles of a_ij + a_ji, turned into strips, times the rows and a column of ones.
struct PullSink {
  static constexpr Index kPanels = 8;
  const SoftRows& rows;
  const Columns& known;
  const double* across;  // the rows with a one behind, as [block of kAcross columns][row][column]
  Index blocks;
  double least;  // weight that counts
  double* pulls;
  double* kept;  // of each row

  Index width() const { return blocks * kAcross + kLanes; }

  void begin(Workspace<double>& work) const { std::fill_n(work.sums.data(), work.rows * width(), 0.0); }

  void take(const Workspace<double>& work, Index column, Index panels) const {
    alignas(kLineBytes) double strip[kPanels * kAcross * kStripRows];
    double* counts = work.sums.data() + work.rows * blocks * kAcross;
    for (Index s = 0; s * kStripRows < work.chunk.count; ++s) {
      for (Index p = 0; p < panels; ++p)
        for (Index v = 0; v < kVectors; ++v)
          attractions(work, s, p, v, column, strip + (p * kAcross + v * kLanes) * kStripRows, counts);
      for (Index block = 0; block < blocks; ++block) {
        const double* panel = across + (block * known.padded + column) * kAcross;
        double* sums = work.sums.data() + (s * blocks + block) * kStripRows * kAcross;
        add_products<false>(strip, panel, panels * kAcross, sums, Ahead{strip, panel, 0});
      }
    }
  }

  // a_ij + a_ji of the rows of a strip and one vector of columns, as strip[j][i].
  void attractions(const Workspace<double>& work, Index s, Index p, Index v, Index column, double* strip,
                   double* counts) const {
    const Index first = column + p * kAcross + v * kLanes;
    const Lanes lengths = load(known.lengths.data() + first), labels = load(known.labels.data() + first),
                log_weights = load(known.log_weights.data() + first),
                weights = load(known.weights.data() + first), sums = load(known.sums.data() + first),
                right = load(known.right.data() + first);
    const Lanes one = broadcast(1.0);
    Lanes both[kStripRows];
    for (Index r = 0; r < kStripRows; ++r) {
      const Index row = s * kStripRows + r, i = work.first + row;
      both[r] = Lanes{};
      if (row >= work.chunk.count) continue;
      const Lanes D =
          squared(known.lengths.data()[i], lengths, load(work.tile(p) + row * kAcross + v * kLanes));
      const Lanes from = exponential(log_weights - D - known.sums.data()[i]);
      const Lanes back = exponential(known.log_weights.data()[i] - D - sums);
      const Lanes same = labels == known.labels.data()[i] ? one : Lanes{};
      both[r] =
          known.weights.data()[i] * from * (same - known.right.data()[i]) + weights * back * (same - right);
      double* count = counts + row * kLanes;
      store(count, load(count) + (from > least ? one : Lanes{}));
      if (first <= i && i < first + kLanes) both[r][i - first] = 0.0;
    }
    turn(both, strip);
  }

  // Writes strip[j][i] = both[i][j].
  template <Index kRows>
  static void turn(Lanes (&both)[kRows], double* strip) {
    if constexpr (kRows == kLanes) {
      transpose(both);
      for (Index j = 0; j < kLanes; ++j) store(strip + j * kRows, both[j]);
    } else {
      for (Index j = 0; j < kLanes; ++j)
        for (Index r = 0; r < kRows; ++r) strip[j * kRows + r] = both[r][j];
    }
  }

  void end(const Workspace<double>& work) const {
    const double* counts = work.sums.data() + work.rows * blocks * kAcross;
    const Index d = rows.columns;
    for (Index row = 0; row < work.chunk.count; ++row) {
      const Index i = work.first + row;
      const auto entry = [&](Index k) {
        const Index square = (row / kStripRows * blocks + k / kAcross) * kStripRows + row % kStripRows;
        return work.sums.data()[square * kAcross + k % kAcross];
      };
      const double total = entry(d);
      for (Index k = 0; k < d; ++k) pulls[i * d + k] = entry(k) - rows.values[i * d + k] * total;
      kept[i] = sum(load(counts + row * kLanes));
    }
  }
};

AlignedArray<double> rows_and_ones(const SoftRows& rows, Index padded, Index blocks) {
  AlignedArray<double> made = aligned_zeros(blocks * padded * kAcross);
  for (Index i = 0; i < rows.count; ++i)
    for (Index k = 0; k <= rows.columns; ++k)
      made.data()[(k / kAcross * padded + i) * kAcross + k % kAcross] =
          k < rows.columns ? rows.values[i * rows.columns + k] : 1.0;
  return made;
}

}  // namespace

Ended dense_neighbors(const SoftRows& rows, double reach, SoftResult& result, Stop& stop) {
  const int team = team_for(rows.count, rows.count, rows.columns);
  const ChosenRows<double> all{rows.values, rows.count, rows.columns, nullptr, nullptr, rows.columns};
  const PackedRows<double> packed = panels_of<double>(all, team);
  const KernelForm products{KernelKind::linear, 0.0, 0.0, 1};
  Columns known(rows, packed);
  const SumSink sums{rows, known};
  if (!for_tiles<double>(products, all, packed, false, 3, team, stop, sums)) return Ended::stopped;
  const Index blocks = pieces(rows.columns + 1, kAcross);
  const AlignedArray<double> across = rows_and_ones(rows, known.padded, blocks);
  AlignedArray<double> kept(rows.count);
  const PullSink sink{rows, known, across.data(), blocks, std::exp(-reach), result.pulls, kept.data()};
  if (!for_tiles<double>(products, all, packed, false, sink.width(), team, stop, sink)) return Ended::stopped;
  result.kept = 0;
  result.omitted = 0.0;
  for (Index i = 0; i < rows.count; ++i) {
    result.right[i] = known.right.data()[i];
    result.kept += static_cast<Index>(kept.data()[i]);
  }
  return Ended::done;
}

}  // namespace sixfold
