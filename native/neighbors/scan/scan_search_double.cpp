// Scans of rows of doubles: a unit of its own, so that the three are compiled at the same time.
#include "neighbors/scan/scan_search_impl.hpp"

namespace sixfold {

template Index scan_nearest(const Scan<double, double>&, Index, double*, Index*, Stop&);
template Index scan_within(const Scan<double, double>&, double, Around&, Stop&);

}  // namespace sixfold
