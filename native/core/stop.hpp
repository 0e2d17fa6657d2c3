// When a long loop has to end: the deadline has passed, or the user pressed Ctrl-C.
//
// Python's signal handlers run only when the interpreter is asked to, so a loop that has released the GIL
// takes it for a moment every 20 ms and lets them. sixfold.budget installs a handler that writes 1 into
// `flag`; no exception ever crosses a native loop. Only the thread that called the loop may poll, and does so
// once in any case: the others may have done all the work before it gets a share.
#pragma once

#include <Python.h>

#include <chrono>
#include <cstdint>

namespace sixfold {

class Stop {
 public:
  // seconds_left: what remains of the time limit (infinity for none); flag: one integer owned by Python.
  Stop(double seconds_left, const volatile std::int32_t* flag)
      : flag_(flag), seconds_left_(seconds_left), start_(Clock::now()), last_(start_) {}

  // True once the loop has to end. Cheap enough to be asked every few thousand operations.
  bool now() {
    if (stopped_) return true;
    const auto time = Clock::now();
    if (seconds(time - start_) >= seconds_left_) return stopped_ = true;
    if (seconds(time - last_) > 0.02) {
      last_ = time;
      const PyGILState_STATE gil = PyGILState_Ensure();
      if (PyErr_CheckSignals() != 0) {  // a handler of someone else's raised: end, and let Python raise again
        PyErr_Clear();
        PyErr_SetInterrupt();
        stopped_ = true;
      }
      PyGILState_Release(gil);
      if (*flag_ != 0) stopped_ = true;
    }
    return stopped_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

  const volatile std::int32_t* flag_;
  double seconds_left_;
  Clock::time_point start_, last_;
  bool stopped_ = false;
};

}  // namespace sixfold
