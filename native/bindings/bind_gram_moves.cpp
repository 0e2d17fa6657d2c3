// Bindings of the moves of rows and columns inside a square matrix.
#include <cstdint>

#include "bindings/bindings.hpp"
#include "kernel/gram_moves.hpp"

namespace sixfold {
namespace {

template <class T>
using Square = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Room = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
void fill(const Square<T>& square, Index kept, const Indices& holes, const Indices& movers) {
  const Index size = static_cast<Index>(square.shape(0)), count = static_cast<Index>(holes.shape(0));
  expect(static_cast<Index>(square.shape(1)) == size, "the matrix must be square");
  expect(size < 2 || square.stride(1) == 1, "the rows of the square must be contiguous");
  expect(0 <= kept && kept <= size, "no more rows can be kept than there are");
  expect(static_cast<Index>(movers.shape(0)) == count, "there must be a mover for each hole");
  for (Index k = 0; k < count; ++k) {
    expect(0 <= holes.data()[k] && holes.data()[k] < kept, "holes must be among the rows that are kept");
    expect(k == 0 || holes.data()[k - 1] < holes.data()[k], "holes must be in increasing order");
    expect(kept <= movers.data()[k] && movers.data()[k] < size, "movers must be rows after these");
  }
  nb::gil_scoped_release release;
  fill_holes(square.data(), square.stride(0), kept, holes.data(), movers.data(), count);
}

template <class T>
void widen(const Room<T>& room, Index rows, Index stride, Index wider) {
  expect(0 <= rows && rows <= stride && stride <= wider, "rows must fit, and come to be further apart");
  expect(rows == 0 || (rows - 1) * wider + rows <= static_cast<Index>(room.shape(0)),
         "there must be room for all rows");
  expect(reinterpret_cast<std::uintptr_t>(room.data()) % sizeof(T) == 0, "numbers must be aligned");
  nb::gil_scoped_release release;
  widen_rows(room.data(), rows, stride, wider);
}

}  // namespace

void bind_gram_moves(nb::module_& m) {
  const auto bind_one = [&]<class T>(T) {
    m.def("fill_holes", &fill<T>, nb::arg("square").noconvert(), nb::arg("kept"),
          nb::arg("holes").noconvert(), nb::arg("movers").noconvert());
    m.def("widen_rows", &widen<T>, nb::arg("room").noconvert(), nb::arg("rows"), nb::arg("stride"),
          nb::arg("wider"));
  };
  bind_one(double());
  bind_one(float());
}

}  // namespace sixfold
