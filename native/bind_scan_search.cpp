// Bindings of the searches that go through all rows.
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "scan_search.hpp"

namespace sixfold {
namespace {

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutRows = nb::ndarray<Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T, class A>
Scan<T, A> scan_of(const Rows<T>& X, const InMatrix& Q, const Rows<A>& plain, const Measure& measure) {
  expect(X.shape(0) > 0 && X.shape(1) > 0, "X must have rows and columns");
  expect(Q.shape(1) == X.shape(1) && plain.shape(1) == X.shape(1),
         "X and the queries must have the same columns");
  expect(Q.shape(0) == plain.shape(0), "Q and plain must be the same queries");
  return {measure,  X.data(),     static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)),
          Q.data(), plain.data(), static_cast<Index>(Q.shape(0))};
}

template <class T, class A>
Index nearest(const Rows<T>& X, const InMatrix& Q, const Rows<A>& plain, OutMatrix distances, OutRows rows,
              const std::string& family, double p, bool root, double seconds_left, Flag flag) {
  const Scan<T, A> scan = scan_of(X, Q, plain, measure_of(family, p, root));
  const Index k = static_cast<Index>(distances.shape(1));
  expect(1 <= k && k <= scan.rows, "k must be 1 to the number of rows");
  expect(static_cast<Index>(distances.shape(0)) == scan.queries && rows.shape(0) == distances.shape(0) &&
             rows.shape(1) == distances.shape(1),
         "distances and rows must have a row a query and k columns");
  nb::gil_scoped_release release;
  Stop stop(seconds_left, flag.data());
  return scan_nearest(scan, k, distances.data(), rows.data(), stop);
}

// Hands a vector over to NumPy.
template <class E>
nb::object array_of(std::vector<E>&& values) {
  auto* kept = new std::vector<E>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<E>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, E, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

template <class T, class A>
nb::tuple within(const Rows<T>& X, const InMatrix& Q, const Rows<A>& plain, double radius,
                 const std::string& family, double p, bool root, double seconds_left, Flag flag) {
  const Scan<T, A> scan = scan_of(X, Q, plain, measure_of(family, p, root));
  Around around;
  Index computed = 0;
  {
    nb::gil_scoped_release release;
    Stop stop(seconds_left, flag.data());
    computed = scan_within(scan, radius, around, stop);
  }
  return nb::make_tuple(computed, array_of(std::move(around.ends)), array_of(std::move(around.distances)),
                        array_of(std::move(around.rows)));
}

}  // namespace

void bind_scan_search(nb::module_& m) {
  const auto bind = [&]<class T, class A>(T, A) {
    m.def("scan_nearest", &nearest<T, A>, nb::arg("X").noconvert(), nb::arg("Q").noconvert(),
          nb::arg("plain").noconvert(), nb::arg("distances").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("family"), nb::arg("p"), nb::arg("root"), nb::arg("seconds_left"),
          nb::arg("flag").noconvert());
    m.def("scan_within", &within<T, A>, nb::arg("X").noconvert(), nb::arg("Q").noconvert(),
          nb::arg("plain").noconvert(), nb::arg("radius"), nb::arg("family"), nb::arg("p"), nb::arg("root"),
          nb::arg("seconds_left"), nb::arg("flag").noconvert());
  };
  bind(double(), double());
  bind(float(), double());
  bind(float(), float());
  bind(std::uint8_t(), double());
  bind(std::uint8_t(), float());
}

}  // namespace sixfold
