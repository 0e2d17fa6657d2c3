// Large arrays in files: what is needed beside a table that is larger than memory.
//
// A fit to n rows keeps some vectors of n numbers: targets, scores, multipliers, and what NumPy makes
// between. Of 20 million rows each takes 160 MB. Between begin and end NumPy's arrays of `least` bytes and
// more are mapped from files that have no name, and so may be the vectors of native loops (SpilledVector).
// The pages of a file are the kernel's to keep or to write out. A thread of its own looks every few
// milliseconds whether the process holds more than `most` bytes, and if so lets go of all pages of files at
// once: the numbers stay where they are, in the page cache as long as there is room, and are mapped again
// when they are read.
//
// Regions that are given up are kept for the next array of their size: a page that was never written costs
// five times as much as one that was.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sixfold::spilled {

// Where files go and how much memory the process may hold; `least` bytes make an array large.
struct Limits {
  std::string folder;
  std::size_t most, least;
};

// Starts to spill; nested calls keep the first limits. Returns whether this system can do it.
bool begin(const Limits& limits);
// Ends what as many calls have begun. Arrays that are still there stay where they are.
void end();

// Also lets go of the pages of a mapping that somebody else made, until forget.
void watch(void* address, std::size_t bytes);
void forget(void* address);

// Lets go of pages now if too many are held: for loops that touch pages all over a file, which the kernel
// maps faster than the thread notices.
void look();

// Memory from a file, or null where there is no spilling, or no room in the folder.
void* take(std::size_t bytes);
// Returns whether the memory came from `take`, and gives it up if so.
bool give_up(void* address);
// How large the region at an address is; 0 where there is none.
std::size_t size_of(void* address);
// Bytes that are in files now.
std::size_t held();
// Whether arrays of so many bytes go to files now.
bool wanted(std::size_t bytes);

// For std::vector: from a file where arrays of that size go there.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) {}  // NOLINT: containers convert
  T* allocate(std::size_t count) {
    if (wanted(count * sizeof(T)))
      if (void* region = take(count * sizeof(T))) return static_cast<T*>(region);
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* data, std::size_t count) {
    if (!give_up(data)) std::allocator<T>().deallocate(data, count);
  }
  bool operator==(const Allocator&) const { return true; }
};

template <class T>
using SpilledVector = std::vector<T, Allocator<T>>;

}  // namespace sixfold::spilled
