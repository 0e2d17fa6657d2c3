#include "core/blas.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <initializer_list>
#include <mutex>

namespace sixfold::blas {

Gemm* dgemm = nullptr;

namespace {

using SetThreads = void(int);
using GetThreads = int();

struct Controls {
  SetThreads* set;
  GetThreads* get;
  int before;  // the threads it had when the first one asked for one
};

std::vector<Controls> controls;
bool controls_dgemm = false;
int inside = 0;
std::mutex guard;
// A child that is forked while another thread holds the lock would wait for ever.
[[maybe_unused]] const int watching_forks =
    pthread_atfork([] { guard.lock(); }, [] { guard.unlock(); }, [] { guard.unlock(); });

void* find(void* library, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = dlsym(library, name)) return symbol;
  }
  return nullptr;
}

// Asked of a module, the loader looks through the libraries that it depends on.
Controls controls_of(const std::string& module) {
  void* handle = dlopen(module.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return {nullptr, nullptr, 0};
  return {reinterpret_cast<SetThreads*>(
              find(handle, {"scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_",
                            "openblas_set_num_threads", "openblas_set_num_threads64_"})),
          reinterpret_cast<GetThreads*>(
              find(handle, {"scipy_openblas_get_num_threads", "scipy_openblas_get_num_threads64_",
                            "openblas_get_num_threads", "openblas_get_num_threads64_"})),
          0};
}

}  // namespace

void load(void* dgemm_pointer, const std::vector<std::string>& modules) {
  const std::lock_guard lock(guard);
  dgemm = reinterpret_cast<Gemm*>(dgemm_pointer);
  controls.clear();
  for (const std::string& module : modules) {
    const Controls found = controls_of(module);
    const bool usable = found.set != nullptr && found.get != nullptr;
    const bool known = std::any_of(controls.begin(), controls.end(),
                                   [&](const Controls& other) { return other.set == found.set; });
    if (&module == modules.data()) controls_dgemm = usable;
    if (usable && !known) controls.push_back(found);
  }
}

std::vector<int> threads() {
  std::vector<int> found;
  for (const Controls& library : controls) found.push_back(library.get());
  return found;
}

bool can_limit_threads() { return controls_dgemm; }

void begin_single_thread() {
  const std::lock_guard lock(guard);
  if (inside++ > 0) return;
  for (Controls& library : controls) {
    library.before = library.get();
    if (library.before != 1) library.set(1);
  }
}

void end_single_thread() {
  const std::lock_guard lock(guard);
  if (--inside > 0) return;
  for (const Controls& library : controls)
    if (library.before != 1) library.set(library.before);
}

}  // namespace sixfold::blas
