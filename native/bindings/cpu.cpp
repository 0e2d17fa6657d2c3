// Which x86-64 level this processor has: the only native code that is compiled for the plain baseline,
// so that it can be asked before any other is loaded.
#include <nanobind/nanobind.h>

NB_MODULE(cpu, m) {
  m.def("level", [] {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      return "v4";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
      return "v3";
    }
    return "v2";
#else
    return "plain";
#endif
  });
}
