// Bindings of the hinges of triplets.
#include <cstdint>
#include <utility>

#include "bindings/bindings.hpp"
#include "metric_learning/triplets.hpp"

namespace sixfold {
namespace {

using RowNumbers = nb::ndarray<const RowNumber, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InTargets = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

MappedRows mapped(const InMatrix& Z) {
  const Index width = static_cast<Index>(Z.shape(1));
  expect(width % 8 == 0, "rows must be as wide as a multiple of eight");
  return {Z.data(), static_cast<Index>(Z.shape(0)), width};
}

void expect_lists(const Indices& ends, Index lists, Index entries, const char* what) {
  expect(static_cast<Index>(ends.shape(0)) == lists + 1 && ends.data()[0] == 0, what);
  for (Index i = 0; i < lists; ++i) expect(ends.data()[i] <= ends.data()[i + 1], what);
  expect(ends.data()[lists] == entries, what);
}

void expect_rows(const RowNumbers& rows, Index below) {
  for (std::size_t p = 0; p < rows.shape(0); ++p)
    expect(0 <= rows.data()[p] && rows.data()[p] < below, "numbers of rows must be those of Z");
}

Triplets triplets_of(const MappedRows& Z, const InTargets& targets, const Indices& ends,
                     const RowNumbers& impostors, const Vector& weight) {
  const Index k = static_cast<Index>(targets.shape(1));
  expect(static_cast<Index>(targets.shape(0)) == Z.rows && static_cast<Index>(weight.shape(0)) == Z.rows,
         "targets and weights must have an entry a row");
  for (Index p = 0; p < Z.rows * k; ++p)
    expect(-1 <= targets.data()[p] && targets.data()[p] < Z.rows, "targets must be rows of Z, or -1");
  expect_lists(ends, Z.rows, static_cast<Index>(impostors.shape(0)),
               "there must be a list of impostors a row");
  expect_rows(impostors, Z.rows);
  return {targets.data(), k, ends.data(), impostors.data(), weight.data()};
}

void expect_pairs(const Triplets& triplets, Index rows, const OutMatrix& of_targets,
                  const OutVector& of_impostors) {
  expect(static_cast<Index>(of_targets.shape(0)) == rows &&
             static_cast<Index>(of_targets.shape(1)) == triplets.k &&
             static_cast<Index>(of_impostors.shape(0)) == triplets.ends[rows],
         "there must be a weight for each pair");
}

nb::object impostors(const InMatrix& Z, const Indices& class_ends, const Vector& radius, double seconds_left,
                     Flag flag) {
  const MappedRows rows = mapped(Z);
  const Index classes = static_cast<Index>(class_ends.shape(0)) - 1;
  expect(classes >= 1, "there must be classes");
  expect_lists(class_ends, classes, rows.rows, "classes must be all rows, one class after the other");
  expect(static_cast<Index>(radius.shape(0)) == rows.rows, "there must be a radius a row");
  PairLists found;
  bool completed = false;
  {
    nb::gil_scoped_release release;
    Stop stop(seconds_left, flag.data());
    completed = find_impostors(rows, class_ends.data(), classes, radius.data(), found, stop);
  }
  if (!completed) return nb::none();
  return nb::make_tuple(array_of(std::move(found.ends)), array_of(std::move(found.rows)));
}

nb::tuple hinges(const InMatrix& Z, const InTargets& targets, const Indices& ends,
                 const RowNumbers& impostors, const Vector& weight, double smoothing, OutMatrix of_targets,
                 OutVector of_impostors, OutVector farthest) {
  const MappedRows rows = mapped(Z);
  const Triplets triplets = triplets_of(rows, targets, ends, impostors, weight);
  expect_pairs(triplets, rows.rows, of_targets, of_impostors);
  expect(static_cast<Index>(farthest.shape(0)) == rows.rows, "farthest must have an entry a row");
  HingeSums sums;
  {
    nb::gil_scoped_release release;
    sums = hinge_sums(rows, triplets, smoothing, of_targets.data(), of_impostors.data(), farthest.data());
  }
  return nb::make_tuple(sums.smooth, sums.hinge, sums.linear, sums.weights);
}

nb::tuple listed(const InMatrix& Z, const InTargets& targets, const Indices& ends,
                 const RowNumbers& impostors, const Vector& weight, double smoothing) {
  const MappedRows rows = mapped(Z);
  const Triplets triplets = triplets_of(rows, targets, ends, impostors, weight);
  TripletList found;
  {
    nb::gil_scoped_release release;
    list_triplets(rows, triplets, smoothing, found);
  }
  return nb::make_tuple(array_of(std::move(found.rows)), array_of(std::move(found.places)),
                        array_of(std::move(found.impostors)), array_of(std::move(found.a)));
}

void products(const InMatrix& Z, const Indices& ends, const RowNumbers& rows, const Indices& back_ends,
              const RowNumbers& back_rows, const Indices& back_pairs, const Vector& weight, OutMatrix Y) {
  const MappedRows mapped_rows = mapped(Z);
  const Index n = mapped_rows.rows, pairs = static_cast<Index>(rows.shape(0));
  expect_lists(ends, n, pairs, "there must be a list of pairs a row");
  expect_lists(back_ends, n, pairs, "there must be a list of pairs back a row");
  expect(static_cast<Index>(back_rows.shape(0)) == pairs &&
             static_cast<Index>(back_pairs.shape(0)) == pairs && static_cast<Index>(weight.shape(0)) == pairs,
         "there must be an entry a pair");
  expect_rows(rows, n);
  expect_rows(back_rows, n);
  for (Index p = 0; p < pairs; ++p)
    expect(0 <= back_pairs.data()[p] && back_pairs.data()[p] < pairs,
           "numbers of pairs must be those there are");
  expect(static_cast<Index>(Y.shape(0)) == n && static_cast<Index>(Y.shape(1)) == mapped_rows.width,
         "Y must be of the shape of Z");
  nb::gil_scoped_release release;
  pair_products(
      mapped_rows,
      {ends.data(), rows.data(), back_ends.data(), back_rows.data(), back_pairs.data(), weight.data()},
      Y.data());
}

}  // namespace

void bind_triplets(nb::module_& m) {
  m.def("find_impostors", &impostors, nb::arg("Z").noconvert(), nb::arg("class_ends").noconvert(),
        nb::arg("radius").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def("hinge_sums", &hinges, nb::arg("Z").noconvert(), nb::arg("targets").noconvert(),
        nb::arg("ends").noconvert(), nb::arg("impostors").noconvert(), nb::arg("weight").noconvert(),
        nb::arg("smoothing"), nb::arg("of_targets").noconvert(), nb::arg("of_impostors").noconvert(),
        nb::arg("farthest").noconvert());
  m.def("list_triplets", &listed, nb::arg("Z").noconvert(), nb::arg("targets").noconvert(),
        nb::arg("ends").noconvert(), nb::arg("impostors").noconvert(), nb::arg("weight").noconvert(),
        nb::arg("smoothing"));
  m.def("pair_products", &products, nb::arg("Z").noconvert(), nb::arg("ends").noconvert(),
        nb::arg("rows").noconvert(), nb::arg("back_ends").noconvert(), nb::arg("back_rows").noconvert(),
        nb::arg("back_pairs").noconvert(), nb::arg("weight").noconvert(), nb::arg("Y").noconvert());
}

}  // namespace sixfold
