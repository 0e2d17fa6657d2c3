// Rows of a table in the order in which updates visit them.
#pragma once

#include <algorithm>
#include <vector>

#include "linear/first_order/column_sums.hpp"
#include "linear/first_order/stochastic_gradient.hpp"

namespace sixfold {

constexpr Index kPackedNumbers = 1 << 12;
constexpr Index kLabelsAhead = 32;  // visits ahead to ask for a label

// Asks for what comes with a row, some visits ahead of it: labels in random order are as far away as rows. A
// visit of 200,000 x 100 that waits for its label takes 87 ns instead of 48, and 131 instead of 56 where
// columns are scaled. Inlined, because GCC takes a function that only asks for memory to do nothing, and
// drops its calls.
[[gnu::always_inline]] inline void fetch_label(const RowOrder& order, Index visit) {
  const Index i = order.row[std::min(visit + kLabelsAhead, order.count - 1)];
  __builtin_prefetch(order.y + i * order.targets);
  if (order.weight != nullptr) __builtin_prefetch(order.weight + i);
}

// Rows whose columns are next to each other are read where they are.
template <class T>
class RowsInPlace {
 public:
  RowsInPlace(const Table<T>& X, const RowOrder& order) : X_(X), order_(order), ahead_(rows_ahead(X)) {}

  const T* at(Index visit) const { return X_.row(order_.row[visit]); }
  const T* ahead_of(Index visit) const {
    fetch_label(order_, visit);
    return at(std::min(visit + ahead_, order_.count - 1));
  }

 private:
  const Table<T> X_;
  const RowOrder order_;
  const Index ahead_;
};

// Rows of other tables are packed, some visits at a time, into one of two units by turns: a visit and the
// next one are always there together.
template <class T>
class PackedRows {
 public:
  PackedRows(const Table<T>& X, const RowOrder& order)
      : X_(X),
        order_(order),
        rows_(std::clamp<Index>(kPackedNumbers / X.columns, 1, 256)),
        units_(static_cast<std::size_t>(2 * rows_ * X.columns)) {}

  const T* at(Index visit) {
    const Index unit = visit / rows_, half = unit % 2;
    if (held_[half] != unit) pack(unit);
    return units_.data() + (half * rows_ + visit % rows_) * X_.columns;
  }
  const T* ahead_of(Index visit) {
    fetch_label(order_, visit);
    return at(visit);
  }

 private:
  void pack(Index unit) {
    held_[unit % 2] = unit;
    T* out = units_.data() + unit % 2 * rows_ * X_.columns;
    const Index first = unit * rows_, end = std::min(first + rows_, order_.count);
    for (Index visit = first; visit < end; ++visit)
      for (Index j = 0; j < X_.columns; ++j) *out++ = X_.row(order_.row[visit])[j * X_.column_stride];
  }

  const Table<T>& X_;
  const RowOrder& order_;
  Index rows_;
  std::vector<T> units_;
  Index held_[2] = {-1, -1};
};

}  // namespace sixfold
