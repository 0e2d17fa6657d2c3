// Bindings of the sweeps over the scores of exemplar machines.
#include "bindings/bindings.hpp"
#include "linear/margin/exemplars/exemplars.hpp"
#include "linear/margin/exemplars/hard_negatives.hpp"

namespace sixfold {
namespace {

template <class T>
using OutTable = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutRow = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Whether two tables have one entry for each other's.
template <class A, class B>
bool same_shape(const A& a, const B& b) {
  return a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1);
}

template <class T>
bool mask(OutTable<T> products, const Vector& cost, const OutTable<std::uint8_t>& active, double seconds_left,
          const Flag& flag) {
  expect(same_shape(products, active), "active must have one entry a product");
  expect(cost.shape(0) == products.shape(1), "there must be one cost a row");
  const Index machines = static_cast<Index>(products.shape(0)), rows = static_cast<Index>(products.shape(1));
  Stop stop(seconds_left, flag.data());
  nb::gil_scoped_release release;
  return mask_products(products.data(), machines, rows, cost.data(), active.data(), stop);
}

bool slopes(const InMatrix& scores, const Vector& cost, OutMatrix slope, OutTable<std::uint8_t> active,
            OutRow<std::int32_t> share, OutMatrix sums, double seconds_left, const Flag& flag) {
  const Index machines = static_cast<Index>(scores.shape(0)), rows = static_cast<Index>(scores.shape(1));
  expect(same_shape(scores, slope) && same_shape(scores, active), "slopes and active must be one a score");
  expect(cost.shape(0) == scores.shape(1) && share.shape(0) == scores.shape(1),
         "there must be one cost and one share a row");
  expect(sums.shape(0) == scores.shape(0) && sums.shape(1) == 3, "there must be three sums a machine");
  Stop stop(seconds_left, flag.data());
  nb::gil_scoped_release release;
  return exemplar_slopes(scores.data(), machines, rows, cost.data(), slope.data(), active.data(),
                         share.data(), sums.data(), stop);
}

bool steps(OutMatrix scores, const InMatrix& moves, const Vector& cost, const InMatrix& lines, OutVector out,
           double seconds_left, const Flag& flag) {
  static_assert(sizeof(ExemplarLine) == 5 * sizeof(double));
  const Index machines = static_cast<Index>(scores.shape(0)), rows = static_cast<Index>(scores.shape(1));
  expect(same_shape(scores, moves), "there must be one move a score");
  expect(cost.shape(0) == scores.shape(1), "there must be one cost a row");
  expect(lines.shape(0) == scores.shape(0) && lines.shape(1) == 5, "there must be five terms a machine");
  expect(out.shape(0) == scores.shape(0), "there must be one step a machine");
  Stop stop(seconds_left, flag.data());
  nb::gil_scoped_release release;
  return exemplar_steps(scores.data(), moves.data(), machines, rows, cost.data(),
                        reinterpret_cast<const ExemplarLine*>(lines.data()), out.data(), stop);
}

bool sigmoids(const InMatrix& scores, const Vector& weight, const OutRow<const std::uint8_t>& own,
              double least, OutMatrix parameters, double seconds_left, const Flag& flag) {
  const Index machines = static_cast<Index>(scores.shape(0)), rows = static_cast<Index>(scores.shape(1));
  expect(weight.shape(0) == scores.shape(1) && own.shape(0) == scores.shape(1),
         "there must be one weight and one side a row");
  expect(parameters.shape(0) == scores.shape(0) && parameters.shape(1) == 2,
         "there must be two parameters a machine");
  Stop stop(seconds_left, flag.data());
  nb::gil_scoped_release release;
  return fit_sigmoids(scores.data(), machines, rows, weight.data(), own.data(), least, parameters.data(),
                      stop);
}

bool hard_round(const InMatrix& X, const Vector& cost, const InMatrix& exemplars, const Vector& own_cost,
                const InMatrix& scores, const Vector& goals, Index most_new, OutTable<std::int32_t> rows,
                OutMatrix multipliers, OutRow<std::int32_t> counts, OutMatrix w, OutVector b,
                OutVector objective, OutVector bound, OutRow<std::uint8_t> done, double seconds_left,
                const Flag& flag) {
  const std::size_t machines = scores.shape(0);
  const Index room = static_cast<Index>(rows.shape(1)), n = static_cast<Index>(X.shape(0));
  expect(scores.shape(1) == X.shape(0) && cost.shape(0) == X.shape(0),
         "there must be one score and cost a row");
  expect(exemplars.shape(0) == machines && exemplars.shape(1) == X.shape(1) && same_shape(exemplars, w),
         "exemplars and machines must have the columns of the rows");
  expect(rows.shape(0) == machines && same_shape(rows, multipliers), "there must be a working set a machine");
  expect(own_cost.shape(0) == machines && goals.shape(0) == machines && counts.shape(0) == machines &&
             b.shape(0) == machines && objective.shape(0) == machines && bound.shape(0) == machines &&
             done.shape(0) == machines,
         "there must be one entry a machine");
  expect(most_new >= 1, "a working set must be allowed to grow");
  for (std::size_t e = 0; e < machines; ++e) {
    expect(counts.data()[e] <= room, "a working set has more rows than there is room for");
    for (Index k = 0; k < counts.data()[e]; ++k) {
      const std::int32_t row = rows.data()[static_cast<Index>(e) * room + k];
      expect(0 <= row && row < n, "a working set holds numbers of rows");
    }
  }
  const HardNegatives round{{X.data(), n, static_cast<Index>(X.shape(1)), X.stride(0), X.stride(1)},
                            cost.data(),
                            exemplars.data(),
                            own_cost.data(),
                            scores.data(),
                            goals.data(),
                            room,
                            most_new,
                            rows.data(),
                            multipliers.data(),
                            counts.data(),
                            w.data(),
                            b.data(),
                            objective.data(),
                            bound.data(),
                            done.data()};
  Stop stop(seconds_left, flag.data());
  nb::gil_scoped_release release;
  return hard_negative_round(round, static_cast<Index>(machines), stop);
}

}  // namespace

void bind_exemplars(nb::module_& m) {
  m.def("exemplar_slopes", &slopes, nb::arg("scores").noconvert(), nb::arg("cost").noconvert(),
        nb::arg("slopes").noconvert(), nb::arg("active").noconvert(), nb::arg("share").noconvert(),
        nb::arg("sums").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def("mask_products", &mask<float>, nb::arg("products").noconvert(), nb::arg("cost").noconvert(),
        nb::arg("active").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def("mask_products", &mask<double>, nb::arg("products").noconvert(), nb::arg("cost").noconvert(),
        nb::arg("active").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def("exemplar_steps", &steps, nb::arg("scores").noconvert(), nb::arg("moves").noconvert(),
        nb::arg("cost").noconvert(), nb::arg("lines").noconvert(), nb::arg("steps").noconvert(),
        nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def("hard_negative_round", &hard_round, nb::arg("X").noconvert(), nb::arg("cost").noconvert(),
        nb::arg("exemplars").noconvert(), nb::arg("own_cost").noconvert(), nb::arg("scores").noconvert(),
        nb::arg("goals").noconvert(), nb::arg("most_new"), nb::arg("rows").noconvert(),
        nb::arg("multipliers").noconvert(), nb::arg("counts").noconvert(), nb::arg("w").noconvert(),
        nb::arg("b").noconvert(), nb::arg("objective").noconvert(), nb::arg("bound").noconvert(),
        nb::arg("done").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def("fit_sigmoids", &sigmoids, nb::arg("scores").noconvert(), nb::arg("weight").noconvert(),
        nb::arg("own").noconvert(), nb::arg("least"), nb::arg("parameters").noconvert(),
        nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace sixfold
