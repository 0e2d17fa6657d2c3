// Bindings of sequential minimal optimisation.
#include "bindings/bindings.hpp"
#include "kernel/smo.hpp"

namespace sixfold {
namespace {

template <class T>
void bind_smo_of(nb::module_& m) {
  m.def(
      "smo",
      [](const Matrix<T>& gram, const Vector& y, const Vector& upper, OutVector alpha, OutVector gradient,
         double tolerance, Index most_iterations, double seconds_left, const Flag& flag) {
        const std::size_t rows = y.shape(0);
        expect(gram.shape(0) == rows && gram.shape(1) == rows, "gram must have one row and column a row");
        expect(rows < 2 || gram.stride(1) == 1, "the entries of a row of gram must follow each other");
        expect(upper.shape(0) == rows && alpha.shape(0) == rows && gradient.shape(0) == rows,
               "upper, alpha and gradient must have one entry a row");
        Stop stop(seconds_left, flag.data());
        SmoResult found{};
        {
          nb::gil_scoped_release release;
          found = minimise_pairs(table(gram), {y.data(), upper.data(), alpha.data(), gradient.data()},
                                 tolerance, most_iterations, stop);
        }
        return nb::make_tuple(found.iterations, found.violation, found.completed, found.indefinite);
      },
      nb::arg("gram").noconvert(), nb::arg("y").noconvert(), nb::arg("upper").noconvert(),
      nb::arg("alpha").noconvert(), nb::arg("gradient").noconvert(), nb::arg("tolerance"),
      nb::arg("most_iterations"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_smo(nb::module_& m) {
  bind_smo_of<float>(m);
  bind_smo_of<double>(m);
}

}  // namespace sixfold
