#include "trees/optimal/search_impl.hpp"

namespace sixfold::optimal {

SearchedTree search_entropy(const SearchTable& table, const SearchRules& rules, double scale, Stop& stop) {
  const EntropyCost<std::int32_t> cost(table.classes, static_cast<double>(table.rows), scale);
  return RootSearch(table, cost, rules, stop).run();
}

}  // namespace sixfold::optimal
