// Searching the k-d tree of kd_tree.hpp: depth first, nearer boxes first, boxes that are too far left out.
//
// Why nothing is lost. Let t_j be the distance of q_j from the side of a box, computed as max(l_j - q_j,
// q_j - u_j, 0), or |x_j - q_j| itself. Rounding is monotone, so t_j is at most the difference of which the
// definition makes the term of any row in the box. Let S be the definition's sum for that row and P the plain
// sum computed here from the t_j, in any order, fused or not. With fl(a op b) = (a op b)(1 + e), |e| <= u,
// and gamma_n = n u / (1 - n u): the terms of S lose at most a factor 1 - u each and its sum 1 - 2 u (the
// second for its own summation of errors); P gains at most 1 + gamma_(d+1); a power is within 2 u of its
// value in both, an underflow costs 2^-1074 a column. Hence
//
//     P <= S (1 + gamma_(d+8)) + d 2^-1073 <= S (1 + (d + 8) 2 u) + DBL_MIN
//
// and where P is greater than that of S = raw_limit(worst), the row is farther than the worst, strictly. Rows
// that are not ruled out are measured by definition, so the margin is no matter of right and wrong beyond
// that.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/lane_mask.hpp"
#include "core/tasks.hpp"
#include "core/threads.hpp"
#include "core/vector_math.hpp"
#include "neighbors/kd_tree/kd_tree.hpp"

namespace sixfold {
namespace {

// What a column adds to a plain sum.
struct AddSquare {
  Lanes operator()(Lanes sum, Lanes difference) const { return sum + difference * difference; }
};
struct AddAbsolute {
  Lanes operator()(Lanes sum, Lanes difference) const { return sum + magnitude(difference); }
};
struct TakeLargest {
  Lanes operator()(Lanes sum, Lanes difference) const { return larger(sum, magnitude(difference)); }
};
struct AddPower {
  double p;
  Lanes operator()(Lanes sum, Lanes difference) const {
    const Lanes size = magnitude(difference);
    for (Index k = 0; k < kLanes; ++k) sum[k] += std::pow(size[k], p);
    return sum;
  }
};

// The k nearest so far.
struct NearestFound {
  Nearest heap;
  Index k;

  double worst() const { return heap.worst(); }
  void offer(double distance, Index row) { heap.offer(distance, row); }
  // Of rows that are equal, no more than the first k can be among the k nearest.
  Index most_of_equal_rows() const { return k; }
};

// Everything within a radius.
struct WithinFound {
  std::vector<Near>& found;
  double radius;

  double worst() const { return radius; }
  void offer(double distance, Index row) {
    if (distance <= radius) found.push_back({distance, row});
  }
  Index most_of_equal_rows() const { return std::numeric_limits<Index>::max(); }
};

template <class T, class Add>
class Walk {
 public:
  Walk(const KdQueries<T>& queries, Add add)
      : shape_(queries.shape),
        tree_(queries.tree),
        measure_(queries.measure),
        add_(add),
        margin_(1.0 + static_cast<double>(shape_.columns + 8) * DBL_EPSILON),
        row_(shape_.columns) {}

  Index computed() const { return computed_; }

  // The leaf that a query is in, or would be in if it were a row.
  Index home(const double* q) const {
    double bounds[kFan];
    Index node = 0;
    while (node < shape_.nodes) {
      bound_children(q, node, bounds);
      node = shape_.first_child(node) + (std::min_element(bounds, bounds + shape_.fan(node)) - bounds);
    }
    return node - shape_.nodes;
  }

  // Offers every row that may be near enough to `found`, those of the leaf `home` first. The clock is looked
  // at every 256 leaves, some tens of microseconds.
  template <class Found>
  void search(const double* q, Index home, Found& found, Watch& watch) {
    limit_ = limit(found);
    const Index home_node = shape_.nodes + home;
    // Equal rows are dealt with together, above the leaves.
    const bool at_home = !is_point(shape_.parent(home_node), shape_.place(home_node));
    if (at_home) scan(q, home, found);
    Index pending = 0;
    stack_[pending++] = {0.0, 0};
    while (pending > 0) {
      const PendingNode next = stack_[--pending];
      if (next.bound > limit_) continue;
      if (next.node >= shape_.nodes) {
        if (++leaves_ % 256 == 0 ? watch.over() : watch.ended()) return;
        scan(q, next.node - shape_.nodes, found);
      } else {
        pending = expand(q, next.node, at_home ? home_node : -1, pending, found);
      }
    }
  }

 private:
  struct PendingNode {
    double bound;
    Index node;
  };

  bool is_point(Index node, Index place) const { return tree_.points[node] >> place & 1; }

  template <class Found>
  double limit(const Found& found) const {
    return raw_limit(measure_, found.worst()) * margin_ + DBL_MIN;
  }

  // Lower bounds of the children of a node; the bits of those that are not above the limit are set.
  unsigned bound_children(const double* q, Index node, double* bounds) const {
    const double *lower = tree_.boxes + node * shape_.box_size(), *upper = lower + shape_.columns * kFan;
    unsigned near = 0;
    for (Index c = 0; c < kFan; c += kLanes) {
      Lanes sum = {};
      for (Index j = 0; j < shape_.columns; ++j) {
        const Lanes below = load(lower + j * kFan + c) - q[j], above = q[j] - load(upper + j * kFan + c);
        sum = add_(sum, larger(larger(below, above), Lanes{}));
      }
      store(bounds + c, sum);
      near |= at_most(sum, broadcast(limit_)) << c;
    }
    return near & ((1u << shape_.fan(node)) - 1);
  }

  // Puts the children that may be near enough on the stack, the nearest on top.
  template <class Found>
  Index expand(const double* q, Index node, Index done, Index pending, Found& found) {
    double bounds[kFan];
    const Index bottom = pending, first = shape_.first_child(node);
    for (unsigned near = bound_children(q, node, bounds); near != 0; near &= near - 1) {
      const Index c = std::countr_zero(near);
      if (first + c == done) continue;
      if (is_point(node, c)) {
        offer_equal_rows(q, first + c, found);
        continue;
      }
      Index at = pending++;
      for (; at > bottom && stack_[at - 1].bound < bounds[c]; --at) stack_[at] = stack_[at - 1];
      stack_[at] = {bounds[c], first + c};
    }
    return pending;
  }

  template <class Found>
  void scan(const double* q, Index leaf, Found& found) {
    const T* values = tree_.leaves + leaf * shape_.leaf_values();
    const Index from = shape_.first_row(leaf), count = shape_.first_row(leaf + 1) - from;
    for (Index i = 0; i < count; i += kLanes) {
      Lanes sum = {};
      for (Index j = 0; j < shape_.columns; ++j)
        sum = add_(sum, load(values + j * shape_.capacity + i) - q[j]);
      for (unsigned near = at_most(sum, broadcast(limit_)); near != 0; near &= near - 1) {
        const Index lane = std::countr_zero(near), row = i + lane;
        if (row >= count) break;
        if (sum[lane] <= limit_) offer(distance(q, values + row), tree_.numbers[from + row], found);
      }
    }
  }

  // All rows of this node are equal, so they are equally far, and lie in the order of their numbers.
  template <class Found>
  void offer_equal_rows(const double* q, Index node, Found& found) {
    Index first = node, last = node;
    while (first < shape_.nodes) {
      first = shape_.first_child(first);
      last = shape_.first_child(last) + shape_.fan(last) - 1;
    }
    const Index leaf = first - shape_.nodes, from = shape_.first_row(leaf);
    const Index to = shape_.first_row(last - shape_.nodes + 1);
    const double far = distance(q, tree_.leaves + leaf * shape_.leaf_values());
    const Index count = std::min(to - from, found.most_of_equal_rows());
    for (Index i = from; i < from + count; ++i) offer(far, tree_.numbers[i], found);
  }

  // By definition, of the row whose first column is at `first` in its leaf.
  double distance(const double* q, const T* first) {
    ++computed_;
    for (Index j = 0; j < shape_.columns; ++j) row_[j] = first[j * shape_.capacity];
    return exact_distance(measure_, row_.data(), q, shape_.columns);
  }

  template <class Found>
  void offer(double distance, Index row, Found& found) {
    found.offer(distance, row);
    limit_ = limit(found);
  }

  const KdShape& shape_;
  const KdTree<T>& tree_;
  const Measure& measure_;
  Add add_;
  double margin_, limit_ = 0.0;
  Index computed_ = 0, leaves_ = 0;
  std::vector<T> row_;
  PendingNode stack_[kFan * 22];  // 2^63 rows are 21 levels
};

// The queries of one block of the loop below.
constexpr Index kBlock = 64;

struct QueryLeaf {
  Index query, home;
};

// The queries in the order of the leaves they are in: neighbours meet the same nodes, in the cache.
template <class T, class Add>
std::vector<QueryLeaf> in_order_of_leaves(const KdQueries<T>& queries, Add add, int team) {
  const Walk<T, Add> walk(queries, add);
  std::vector<QueryLeaf> query_leaves(queries.count);
#pragma omp parallel for schedule(static) num_threads(team)
  for (Index i = 0; i < queries.count; ++i)
    query_leaves[i] = {i, walk.home(queries.rows + i * queries.shape.columns)};
  std::sort(query_leaves.begin(), query_leaves.end(), [](const QueryLeaf& a, const QueryLeaf& b) {
    return a.home < b.home || (a.home == b.home && a.query < b.query);
  });
  return query_leaves;
}

// Calls answer(walk, thread, at, watch) for every query and its leaf; returns the distances computed, -1 if
// it had to stop.
template <class T, class Add, class Answer>
Index answer_all(const KdQueries<T>& queries, Add add, Stop& stop, const Answer& answer) {
  const Index blocks = (queries.count + kBlock - 1) / kBlock;
  const int team = static_cast<int>(std::min<Index>(threads(), std::max<Index>(blocks, 1)));
  const std::vector<QueryLeaf> query_leaves = in_order_of_leaves(queries, add, team);
  std::vector<Walk<T, Add>> walks(team, Walk<T, Add>(queries, add));
  const bool finished = run_tasks(blocks, team, &stop, [&](Index block, Watch& watch) {
    const int thread = omp_get_thread_num();
    const Index last = std::min(queries.count, (block + 1) * kBlock);
    for (Index i = block * kBlock; i < last && !watch.ended(); ++i)
      answer(walks[thread], thread, query_leaves[i], watch);
  });
  if (!finished) return -1;
  Index computed = 0;
  for (const Walk<T, Add>& walk : walks) computed += walk.computed();
  return computed;
}

// Calls use(add) with what the measure adds up.
template <class Use>
Index with_terms_of(const Measure& measure, const Use& use) {
  switch (measure.family) {
    case Family::squares:
      return use(AddSquare());
    case Family::absolute:
      return use(AddAbsolute());
    case Family::largest:
      return use(TakeLargest());
    default:
      return use(AddPower{measure.p});
  }
}

}  // namespace

template <class T>
Index kd_nearest(const KdQueries<T>& queries, Index k, double* distances, Index* rows, Stop& stop) {
  std::vector<Near> room(threads() * k);
  return with_terms_of(queries.measure, [&](auto add) {
    return answer_all(queries, add, stop, [&](auto& walk, int thread, const QueryLeaf& at, Watch& watch) {
      NearestFound found{Nearest(room.data() + thread * k, k), k};
      walk.search(queries.rows + at.query * queries.shape.columns, at.home, found, watch);
      found.heap.write(distances + at.query * k, rows + at.query * k);
    });
  });
}

template <class T>
Index kd_within(const KdQueries<T>& queries, double radius, Index* ends, std::vector<double>& distances,
                std::vector<Index>& rows, Stop& stop) {
  struct Slice {
    int thread;
    std::size_t from, to;
  };
  std::vector<Slice> slices(queries.count);
  std::vector<std::vector<Near>> found(threads());  // by each thread
  const Index computed = with_terms_of(queries.measure, [&](auto add) {
    return answer_all(queries, add, stop, [&](auto& walk, int thread, const QueryLeaf& at, Watch& watch) {
      std::vector<Near>& mine = found[thread];
      const std::size_t from = mine.size();
      WithinFound within{mine, radius};
      walk.search(queries.rows + at.query * queries.shape.columns, at.home, within, watch);
      std::sort(mine.begin() + from, mine.end(), [](const Near& a, const Near& b) { return a.row < b.row; });
      slices[at.query] = {thread, from, mine.size()};
    });
  });
  if (computed < 0) return computed;
  ends[0] = 0;
  for (Index i = 0; i < queries.count; ++i)
    ends[i + 1] = ends[i] + static_cast<Index>(slices[i].to - slices[i].from);
  distances.resize(ends[queries.count]);
  rows.resize(ends[queries.count]);
  for (Index i = 0; i < queries.count; ++i)
    for (std::size_t from = slices[i].from; from < slices[i].to; ++from) {
      const Near& near = found[slices[i].thread][from];
      const Index to = ends[i] + static_cast<Index>(from - slices[i].from);
      distances[to] = near.distance;
      rows[to] = near.row;
    }
  return computed;
}

template Index kd_nearest(const KdQueries<double>&, Index, double*, Index*, Stop&);
template Index kd_nearest(const KdQueries<float>&, Index, double*, Index*, Stop&);
template Index kd_within(const KdQueries<double>&, double, Index*, std::vector<double>&, std::vector<Index>&,
                         Stop&);
template Index kd_within(const KdQueries<float>&, double, Index*, std::vector<double>&, std::vector<Index>&,
                         Stop&);

}  // namespace sixfold
