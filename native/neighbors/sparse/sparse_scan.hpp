// One query against the inverted lists: bounds of all distances, and the rows that they do not rule out.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "core/tasks.hpp"
#include "neighbors/sparse/sparse_search.hpp"

namespace sixfold {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Index kBlock = 1 << 15;  // places whose sums, 128 KB, stay in the second cache
inline constexpr Index kGroup = 64;       // places that one comparison may rule out
inline constexpr double kLong = 1e150;    // squares of greater lengths overflow

// What rounding can do to the bounds of one query. Write a, b for the computed lengths of x and q, m for the
// entries of q, N for the most entries of any row or query, u = 2^-24 for float and 2^-53 for double.
//
// (1) u_j and v_j are rounded to float (each within 1.01 u), their product once and the sum at most m + 1
//     times, so the computed c is off by at most gamma_(m+6) sum_j |x_j q_j| / (a b) <= gamma_(m+6) (1 +
//     1e-9) (Higham, Accuracy and Stability, 3.1). Numbers below the normal floats add at most 2^-149 a term,
//     which the two roundings that `in_cosine` has to spare cover many times.
// (2) |x|^2 = a^2 (1 + e) with |e| <= (N + 9) u, and the same for q; evaluating the bound costs a few u of
//     a^2 + b^2 + 2 a b <= 2 (a^2 + b^2); rounding the terms of the exact distance, 4 u of |x - q|^2, which
//     is at most 2 (a^2 + b^2). In all less than in_squares = (3 N + 64) u of a^2 + b^2.
// (3) Squares that underflow are off by DBL_MIN at most, one for each of the 2 N columns and a few more.
// (4) A row shorter than kShort is taken for zero, which misses at most 2 kShort b: less than u b^2, of which
//     (2) has some to spare, if b > 1e-270, and less than DBL_MIN if not. So is a short query.
//
// Where squares of lengths would overflow, or m is in the millions, nothing is ruled out.
struct Margin {
  double in_cosine, in_squares, absolute;

  static Margin of(Index entries, Index most, double longest, double b) {
    const double steps = static_cast<double>(entries + 8) * (FLT_EPSILON / 2);
    const double N = static_cast<double>(std::max(entries, most));
    if (steps > 0.25 || longest > kLong || b > kLong) return {kInfinity, 0.0, 0.0};
    return {steps / (1.0 - steps) * 1.01, (3.0 * N + 64.0) * (DBL_EPSILON / 2), (2.0 * N + 16.0) * DBL_MIN};
  }
};

// The root of a sum of squares, up by more than all roundings on the way to a bound take.
inline float rounded_up(double square) { return static_cast<float>(std::sqrt(square) * (1.0 + 1e-6)); }

// Whether sums[i] + rests[i] * factor is not below the bar for some i.
inline bool reaches(const float* __restrict sums, const float* __restrict rests, float factor, float bar,
                    Index count) {
  int below = 0;
#pragma omp simd reduction(+ : below)
  for (Index i = 0; i < count; ++i) below += sums[i] + rests[i] * factor < bar ? 1 : 0;
  return below < count;
}

// What one thread needs to answer one query after the other.
template <class T>
class QueryScan {
 public:
  QueryScan(const SparseRows<T>& X, const InvertedLists& lists, Index most_entries)
      : X_(X),
        lists_(lists),
        sums_(static_cast<std::size_t>(std::min(kBlock, X.count))),
        rest_(static_cast<std::size_t>(lists.rest_columns)),
        cursors_(static_cast<std::size_t>(most_entries)),
        rest_used_(static_cast<std::size_t>(most_entries)) {}

  // Shows every place of first ... last that the sink's limit does not rule out to the sink.
  template <class Sink>
  void scan(const SparseRow<double>& q, Index first, Index last, Sink& sink, Watch& watch) {
    open(q, first);
    for (Index from = first; from < last && !watch.over(); from += kBlock) {
      const Index to = std::min(from + kBlock, last);
      add_lists(from, to);
      for (Index at = from; at < to; at += kGroup) {
        const Index end = std::min(at + kGroup, to);
        if (may_hold(at, end, from, sink.limit))
          for (Index place = at; place < end; ++place) show(place, sums_[place - from], sink);
      }
    }
    for (Index k = 0; k < rest_count_; ++k) rest_[rest_used_[k]] = 0.0F;
  }

 private:
  struct Cursor {
    Index at, end;
    float value;
  };

  // Divides the query by its length and finds where its lists reach the first place.
  void open(const SparseRow<double>& q, Index first) {
    b_ = length(q);
    margin_ = Margin::of(q.count, lists_.most, lists_.lengths[X_.count - 1], b_);
    cursor_count_ = rest_count_ = 0;
    double rest_square = 0.0;
    for (Index j = 0; b_ > 0.0 && j < q.count; ++j) {
      const float value = static_cast<float>(q.values[j] / b_);
      const std::int32_t column = q.columns[j], rest = lists_.rest_of[column];
      if (rest >= 0) {
        rest_[rest] = value;
        rest_used_[rest_count_++] = rest;
        rest_square += static_cast<double>(value) * value;
        continue;
      }
      Cursor cursor{lists_.lists.starts[column], lists_.lists.starts[column + 1], value};
      if (first > 0) cursor.at = lower_bound(cursor, first);
      if (cursor.at < cursor.end) cursors_[cursor_count_++] = cursor;
    }
    rest_length_ = rounded_up(rest_square);
  }

  Index lower_bound(const Cursor& cursor, Index place) const {
    const std::int32_t* places = lists_.lists.columns;
    return std::lower_bound(places + cursor.at, places + cursor.end, place) - places;
  }

  // sums[i] = sum_j u_j v_j over the lists.
  void add_lists(Index from, Index to) {
    float* sums = sums_.data();
    std::fill_n(sums, to - from, 0.0F);
    sums -= from;
    const std::int32_t* places = lists_.lists.columns;
    const float* values = lists_.lists.values;
    for (Index j = 0; j < cursor_count_; ++j) {
      Cursor& cursor = cursors_[j];
      const Index end = to == X_.count ? cursor.end : lower_bound(cursor, to);
      const float value = cursor.value;
      // The places of a list differ, so no sum waits for the one before.
#pragma GCC unroll 4
      for (Index k = cursor.at; k < end; ++k) sums[places[k]] += values[k] * value;
      cursor.at = end;
    }
  }

  // A lower bound of the squares that a row of length a has from the query, if c is not below its cosine.
  double lower(double a, double c) const {
    return (a * a + b_ * b_) * (1.0 - margin_.in_squares) - 2.0 * a * b_ * (c + margin_.in_cosine) -
           margin_.absolute;
  }

  double upper(double a, double c) const {
    return (a * a + b_ * b_) * (1.0 + margin_.in_squares) - 2.0 * a * b_ * (c - margin_.in_cosine) +
           margin_.absolute;
  }

  // Whether a row of this group may be within the limit. lower(a, c) > limit for every c below
  //     (a (1 - in_squares) + (b^2 (1 - in_squares) - absolute - limit) / a) / (2 b) - in_cosine,
  // whose least value over the group is bounded by the least and greatest a.
  bool may_hold(Index at, Index end, Index from, double limit) const {
    const double shortest = lists_.lengths[at], longest = lists_.lengths[end - 1];
    if (b_ == 0.0 || shortest == 0.0 || !(limit < kLong * kLong)) return true;
    const double kept = 1.0 - margin_.in_squares;
    const double numerator = b_ * b_ * kept - margin_.absolute - limit * (1.0 + 8.0 * DBL_EPSILON);
    const double least = (shortest * kept + numerator / (numerator > 0.0 ? longest : shortest)) / (2.0 * b_) -
                         margin_.in_cosine;
    // Down by more than a rounding to float.
    const float bar = static_cast<float>(least - 1e-7 * std::abs(least) - 1e-30);
    return reaches(sums_.data() + (at - from), lists_.rest_lengths + at, rest_length_, bar, end - at);
  }

  template <class Sink>
  void show(Index place, float sum, Sink& sink) const {
    const double a = lists_.lengths[place];
    if (lower(a, sum + lists_.rest_lengths[place] * rest_length_) > sink.limit) return;
    const SparseRow<float> rest = lists_.rest.row(place);
    float added = 0.0F;
    for (Index k = 0; k < rest.count; ++k) added += rest.values[k] * rest_[rest.columns[k]];
    const double cosine = sum + added, least = lower(a, cosine);
    if (!(least > sink.limit)) sink.take(lists_.order[place], least, upper(a, cosine));
  }

  const SparseRows<T>& X_;
  const InvertedLists& lists_;
  std::vector<float> sums_, rest_;
  std::vector<Cursor> cursors_;
  std::vector<std::int32_t> rest_used_;
  Index cursor_count_ = 0, rest_count_ = 0;
  double b_ = 0.0;
  float rest_length_ = 0.0F;
  Margin margin_{};
};

}  // namespace sixfold
