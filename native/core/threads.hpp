// How many threads the loops use.
#pragma once

namespace sixfold {

// OpenMP's setting (OMP_NUM_THREADS, threadpoolctl); one in a forked child, whose copy of the OpenMP pool has
// no threads behind it.
int threads();

// At most this many of them for loops called from this thread; 0 for no limit. Returns the limit before.
int limit_threads(int most);

}  // namespace sixfold
