#include "core/blas.hpp"

#include <dlfcn.h>

#include <initializer_list>

namespace sixfold::blas {

Gemm* dgemm = nullptr;

namespace {
SetThreads* set_threads = nullptr;
GetThreads* get_threads = nullptr;

void* find(void* library, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = dlsym(library, name)) return symbol;
  }
  return nullptr;
}
}  // namespace

void load(void* dgemm_pointer, const char* library) {
  dgemm = reinterpret_cast<Gemm*>(dgemm_pointer);
  if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
    set_threads = reinterpret_cast<SetThreads*>(find(
        handle,
        {"scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_", "openblas_set_num_threads"}));
    get_threads = reinterpret_cast<GetThreads*>(find(
        handle,
        {"scipy_openblas_get_num_threads", "scipy_openblas_get_num_threads64_", "openblas_get_num_threads"}));
  }
}

bool can_limit_threads() { return set_threads != nullptr && get_threads != nullptr; }

int limit_threads(int most) {
  if (!can_limit_threads()) return 0;
  const int before = get_threads();
  if (most > 0 && most != before) set_threads(most);
  return before;
}

SingleThreaded::SingleThreaded() : before_(limit_threads(1)) {}

SingleThreaded::~SingleThreaded() { limit_threads(before_); }

}  // namespace sixfold::blas
