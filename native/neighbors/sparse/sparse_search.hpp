// The nearest of sparse rows, by the squares of differences, from lists of the rows that hold each column.
//
//   |x - q|^2 = |x|^2 + |q|^2 - 2 |x| |q| c,      c = sum_j u_j v_j,  u = x / |x|,  v = q / |q|
//
// The sum runs over the columns of q alone: each has a list of the rows that hold it, with their u_j. Columns
// that nearly every row holds have the longest lists and, in text, the least weight. They are set aside as
// the "rest": Cauchy-Schwarz bounds what they add by |u_rest| |v_rest|, and only for rows that this bound
// does not rule out are they added up, row by row. What then still may be among the nearest is measured by
// exact_distance. Lists and sums are float; sparse_scan.hpp says what that can cost.
#pragma once

#include <cstdint>
#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "neighbors/exact_distance.hpp"
#include "neighbors/nearest.hpp"

namespace sixfold {

// Rows one after the other: row i has columns[starts[i]] ... columns[starts[i + 1] - 1].
template <class T>
struct SparseRows {
  const Index* starts;
  const std::int32_t* columns;
  const T* values;
  Index count;

  SparseRow<T> row(Index i) const {
    return {columns + starts[i], values + starts[i], starts[i + 1] - starts[i]};
  }
};

// The training rows in rising order of length ("places"), divided by their lengths.
struct InvertedLists {
  const double* lengths;        // of the row at each place; 0 if shorter than kShort
  const Index* order;           // the number of the row at each place
  SparseRows<float> lists;      // for each column the places that hold it, columns of the rest left out
  const std::int32_t* rest_of;  // for each column its number in the rest, or -1
  SparseRows<float> rest;       // for each place what it holds in the columns of the rest
  const float* rest_lengths;    // |u_rest| of each place, rounded up
  Index rest_columns;
  Index most;  // entries of the fullest row
};

// Rows shorter than this have no lists: dividing by their length would not be accurate.
inline constexpr double kShort = 1e-290;

// The length of a row, accurate to (count / 2 + 4) ulps whatever its scale, down to kShort; 0 below.
template <class T>
double length(const SparseRow<T>& row);

// Fills lists and rest, whose arrays are as long as they will be and whose lists.starts are known. `cursors`
// is a copy of lists.starts.
struct EmptyLists {
  const double* lengths;
  const Index* order;
  Index* cursors;
  std::int32_t* list_places;
  float* list_values;
  const std::int32_t* rest_of;
  Index* rest_starts;
  std::int32_t* rest_columns;
  float* rest_values;
  float* rest_lengths;
};
template <class T>
void fill_lists(const SparseRows<T>& X, const EmptyLists& to);

// The k nearest rows of each query, the nearest first. False if stopped before the end; `computed` counts
// exact distances.
template <class T>
bool sparse_nearest(const SparseRows<T>& X, const InvertedLists& lists, const SparseRows<double>& queries,
                    const Measure& measure, Index k, double* distances, Index* rows, Index* computed,
                    Stop& stop);

// The rows within the radius of each query, by their numbers.
template <class T>
bool sparse_within(const SparseRows<T>& X, const InvertedLists& lists, const SparseRows<double>& queries,
                   const Measure& measure, double radius, std::vector<std::vector<Near>>* found,
                   Index* computed, Stop& stop);

}  // namespace sixfold
