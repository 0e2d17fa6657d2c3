// Scans of rows of bytes: a unit of its own, so that the three are compiled at the same time.
#include "neighbors/scan/scan_search_impl.hpp"

namespace sixfold {

template Index scan_nearest(const Scan<std::uint8_t, double>&, Index, double*, Index*, Stop&);
template Index scan_nearest(const Scan<std::uint8_t, float>&, Index, double*, Index*, Stop&);
template Index scan_within(const Scan<std::uint8_t, double>&, double, Around&, Stop&);
template Index scan_within(const Scan<std::uint8_t, float>&, double, Around&, Stop&);

}  // namespace sixfold
