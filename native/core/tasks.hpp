// Independent tasks shared by a team of threads: whoever is free takes the next one.
#pragma once

#include <omp.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// What a task asks now and then: whether to give up. Only the thread that called the loop may poll `stop`.
class Watch {
 public:
  Watch(Stop* stop, std::atomic<bool>& ended) : stop_(stop), ended_(ended) {}

  bool over() {
    if (stop_ != nullptr && stop_->now()) ended_.store(true, std::memory_order_relaxed);
    return ended();
  }

  // Whether a thread has given up, without a look at the clock: for loops of a microsecond.
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  Stop* stop_;
  std::atomic<bool>& ended_;
};

// Calls work(task, watch) for every task; false if `stop`, which may be null, ended it. An exception in a
// task, such as that memory has run out, may not leave its thread: it ends all tasks and is thrown again
// here.
template <class Work>
bool run_tasks(Index tasks, int team, Stop* stop, const Work& work) {
  std::atomic<Index> next{0}, done{0};
  std::atomic<bool> ended{false}, failed{false};
  std::exception_ptr failure;
#pragma omp parallel num_threads(team)
  {
    const bool polls = stop != nullptr && omp_get_thread_num() == 0;
    Watch watch(polls ? stop : nullptr, ended);
    try {
      for (Index task; !watch.over() && (task = next++) < tasks; ++done) work(task, watch);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
      ended = true;
    }
    // The others may be busy for long, and nobody else looks at the clock.
    while (polls && done < tasks && !watch.over()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (failure) std::rethrow_exception(failure);
  return !ended;
}

// The same of tasks that nothing ends early: calls work(task).
template <class Work>
void run_tasks(Index tasks, int team, const Work& work) {
  run_tasks(tasks, team, nullptr, [&](Index task, Watch&) { work(task); });
}

}  // namespace sixfold
