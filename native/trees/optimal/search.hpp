// The search for the best tree: anytime, with a lower bound that only rises.
#pragma once

#include <vector>

#include "core/stop.hpp"
#include "trees/optimal/search_table.hpp"

namespace sixfold::optimal {

struct SearchRules {
  int depth;
  Index leaves;    // most leaves, 0 for any number
  double penalty;  // of a leaf
  double cutoff;   // only trees below it are looked for
  int threads;
  Index memory;  // bytes for what is kept of parts
};

// Trees whose first question asks `column` at a rank from low to high cost at least left + right + unknown.
struct Frontier {
  std::vector<std::int32_t> column, low, high, left_leaves, unknown_leaves;
  std::vector<double> left, right, unknown;
};

struct SearchHistory {
  std::vector<double> seconds, cost, bound;
};

struct SearchedTree {
  std::vector<std::int32_t> column, rank;  // of the nodes, depth first; -1 in a leaf
  double cost, bound;
  bool complete;
  Frontier frontier;
  SearchHistory history;
};

// Costs are in rows (errors) or in `unit`s of whole numbers that each weight of the table and entropy is.
SearchedTree search_errors(const SearchTable& table, const SearchRules& rules, Stop& stop);
SearchedTree search_weighted_errors(const SearchTable& table, const SearchRules& rules, Stop& stop);
SearchedTree search_entropy(const SearchTable& table, const SearchRules& rules, double scale, Stop& stop);
SearchedTree search_weighted_entropy(const SearchTable& table, const SearchRules& rules, Stop& stop);

}  // namespace sixfold::optimal
