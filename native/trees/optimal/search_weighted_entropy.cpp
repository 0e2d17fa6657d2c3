#include "trees/optimal/search_impl.hpp"

namespace sixfold::optimal {

SearchedTree search_weighted_entropy(const SearchTable& table, const SearchRules& rules, Stop& stop) {
  const EntropyCost<double> cost(table.classes, 0.0, 1.0);
  return RootSearch(table, cost, rules, stop).run();
}

}  // namespace sixfold::optimal
