// Bindings of sequential minimal optimisation.
#include "bindings/bindings.hpp"
#include "kernel/small_svms.hpp"
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

void bind_small_svms(nb::module_& m) {
  using Counts = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "small_svms",
      [](const InMatrix& gram, const Indices& start, const Indices& row, const Vector& y, const Vector& upper,
         OutVector alpha, OutVector scores, Counts iterations, OutMatrix states, OutVector rounding,
         OutVector lost, bool single, double error, double violation, double gap, double alike,
         Index most_iterations, double seconds_left, const Flag& flag) {
        const Index n = static_cast<Index>(gram.shape(0)), entries = static_cast<Index>(row.shape(0));
        const Index count = static_cast<Index>(start.shape(0)) - 1;
        expect(gram.shape(0) == gram.shape(1), "gram must be square");
        expect(count >= 1 && start.data()[0] == 0 && start.data()[count] == entries,
               "start must have one entry more than there are problems");
        bool inside = true;
        for (Index k = 0; k < count; ++k) inside &= start.data()[k] < start.data()[k + 1];
        for (Index k = 0; k < entries; ++k) inside &= row.data()[k] >= 0 && row.data()[k] < n;
        expect(inside, "start must rise, row must hold row numbers");
        for (const std::size_t size : {y.shape(0), upper.shape(0), alpha.shape(0), scores.shape(0)})
          expect(size == row.shape(0), "y, upper, alpha and scores must have one entry a row");
        for (const std::size_t size :
             {iterations.shape(0), states.shape(1), rounding.shape(0), lost.shape(0)})
          expect(static_cast<Index>(size) == count, "what is said of problems must have one entry a problem");
        expect(states.shape(0) == 8, "states must have the 8 fields of an Optimality");
        const FlatProblems problems{start.data(), count, row.data(), y.data(), upper.data()};
        const FlatSolutions solutions{alpha.data(),  scores.data(),   iterations.data(),
                                      states.data(), rounding.data(), lost.data()};
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return solve_small_svms({gram.data(), n, n, n, 1}, problems, single, error, {violation, gap, alike},
                                most_iterations, solutions, stop);
      },
      nb::arg("gram").noconvert(), nb::arg("start").noconvert(), nb::arg("row").noconvert(),
      nb::arg("y").noconvert(), nb::arg("upper").noconvert(), nb::arg("alpha").noconvert(),
      nb::arg("scores").noconvert(), nb::arg("iterations").noconvert(), nb::arg("states").noconvert(),
      nb::arg("rounding").noconvert(), nb::arg("lost").noconvert(), nb::arg("single"), nb::arg("error"),
      nb::arg("violation"), nb::arg("gap"), nb::arg("alike"), nb::arg("most_iterations"),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_smo(nb::module_& m) {
  bind_small_svms(m);
  bind_smo_of<float>(m);
  bind_smo_of<double>(m);
}

}  // namespace sixfold
