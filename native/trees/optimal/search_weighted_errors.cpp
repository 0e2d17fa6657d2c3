#include "trees/optimal/search_impl.hpp"

namespace sixfold::optimal {

SearchedTree search_weighted_errors(const SearchTable& table, const SearchRules& rules, Stop& stop) {
  const ErrorCost<double> cost(table.classes);
  return RootSearch(table, cost, rules, stop).run();
}

}  // namespace sixfold::optimal
