// One round of working sets for many exemplar machines: each against the few negatives that pull at it.
#pragma once

#include <cstdint>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// What all machines of a round share, and what each has of its own (one entry, or one row, a machine).
struct HardNegatives {
  Table<double> X;            // the negatives, centred, with contiguous rows
  const double* cost;         // of each negative
  const double* exemplars;    // machines x columns, centred
  const double* own_cost;     // of each exemplar
  const double* scores;       // machines x rows, of the machine as it is
  const double* goals;        // the gap that a machine may have
  Index room;                 // rows of a working set
  Index most_new;             // that come to it in a round, if not as many as it has
  std::int32_t* rows;         // machines x room: the working set, with
  double* multipliers;        // machines x room: a > 0
  std::int32_t* counts;       // how many these are; -1 where there was no room
  double *w, *b;              // machines x columns, and one a machine: replaced by the next machine
  double *objective, *bound;  // of the machine that was scored, and of its dual point
  std::uint8_t* done;         // whether the gap is within the goal: w and b stay
};

// Measures each machine by its scores, and solves its dual on the rows that have multipliers and the rows
// inside the margin, those that cost most first. Returns false if stopped.
bool hard_negative_round(const HardNegatives& round, Index machines, Stop& stop);

}  // namespace sixfold
