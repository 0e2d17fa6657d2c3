// Exact nearest rows by squared differences: lower bounds rule out most rows, the others are computed.
//
// Three steps, each for the rows that the one before lets pass:
//   1. the coarse bound, a product of features (lower_bounds.hpp), for tiles of rows and queries at once;
//   2. the fine bound, if there is one, row by row;
//   3. the sum of squares in the rows' own precision, whose relative error is known (no term is negative),
//      and if that does not rule the row out, the distance by definition (exact_distance.hpp).
// Blocks of rows are outermost, so that a block's features and rows stay in cache for all queries of a group.
//
// What passes waits (candidates.hpp). Products of whole rows bound distances from above too, so the threshold
// falls without any distance, and those of little more than k rows are computed in the end. Projected bounds
// only rule out: a sample of rows, the best of which are computed, gives each query its first threshold, and
// of the rows that pass both bounds those with the least are measured first. Where more rows pass than can
// wait, because many are equally far or numbers are beyond what floats hold, they are measured as they come.
#pragma once

#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "neighbors/exact_distance.hpp"
#include "neighbors/nearest.hpp"

namespace sixfold {

// Training rows of type T, queries of type Q, and the features of both.
template <class T, class Q>
struct SearchTables {
  const T* X;
  const Q* queries;
  Index rows, query_count, columns;
  const float* coarse;  // [panel][coarse_width][kPanelRows]
  Index coarse_width;
  const float* fine;          // [row][kFineWidth] or null
  const float* query_coarse;  // [query][coarse_width]
  const double* coarse_base;  // a query
  const float* query_fine;    // [query][kFineWidth] or null
  const double* fine_base;    // a query
  double scale;               // of the features
  Measure measure;
};

// How many rows passed the coarse bound, and how many the fine one too: their distances were computed.
struct Passed {
  Index coarse = 0, fine = 0;
};

// The k nearest rows of each query, as distances[query][k] and rows[query][k]; false if stopped.
template <class T, class Q>
bool nearest_by_bounds(const SearchTables<T, Q>& tables, Index k, double* distances, Index* rows,
                       Passed& passed, Stop& stop);

// found[query]: all rows within the radius, by row number; false if stopped.
template <class T, class Q>
bool within_by_bounds(const SearchTables<T, Q>& tables, double radius, std::vector<std::vector<Near>>& found,
                      Passed& passed, Stop& stop);

}  // namespace sixfold
