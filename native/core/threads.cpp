#include "core/threads.hpp"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

namespace sixfold {
namespace {
thread_local int most_threads = 0;
std::atomic<bool> forked{false};
[[maybe_unused]] const int watching_forks = pthread_atfork(nullptr, nullptr, [] { forked = true; });
constexpr double kWorthWaking = 1 << 20;  // 8 MB of doubles
}  // namespace

int team_size(Index parts, double values) {
  return values < kWorthWaking ? 1 : static_cast<int>(std::min<Index>(threads(), parts));
}

int limit_threads(int most) {
  const int before = most_threads;
  most_threads = most;
  return before;
}

int threads() {
  if (forked) return 1;
  const int available = omp_get_max_threads();
  return most_threads > 0 ? std::min(most_threads, available) : available;
}

}  // namespace sixfold
