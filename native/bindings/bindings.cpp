// The module that Python imports.
#include "bindings/bindings.hpp"

#include <nanobind/stl/vector.h>

#include "core/blas.hpp"
#include "core/machine_limits.hpp"
#include "core/threads.hpp"

namespace nb = nanobind;
using namespace sixfold;

NB_MODULE(core, m) {
  m.def("load_blas", [](const nb::capsule& dgemm, const std::vector<std::string>& modules) {
    blas::load(dgemm.data(), modules);
  });
  m.def("threads", &sixfold::threads);
  m.def("blas_threads", &blas::threads);
  m.def("begin_single_blas_thread", &blas::begin_single_thread);
  m.def("end_single_blas_thread", &blas::end_single_thread);
  m.def("limit_threads", &sixfold::limit_threads, nb::arg("most"));
  m.def("sum_numbers", [](const Vector& numbers) {
    return sum_numbers(numbers.data(), static_cast<Index>(numbers.shape(0)));
  });
  m.def("multiply_and_add", &multiply_and_add, nb::arg("rounds"));
  bind_least_squares(m);
  bind_gradients(m);
  bind_coordinates(m);
  bind_dual_coordinate(m);
  bind_exact_distance(m);
  bind_exemplars(m);
  bind_interior_point(m);
  bind_scan_search(m);
  bind_kd_tree(m);
  bind_kernels(m);
  bind_landmarks(m);
  bind_projected(m);
  bind_separation(m);
  bind_smo(m);
  bind_smooth(m);
  bind_soft_neighbors(m);
  bind_spilled_memory(m);
  bind_sparse_search(m);
  bind_sparse_tree(m);
  bind_gram_moves(m);
  bind_tree(m);
  bind_optimal_tree(m);
  bind_triplets(m);
}
