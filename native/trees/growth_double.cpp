// Trees of tables of doubles: a unit of its own, so that the three are compiled at the same time.
#include "trees/growth_impl.hpp"

namespace sixfold {

template std::pair<TreeArrays, bool> grow_tree(const TrainingTable<double>&, const GrowthRules&, RowNumbers,
                                               Index, Stop&);

}  // namespace sixfold
