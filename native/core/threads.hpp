// How many threads the loops use.
#pragma once

#include "core/table.hpp"

namespace sixfold {

// OpenMP's setting (OMP_NUM_THREADS, threadpoolctl); one in a forked child, whose copy of the OpenMP pool has
// no threads behind it.
int threads();

// How many threads a loop should use that is cut into so many parts and reads so many values: one unless they
// take about half a millisecond. Waking a thread is quick, but it spins for about as long once it is done, on
// a core that others may need. Where products dominate, sixteen of them count as one value read.
int team_size(Index parts, double values);

// At most this many of them for loops called from this thread; 0 for no limit. Returns the limit before.
int limit_threads(int most);

}  // namespace sixfold
