#include <atomic>
#include <cmath>
#include <limits>

#include "core/lane_mask.hpp"
#include "kernel/kernel_tiles.hpp"
#include "metric_learning/soft_neighbors.hpp"

namespace sixfold {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();
constexpr Index kSlabRows = 512;         // each slab has pulls of its own, of all rows
constexpr Index kSlabBytes = 128 << 20;  // of those of all slabs together, which are 64 at most
// Numbers that are worth a second thread to copy: on a busy machine every team waits for its slowest thread.
constexpr Index kParallelNumbers = 1 << 20;
constexpr double kMostSlack = 4.0;  // of D, that single precision may cost

int copying_team(const SoftRows& rows, int team) {
  return rows.count * rows.columns < kParallelNumbers ? 1 : team;
}

inline std::uint32_t within(FloatLanes value, float most) { return at_least(most - FloatLanes{}, value); }
inline std::uint32_t within(Lanes value, double most) { return at_most(value, broadcast(most)); }

// Rows padded to whole vectors, with what does not change from tile to tile.
struct Points {
  const SoftRows& rows;
  Index width;  // of a padded row
  AlignedArray<double> values, log_weights, lengths;
  double largest = 0.0;  // squared length

  explicit Points(const SoftRows& given, int team)
      : rows(given),
        width(pieces(given.columns, kLanes) * kLanes),
        values(given.count * width),
        log_weights(given.count),
        lengths(given.count) {
    run_tasks(pieces(rows.count, 256), team, [&](Index task) {
      for (Index i = task * 256; i < std::min(rows.count, (task + 1) * 256); ++i) {
        const double* from = rows.values + i * rows.columns;
        double* to = values.data() + i * width;
        std::copy_n(from, rows.columns, to);
        std::fill(to + rows.columns, to + width, 0.0);
        double length = 0.0;
        for (Index k = 0; k < rows.columns; ++k) length += from[k] * from[k];
        lengths.data()[i] = length;
        log_weights.data()[i] = std::log(rows.weights[i]);
      }
    });
    for (Index i = 0; i < rows.count; ++i) largest = std::max(largest, lengths.data()[i]);
  }

  const double* row(Index i) const { return values.data() + i * width; }

  double distance(Index i, Index j) const {
    const double *a = row(i), *b = row(j);
    Lanes total{};
    for (Index k = 0; k < width; k += kLanes) {
      const Lanes apart = load(a + k) - load(b + k);
      total += apart * apart;
    }
    return sum(total) - log_weights.data()[j];
  }
};

// The rows of a chunk, and those that are near each of them.
template <class T>
struct Chunk {
  Workspace<T> work;
  std::vector<std::vector<std::int32_t>> near;
  std::vector<T> least, bars;
  AlignedVector<double> distances, weights;

  Chunk(Index room, Index columns)
      : work(room, columns, 1, 0), near(work.rows), least(work.rows), bars(work.rows) {}
};

template <class T>
class Search {
 public:
  static constexpr Index kAcross = kPanelWidth<T>;

  Search(const Points& points, double reach, Index most, Index* nearest, SoftResult& result, int team)
      : points_(points),
        rows_(points.rows),
        all_{rows_.values, rows_.count, rows_.columns, nullptr, nullptr, rows_.columns},
        packed_(panels_of<T>(all_, copying_team(rows_, team))),
        floors_(packed_.lengths.data() == nullptr ? 0 : pieces(rows_.count, kAcross) * kAcross),
        slack_((2.0 * static_cast<double>(rows_.columns) + 20.0) * std::numeric_limits<T>::epsilon()),
        reach_(reach),
        most_(most),
        nearest_(nearest),
        result_(result) {
    const Index padded = pieces(rows_.count, kAcross) * kAcross;
    for (Index j = 0; j < padded; ++j)
      floors_.data()[j] =
          j < rows_.count
              ? rounded_down((1.0 - slack_) * points_.lengths.data()[j] - points_.log_weights.data()[j])
              : std::numeric_limits<T>::infinity();
  }

  Ended run(int team, Stop& stop) {
    const Index width = points_.width, size = rows_.count * width;
    const Index room = std::clamp<Index>(kSlabBytes / (size * 8 + 1), 2, 64);
    const Index used = std::min(room, pieces(rows_.count, kSlabRows));
    AlignedArray<double> pulls = aligned_zeros(used * size);
    std::vector<Index> kept(static_cast<std::size_t>(used), 0);
    std::vector<double> omitted(static_cast<std::size_t>(used), 0.0);
    std::atomic<bool> too_many{false};
    const bool whole =
        run_tasks(used, static_cast<int>(std::min<Index>(used, team)), &stop, [&](Index slab, Watch& watch) {
          Chunk<T> chunk(std::min(kMostRows, rows_.count), rows_.columns);
          const Index first = cut(rows_.count, used, slab), last = cut(rows_.count, used, slab + 1);
          const Index most = most_ / used;
          for (Index begin = first; begin < last; begin += kMostRows) {
            if (!find(chunk, begin, std::min(begin + kMostRows, last), watch)) return;
            for (Index i = 0; i < chunk.work.chunk.count; ++i) {
              const auto s = static_cast<std::size_t>(slab);
              kept[s] += pull(chunk, begin + i, chunk.near[static_cast<std::size_t>(i)],
                              pulls.data() + slab * size, omitted[s]);
            }
            if (kept[static_cast<std::size_t>(slab)] > most) {
              too_many = true;
              return;
            }
            if (too_many.load(std::memory_order_relaxed)) return;
          }
        });
    if (!whole) return Ended::stopped;
    if (too_many) return Ended::too_many;
    result_.kept = 0;
    result_.omitted = 0.0;
    for (std::size_t s = 0; s < kept.size(); ++s) {
      result_.kept += kept[s];
      result_.omitted += omitted[s];
    }
    run_tasks(pieces(rows_.count, 256), copying_team(rows_, team), [&](Index task) {
      for (Index i = task * 256; i < std::min(rows_.count, (task + 1) * 256); ++i)
        for (Index k = 0; k < rows_.columns; ++k) {
          double total = 0.0;
          for (Index s = 0; s < used; ++s) total += pulls.data()[s * size + i * width + k];
          result_.pulls[i * rows_.columns + k] = total;
        }
    });
    return Ended::done;
  }

 private:
  static T rounded_down(double value) {
    const T near = static_cast<T>(value);
    return std::nextafter(near, -std::numeric_limits<T>::infinity());
  }

  // Fills chunk.near: every row whose D is within reach of a bound on the least one.
  bool find(Chunk<T>& chunk, Index begin, Index end, Watch& watch) const {
    chunk.work.take(all_, begin, end);
    bool known = true;
    for (Index i = begin; i < end; ++i) known = known && nearest_[i] >= 0;
    if (!known && !find_least(chunk, watch)) return false;
    for (Index i = begin; i < end; ++i) {
      const auto r = static_cast<std::size_t>(i - begin);
      chunk.near[r].clear();
      // Above the least D, by no more than `slack_` of both lengths where no row near is known.
      double bound = nearest_[i] >= 0
                         ? points_.distance(i, nearest_[i])
                         : static_cast<double>(chunk.least[r]) + (1.0 - slack_) * points_.lengths.data()[i] +
                               2.0 * slack_ * (points_.lengths.data()[i] + points_.largest);
      bound = std::min(bound, -std::log(rows_.copies[i]));
      const double bar = bound + reach_ - (1.0 - slack_) * points_.lengths.data()[i];
      // Rows that only fill a panel are infinitely far.
      chunk.bars[r] = std::min(-rounded_down(-bar), std::numeric_limits<T>::max());
    }
    const LinearKernel<T> products;
    for (Index column = 0; column < rows_.count; column += kAcross) {
      if (column / kAcross % 16 == 0 && watch.over()) return false;
      fill_tile(chunk.work.chunk, packed_, column, products, chunk.work.tile(0));
      const T* tile = chunk.work.tile(0);
      const Pack<T> low[3] = {load_pack(floors_.data() + column),
                              load_pack(floors_.data() + column + kWidth<T>),
                              load_pack(floors_.data() + column + 2 * kWidth<T>)};
      for (Index i = 0; i < end - begin; ++i, tile += kAcross) {
        const T bar = chunk.bars[static_cast<std::size_t>(i)];
        std::uint64_t bits = 0;
        for (Index v = 0; v < 3; ++v)
          bits |= static_cast<std::uint64_t>(within(low[v] - T{2} * load_pack(tile + v * kWidth<T>), bar))
                  << (v * kWidth<T>);
        auto& near = chunk.near[static_cast<std::size_t>(i)];
        for (; bits != 0; bits &= bits - 1)
          near.push_back(static_cast<std::int32_t>(column + std::countr_zero(bits)));
      }
    }
    return true;
  }

  // The least lower bound on D - (1 - slack) |z_i|^2 of each row of the chunk, but for the row itself.
  bool find_least(Chunk<T>& chunk, Watch& watch) const {
    const Index first = chunk.work.first, count = chunk.work.chunk.count;
    std::fill(chunk.least.begin(), chunk.least.end(), std::numeric_limits<T>::infinity());
    const LinearKernel<T> products;
    for (Index column = 0; column < rows_.count; column += kAcross) {
      if (column / kAcross % 16 == 0 && watch.over()) return false;
      fill_tile(chunk.work.chunk, packed_, column, products, chunk.work.tile(0));
      for (Index i = 0; i < count; ++i) {
        T* tile = chunk.work.tile(0) + i * kAcross;
        if (column <= first + i && first + i < column + kAcross)
          tile[first + i - column] = -std::numeric_limits<T>::infinity();
        Pack<T> least = pack_of(chunk.least[static_cast<std::size_t>(i)]);
        for (Index v = 0; v < 3; ++v)
          least = smaller(
              load_pack(floors_.data() + column + v * kWidth<T>) - T{2} * load_pack(tile + v * kWidth<T>),
              least);
        T most = least[0];
        for (Index l = 1; l < kWidth<T>; ++l) most = std::min(most, least[l]);
        chunk.least[static_cast<std::size_t>(i)] = most;
      }
    }
    return true;
  }

  // What row i adds to the pulls; returns how many rows count.
  Index pull(Chunk<T>& chunk, Index i, const std::vector<std::int32_t>& near, double* pulls,
             double& omitted) const {
    const Index count = static_cast<Index>(near.size()), room = pieces(count, kLanes) * kLanes;
    chunk.distances.resize(static_cast<std::size_t>(room));
    double *D = chunk.distances.data(), own = -std::log(rows_.copies[i]), least = own;
    Index found = -1;
    for (Index c = 0; c < count; ++c) {
      const Index j = near[static_cast<std::size_t>(c)];
      D[c] = j == i ? kFar : points_.distance(i, j);
      if (D[c] < least || (found < 0 && j != i)) found = j, least = std::min(D[c], least);
    }
    std::fill(D + count, D + room, kFar);
    if (found >= 0) nearest_[i] = found;
    if (!(least < kFar)) {  // the only row
      result_.right[i] = 0.0;
      return 0;
    }
    for (Index c = 0; c < room; c += kLanes) store(D + c, exponential(least - load(D + c)));
    double total = rows_.copies[i] > 0.0 ? std::exp(least - own) : 0.0, same = total;
    const std::int32_t label = rows_.labels[i];
    for (Index c = 0; c < count; ++c) {
      total += D[c];
      if (rows_.labels[near[static_cast<std::size_t>(c)]] == label) same += D[c];
    }
    const double right = same / total, q = rows_.weights[i];
    result_.right[i] = right;
    omitted += q * static_cast<double>(rows_.count - count) * std::exp(-reach_) / total;
    const double* z = points_.row(i);
    double* mine = pulls + i * points_.width;
    Index counted = 0;
    for (Index c = 0; c < count; ++c) {
      const Index j = near[static_cast<std::size_t>(c)];
      const double a = q * (D[c] / total) * ((rows_.labels[j] == label ? 1.0 : 0.0) - right);
      ++counted;
      if (!(std::abs(a) > 1e-30 * q)) continue;
      const double* other = points_.row(j);
      double* theirs = pulls + j * points_.width;
      for (Index k = 0; k < points_.width; k += kLanes) {
        const Lanes part = a * (load(other + k) - load(z + k));
        store(mine + k, load(mine + k) + part);
        store(theirs + k, load(theirs + k) - part);
      }
    }
    return counted;
  }

  const Points& points_;
  const SoftRows& rows_;
  ChosenRows<double> all_;
  PackedRows<T> packed_;
  AlignedArray<T> floors_;  // (1 - slack) |z_j|^2 - log q_j, from below
  double slack_;            // of |x|^2 + |z|^2: by how much a distance of tiles may be off
  double reach_;
  Index most_;
  Index* nearest_;
  SoftResult& result_;
};

}  // namespace

Ended near_neighbors(const SoftRows& rows, double reach, Index most, Index* nearest, SoftResult& result,
                     Stop& stop) {
  const int team = team_for(rows.count, rows.count, rows.columns);
  const Points points(rows, copying_team(rows, team));
  const double off = (2.0 * static_cast<double>(rows.columns) + 20.0) * std::numeric_limits<float>::epsilon();
  if (4.0 * off * points.largest <= kMostSlack)
    return Search<float>(points, reach, most, nearest, result, team).run(team, stop);
  return Search<double>(points, reach, most, nearest, result, team).run(team, stop);
}

}  // namespace sixfold
