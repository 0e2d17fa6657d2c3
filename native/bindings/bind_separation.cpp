// Bindings of the search for weights that prove that classes overlap.
#include "bindings/bindings.hpp"
#include "linear/separation/balanced_weights.hpp"

namespace sixfold {

void bind_separation(nb::module_& m) {
  m.def(
      "balance_weights",
      [](const InMatrix& Z, const Vector& y, Index most_factors, OutVector c, OutVector v,
         double seconds_left, const Flag& flag) {
        const Index rows = static_cast<Index>(Z.shape(0)), columns = static_cast<Index>(Z.shape(1));
        const Table<double> z{Z.data(), rows, columns, columns, 1};
        expect(rows >= 1 && y.shape(0) == Z.shape(0) && c.shape(0) == Z.shape(0),
               "y and c must have one entry a row");
        expect(v.shape(0) == Z.shape(1), "v must have one entry a column");
        double *weights = c.data(), *direction = v.data();
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return static_cast<int>(balance_weights(z, y.data(), most_factors, weights, direction, stop));
      },
      nb::arg("Z").noconvert(), nb::arg("y").noconvert(), nb::arg("most_factors"), nb::arg("c").noconvert(),
      nb::arg("v").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace sixfold
