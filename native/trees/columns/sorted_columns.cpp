// The sorted columns of sorted_columns.hpp.
#include "trees/columns/sorted_columns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "trees/fast_entropy.hpp"

namespace sixfold {
namespace {

constexpr Index kMost = 512;
constexpr double kUnit = 0x1p-50;  // of fixed point numbers: f(512) / kUnit is below 2^63
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// f(n) = n log2 n in units.
const std::array<std::int64_t, kMost + 1>& units_of_f() {
  static const std::array<std::int64_t, kMost + 1> table = [] {
    std::array<std::int64_t, kMost + 1> f{};
    for (Index n = 2; n <= kMost; ++n) {
      const double x = static_cast<double>(n);
      f[n] = std::llround(x * std::log2(x) / kUnit);
    }
    return f;
  }();
  return table;
}

// The least and the greatest of some values, in lanes of their own.
template <class T>
std::pair<double, double> range_of(const T* values, Index count) {
  if (count == 0) return {0.0, 0.0};
  constexpr Index kAbreast = 8;
  T low[kAbreast], high[kAbreast];
  std::fill_n(low, kAbreast, values[0]);
  std::fill_n(high, kAbreast, values[0]);
  Index i = 0;
  for (; i + kAbreast <= count; i += kAbreast)
    for (Index k = 0; k < kAbreast; ++k) {
      low[k] = values[i + k] < low[k] ? values[i + k] : low[k];
      high[k] = values[i + k] > high[k] ? values[i + k] : high[k];
    }
  for (; i < count; ++i) {
    low[0] = std::min(low[0], values[i]);
    high[0] = std::max(high[0], values[i]);
  }
  return {static_cast<double>(*std::min_element(low, low + kAbreast)),
          static_cast<double>(*std::max_element(high, high + kAbreast))};
}

}  // namespace

template <class T>
void SortedColumns<T>::load(const TrainingTable<T>& data, std::span<const Row> rows,
                            std::span<const Index> columns) {
  columns_ = static_cast<Index>(columns.size());
  loaded_ = static_cast<Index>(rows.size());
  weighted_ = data.weight != nullptr;
  words_.resize(static_cast<std::size_t>(columns_ * loaded_));
  values_.resize(static_cast<std::size_t>(kTile * loaded_));
  class_numbers_.resize(static_cast<std::size_t>(data.classes));
  for (Index i = 0; i < loaded_; ++i) {
    ids_[i] = all_ids_[i] = static_cast<std::uint16_t>(i);
    labels_[i] = data.labels[rows[i]];
    weights_[i] = data.weight_of(rows[i]);
  }
  for (Index first = 0; first < columns_; first += kTile) {
    const Index last = std::min(first + kTile, columns_);
    for (Index i = 0; i < loaded_; ++i) {
      const T* row = data.X.row(rows[i]);
      for (Index k = first; k < last; ++k)
        values_[(k - first) * loaded_ + i] = row[columns[k] * data.X.column_stride];
    }
    for (Index k = first; k < last; ++k)
      sort(values_.data() + (k - first) * loaded_, words_.data() + k * loaded_);
  }
}

// Known values first, by value; then the unknown ones.
template <class T>
void SortedColumns<T>::sort(const T* values, Word* words) {
  Index known = 0;
  for (Index i = 0; i < loaded_; ++i) known += values[i] == values[i];
  if (known < loaded_) {
    Index at = 0;
    for (Index i = 0; i < loaded_; ++i) {
      if (values[i] == values[i]) {
        known_values_[at] = values[i];
        known_ids_[at++] = static_cast<std::uint16_t>(i);
      } else {
        words[known + i - at] = kUnknownRank << 16 | static_cast<Word>(i);
      }
    }
    sort_items(known_values_, known_ids_, known);
  } else {
    sort_items(values, all_ids_, known);
  }
  Word rank = 0;
  for (Index i = 0; i < known; ++i) {
    rank += i > 0 && items_[i].value != items_[i - 1].value;
    words[i] = rank << 16 | items_[i].id;
  }
}

// Two buckets a row, evenly spaced between the least and the greatest value (Neubert 1998), then insertion.
// All steps that find a bucket round monotonically, so buckets keep the order of values whatever these are.
// Three times as fast as std::sort, which does the rest where values crowd in a bucket.
template <class T>
void SortedColumns<T>::sort_items(const T* values, const std::uint16_t* ids, Index count) {
  constexpr std::int32_t kCrowd = 16;
  const auto before = [](const Item& a, const Item& b) { return a.value < b.value; };
  const auto [low, high] = range_of(values, count);
  const Index buckets = 2 * count;
  const double scale = static_cast<double>(buckets - 1) / (0.5 * high - 0.5 * low);
  if (!std::isfinite(scale)) {  // one value, or nearly
    for (Index i = 0; i < count; ++i) items_[i] = {values[i], ids[i]};
    return std::sort(items_, items_ + count, before);
  }
  for (Index i = 0; i < count; ++i)
    buckets_[i] = static_cast<std::int32_t>((0.5 * static_cast<double>(values[i]) - 0.5 * low) * scale);
  std::fill_n(bucket_ends_, buckets + 1, 0);
  for (Index i = 0; i < count; ++i) ++bucket_ends_[buckets_[i] + 1];
  std::int32_t most = 0;
  for (Index b = 0; b < buckets; ++b) {
    most = std::max(most, bucket_ends_[b + 1]);
    bucket_ends_[b + 1] += bucket_ends_[b];
  }
  for (Index i = 0; i < count; ++i) items_[bucket_ends_[buckets_[i]]++] = {values[i], ids[i]};
  if (most > kCrowd)
    for (Index b = 0, from = 0; b < buckets; from = bucket_ends_[b++])
      if (bucket_ends_[b] - from > kCrowd) std::sort(items_ + from, items_ + bucket_ends_[b], before);
  for (Index i = 1; i < count; ++i) {
    const Item item = items_[i];
    Index to = i;
    for (; to > 0 && item.value < items_[to - 1].value; --to) items_[to] = items_[to - 1];
    items_[to] = item;
  }
}

template <class T>
void SortedColumns<T>::enter(Index begin, Index end, const ClassTotals& totals, const GrowthRules& rules) {
  begin_ = begin;
  count_ = end - begin;
  gini_ = rules.criterion == Criterion::gini;
  weight_ = totals.weight();
  lightest_ = rules.min_leaf_weight - SplitScore::kTie * weight_;
  fewest_ = rules.min_samples_leaf;
  if (!weighted_ && rules.min_leaf_weight > 0.0)
    fewest_ = std::max(fewest_, static_cast<Index>(std::min(std::ceil(lightest_), kMost + 1.0)));
  classes_ = 0;
  for (const ClassCell& cell : totals.cells()) {
    if (cell.rows == 0) continue;
    class_numbers_[cell.label] = static_cast<std::int32_t>(classes_);
    class_rows_[classes_] = cell.rows;
    class_weights_[classes_++] = cell.weight;
  }
  for (Index i = begin; i < end; ++i)
    class_of_[ids_[i]] = static_cast<std::uint16_t>(class_numbers_[labels_[ids_[i]]]);
  // With u = 2^-24, f is off by u (5 |log2 x| + 9) x and there are the cells of classes and of children. A
  // quotient of squares is off by a small e = 2 count 2^-53 W / R at most, and by R: by sqrt(e) W.
  const double cells = 2.0 * static_cast<double>(classes_);
  margin_ = !weighted_ ? 0.0 : weight_ * (gini_ ? 1e-6 : 0x1p-24 * (5.0 * std::log2(cells) + 40.0));
  if (!weighted_ && !gini_) tabulate();
}

template <class T>
void SortedColumns<T>::tabulate() {
  const auto& f = units_of_f();
  for (Index left = 0; left <= count_; ++left) sides_[left] = f[left] + f[count_ - left];
  if (classes_ == 2) {
    for (Index l = 0; l <= class_rows_[0]; ++l) first_class_[l] = f[l] + f[class_rows_[0] - l];
    for (Index l = 0; l <= class_rows_[1]; ++l) second_class_[l] = f[l] + f[class_rows_[1] - l];
    return;
  }
  whole_ = 0;
  Index at = 0;
  for (Index c = 0; c < classes_; ++c) {
    const Index rows = class_rows_[c];
    whole_ += f[rows];
    first_change_[c] = static_cast<std::int32_t>(at);
    for (Index l = 0; l < rows; ++l) changes_[at++] = f[l + 1] + f[rows - l - 1] - f[l] - f[rows - l];
  }
}

template <class T>
SplitBound SortedColumns<T>::split_bound(Index k) {
  const Word* words = words_.data() + k * loaded_ + begin_;
  SplitBound result;
  if (rank(words[count_ - 1]) == kUnknownRank) {  // where unknown rows go is for the full search to try
    result.has_candidates = rank(words[0]) != kUnknownRank;
    result.is_exact = !result.has_candidates;
    if (result.has_candidates) result.least = -result.least;
    return result;
  }
  result.has_candidates = rank(words[0]) != rank(words[count_ - 1]);
  result.is_exact = !weighted_ || !result.has_candidates;
  if (!result.has_candidates) return result;
  double least = 0.0;
  if (gini_) {
    least = least_of_gini(words);
  } else if (weighted_) {
    least = least_of_weights(words);
  } else {
    const std::int64_t units = classes_ == 2 ? least_of_two(words) : least_of_many(words);
    least = units == kNone ? std::numeric_limits<double>::infinity() : static_cast<double>(units) * kUnit;
  }
  result.least = least - margin_;
  result.likely = least + margin_;
  return result;
}

template <class T>
std::int64_t SortedColumns<T>::least_of_two(const Word* words) const {
  std::int64_t least = kNone;
  Index second = 0;
  for (Index i = 0; i < fewest_ - 1 && i < count_; ++i) second += class_of_[id(words[i])];
  for (Index i = fewest_ - 1; i < count_ - fewest_; ++i) {
    second += class_of_[id(words[i])];
    const std::int64_t score = sides_[i + 1] - first_class_[i + 1 - second] - second_class_[second];
    least = rank(words[i]) != rank(words[i + 1]) && score < least ? score : least;
  }
  return least;
}

template <class T>
std::int64_t SortedColumns<T>::least_of_many(const Word* words) {
  std::int64_t least = kNone, classes = whole_;
  std::copy_n(first_change_, classes_, next_change_);
  for (Index i = 0; i < count_ - fewest_; ++i) {
    classes += changes_[next_change_[class_of_[id(words[i])]]++];
    const bool is_candidate = i + 1 >= fewest_ && rank(words[i]) != rank(words[i + 1]);
    const std::int64_t score = sides_[i + 1] - classes;
    least = is_candidate && score < least ? score : least;
  }
  return least;
}

// S = W (g - sum_c h_c) of shares. The h_c of all classes but one stay as they are from one row to the next.
template <class T>
double SortedColumns<T>::least_of_weights(const Word* words) {
  const double scale = 1.0 / weight_;
  std::fill_n(left_weights_, classes_, 0.0);
  double left = 0.0;
  for (Index i = 0; i < count_; ++i) {
    const Index c = class_of_[id(words[i])];
    const double weight = weights_[id(words[i])];
    left += weight;
    left_weights_[c] += weight;
    left_[i] = static_cast<float>(left * scale);
    right_[i] = static_cast<float>(std::max(0.0, weight_ - left) * scale);
    own_left_[i] = static_cast<float>(left_weights_[c] * scale);
    own_right_[i] = static_cast<float>(std::max(0.0, class_weights_[c] - left_weights_[c]) * scale);
  }
  for (Index i = 0; i < count_; ++i) parts_[i] = fast_x_log2_x(own_left_[i]) + fast_x_log2_x(own_right_[i]);
  for (Index i = 0; i < count_; ++i) own_left_[i] = fast_x_log2_x(left_[i]) + fast_x_log2_x(right_[i]);
  double classes = 0.0;
  for (Index c = 0; c < classes_; ++c) {
    left_weights_[c] = fast_x_log2_x(static_cast<float>(class_weights_[c] * scale));
    classes += left_weights_[c];
  }
  double least = std::numeric_limits<double>::infinity();
  const float lightest = static_cast<float>(lightest_ * scale) - 1e-6f;
  for (Index i = 0; i < count_ - fewest_; ++i) {
    double& part = left_weights_[class_of_[id(words[i])]];
    classes += parts_[i] - part;
    part = parts_[i];
    const bool is_candidate = i + 1 >= fewest_ && rank(words[i]) != rank(words[i + 1]) &&
                              left_[i] >= lightest && right_[i] >= lightest;
    const double score = own_left_[i] - classes;
    least = is_candidate && score < least ? score : least;
  }
  return least * weight_;
}

// A quotient of squares is between 0 and the weight of the child, whatever rounding makes of it.
template <class T>
double SortedColumns<T>::least_of_gini(const Word* words) {
  std::fill_n(left_weights_, classes_, 0.0);
  double left = 0.0, left_squares = 0.0, right_squares = 0.0;
  for (Index c = 0; c < classes_; ++c) right_squares += class_weights_[c] * class_weights_[c];
  double least = std::numeric_limits<double>::infinity();
  const double lightest = lightest_ - (weighted_ ? 1e-9 * weight_ : 0.0);
  for (Index i = 0; i < count_ - fewest_; ++i) {
    const Index c = class_of_[id(words[i])];
    const double weight = weights_[id(words[i])];
    left_squares += weight * (2.0 * left_weights_[c] + weight);
    right_squares -= weight * (2.0 * (class_weights_[c] - left_weights_[c]) - weight);
    left_weights_[c] += weight;
    left += weight;
    const double right = std::max(weight_ - left, 0.0);
    const bool is_candidate =
        i + 1 >= fewest_ && rank(words[i]) != rank(words[i + 1]) && left >= lightest && right >= lightest;
    if (!is_candidate) continue;
    const double right_part = right > 0.0 ? std::min(std::max(right_squares, 0.0) / right, right) : 0.0;
    least = std::min(least, weight_ - left_squares / left - right_part);
  }
  return least;
}

template <class T>
void SortedColumns<T>::part(std::span<const std::int32_t> slots, std::span<const Index> ends) {
  std::vector<Index> to(ends.size());
  std::vector<std::uint16_t> ids(ids_ + begin_, ids_ + begin_ + count_);
  for (std::size_t slot = 1; slot < ends.size(); ++slot) to[slot] = ends[slot - 1];
  for (Index i = 0; i < count_; ++i) {
    slot_of_[ids[i]] = static_cast<std::uint16_t>(slots[i]);
    ids_[begin_ + to[slots[i]]++] = ids[i];
  }
  std::vector<Word> later(static_cast<std::size_t>(count_));
  for (Index k = 0; k < columns_; ++k) {
    Word* words = words_.data() + k * loaded_ + begin_;
    if (ends.size() == 2) {
      Index left = 0, right = 0;
      for (Index i = 0; i < count_; ++i) {
        const Word word = words[i];
        const Index slot = slot_of_[id(word)];
        words[left] = later[right] = word;
        right += slot;
        left += 1 - slot;
      }
      std::copy_n(later.data(), right, words + left);
    } else {
      std::copy_n(words, count_, later.data());
      to[0] = 0;
      for (std::size_t slot = 1; slot < ends.size(); ++slot) to[slot] = ends[slot - 1];
      for (const Word word : later) words[to[slot_of_[id(word)]]++] = word;
    }
  }
}

template class SortedColumns<double>;
template class SortedColumns<float>;
template class SortedColumns<std::uint8_t>;

}  // namespace sixfold
