// Bindings of the searches that go through all rows.
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "neighbors/scan/byte_search.hpp"
#include "neighbors/scan/scan_search.hpp"

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

// How many neighbours the answer has room for.
Index k_of(const OutMatrix& distances, const OutRows& rows, Index n, Index queries) {
  const Index k = static_cast<Index>(distances.shape(1));
  expect(1 <= k && k <= n, "k must be 1 to the number of rows");
  expect(static_cast<Index>(distances.shape(0)) == queries && rows.shape(0) == distances.shape(0) &&
             rows.shape(1) == distances.shape(1),
         "distances and rows must have a row a query and k columns");
  return k;
}

template <class T, class A>
Index nearest(const Rows<T>& X, const InMatrix& Q, const Rows<A>& plain, OutMatrix distances, OutRows rows,
              const std::string& family, double p, bool root, double seconds_left, Flag flag) {
  const Scan<T, A> scan = scan_of(X, Q, plain, measure_of(family, p, root));
  const Index k = k_of(distances, rows, scan.rows, scan.queries);
  nb::gil_scoped_release release;
  Stop stop(seconds_left, flag.data());
  return scan_nearest(scan, k, distances.data(), rows.data(), stop);
}

nb::tuple tuple_of(Index computed, RadiusResult&& result) {
  return nb::make_tuple(computed, array_of(std::move(result.ends)), array_of(std::move(result.distances)),
                        array_of(std::move(result.rows)));
}

template <class T, class A>
nb::tuple within(const Rows<T>& X, const InMatrix& Q, const Rows<A>& plain, double radius,
                 const std::string& family, double p, bool root, double seconds_left, Flag flag) {
  const Scan<T, A> scan = scan_of(X, Q, plain, measure_of(family, p, root));
  RadiusResult result;
  Index computed = 0;
  {
    nb::gil_scoped_release release;
    Stop stop(seconds_left, flag.data());
    computed = scan_within(scan, radius, result, stop);
  }
  return tuple_of(computed, std::move(result));
}

// -- bytes ---------------------------------------------------------------------------------------------

using Bytes = Rows<std::uint8_t>;
using OutBytes = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Groups groups_of(const Indices& order, Index size, Index count) {
  const Index columns = static_cast<Index>(order.shape(0));
  expect(columns > 0 && size > 0 && count > 0 && count % 8 == 0 && size * count >= columns,
         "the groups must be a multiple of eight and hold all columns");
  for (Index j = 0; j < columns; ++j)
    expect(0 <= order.data()[j] && order.data()[j] < columns, "order must hold numbers of columns");
  return {order.data(), columns, size, count};
}

void group_sums(const Bytes& X, const Indices& order, Index size, OutBytes tiles) {
  const Groups groups = groups_of(order, size, static_cast<Index>(tiles.shape(1)));
  const Index rows = static_cast<Index>(X.shape(0));
  expect(static_cast<Index>(X.shape(1)) == groups.columns, "X and order must have the same columns");
  expect(static_cast<Index>(tiles.shape(0)) == (rows + kTile - 1) / kTile * kTile,
         "tiles must have a row a row of X, filled up to a multiple of 32");
  nb::gil_scoped_release release;
  write_group_sums(X.data(), rows, groups, tiles.data());
}

// The search for these queries, whose sums are put into `sums`.
ByteScan byte_scan_of(const Bytes& X, const Bytes& tiles, const Indices& order, Index size, const Bytes& Q,
                      std::vector<std::uint8_t>& sums) {
  const Groups groups = groups_of(order, size, static_cast<Index>(tiles.shape(1)));
  const Index rows = static_cast<Index>(X.shape(0)), queries = static_cast<Index>(Q.shape(0));
  expect(rows > 0 && static_cast<Index>(X.shape(1)) == groups.columns && Q.shape(1) == X.shape(1),
         "X, the queries and order must have the same columns");
  expect(static_cast<Index>(tiles.shape(0)) == (rows + kTile - 1) / kTile * kTile,
         "tiles must be those of X");
  sums.resize(static_cast<std::size_t>(queries * groups.count));
  write_group_sums_by_row(Q.data(), queries, groups, sums.data());
  return {X.data(), rows, tiles.data(), groups, Q.data(), sums.data(), queries};
}

Index bytes_nearest(const Bytes& X, const Bytes& tiles, const Indices& order, Index size, const Bytes& Q,
                    OutMatrix distances, OutRows rows, double seconds_left, Flag flag) {
  nb::gil_scoped_release release;
  std::vector<std::uint8_t> sums;
  const ByteScan scan = byte_scan_of(X, tiles, order, size, Q, sums);
  const Index k = k_of(distances, rows, scan.rows, scan.queries);
  Stop stop(seconds_left, flag.data());
  return byte_nearest(scan, k, distances.data(), rows.data(), stop);
}

nb::tuple bytes_within(const Bytes& X, const Bytes& tiles, const Indices& order, Index size, const Bytes& Q,
                       double radius, double seconds_left, Flag flag) {
  RadiusResult result;
  Index computed = 0;
  {
    nb::gil_scoped_release release;
    std::vector<std::uint8_t> sums;
    const ByteScan scan = byte_scan_of(X, tiles, order, size, Q, sums);
    Stop stop(seconds_left, flag.data());
    computed = byte_within(scan, radius, result, stop);
  }
  return tuple_of(computed, std::move(result));
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

  m.def("byte_group_sums", &group_sums, nb::arg("X").noconvert(), nb::arg("order").noconvert(),
        nb::arg("size"), nb::arg("tiles").noconvert());
  m.def("byte_nearest", &bytes_nearest, nb::arg("X").noconvert(), nb::arg("tiles").noconvert(),
        nb::arg("order").noconvert(), nb::arg("size"), nb::arg("Q").noconvert(),
        nb::arg("distances").noconvert(), nb::arg("rows").noconvert(), nb::arg("seconds_left"),
        nb::arg("flag").noconvert());
  m.def("byte_within", &bytes_within, nb::arg("X").noconvert(), nb::arg("tiles").noconvert(),
        nb::arg("order").noconvert(), nb::arg("size"), nb::arg("Q").noconvert(), nb::arg("radius"),
        nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace sixfold
