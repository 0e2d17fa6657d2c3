// The order in which a node looks at its columns where it looks at some of them: random, but for the seed and
// the way from the root to the node alone, so that it does not matter who grows which node.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/table.hpp"

namespace sixfold {

// Steele, Lea and Flood 2014: a number that looks random, of each number another.
inline std::uint64_t splitmix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline std::uint64_t root_path(std::uint64_t seed) { return splitmix(seed); }
inline std::uint64_t child_path(std::uint64_t path, Index slot) {
  return splitmix(path + static_cast<std::uint64_t>(slot) + 1);
}

// A permutation of all columns that is made as far as it is asked for (Fisher and Yates).
class ColumnOrder {
 public:
  explicit ColumnOrder(Index columns) : columns_(static_cast<std::size_t>(columns)) {
    std::iota(columns_.begin(), columns_.end(), 0);
  }

  void begin(std::uint64_t path) {
    for (; !swaps_.empty(); swaps_.pop_back())
      std::swap(columns_[swaps_.size() - 1], columns_[swaps_.back()]);
    state_ = path;
  }

  bool is_over() const { return swaps_.size() == columns_.size(); }

  std::int32_t next() {
    const std::size_t at = swaps_.size();
    state_ = splitmix(state_);
    swaps_.push_back(at + state_ % (columns_.size() - at));
    std::swap(columns_[at], columns_[swaps_.back()]);
    return columns_[at];
  }

 private:
  std::vector<std::int32_t> columns_;
  std::vector<std::size_t> swaps_;  // with which place each place was swapped, undone before the next node
  std::uint64_t state_ = 0;
};

}  // namespace sixfold
