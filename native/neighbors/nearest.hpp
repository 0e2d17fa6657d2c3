// The k nearest rows of one query so far: a heap with the farthest on top. Of two rows that are equally far,
// the one with the higher number counts as farther, so the answer does not depend on the order of offers.
#pragma once

#include <algorithm>
#include <limits>

#include "core/table.hpp"

namespace sixfold {

struct Near {
  double distance;
  Index row;

  friend bool operator<(const Near& a, const Near& b) {
    return a.distance < b.distance || (a.distance == b.distance && a.row < b.row);
  }
};

class Nearest {
 public:
  // `room` holds k entries and outlives this.
  Nearest(Near* room, Index k) : room_(room), k_(k) {}

  // Rows farther than this need not be offered; one that is equally far still may be nearer by its number.
  double worst() const { return size_ < k_ ? std::numeric_limits<double>::infinity() : room_[0].distance; }

  void offer(double distance, Index row) {
    const Near candidate{distance, row};
    if (size_ < k_) {
      room_[size_++] = candidate;
      std::push_heap(room_, room_ + size_);
    } else if (candidate < room_[0]) {
      std::pop_heap(room_, room_ + size_);
      room_[size_ - 1] = candidate;
      std::push_heap(room_, room_ + size_);
    }
  }

  Index size() const { return size_; }

  // Writes distances and rows, the nearest first, and leaves nothing to be offered to.
  void write(double* distances, Index* rows) {
    std::sort_heap(room_, room_ + size_);
    for (Index i = 0; i < size_; ++i) {
      distances[i] = room_[i].distance;
      rows[i] = room_[i].row;
    }
  }

 private:
  Near* room_;
  Index k_;
  Index size_ = 0;
};

}  // namespace sixfold
