// The sorted columns of sorted_columns.hpp.
#include "trees/columns/sorted_columns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "trees/fast_entropy.hpp"

namespace sixfold {
namespace {

constexpr Index kMost = 1024;
constexpr double kUnit = 0x1p-49;  // of fixed point numbers: f(1024) / kUnit is below 2^63

// The least score of all candidates, of which there may be none.
struct Least {
  void operator()(Index, bool is_candidate, std::int64_t units) {
    least_units = is_candidate && units < least_units ? units : least_units;
  }
  void operator()(Index, bool is_candidate, double score) {
    least_score = is_candidate && score < least_score ? score : least_score;
  }
  double score() const {
    return least_units < kNone ? static_cast<double>(least_units) * kUnit : least_score;
  }

  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t least_units = kNone;
  double least_score = std::numeric_limits<double>::infinity();
};

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
    rows_[i] = rows[i];
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

template <class T>
void SortedColumns<T>::sort_items(const T* values, const std::uint16_t* ids, Index count) {
  const auto item = [&](Index i) { return Item{values[i], ids[i]}; };
  sort_in_buckets(values, count, buckets_, items_, item, [](const Item& a) { return a.value; });
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
bool SortedColumns<T>::has_unknown(Index k) const {
  return rank(words(k)[count_ - 1]) == kUnknownRank;
}

template <class T>
SplitBound SortedColumns<T>::split_bound(Index k) {
  const Word* words = this->words(k);
  SplitBound result;
  if (has_unknown(k)) {  // where unknown rows go is for the full search to try
    result.has_candidates = rank(words[0]) != kUnknownRank;
    result.is_exact = !result.has_candidates;
    if (result.has_candidates) result.least = -result.least;
    return result;
  }
  result.has_candidates = rank(words[0]) != rank(words[count_ - 1]);
  result.is_exact = !weighted_ || !result.has_candidates;
  if (!result.has_candidates) return result;
  Least least;
  scan(words, least);
  result.least = least.score() - margin_;
  result.likely = least.score() + margin_;
  return result;
}

template <class T>
void SortedColumns<T>::offer(Index k, const T* values, Index stride, double limit, Candidates& candidates) {
  const Word* words = this->words(k);
  const double level = limit + margin_ + SplitScore::kTie * weight_;  // more than these scores are off by
  const auto level_units = static_cast<std::int64_t>(std::min(level / kUnit, 0x1p62));
  Index count = 0;
  scan(words, [&](Index i, bool is_candidate, auto score) {
    offered_[count] = static_cast<std::uint16_t>(i);
    if constexpr (std::is_integral_v<decltype(score)>)
      count += is_candidate && score <= level_units;
    else
      count += is_candidate && score <= level;
  });
  const auto value = [&](Index i) { return static_cast<double>(values[rows_[id(words[i])] * stride]); };
  ColumnWorkspace& workspace = candidates.workspace();
  workspace.left.clear();
  for (Index at = 0, i = 0; at < count; ++at) {
    for (; i <= offered_[at]; ++i) workspace.left.add(labels_[id(words[i])], weights_[id(words[i])]);
    workspace.right.set_difference(workspace.known, workspace.left);
    candidates.offer_two(workspace.left, workspace.right, [&](Split& split) {
      set_threshold(split, threshold_between(value(i - 1), value(i)));
    });
  }
}

template <class T>
template <class Use>
void SortedColumns<T>::scan(const Word* words, Use&& use) {
  if (gini_) return scan_gini(words, use);
  if (weighted_) return scan_weights(words, use);
  if (classes_ == 2) return scan_two(words, use);
  scan_many(words, use);
}

template <class T>
template <class Use>
void SortedColumns<T>::scan_two(const Word* words, Use&& use) const {
  Index second = 0;
  for (Index i = 0; i < fewest_ - 1 && i < count_; ++i) second += class_of_[id(words[i])];
  for (Index i = fewest_ - 1; i < count_ - fewest_; ++i) {
    second += class_of_[id(words[i])];
    const std::int64_t score = sides_[i + 1] - first_class_[i + 1 - second] - second_class_[second];
    use(i, rank(words[i]) != rank(words[i + 1]), score);
  }
}

template <class T>
template <class Use>
void SortedColumns<T>::scan_many(const Word* words, Use&& use) {
  std::int64_t classes = whole_;
  std::copy_n(first_change_, classes_, next_change_);
  for (Index i = 0; i < count_ - fewest_; ++i) {
    classes += changes_[next_change_[class_of_[id(words[i])]]++];
    const bool is_candidate = i + 1 >= fewest_ && rank(words[i]) != rank(words[i + 1]);
    use(i, is_candidate, sides_[i + 1] - classes);
  }
}

// S = W (g - sum_c h_c) of shares. The h_c of all classes but one stay as they are from one row to the next.
template <class T>
template <class Use>
void SortedColumns<T>::scan_weights(const Word* words, Use&& use) {
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
  const float lightest = static_cast<float>(lightest_ * scale) - 1e-6f;
  for (Index i = 0; i < count_ - fewest_; ++i) {
    double& part = left_weights_[class_of_[id(words[i])]];
    classes += parts_[i] - part;
    part = parts_[i];
    const bool is_candidate = i + 1 >= fewest_ && rank(words[i]) != rank(words[i + 1]) &&
                              left_[i] >= lightest && right_[i] >= lightest;
    use(i, is_candidate, (own_left_[i] - classes) * weight_);
  }
}

// A quotient of squares is between 0 and the weight of the child, whatever rounding makes of it.
template <class T>
template <class Use>
void SortedColumns<T>::scan_gini(const Word* words, Use&& use) {
  std::fill_n(left_weights_, classes_, 0.0);
  double left = 0.0, left_squares = 0.0, right_squares = 0.0;
  for (Index c = 0; c < classes_; ++c) right_squares += class_weights_[c] * class_weights_[c];
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
    use(i, true, weight_ - left_squares / left - right_part);
  }
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
