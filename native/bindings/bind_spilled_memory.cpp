// NumPy's arrays in files: an allocator for its PyDataMem_SetHandler (NumPy enhancement proposal 49).
#include <cstdint>
#include <cstring>

#include "bindings/bindings.hpp"
#include "core/spilled_memory.hpp"

namespace sixfold {

namespace {

// As NumPy declares them; version 1 is that of NumPy 1.22 and of all since.
struct NumpyAllocator {
  void* context;
  void* (*malloc)(void*, std::size_t);
  void* (*calloc)(void*, std::size_t, std::size_t);
  void* (*realloc)(void*, void*, std::size_t);
  void (*free)(void*, void*, std::size_t);
};
struct NumpyHandler {
  char name[127];
  std::uint8_t version;
  NumpyAllocator allocator;
};
constexpr const char* kCapsule = "mem_handler";
constexpr std::size_t kSetHandler = 304, kDefaultHandler = 306;  // places in NumPy's table of functions

const NumpyAllocator* plain = nullptr;  // NumPy's own

void* spill_malloc(void*, std::size_t bytes) {
  if (spilled::wanted(bytes))
    if (void* region = spilled::take(bytes)) return region;
  return plain->malloc(plain->context, bytes);
}

void* spill_calloc(void*, std::size_t count, std::size_t size) {
  if (spilled::wanted(count * size))
    if (void* region = spilled::take(count * size)) return std::memset(region, 0, count * size);
  return plain->calloc(plain->context, count, size);
}

void spill_free(void*, void* address, std::size_t bytes) {
  if (!spilled::give_up(address)) plain->free(plain->context, address, bytes);
}

void* spill_realloc(void* context, void* address, std::size_t bytes) {
  const std::size_t before = spilled::size_of(address);
  if (before == 0) return plain->realloc(plain->context, address, bytes);
  if (bytes <= before) return address;
  void* larger = spill_malloc(context, bytes);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, address, before);
  spilled::give_up(address);
  return larger;
}

NumpyHandler handler = {
    "sixfold: large arrays in files", 1, {nullptr, spill_malloc, spill_calloc, spill_realloc, spill_free}};

using SetHandler = PyObject* (*)(PyObject*);

SetHandler set_handler(const nb::capsule& numpy) {
  void** functions = static_cast<void**>(numpy.data());
  if (plain == nullptr) {
    PyObject* own = *static_cast<PyObject**>(functions[kDefaultHandler]);
    const auto* found = static_cast<NumpyHandler*>(PyCapsule_GetPointer(own, kCapsule));
    if (found == nullptr) throw nb::python_error();
    plain = &found->allocator;
  }
  return reinterpret_cast<SetHandler>(functions[kSetHandler]);
}

// What was there before; for this thread alone.
nb::object exchange(const nb::capsule& numpy, PyObject* wanted) {
  PyObject* before = set_handler(numpy)(wanted);
  if (before == nullptr) throw nb::python_error();
  return nb::steal(before);
}

}  // namespace

void bind_spilled_memory(nb::module_& m) {
  m.def("begin_spilling",
        [](const nb::capsule& numpy, const std::string& folder, std::size_t most,
           std::size_t least) -> nb::object {
          set_handler(numpy);
          if (!spilled::begin({folder, most, least})) return nb::none();
          const nb::object own = nb::steal(PyCapsule_New(&handler, kCapsule, nullptr));
          return exchange(numpy, own.ptr());
        });
  m.def("end_spilling", [](const nb::capsule& numpy, const nb::object& before) {
    exchange(numpy, before.ptr());
    const nb::gil_scoped_release others_go_on;
    spilled::end();
  });
  m.def("watch_pages", [](std::uintptr_t address, std::size_t bytes) {
    spilled::watch(reinterpret_cast<void*>(address), bytes);
  });
  m.def("forget_pages", [](std::uintptr_t address) { spilled::forget(reinterpret_cast<void*>(address)); });
  m.def("spilled_bytes", &spilled::held);
  m.def("look_at_memory", &spilled::look, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace sixfold
