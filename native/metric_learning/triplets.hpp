// Hinges of triplets of rows: a row, a target that should be near, an impostor that should be farther.
//
//     h(i, j, l) = [1 + |z_i - z_j|^2 - |z_i - z_l|^2]_+,      j a target of i, l of another class
//
// Rows are in the order of their classes and as wide as a multiple of eight, so that a vector register reads
// no further. Pairs (row, impostor) are kept as lists, one a row; what depends on pairs alone is computed
// once for all targets. In sums over triplets each row has a part of its own, and parts are added in order:
// results do not depend on the number of threads.
#pragma once

#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

using RowNumber = std::int32_t;

struct MappedRows {
  const double* data;
  Index rows, width;  // width is a multiple of eight

  const double* row(Index i) const { return data + i * width; }
};

// For each row a list: of row i at ends[i], ..., ends[i + 1] - 1.
struct PairLists {
  std::vector<Index> ends;
  std::vector<RowNumber> rows;
};

// Finds all rows l of other classes with |z_i - z_l|^2 < radius[i], and maybe some that are farther by
// rounding alone. Class c is in rows class_ends[c], ..., class_ends[c + 1] - 1. Returns whether it completed.
bool find_impostors(const MappedRows& Z, const Index* class_ends, Index classes, const double* radius,
                    PairLists& found, Stop& stop);

// Triplets as pairs: targets (rows x k; -1 where a row has fewer) and lists of impostors; row i counts by
// weight[i].
struct Triplets {
  const Index* targets;
  Index k;
  const Index* ends;
  const RowNumber* impostors;
  const double* weight;
};

struct HingeSums {
  double smooth = 0;   // sum of weight H(m), m = 1 + |z_i - z_j|^2 - |z_i - z_l|^2
  double hinge = 0;    // sum of weight [m]_+
  double linear = 0;   // sum of weight a m, a = H'(m)
  double weights = 0;  // sum of weight a
};

// The hinge, rounded over a width g: H(m) = 0 for m <= -g/2, (m + g/2)^2 / 2g up to m = g/2, and m beyond.
// Writes of each row 1 + max_j |z_i - z_j|^2 (minus infinity without targets), and of each pair the sum of a
// = H'(m) over its triplets, times the weight of the row: of targets (rows x k), and of impostors with a
// minus sign.
HingeSums hinge_sums(const MappedRows& Z, const Triplets& triplets, double smoothing, double* of_targets,
                     double* of_impostors, double* farthest);

// All triplets of which a > 0: row, place among its targets, impostor, and a.
struct TripletList {
  std::vector<Index> rows, places, impostors;
  std::vector<double> a;
};
void list_triplets(const MappedRows& Z, const Triplets& triplets, double smoothing, TripletList& found);

// Pairs of rows with a weight, as lists (ends, rows), and for each row the pairs that end in it: numbers
// back_pairs of these, and rows they begin in.
struct PairGraph {
  const Index* ends;
  const RowNumber* rows;
  const Index* back_ends;
  const RowNumber* back_rows;
  const Index* back_pairs;
  const double* weight;
};

// Y_i = sum over pairs p = (i, b) and (b, i) of weight_p (z_i - z_b), a row for every row of Z.
void pair_products(const MappedRows& Z, const PairGraph& pairs, double* Y);

}  // namespace sixfold
