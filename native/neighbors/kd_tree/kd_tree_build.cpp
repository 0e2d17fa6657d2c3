// Building the k-d tree of kd_tree.hpp.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/threads.hpp"
#include "neighbors/kd_tree/kd_tree.hpp"

namespace sixfold {
namespace {

using Number = std::uint32_t;

// One row while it is being sorted: its value in the column that is cut, and where the row is found.
template <class T>
struct Item {
  T key;
  Number at;
};

// Where rows are found: X itself, or a copy of few of them that stays in the cache and knows their numbers.
template <class T>
struct Source {
  const T* values;
  const Number* numbers;  // null for X
  Index columns;

  const T* row(Number at) const { return values + static_cast<Index>(at) * columns; }
  Number number(Number at) const { return numbers == nullptr ? at : numbers[at]; }

  // A total order, so that equal rows end up side by side, by number.
  bool before(const Item<T>& a, const Item<T>& b) const {
    return a.key != b.key ? a.key < b.key : before_by_other_columns(a.at, b.at);
  }

 private:
  [[gnu::noinline]] bool before_by_other_columns(Number a, Number b) const {
    const T *x = row(a), *z = row(b);
    for (Index j = 0; j < columns; ++j)
      if (x[j] != z[j]) return x[j] < z[j];
    return number(a) < number(b);
  }
};

template <class T>
class Builder {
 public:
  Builder(const T* X, const KdShape& shape, const KdRoom<T>& room, Stop& stop)
      : X_(X),
        shape_(shape),
        room_(room),
        stop_(stop),
        items_(shape.rows),
        workspaces_(shape.rows * shape.columns <= kCopied ? 1 : threads()) {
    const Index most = std::min(shape.rows, kCopied / shape.columns + 1);
    for (Workspace& workspace : workspaces_) {
      workspace.values.resize(most * shape.columns);
      workspace.numbers.resize(most);
    }
  }

  bool build() {
    for (Index i = 0; i < shape_.rows; ++i) items_[i].at = static_cast<Number>(i);
#pragma omp parallel num_threads(static_cast<int>(workspaces_.size()))
#pragma omp single
    divide(0, shape_.leaves);
    if (!stopped_) combine_boxes();
    return !stopped_;
  }

 private:
  // Values in a copy. With 2^15 to 2^19 building took the same time to a tenth; without copies, most of it
  // went into rows that lie all over X.
  static constexpr Index kCopied = 1 << 18;
  static constexpr Index kSample = 64, kFew = 48;

  struct Workspace {
    std::vector<T> values;
    std::vector<Number> numbers;
  };

  // Sorts the rows of `count` leaves from leaf `first` on into them.
  void divide(Index first, Index count) {
    if (omp_get_thread_num() == 0 && stop_.now()) stopped_ = true;
    if (stopped_) return;
    const Index from = shape_.first_row(first), to = shape_.first_row(first + count);
    const Source<T> all{X_, nullptr, shape_.columns};
    if (count == 1) return fill_leaf(all, first);
    if ((to - from) * shape_.columns <= kCopied) return divide_copy(first, count);
    const Index half = first + count / 2;
    halve(all, from, shape_.first_row(half), to);
#pragma omp task
    divide(first, count / 2);
    divide(half, count / 2);
  }

  void divide_copy(Index first, Index count) {
    const Index from = shape_.first_row(first), to = shape_.first_row(first + count);
    Workspace& workspace = workspaces_[omp_get_thread_num()];
    for (Index i = from; i < to; ++i) {
      const Index at = i - from, number = items_[i].at;
      std::copy_n(X_ + number * shape_.columns, shape_.columns,
                  workspace.values.data() + at * shape_.columns);
      workspace.numbers[at] = static_cast<Number>(number);
      items_[i].at = static_cast<Number>(at);
    }
    divide_copied({workspace.values.data(), workspace.numbers.data(), shape_.columns}, first, count);
  }

  void divide_copied(const Source<T>& copy, Index first, Index count) {
    if (count == 1) return fill_leaf(copy, first);
    const Index half = first + count / 2;
    halve(copy, shape_.first_row(first), shape_.first_row(half), shape_.first_row(first + count));
    divide_copied(copy, first, count / 2);
    divide_copied(copy, half, count / 2);
  }

  // Puts the rows that come first in the widest column before `middle`.
  void halve(const Source<T>& source, Index from, Index middle, Index to) {
    const Index column = widest_column(source, from, to);
    for (Index i = from; i < to; ++i) items_[i].key = source.row(items_[i].at)[column];
    select(source, from, middle, to);
  }

  // Puts the rows that come first before `middle` (Floyd and Rivest 1975): a pivot a little beyond the middle
  // rules out nearly half of the rows, one a little before it most of the others. std::nth_element, whose
  // branches are guessed wrong every second time, made building 1.8 times slower.
  void select(const Source<T>& source, Index from, Index middle, Index to) {
    const auto before = [&source](const Item<T>& a, const Item<T>& b) { return source.before(a, b); };
    for (Index round = 0; round < 8 && to - from > kFew; ++round) {
      const Index first_right = partition(source, from, to, pivot_near(source, from, middle, to));
      if (first_right == from) break;
      (first_right > middle ? to : from) = first_right;
    }
    const auto begin = items_.begin();
    std::nth_element(begin + from, begin + middle, begin + to, before);
  }

  // Moves the rows that come before the pivot to the front, without a branch; returns where the others begin.
  Index partition(const Source<T>& source, Index from, Index to, const Item<T> pivot) {
    Index left = from;
    for (Index i = from; i < to; ++i) {
      // Field by field: an item loaded whole, right after its fields were stored, waits for the stores.
      const T key = items_[i].key, other_key = items_[left].key;
      const Number at = items_[i].at, other_at = items_[left].at;
      items_[i] = {other_key, other_at};
      items_[left] = {key, at};
      left += source.before({key, at}, pivot);
    }
    return left;
  }

  // A row that comes a little after the middle if that is in the lower half, else a little before it.
  Item<T> pivot_near(const Source<T>& source, Index from, Index middle, Index to) const {
    Item<T> sample[kSample];
    const Index rows = to - from, size = rows < 4096 ? kSample / 4 : kSample;
    for (Index i = 0; i < size; ++i) sample[i] = items_[from + (2 * i + 1) * rows / (2 * size)];
    std::sort(sample, sample + size,
              [&source](const Item<T>& a, const Item<T>& b) { return source.before(a, b); });
    const Index rank = (middle - from) * size / rows, aside = size / 10 + 1;
    return sample[2 * rank < size ? std::min(rank + aside, size - 1) : std::max<Index>(rank - aside, 1)];
  }

  // As a sample of the rows has it: which column is cut is no question of right or wrong.
  Index widest_column(const Source<T>& source, Index from, Index to) const {
    const Index step = std::max<Index>(1, (to - from) / kSample);
    Index widest = 0;
    double most = -1.0;
    for (Index j = 0; j < shape_.columns; ++j) {
      T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest();
      for (Index i = from; i < to; i += step) {
        const T value = source.row(items_[i].at)[j];
        low = std::min(low, value);
        high = std::max(high, value);
      }
      const double width = static_cast<double>(high) - static_cast<double>(low);
      if (width > most) {
        most = width;
        widest = j;
      }
    }
    return widest;
  }

  void fill_leaf(const Source<T>& source, Index leaf) {
    const Index from = shape_.first_row(leaf), to = shape_.first_row(leaf + 1), node = shape_.nodes + leaf;
    T* values = room_.leaves + leaf * shape_.leaf_values();
    bool is_point = true;
    for (Index j = 0; j < shape_.columns; ++j) {
      T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest();
      T* column = values + j * shape_.capacity;
      for (Index i = from; i < to; ++i) {
        const T value = source.row(items_[i].at)[j];
        column[i - from] = value;
        low = std::min(low, value);
        high = std::max(high, value);
      }
      std::fill(column + (to - from), column + shape_.capacity, T{});
      lower(node, j) = static_cast<double>(low);
      upper(node, j) = static_cast<double>(high);
      is_point &= low == high;
    }
    Index* numbers = room_.numbers;
    for (Index i = from; i < to; ++i) numbers[i] = source.number(items_[i].at);
    if (is_point) std::sort(numbers + from, numbers + to);  // of equal rows the first ones count
  }

  double& lower(Index node, Index column) const {
    return room_.boxes[shape_.parent(node) * shape_.box_size() + column * kFan + shape_.place(node)];
  }
  double& upper(Index node, Index column) const { return (&lower(node, column))[shape_.columns * kFan]; }

  // The boxes of nodes from those of their children, and which boxes are points.
  void combine_boxes() {
    for (Index node = shape_.nodes - 1; node >= 0; --node) {
      const Index first = shape_.first_child(node), last = first + shape_.fan(node);
      unsigned points = 0;
      for (Index child = first; child < last; ++child) {
        bool is_point = true;
        for (Index j = 0; j < shape_.columns; ++j) is_point &= lower(child, j) == upper(child, j);
        points |= static_cast<unsigned>(is_point) << shape_.place(child);
      }
      room_.points[node] = static_cast<std::uint8_t>(points);
      if (node == 0) break;
      for (Index j = 0; j < shape_.columns; ++j) {
        double low = lower(first, j), high = upper(first, j);
        for (Index child = first + 1; child < last; ++child) {
          low = std::min(low, lower(child, j));
          high = std::max(high, upper(child, j));
        }
        lower(node, j) = low;
        upper(node, j) = high;
      }
    }
  }

  const T* X_;
  const KdShape& shape_;
  const KdRoom<T>& room_;
  Stop& stop_;
  std::vector<Item<T>> items_;
  std::vector<Workspace> workspaces_;  // one a thread
  std::atomic<bool> stopped_ = stop_.now();
};

}  // namespace

template <class T>
bool build_kd_tree(const T* X, const KdShape& shape, const KdRoom<T>& room, Stop& stop) {
  return Builder<T>(X, shape, room, stop).build();
}

template bool build_kd_tree(const double*, const KdShape&, const KdRoom<double>&, Stop&);
template bool build_kd_tree(const float*, const KdShape&, const KdRoom<float>&, Stop&);

}  // namespace sixfold
