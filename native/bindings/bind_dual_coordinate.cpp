// Bindings of dual coordinate descent.
#include "bindings/bindings.hpp"
#include "core/threads.hpp"
#include "linear/margin/dual_coordinate.hpp"
#include "linear/margin/gram_descent.hpp"

namespace sixfold {
namespace {

using Order = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// vectors: y, upper, quadratic, |x|^2 and a, one row each.
MarginRows margin_rows(const AnyRows& X, OutMatrix& vectors, OutVector& w) {
  const Index n = rows_of(X);
  expect(vectors.shape(0) == 5 && static_cast<Index>(vectors.shape(1)) == n,
         "vectors must have five rows and one entry a row of the table");
  expect(static_cast<Index>(w.shape(0)) == columns_of(X), "w must have one entry a column");
  const auto at = [&](Index which) { return vectors.data() + which * n; };
  return {at(0), at(1), at(2), at(3), at(4), w.data()};
}

}  // namespace

void bind_dual_coordinate(nb::module_& m) {
  m.def(
      "row_squares",
      [](const AnyRows& X, OutVector out) {
        expect(static_cast<Index>(out.shape(0)) == rows_of(X), "out must have one entry a row");
        double* to = out.data();
        nb::gil_scoped_release release;
        std::visit(
            [&](const auto& rows) {
#pragma omp parallel for schedule(static) num_threads(team_size(rows.rows(), rows.entries()))
              for (Index i = 0; i < rows.rows(); ++i) to[i] = rows.square(i);
            },
            X);
      },
      nb::arg("X"), nb::arg("out").noconvert());
  m.def(
      "descend_margins",
      [](const AnyRows& X, OutMatrix vectors, OutVector w, Order order, double l2, double rho, double balance,
         double centre, double high, double low, std::uint64_t random, double enough, Index passes,
         double seconds_left, const Flag& flag) {
        const MarginRows rows = margin_rows(X, vectors, w);
        for (std::size_t k = 0; k < order.shape(0); ++k)
          expect(order.data()[k] >= 0 && order.data()[k] < rows_of(X), "order must hold row numbers");
        MarginState state{
            order.data(), static_cast<Index>(order.shape(0)), l2, rho, balance, centre, {high, low}, random};
        Stop stop(seconds_left, flag.data());
        Index made = 0;
        {
          nb::gil_scoped_release release;
          made = descend_margins(X, rows, state, enough, passes, stop);
        }
        return nb::make_tuple(state.balance, state.aside.high, state.aside.low, state.random, made);
      },
      nb::arg("X"), nb::arg("vectors").noconvert(), nb::arg("w").noconvert(), nb::arg("order").noconvert(),
      nb::arg("l2"), nb::arg("rho"), nb::arg("balance"), nb::arg("centre"), nb::arg("high"), nb::arg("low"),
      nb::arg("random"), nb::arg("enough"), nb::arg("passes"), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "margin_gap",
      [](const AnyRows& X, OutMatrix vectors, OutVector w, double b, double next, double high, double low,
         Order order, double seconds_left, const Flag& flag) {
        const MarginRows rows = margin_rows(X, vectors, w);
        expect(static_cast<Index>(order.shape(0)) == rows_of(X), "order must have one entry a row");
        MarginGap found{};
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = margin_gap(X, rows, b, next, {high, low}, order.data(), &found, stop);
        }
        return nb::make_tuple(finished, found.loss, found.slack, found.active);
      },
      nb::arg("X"), nb::arg("vectors").noconvert(), nb::arg("w").noconvert(), nb::arg("b"), nb::arg("next"),
      nb::arg("high"), nb::arg("low"), nb::arg("order").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "fit_by_products",
      [](const InMatrix& M, const InMatrix& rows, double draw, double tolerance, double relative,
         double least, Index most, OutVector s, double seconds_left, const Flag& flag) {
        const Index n = static_cast<Index>(M.shape(0));
        expect(n >= 1 && M.shape(1) == M.shape(0), "M must be square");
        expect(rows.shape(0) == 4 && rows.shape(1) == M.shape(0) && s.shape(0) == M.shape(0),
               "targets, ends and curvatures, and s, must have one entry a row");
        const auto at = [&](Index which) { return rows.data() + which * n; };
        const GramTarget target{{M.data(), n, n, n, 1}, at(0), at(1), at(2), at(3), draw};
        Stop stop(seconds_left, flag.data());
        GramFit fit{};
        {
          nb::gil_scoped_release release;
          fit = fit_by_products(target, tolerance, relative, least, most, s.data(), stop);
        }
        return nb::make_tuple(fit.b, fit.objective, fit.gap, fit.epochs);
      },
      nb::arg("M").noconvert(), nb::arg("rows").noconvert(), nb::arg("draw"), nb::arg("tolerance"),
      nb::arg("relative"), nb::arg("least"), nb::arg("most"), nb::arg("s").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace sixfold
