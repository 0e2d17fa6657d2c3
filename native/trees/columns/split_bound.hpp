// How good the best split by a column can be, before it is searched in double precision.
#pragma once

#include <limits>

namespace sixfold {

struct SplitBound {
  bool has_candidates = false;  // whether limits are met or not
  bool is_exact = false;        // whether `least` is S of the best valid candidate; else none is below it
  double least = std::numeric_limits<double>::infinity();
  double likely = std::numeric_limits<double>::infinity();  // probably, a candidate is not above
};

}  // namespace sixfold
