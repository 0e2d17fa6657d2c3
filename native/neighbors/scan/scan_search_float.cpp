// Scans of rows of floats: a unit of its own, so that the three are compiled at the same time.
#include "neighbors/scan/scan_search_impl.hpp"

namespace sixfold {

template Index scan_nearest(const Scan<float, double>&, Index, double*, Index*, Stop&);
template Index scan_nearest(const Scan<float, float>&, Index, double*, Index*, Stop&);
template Index scan_within(const Scan<float, double>&, double, Around&, Stop&);
template Index scan_within(const Scan<float, float>&, double, Around&, Stop&);

}  // namespace sixfold
