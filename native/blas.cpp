#include "blas.hpp"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <initializer_list>

namespace sixfold::blas {

Syrk* dsyrk = nullptr;
Gemm* dgemm = nullptr;

namespace {
SetThreads* set_threads = nullptr;
GetThreads* get_threads = nullptr;
std::atomic<bool> forked{false};

void* find(void* library, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = dlsym(library, name)) return symbol;
  }
  return nullptr;
}
}  // namespace

void load(void* dsyrk_pointer, void* dgemm_pointer, const char* library) {
  dsyrk = reinterpret_cast<Syrk*>(dsyrk_pointer);
  dgemm = reinterpret_cast<Gemm*>(dgemm_pointer);
  if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
    set_threads = reinterpret_cast<SetThreads*>(find(
        handle,
        {"scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_", "openblas_set_num_threads"}));
    get_threads = reinterpret_cast<GetThreads*>(find(
        handle,
        {"scipy_openblas_get_num_threads", "scipy_openblas_get_num_threads64_", "openblas_get_num_threads"}));
  }
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

bool can_limit_threads() { return set_threads != nullptr && get_threads != nullptr; }

int swap_threads(int count) {
  if (!can_limit_threads() || count < 1) return 0;
  const int before = get_threads();
  if (before != count) set_threads(count);
  return before;
}

SingleThreaded::SingleThreaded() : before_(swap_threads(1)) {}

SingleThreaded::~SingleThreaded() { swap_threads(before_); }

}  // namespace sixfold::blas

int sixfold::threads() {
  if (blas::forked || !blas::can_limit_threads()) return 1;
  return omp_get_max_threads();
}
