// The nearest rows by going through all of them, with a plain sum first.
//
// For each row the terms of the measure (exact_distance.hpp) are added up in plain double or float
// arithmetic, and the row is given up as soon as the sum, rounding considered, is too large. Rows that stay
// are measured by exact_distance.
//
// Why this is exact. With fl(a op b) = (a op b)(1 + e), |e| <= u, terms that are not negative and gamma_m =
// m u / (1 - m u), a sum s of d terms is at most T (1 + gamma_(d + c)), where T is the true sum and c counts
// the roundings within a term: one in the difference, which a power multiplies by p; at most 2 p + 2 in a
// power by multiplications, or one in pow and |log(term)| < 89 for the rounding of p to a float. What
// exact_distance adds up is at least T (1 - 4 u). So for m = d + 4 p + 128 and m u <= 1/16, a sum of part of
// the terms that is above limit (1 + 4 m u), also when that is rounded to a float, is of a row above the
// limit. Where terms underflow each is wrong by less than the smallest normal number, which is added d times.
// A sum that overflows is above every limit that is still finite when it is raised like this; for p < 1, a
// difference that overflows has a power above half of (the largest number)^p, and limits must be below that.
#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"
#include "neighbors/exact_distance.hpp"
#include "neighbors/scan/all_rows.hpp"

namespace sixfold {

// Rows of T (double, float or std::uint8_t) and the same queries twice: as doubles, and as what plain sums
// are computed in (A: double or float). Rows are contiguous in all three.
template <class T, class A>
struct Scan {
  Measure measure;
  const T* X;
  Index rows, columns;
  const double* Q;
  const A* plain;
  Index queries;
};

// Writes the k nearest rows of each query, the nearest first (queries x k). Returns how many rows had all
// their terms added up, or -1 if it was stopped.
template <class T, class A>
Index scan_nearest(const Scan<T, A>& scan, Index k, double* distances, Index* rows, Stop& stop);

// Finds the rows whose distance is at most the radius. Returns as scan_nearest.
template <class T, class A>
Index scan_within(const Scan<T, A>& scan, double radius, RadiusResult& result, Stop& stop);

}  // namespace sixfold
