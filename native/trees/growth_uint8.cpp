// Trees of tables of bytes: a unit of its own, so that the three are compiled at the same time.
#include "trees/growth_impl.hpp"

namespace sixfold {

template std::pair<TreeArrays, bool> grow_tree(const TrainingTable<std::uint8_t>&, const GrowthRules&,
                                               RowNumbers, Index, Stop&);

}  // namespace sixfold
