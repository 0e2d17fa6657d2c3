// The distance between two rows as sixfold defines it: terms rounded to doubles, their sum rounded once.
//
//   squares    sum_j (x_j - q_j)^2        largest    max_j |x_j - q_j|
//   absolute   sum_j |x_j - q_j|          count      how many columns have x_j != q_j
//   power      sum_j |x_j - q_j|^p
//
// reported as they are, or as their root (the square root, for "power" the p-th). A sum that is rounded once
// does not depend on the order of the columns: rows that hold the same differences are equally far, always.
// Every search ends with this function, so every search gives the same answer.
#pragma once

#include <cstdint>
#include <string>

#include "core/table.hpp"

namespace sixfold {

enum class Family { squares, absolute, largest, power, count };

struct Measure {
  Family family;
  double p = 2.0;  // of "power"
  bool root = false;
};

// The measure that Python names; throws std::invalid_argument for a name there is not.
Measure measure_of(const std::string& family, double p, bool root);

// The distance as it is reported, of a row of training data (double, float or std::uint8_t) from a query.
template <class T>
double exact_distance(const Measure& measure, const T* x, const double* q, Index columns);

// The same for bytes on both sides, in whole numbers; not for "power".
double exact_distance(const Measure& measure, const std::uint8_t* x, const std::uint8_t* q, Index columns);

// One row of a sparse table: its columns in rising order, each once, and the numbers that stand there.
template <class T>
struct SparseRow {
  const std::int32_t* columns;
  const T* values;
  Index count;
};

// The distance of the family "squares", as it is reported, of two sparse rows: the same number as that of the
// rows written out, since a column that both leave out adds nothing.
template <class T>
double exact_distance(const Measure& measure, const SparseRow<T>& x, const SparseRow<double>& q);

// A sum (or largest term) above this is of a row that is farther than `distance`.
double raw_limit(const Measure& measure, double distance);

}  // namespace sixfold
