#include "metric_learning/triplets.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/blas.hpp"
#include "core/lane_mask.hpp"
#include "core/simd.hpp"
#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "core/vector_math.hpp"

namespace sixfold {
namespace {

constexpr Index kQueries = 64, kOthers = 512;  // a tile of products stays in the L2 cache
constexpr Index kRowsAtOnce = 32;
// A pass that is shared goes through so many times more values than others that are: there is one after the
// other, each of which would wait for a thread that something else keeps busy. Beside six other processes on
// two cores 40 steps took 1.4 s with two threads and 0.4 s with one.
constexpr double kShared = 8;

double square(const double* a, Index width) {
  Lanes total{};
  for (Index k = 0; k < width; k += kLanes) {
    const Lanes x = load(a + k);
    total += x * x;
  }
  return sum(total);
}

double squared_distance(const double* a, const double* b, Index width) {
  Lanes total{};
  for (Index k = 0; k < width; k += kLanes) {
    const Lanes x = load(a + k) - load(b + k);
    total += x * x;
  }
  return sum(total);
}

// products[q * kOthers + j] = z_(first + q) . z_(other + j)
void multiply(const MappedRows& Z, Index first, Index queries, Index other, Index others, double* products) {
  char transposed = 'T', plain = 'N';
  int m = static_cast<int>(others), n = static_cast<int>(queries), k = static_cast<int>(Z.width);
  int stride = static_cast<int>(kOthers);
  double one = 1, zero = 0;
  blas::dgemm(&transposed, &plain, &m, &n, &k, &one, const_cast<double*>(Z.row(other)), &k,
              const_cast<double*>(Z.row(first)), &k, &zero, products, &stride);
}

// Rows of one class and where the next class begins: pairs with later classes are looked at, each once.
struct Block {
  Index first, last, later;
};

std::vector<Block> blocks_of_queries(const Index* class_ends, Index classes) {
  std::vector<Block> blocks;
  for (Index c = 0; c + 1 < classes; ++c)
    for (Index i = class_ends[c]; i < class_ends[c + 1]; i += kQueries)
      blocks.push_back({i, std::min(i + kQueries, class_ends[c + 1]), class_ends[c + 1]});
  return blocks;
}

// What a block has found: of each of its rows those of later classes, and pairs the other way round.
struct Found {
  std::vector<std::vector<RowNumber>> later;
  std::vector<std::pair<RowNumber, RowNumber>> back;  // (a later row, a row of the block)
};

struct Reach {
  const double* lengths;  // |z|^2
  const double* radius;   // with an allowance for rounding
};

// Goes through a row of products and notes the pairs that are within the radius of either row.
void note_pairs(const double* products, const Reach& reach, Index i, Index own, Index other, Index others,
                Found& found) {
  const double length = reach.lengths[i], radius = reach.radius[i];
  const auto note = [&](Index j, bool mine, bool theirs) {
    const RowNumber row = static_cast<RowNumber>(other + j);
    if (mine) found.later[own].push_back(row);
    if (theirs) found.back.emplace_back(row, static_cast<RowNumber>(i));
  };
  Index j = 0;
  for (; j + kLanes <= others; j += kLanes) {
    const Lanes square = length + load(reach.lengths + other + j) - 2 * load(products + j);
    const unsigned mine = at_most(square, broadcast(radius));
    const unsigned theirs = at_most(square, load(reach.radius + other + j));
    for (unsigned either = mine | theirs; either != 0; either &= either - 1) {
      const int lane = std::countr_zero(either);
      note(j + lane, mine >> lane & 1, theirs >> lane & 1);
    }
  }
  for (; j < others; ++j) {
    const double square = length + reach.lengths[other + j] - 2 * products[j];
    note(j, square <= radius, square <= reach.radius[other + j]);
  }
}

// Puts lists together: of earlier rows first, in the order of their blocks, then of later ones.
void gather(const std::vector<Block>& blocks, const std::vector<Found>& found, Index rows, PairLists& lists) {
  std::vector<Index> next(rows + 1, 0);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t own = 0; own < found[b].later.size(); ++own)
      next[blocks[b].first + static_cast<Index>(own) + 1] += static_cast<Index>(found[b].later[own].size());
    for (const auto& [row, i] : found[b].back) ++next[row + 1];
  }
  for (Index i = 0; i < rows; ++i) next[i + 1] += next[i];
  lists.ends = next;
  lists.rows.resize(next[rows]);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t own = 0; own < found[b].later.size(); ++own) {
      const auto& list = found[b].later[own];
      const Index i = blocks[b].first + static_cast<Index>(own);
      std::copy(list.begin(), list.end(),
                lists.rows.begin() + lists.ends[i + 1] - static_cast<Index>(list.size()));
    }
    for (const auto& [row, i] : found[b].back) lists.rows[next[row]++] = i;
  }
}

// Calls work(i) for all rows; `pairs` of them are gone through in all.
template <class Work>
void for_rows(Index rows, double values, const Work& work) {
  const Index tasks = (rows + kRowsAtOnce - 1) / kRowsAtOnce;
  run_tasks(tasks, team_size(tasks, values / kShared), [&](Index task) {
    const Index end = std::min(rows, (task + 1) * kRowsAtOnce);
    for (Index i = task * kRowsAtOnce; i < end; ++i) work(i, task);
  });
}

// How much a margin m has of the slope of the rounded hinge.
double slope(double m, double smoothing) {
  return smoothing > 0 ? std::clamp(m / smoothing + 0.5, 0.0, 1.0) : (m > 0 ? 1.0 : 0.0);
}

// The targets of a row and how far they are; returns how many there are.
Index target_distances(const MappedRows& Z, const Triplets& triplets, Index i, double* reach, double* most) {
  Index count = 0;
  *most = -std::numeric_limits<double>::infinity();
  for (const Index* j = triplets.targets + i * triplets.k; count < triplets.k && j[count] >= 0; ++count) {
    reach[count] = 1 + squared_distance(Z.row(i), Z.row(j[count]), Z.width);
    *most = std::max(*most, reach[count]);
  }
  return count;
}

double values_of(const MappedRows& Z, const Triplets& triplets) {
  return static_cast<double>(triplets.ends[Z.rows] + Z.rows * triplets.k) * static_cast<double>(Z.width);
}

}  // namespace

bool find_impostors(const MappedRows& Z, const Index* class_ends, Index classes, const double* radius,
                    PairLists& found, Stop& stop) {
  std::vector<double> lengths(Z.rows), reaches(Z.rows);
  for (Index i = 0; i < Z.rows; ++i) lengths[i] = square(Z.row(i), Z.width);
  const double longest = Z.rows > 0 ? *std::max_element(lengths.begin(), lengths.end()) : 0;
  const double unit = 4 * static_cast<double>(Z.width + 8) * std::numeric_limits<double>::epsilon();
  for (Index i = 0; i < Z.rows; ++i)
    reaches[i] = radius[i] + unit * (lengths[i] + longest + std::abs(radius[i]));
  const Reach reach{lengths.data(), reaches.data()};
  const std::vector<Block> blocks = blocks_of_queries(class_ends, classes);
  std::vector<Found> parts(blocks.size());
  const double work =
      static_cast<double>(Z.rows) * static_cast<double>(Z.rows) * static_cast<double>(Z.width);
  const blas::SingleThreaded alone;
  const Index tasks = static_cast<Index>(blocks.size());
  const bool completed = run_tasks(tasks, team_size(tasks, work / 64), &stop, [&](Index task, Watch& watch) {
    const Block& block = blocks[task];
    Found& part = parts[task];
    part.later.resize(block.last - block.first);
    std::vector<double> products(kQueries * kOthers);
    for (Index other = block.later; other < Z.rows && !watch.over(); other += kOthers) {
      const Index others = std::min(kOthers, Z.rows - other);
      multiply(Z, block.first, block.last - block.first, other, others, products.data());
      for (Index i = block.first; i < block.last; ++i)
        note_pairs(products.data() + (i - block.first) * kOthers, reach, i, i - block.first, other, others,
                   part);
    }
    // Of each row the earlier ones have to be in order.
    std::stable_sort(part.back.begin(), part.back.end());
  });
  if (completed) gather(blocks, parts, Z.rows, found);
  return completed;
}

namespace {

// Square distances of z from the next kLanes impostors of a list, of which `count` are left; beyond these,
// `none`.
Lanes next_distances(const MappedRows& Z, const double* z, const RowNumber* impostors, Index count,
                     double none) {
  Lanes sums[kLanes] = {};
  const Index there = std::min(count, kLanes);
  for (Index p = 0; p < there; ++p) {
    const double* other = Z.row(impostors[p]);
    for (Index k = 0; k < Z.width; k += kLanes) {
      const Lanes x = load(z + k) - load(other + k);
      sums[p] += x * x;
    }
  }
  transpose(sums);
  Lanes total = sums[0];
  for (Index k = 1; k < kLanes; ++k) total += sums[k];
  for (Index p = there; p < kLanes; ++p) total[p] = none;
  return total;
}

// The triplets of one row; see hinge_sums.
HingeSums row_sums(const MappedRows& Z, const Triplets& triplets, Index i, double smoothing,
                   const double* reach, Index count, double most, double* of_target, double* of_impostors) {
  const Lanes zero{}, one = broadcast(1.0), inverse = broadcast(smoothing > 0 ? 1 / smoothing : 0);
  const double edge = 0.5 * smoothing, none = most + smoothing + 1;
  const double weight = triplets.weight[i];
  Lanes curved{}, hinge{}, linear{}, slopes{};
  for (Index p = triplets.ends[i]; p < triplets.ends[i + 1]; p += kLanes) {
    const Index left = triplets.ends[i + 1] - p;
    const Lanes far = next_distances(Z, Z.row(i), triplets.impostors + p, left, none);
    Lanes total{};
    for (Index j = 0; j < count; ++j) {
      const Lanes m = reach[j] - far;
      const Lanes a = smoothing > 0 ? smaller(larger(m * inverse + 0.5, zero), one) : (m > zero ? one : zero);
      curved += a * (1.0 - a);
      hinge += larger(m, zero);
      linear += a * m;
      total += a;
      of_target[j] += sum(a);
    }
    slopes += total;
    for (Index lane = 0; lane < std::min(left, kLanes); ++lane)
      of_impostors[p + lane] = -weight * total[lane];
  }
  const double along = sum(linear);
  return {weight * (along + edge * sum(curved)), weight * sum(hinge), weight * along, weight * sum(slopes)};
}

}  // namespace

HingeSums hinge_sums(const MappedRows& Z, const Triplets& triplets, double smoothing, double* of_targets,
                     double* of_impostors, double* farthest) {
  std::vector<HingeSums> parts((Z.rows + kRowsAtOnce - 1) / kRowsAtOnce);
  for_rows(Z.rows, values_of(Z, triplets), [&](Index i, Index task) {
    thread_local std::vector<double> reach;
    reach.resize(triplets.k);
    double* of_target = of_targets + i * triplets.k;
    std::fill_n(of_target, triplets.k, 0.0);
    const Index count = target_distances(Z, triplets, i, reach.data(), farthest + i);
    const HingeSums sums =
        row_sums(Z, triplets, i, smoothing, reach.data(), count, farthest[i], of_target, of_impostors);
    for (Index j = 0; j < count; ++j) of_target[j] *= triplets.weight[i];
    parts[task].smooth += sums.smooth;
    parts[task].hinge += sums.hinge;
    parts[task].linear += sums.linear;
    parts[task].weights += sums.weights;
  });
  HingeSums total;
  for (const HingeSums& part : parts) {
    total.smooth += part.smooth;
    total.hinge += part.hinge;
    total.linear += part.linear;
    total.weights += part.weights;
  }
  return total;
}

void list_triplets(const MappedRows& Z, const Triplets& triplets, double smoothing, TripletList& found) {
  std::vector<double> reach(triplets.k);
  double most = 0;
  for (Index i = 0; i < Z.rows; ++i) {
    const Index count = target_distances(Z, triplets, i, reach.data(), &most);
    for (Index p = triplets.ends[i]; p < triplets.ends[i + 1]; ++p) {
      const double far = squared_distance(Z.row(i), Z.row(triplets.impostors[p]), Z.width);
      if (!(most - far + 0.5 * smoothing > 0)) continue;
      for (Index j = 0; j < count; ++j) {
        const double a = slope(reach[j] - far, smoothing);
        if (!(a > 0)) continue;
        found.rows.push_back(i);
        found.places.push_back(j);
        found.impostors.push_back(triplets.impostors[p]);
        found.a.push_back(a);
      }
    }
  }
}

namespace {

// y = sum of c (z - other) over the pairs of a row, those that begin in it and those that end in it. With
// kParts registers for y where rows are so wide, else in memory.
template <Index kParts>
void add_pairs(const MappedRows& Z, const PairGraph& pairs, Index i, double* y) {
  constexpr bool kHeld = kParts > 0;
  Lanes sums[kHeld ? kParts : 1] = {};
  if constexpr (!kHeld) std::fill_n(y, Z.width, 0.0);
  double total = 0;
  const auto add = [&](const double* other, double c) {
    if (c == 0) return;
    total += c;
    if constexpr (kHeld) {
      for (Index part = 0; part < kParts; ++part) sums[part] -= c * load(other + part * kLanes);
    } else {
      for (Index k = 0; k < Z.width; k += kLanes) store(y + k, load(y + k) - c * load(other + k));
    }
  };
  for (Index p = pairs.ends[i]; p < pairs.ends[i + 1]; ++p) add(Z.row(pairs.rows[p]), pairs.weight[p]);
  for (Index p = pairs.back_ends[i]; p < pairs.back_ends[i + 1]; ++p)
    add(Z.row(pairs.back_rows[p]), pairs.weight[pairs.back_pairs[p]]);
  const double* own = Z.row(i);
  for (Index k = 0; k < Z.width; k += kLanes)
    store(y + k, (kHeld ? sums[kHeld ? k / kLanes : 0] : load(y + k)) + total * load(own + k));
}

template <Index kParts>
void add_all_pairs(const MappedRows& Z, const PairGraph& pairs, double* Y) {
  for_rows(Z.rows, 2.0 * static_cast<double>(pairs.ends[Z.rows]) * static_cast<double>(Z.width),
           [&](Index i, Index) { add_pairs<kParts>(Z, pairs, i, Y + i * Z.width); });
}

}  // namespace

void pair_products(const MappedRows& Z, const PairGraph& pairs, double* Y) {
  switch (Z.width / kLanes) {
    case 1:
      return add_all_pairs<1>(Z, pairs, Y);
    case 2:
      return add_all_pairs<2>(Z, pairs, Y);
    case 3:
      return add_all_pairs<3>(Z, pairs, Y);
    case 4:
      return add_all_pairs<4>(Z, pairs, Y);
    case 5:
      return add_all_pairs<5>(Z, pairs, Y);
    case 6:
      return add_all_pairs<6>(Z, pairs, Y);
    case 7:
      return add_all_pairs<7>(Z, pairs, Y);
    case 8:
      return add_all_pairs<8>(Z, pairs, Y);
    default:
      return add_all_pairs<0>(Z, pairs, Y);
  }
}

}  // namespace sixfold
