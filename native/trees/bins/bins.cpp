// The bins of bins.hpp.
#include "trees/bins/bins.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <type_traits>

#include "core/tasks.hpp"
#include "trees/bins/split_by_slot.hpp"
#include "trees/columns/sort_values.hpp"

namespace sixfold {
namespace {

// The tops of the bins of one column, from the sorted values of a sample. A bin closes when it has its share
// of the sample; a value with two shares or more has a bin of its own, which costs one top more than it would
// have, so that there are never too many.
template <class T>
class Tops {
 public:
  // Returns the tops of all bins: that of the last one is at least the greatest value of the sample.
  std::vector<T> choose(std::span<const T> sorted) {
    const std::size_t size = sorted.size();
    Index distinct = size > 0;
    for (std::size_t i = 1; i < size; ++i) distinct += sorted[i] != sorted[i - 1];
    const std::size_t share = distinct <= kMost ? 1 : (size + kMost - 1) / kMost;
    const std::size_t heavy = distinct <= kMost ? size + 1 : 2 * share;
    std::size_t in_bin = 0;
    for (std::size_t i = 0, next; i < size; i = next) {
      for (next = i + 1; next < size && sorted[next] == sorted[i];) ++next;
      if (next - i >= heavy) {
        close(std::nextafter(sorted[i], -std::numeric_limits<T>::infinity()));
        in_bin = share;
      }
      in_bin += next - i;
      if (in_bin < share && next < size) continue;
      close(sorted[i]);
      in_bin = 0;
    }
    return std::move(tops_);
  }

 private:
  static constexpr Index kMost = kBins - 2;  // the last known bin has code 254 at most

  void close(T top) {
    if (tops_.empty() || top > tops_.back()) tops_.push_back(top);
  }

  std::vector<T> tops_;
};

// A number below `below` that looks random: where in its stretch of the table a row of the sample lies.
Index jitter(Index i, Index below) {
  const std::uint64_t mixed = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15;
  return static_cast<Index>((mixed >> 33) % static_cast<std::uint64_t>(below));
}

}  // namespace

template <class T>
TreeBins<T>::TreeBins(const Table<T>& X, std::vector<Index> columns, std::span<const std::int32_t> rows,
                      int team, Stop& stop)
    : X_(X), columns_(std::move(columns)), mixed_(columns_.size() * kBins) {
  if constexpr (std::is_floating_point_v<T>) {
    bin_of_value_.resize(columns_.size());
    values_.resize(columns_.size() * kBins, std::numeric_limits<T>::quiet_NaN());
    used_.resize(columns_.size());
    choose_tops(rows, team, stop);
    const std::size_t size = columns_.size() * static_cast<std::size_t>(X.rows);
    codes_ = {spilled::Allocator<std::uint8_t>().allocate(size), FreeCodes{size}};
    encode(team, stop);
    order(rows, team, stop);
  }
}

template <class T>
void TreeBins<T>::choose_tops(std::span<const std::int32_t> rows, int team, Stop& stop) {
  const Index count = static_cast<Index>(rows.size()), size = std::min(count, kSample);
  std::vector<Index> sample(static_cast<std::size_t>(size));
  for (Index i = 0; i < size; ++i) {
    const Index from = cut(count, size, i), to = cut(count, size, i + 1);
    sample[i] = rows[from + jitter(i, to - from)];
  }
  run_tasks((columns() + kTile - 1) / kTile, team, &stop, [&](Index task, Watch&) {
    const Index first = task * kTile, last = std::min(first + kTile, columns());
    std::vector<T> values(static_cast<std::size_t>((last - first) * size));
    std::vector<T> sorted;
    Buckets buckets;
    std::vector<Index> known(static_cast<std::size_t>(last - first), 0);
    const auto read = [&](Index row, Index k) {
      const T value = X_.row(row)[columns_[k] * X_.column_stride];
      if (value == value) values[(k - first) * size + known[k - first]++] = value;
    };
    if (X_.column_stride < X_.row_stride) {
      for (const Index row : sample)
        for (Index k = first; k < last; ++k) read(row, k);
    } else {
      for (Index k = first; k < last; ++k, spilled::look())
        for (const Index row : sample) read(row, k);
    }
    for (Index k = first; k < last; ++k) {
      const T* of_column = values.data() + (k - first) * size;
      sorted.resize(static_cast<std::size_t>(known[k - first]));
      sort_in_buckets(
          of_column, known[k - first], buckets, sorted.data(), [&](Index i) { return of_column[i]; },
          std::identity());
      const std::vector<T> tops = Tops<T>().choose(sorted);
      used_[k] = static_cast<Index>(tops.size());
      std::copy(tops.begin(), tops.end(), values_.begin() + k * kBins);
      if (!tops.empty()) bin_of_value_[k] = BinOfValue<T>(std::span(tops).first(tops.size() - 1));
    }
  });
}

// Tiles of the table are turned, so that a column is searched run by run with its tops in the cache.
template <class T>
void TreeBins<T>::encode(int team, Stop& stop) {
  const Index tasks = (X_.rows + kTaskRows - 1) / kTaskRows;
  std::mutex merging;
  run_tasks(tasks, team, &stop, [&](Index task, Watch&) {
    std::vector<T> room(static_cast<std::size_t>(kRun * kTile));
    // What others have seen need not be seen again.
    const auto seen = [&] {
      const std::lock_guard<std::mutex> lock(merging);
      return mixed_;
    };
    std::vector<std::uint8_t> mixed = seen();
    const Index begin = task * kTaskRows, end = std::min(begin + kTaskRows, X_.rows);
    for (Index first = 0; first < columns(); first += kTile)
      for (Index row = begin; row < end; row += kRun)
        encode_tile(row, std::min(row + kRun, end), first, std::min(first + kTile, columns()), room, mixed);
    const std::lock_guard<std::mutex> lock(merging);
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed_[i] |= mixed[i];
  });
}

template <class T>
void TreeBins<T>::encode_tile(Index first_row, Index last_row, Index first, Index last, std::vector<T>& room,
                              std::vector<std::uint8_t>& mixed) {
  for (Index row = first_row; row < last_row; ++row) {
    const T* values = X_.row(row);
    T* to = room.data() + (row - first_row);
    for (Index k = first; k < last; ++k, to += kRun) *to = values[columns_[k] * X_.column_stride];
  }
  for (Index k = first; k < last; ++k)
    encode_run(k, room.data() + (k - first) * kRun, first_row, last_row - first_row, &mixed[k * kBins]);
}

template <class T>
void TreeBins<T>::encode_run(Index k, const T* values, Index first_row, Index count, std::uint8_t* mixed) {
  std::uint8_t* codes = codes_.get() + k * X_.rows + first_row;
  if constexpr (kKeepsCodes) {
    bin_of_value_[k].find(values, count, codes);
    if (std::find(mixed, mixed + used_[k], 0) == mixed + used_[k]) return;
    const T* only = &values_[k * kBins];
    for (Index i = 0; i < count; ++i) mixed[codes[i]] |= values[i] != only[codes[i]];
  }
}

// From the order of the table to that of the rows.
template <class T>
void TreeBins<T>::order(std::span<const std::int32_t> rows, int team, Stop& stop) {
  run_tasks(columns(), team, &stop, [&](Index k, Watch&) {
    std::uint8_t* codes = codes_.get() + k * X_.rows;
    const std::vector<std::uint8_t> old(codes, codes + X_.rows);
    for (std::size_t i = 0; i < rows.size(); ++i) codes[i] = old[rows[i]];
  });
}

template <class T>
void TreeBins<T>::split(Index k, Index first, std::span<const std::int32_t> slots,
                        std::span<const Index> ends, std::vector<std::uint8_t>& room) {
  if constexpr (kKeepsCodes) split_by_slot(codes_.get() + k * X_.rows + first, slots, ends, room);
}

template <class T>
std::uint8_t TreeBins<T>::code_of(Index k, double value) const {
  if constexpr (!std::is_floating_point_v<T>) return static_cast<std::uint8_t>(std::min(value, 255.0));
  const T* tops = bin_of_value_[k].tops();
  const auto is_below = [](T top, double x) { return static_cast<double>(top) < x; };
  return static_cast<std::uint8_t>(std::lower_bound(tops, tops + kBins - 1, value, is_below) - tops);
}

template class TreeBins<double>;
template class TreeBins<float>;
template class TreeBins<std::uint8_t>;

}  // namespace sixfold
