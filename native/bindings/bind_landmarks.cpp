// Bindings of features of landmarks: their products, and the descent on them.
#include "bindings/bindings.hpp"
#include "kernel/kernel_products.hpp"
#include "kernel/landmark_descent.hpp"
#include "kernel/landmark_features.hpp"

namespace sixfold {
namespace {

template <class T>
void bind_descent(nb::module_& m) {
  using Features = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  using Normal = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "descend_features",
      [](const Features& features, const Indices& index, const Vector& y, const Vector& upper,
         const Vector& square, OutVector a, Normal w, double centre, double balance, double rho,
         std::uint64_t random, double enough, Index most, double seconds_left, const Flag& flag) {
        const Index count = static_cast<Index>(index.shape(0)), rows = static_cast<Index>(features.shape(0));
        for (Index i = 0; i < count; ++i)
          expect(0 <= index.data()[i] && index.data()[i] < rows, "the index must hold numbers of rows");
        for (const std::size_t size : {y.shape(0), upper.shape(0), square.shape(0), a.shape(0)})
          expect(static_cast<Index>(size) == count, "y, upper, square and a must have one entry a row");
        expect(w.shape(0) == features.shape(1), "w must have one entry a column");
        const FeatureRows<T> chosen{features.data(), static_cast<Index>(features.shape(1)),
                                    index.data(),    count,
                                    y.data(),        upper.data(),
                                    square.data(),   a.data()};
        FeatureState state{centre, balance, rho, random};
        Stop stop(seconds_left, flag.data());
        Descent made{};
        {
          nb::gil_scoped_release release;
          made = descend_features(chosen, w.data(), state, enough, most, stop);
        }
        return nb::make_tuple(state.centre, state.balance, state.random, made.passes, made.gap);
      },
      nb::arg("features").noconvert(), nb::arg("index").noconvert(), nb::arg("y").noconvert(),
      nb::arg("upper").noconvert(), nb::arg("square").noconvert(), nb::arg("a").noconvert(),
      nb::arg("w").noconvert(), nb::arg("centre"), nb::arg("balance"), nb::arg("rho"), nb::arg("random"),
      nb::arg("enough"), nb::arg("most"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

// The rows of a table that need not follow each other without a gap.
template <class T>
using Spaced = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
Index spacing(const Spaced<T>& rows) {
  expect(rows.size() == 0 || rows.shape(1) == 1 || rows.stride(1) == 1, "rows must be contiguous");
  return rows.stride(0);
}

template <class T>
void bind_products(nb::module_& m) {
  m.def(
      "multiply_rows",
      [](const Spaced<const T>& A, const Spaced<const T>& B, const Spaced<T>& out, double seconds_left,
         const Flag& flag) {
        const auto all = [](const Spaced<const T>& rows) {
          return ChosenRows<T>{rows.data(),
                               static_cast<Index>(rows.shape(0)),
                               static_cast<Index>(rows.shape(1)),
                               nullptr,
                               nullptr,
                               spacing(rows)};
        };
        const ChosenRows<T> a = all(A), b = all(B);
        expect(a.columns == b.columns, "both sets of rows must have the same columns");
        expect(static_cast<Index>(out.shape(0)) == a.count && static_cast<Index>(out.shape(1)) == b.count,
               "out must have a row a row of A and a column a row of B");
        const StridedRows<T> to{out.data(), spacing(out)};
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return kernel_block(KernelForm{KernelKind::linear, 1.0, 0.0, 1}, a, b, false, to,
                            StridedRows<T>{nullptr, 0}, stop);
      },
      nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("out").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "triangle_rows",
      [](const Spaced<T>& values,
         const nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>& triangle, OutVector squares,
         double seconds_left, const Flag& flag) {
        const Index rows = static_cast<Index>(values.shape(0)), rank = static_cast<Index>(values.shape(1));
        expect(static_cast<Index>(triangle.shape(0)) == rank && static_cast<Index>(triangle.shape(1)) == rank,
               "the triangle must have a row and a column a column of values");
        expect(static_cast<Index>(squares.shape(0)) == rows, "squares must have one entry a row");
        const Index stride = spacing(values);
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return triangle_rows(values.data(), rows, stride, rank, triangle.data(), squares.data(), stop);
      },
      nb::arg("values").noconvert(), nb::arg("triangle").noconvert(), nb::arg("squares").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "row_lengths",
      [](const Spaced<const T>& values, OutVector squares) {
        const Index rows = static_cast<Index>(values.shape(0));
        expect(static_cast<Index>(squares.shape(0)) == rows, "squares must have one entry a row");
        const Index stride = spacing(values);
        nb::gil_scoped_release release;
        row_lengths(values.data(), rows, stride, static_cast<Index>(values.shape(1)), squares.data());
      },
      nb::arg("values").noconvert(), nb::arg("squares").noconvert());
}

}  // namespace

void bind_landmarks(nb::module_& m) {
  bind_products<float>(m);
  bind_products<double>(m);
  bind_descent<float>(m);
  bind_descent<double>(m);
}

}  // namespace sixfold
