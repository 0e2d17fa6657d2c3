// What the bindings share: the array types they take and the checks they make.
//
// The border between Python and the loops: sizes and types are checked here once more, the GIL is released,
// and nothing is decided. One bind_*.cpp a loop family; bindings.cpp makes the module of them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

namespace nb = nanobind;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flag = nb::ndarray<std::int32_t, nb::shape<1>, nb::c_contig, nb::device::cpu>;

inline void expect(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("sixfold native loop: ") + what);
}

template <class T>
Table<T> table(const Matrix<T>& m) {
  return {m.data(), static_cast<Index>(m.shape(0)), static_cast<Index>(m.shape(1)), m.stride(0), m.stride(1)};
}

// A vector with one entry a row, or null.
inline const double* each_row(const std::optional<Vector>& values, Index rows) {
  if (!values) return nullptr;
  expect(static_cast<Index>(values->shape(0)) == rows, "weights and row shifts must have one entry a row");
  return values->data();
}

// Hands a vector over to NumPy, without a copy.
template <class T>
nb::object array_of(std::vector<T>&& values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* data = kept->data();
  const std::size_t size = kept->size();
  const nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  kept.release();  // by now the capsule's
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

void bind_least_squares(nb::module_& m);
void bind_gradients(nb::module_& m);
void bind_coordinates(nb::module_& m);
void bind_dual_coordinate(nb::module_& m);
void bind_exact_distance(nb::module_& m);
void bind_exemplars(nb::module_& m);
void bind_interior_point(nb::module_& m);
void bind_landmarks(nb::module_& m);
void bind_scan_search(nb::module_& m);
void bind_kd_tree(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_projected(nb::module_& m);
void bind_separation(nb::module_& m);
void bind_smo(nb::module_& m);
void bind_smooth(nb::module_& m);
void bind_soft_neighbors(nb::module_& m);
void bind_spilled_memory(nb::module_& m);
void bind_sparse_search(nb::module_& m);
void bind_sparse_tree(nb::module_& m);
void bind_gram_moves(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_optimal_tree(nb::module_& m);
void bind_triplets(nb::module_& m);

}  // namespace sixfold
