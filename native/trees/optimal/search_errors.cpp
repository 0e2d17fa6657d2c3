#include "trees/optimal/search_impl.hpp"

namespace sixfold::optimal {

SearchedTree search_errors(const SearchTable& table, const SearchRules& rules, Stop& stop) {
  const ErrorCost<std::int32_t> cost(table.classes);
  return RootSearch(table, cost, rules, stop).run();
}

}  // namespace sixfold::optimal
