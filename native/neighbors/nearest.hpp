// The k nearest rows of one query so far: once there are k, a heap with the farthest on top. Of two rows that
// are equally far, the one with the higher number counts as farther, so the answer does not depend on the
// order of offers.
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
      if (size_ == k_) std::make_heap(room_, room_ + size_);
    } else if (candidate < room_[0]) {
      replace_top(candidate);
    }
  }

  Index size() const { return size_; }

  // Writes distances and rows, the nearest first, and leaves nothing to be offered to.
  void write(double* distances, Index* rows) {
    std::sort(room_, room_ + size_);
    for (Index i = 0; i < size_; ++i) {
      distances[i] = room_[i].distance;
      rows[i] = room_[i].row;
    }
  }

 private:
  // One way down, where popping and pushing would go down and up again.
  void replace_top(const Near& candidate) {
    Index hole = 0;
    for (Index child = 1; child < size_; child = 2 * hole + 1) {
      if (child + 1 < size_ && room_[child] < room_[child + 1]) ++child;
      if (!(candidate < room_[child])) break;
      room_[hole] = room_[child];
      hole = child;
    }
    room_[hole] = candidate;
  }

  Near* room_;
  Index k_;
  Index size_ = 0;
};

}  // namespace sixfold
