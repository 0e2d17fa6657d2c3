// Bindings of soft neighbours.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/bindings.hpp"
#include "metric_learning/soft_neighbors.hpp"

namespace sixfold {
namespace {

using Labels = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutIndices = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

SoftRows soft_rows(const InMatrix& Z, const Labels& labels, const Vector& weights, const Vector& copies,
                   const OutVector& right, const OutMatrix& pulls) {
  const std::size_t count = Z.shape(0);
  expect(labels.shape(0) == count && weights.shape(0) == count && copies.shape(0) == count &&
             right.shape(0) == count,
         "labels, weights, copies and right must have one entry a row");
  expect(pulls.shape(0) == count && pulls.shape(1) == Z.shape(1), "pulls must have the shape of the rows");
  expect(count < (std::size_t{1} << 31), "rows must be fewer than 2^31");
  return {
      Z.data(),     static_cast<Index>(count), static_cast<Index>(Z.shape(1)), labels.data(), weights.data(),
      copies.data()};
}

// (0 done, 1 stopped, 2 too many; pairs that count; what p may have lost)
using Answer = std::tuple<int, Index, double>;

Answer near(const InMatrix& Z, const Labels& labels, const Vector& weights, const Vector& copies,
            double reach, Index most, OutIndices nearest, OutVector right, OutMatrix pulls,
            double seconds_left, Flag flag) {
  const SoftRows rows = soft_rows(Z, labels, weights, copies, right, pulls);
  expect(static_cast<Index>(nearest.shape(0)) == rows.count, "nearest must have one entry a row");
  for (Index i = 0; i < rows.count; ++i)
    expect(-1 <= nearest.data()[i] && nearest.data()[i] < rows.count && nearest.data()[i] != i,
           "nearest must hold numbers of other rows, or -1");
  SoftResult result{right.data(), pulls.data(), 0, 0.0};
  nb::gil_scoped_release release;
  Stop stop(seconds_left, flag.data());
  const Ended ended = near_neighbors(rows, reach, most, nearest.data(), result, stop);
  return {static_cast<int>(ended), result.kept, result.omitted};
}

Answer dense(const InMatrix& Z, const Labels& labels, const Vector& weights, const Vector& copies,
             double reach, OutVector right, OutMatrix pulls, double seconds_left, Flag flag) {
  const SoftRows rows = soft_rows(Z, labels, weights, copies, right, pulls);
  SoftResult result{right.data(), pulls.data(), 0, 0.0};
  nb::gil_scoped_release release;
  Stop stop(seconds_left, flag.data());
  const Ended ended = dense_neighbors(rows, reach, result, stop);
  return {static_cast<int>(ended), result.kept, result.omitted};
}

}  // namespace

void bind_soft_neighbors(nb::module_& m) {
  m.def("near_soft_neighbors", &near, nb::arg("Z").noconvert(), nb::arg("labels").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("copies").noconvert(), nb::arg("reach"), nb::arg("most"),
        nb::arg("nearest").noconvert(), nb::arg("right").noconvert(), nb::arg("pulls").noconvert(),
        nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def("dense_soft_neighbors", &dense, nb::arg("Z").noconvert(), nb::arg("labels").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("copies").noconvert(), nb::arg("reach"),
        nb::arg("right").noconvert(), nb::arg("pulls").noconvert(), nb::arg("seconds_left"),
        nb::arg("flag").noconvert());
}

}  // namespace sixfold
