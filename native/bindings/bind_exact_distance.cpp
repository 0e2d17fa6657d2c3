// Bindings of the definition of distance.
#include <cstdint>

#include "bindings/bindings.hpp"
#include "neighbors/exact_distance.hpp"

namespace sixfold {
namespace {

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
void distances(const Rows<T>& X, const InMatrix& Q, OutMatrix out, const std::string& family, double p,
               bool root) {
  const Measure measure = measure_of(family, p, root);
  const Index rows = static_cast<Index>(X.shape(0)), columns = static_cast<Index>(X.shape(1));
  const Index queries = static_cast<Index>(Q.shape(0));
  expect(static_cast<Index>(Q.shape(1)) == columns, "X and Q must have the same columns");
  expect(static_cast<Index>(out.shape(0)) == queries && static_cast<Index>(out.shape(1)) == rows,
         "out must have a row a query and a column a row of X");
  nb::gil_scoped_release release;
  for (Index i = 0; i < queries; ++i)
    for (Index j = 0; j < rows; ++j)
      out.data()[i * rows + j] =
          exact_distance(measure, X.data() + j * columns, Q.data() + i * columns, columns);
}

}  // namespace

void bind_exact_distance(nb::module_& m) {
  const auto bind = [&]<class T>(T) {
    m.def("exact_distances", &distances<T>, nb::arg("X").noconvert(), nb::arg("Q").noconvert(),
          nb::arg("out").noconvert(), nb::arg("family"), nb::arg("p"), nb::arg("root"));
  };
  bind(double());
  bind(float());
  bind(std::uint8_t());
}

}  // namespace sixfold
