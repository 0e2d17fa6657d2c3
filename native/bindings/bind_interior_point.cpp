// Bindings of the sweeps behind the interior-point method, and of tables as rows.
#include "bindings/bindings.hpp"
#include "linear/margin/interior_point.hpp"
#include "linear/margin/margin_pass.hpp"
#include "linear/margin/small_path.hpp"

namespace sixfold {
namespace {

template <class T>
void bind_dense_rows(nb::module_& m) {
  m.def(
      "dense_rows",
      [](const Matrix<T>& X, const Vector& shift, double constant) {
        expect(shift.shape(0) == X.shape(1), "shift must have one entry a column");
        return AnyRows(DenseRows<T>{table(X), shift.data(), constant});
      },
      nb::arg("X").noconvert(), nb::arg("shift").noconvert(), nb::arg("constant"), nb::keep_alive<0, 1>(),
      nb::keep_alive<0, 2>());
}

template <class T, class I>
void bind_sparse_rows(nb::module_& m) {
  using Values = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Places = nb::ndarray<const I, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "sparse_rows",
      [](const Values& values, const Places& columns, const Places& starts, Index width, double constant) {
        expect(starts.shape(0) >= 1, "starts must have one entry more than there are rows");
        const Index n = static_cast<Index>(starts.shape(0)) - 1;
        bool inside = starts.data()[0] >= 0 && values.shape(0) == columns.shape(0) &&
                      static_cast<std::size_t>(starts.data()[n]) <= values.shape(0);
        for (Index i = 0; i < n; ++i) inside &= starts.data()[i] <= starts.data()[i + 1];
        for (std::size_t at = 0; at < columns.shape(0); ++at)
          inside &= columns.data()[at] >= 0 && static_cast<Index>(columns.data()[at]) < width;
        expect(inside, "columns must hold column numbers, starts must not fall");
        return AnyRows(SparseRows<T, I>{{values.data(), columns.data(), starts.data(), n, width}, constant});
      },
      nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(),
      nb::arg("width"), nb::arg("constant"), nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
      nb::keep_alive<0, 3>());
}

// vectors: p, m, a, low, high, weight, dp, dm, da, one row each; of their entries those of one block.
InteriorRows interior_rows(OutMatrix& vectors, Index start, Index count) {
  expect(vectors.shape(0) == 9 && start >= 0 && start + count <= static_cast<Index>(vectors.shape(1)),
         "vectors must have nine rows and one entry a row of the table");
  const auto at = [&](std::size_t which) { return vectors.data() + which * vectors.shape(1) + start; };
  return {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8)};
}

const double* direction(const Vector& v, const AnyRows& rows) {
  expect(static_cast<Index>(v.shape(0)) == columns_of(rows) + 1, "a step has columns + 1 entries");
  return v.data();
}

void bind_steps(nb::module_& m) {
  m.def(
      "predict_step",
      [](const AnyRows& X, const Vector& v, OutMatrix vectors, Index start, OutMatrix sums,
         double seconds_left, const Flag& flag) {
        const double* step = direction(v, X);
        const InteriorRows rows = interior_rows(vectors, start, rows_of(X));
        expect(sums.shape(0) == 4 && sums.shape(1) == v.shape(0), "sums must be four steps");
        Prediction found{};
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = predict_step(X, step, rows, sums.data(), &found, stop);
        }
        return nb::make_tuple(finished, found.largest_primal, found.largest_dual, found.primal, found.dual,
                              found.both);
      },
      nb::arg("X"), nb::arg("v"), nb::arg("vectors").noconvert(), nb::arg("start"),
      nb::arg("sums").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "correct_step",
      [](const AnyRows& X, const Vector& v, double aim, OutMatrix vectors, Index start, double seconds_left,
         const Flag& flag) {
        const double* step = direction(v, X);
        const InteriorRows rows = interior_rows(vectors, start, rows_of(X));
        Lengths largest{};
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = correct_step(X, step, aim, rows, &largest, stop);
        }
        return nb::make_tuple(finished, largest.primal, largest.dual);
      },
      nb::arg("X"), nb::arg("v"), nb::arg("aim"), nb::arg("vectors").noconvert(), nb::arg("start"),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "take_step",
      [](double primal, double dual, OutMatrix vectors) {
        const Index count = static_cast<Index>(vectors.shape(1));
        const InteriorRows rows = interior_rows(vectors, 0, count);
        State state{};
        {
          nb::gil_scoped_release release;
          state = take_step(primal, dual, rows, count);
        }
        return nb::make_tuple(state.loss, state.slack, state.products);
      },
      nb::arg("primal"), nb::arg("dual"), nb::arg("vectors").noconvert());
}

void bind_row_products(nb::module_& m) {
  m.def(
      "row_scores",
      [](const AnyRows& X, const Vector& v, OutVector out, double seconds_left, const Flag& flag) {
        const double* step = direction(v, X);
        expect(static_cast<Index>(out.shape(0)) == rows_of(X), "out must have one entry a row");
        double* to = out.data();
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return row_scores(X, step, to, stop);
      },
      nb::arg("X"), nb::arg("v"), nb::arg("out").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "row_slope",
      [](const AnyRows& X, const Vector& g, OutVector out, double seconds_left, const Flag& flag) {
        expect(static_cast<Index>(g.shape(0)) == rows_of(X), "g must have one entry a row");
        expect(static_cast<Index>(out.shape(0)) == columns_of(X) + 1, "out must have columns + 1 entries");
        const double* factors = g.data();
        double* to = out.data();
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return row_slope(X, factors, to, stop);
      },
      nb::arg("X"), nb::arg("g"), nb::arg("out").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
}

void bind_margin_pass(nb::module_& m) {
  using Labels = nb::ndarray<const double, nb::ndim<1>, nb::device::cpu>;
  using Counts = nb::ndarray<Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.attr("DISTANCE_BINS") = kDistanceBins;
  m.def(
      "margin_pass",
      [](const AnyRows& X, const Vector& v, const Labels& y, const std::optional<Vector>& weight,
         double width, OutVector beyond, OutMatrix sums, Counts counts, double seconds_left,
         const Flag& flag) {
        const double* step = direction(v, X);
        const Index n = rows_of(X);
        expect(static_cast<Index>(y.shape(0)) == n && static_cast<Index>(beyond.shape(0)) == n,
               "y and beyond must have one entry a row");
        expect(sums.shape(0) == 2 && sums.shape(1) == v.shape(0) + 1, "sums must be 2 x (columns + 2)");
        expect(static_cast<Index>(counts.shape(0)) == kDistanceBins, "counts must have an entry a bin");
        const SignedRows rows{y.data(), y.stride(0), each_row(weight, n)};
        MarginSums found{};
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished =
              margin_pass(X, step, rows, width, beyond.data(), sums.data(), counts.data(), &found, stop);
        }
        return nb::make_tuple(finished, found.loss, found.wrong);
      },
      nb::arg("X"), nb::arg("v"), nb::arg("y"), nb::arg("weight").none(), nb::arg("width"),
      nb::arg("beyond").noconvert(), nb::arg("sums").noconvert(), nb::arg("counts").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

void bind_small_path(nb::module_& m) {
  m.def(
      "follow_small_path",
      [](const InMatrix& Z, const Vector& t, double l2, OutMatrix vectors, double enough, OutMatrix records,
         OutVector theta, OutVector slope, double unit, double ends, double length, double objective,
         double gap, double products, double seconds_left, const Flag& flag) {
        const Index rows = static_cast<Index>(Z.shape(0)), width = static_cast<Index>(Z.shape(1));
        expect(rows >= 1 && width >= 1 && t.shape(0) == Z.shape(0) && vectors.shape(1) == Z.shape(0),
               "t and vectors must have one entry a row");
        expect(theta.shape(0) == Z.shape(1) && slope.shape(0) == Z.shape(1),
               "theta and slope must have one entry a column");
        expect(records.shape(1) == 2 && l2 > 0.0, "records must have two columns, l2 must be positive");
        PathPoint point{theta.data(), slope.data(), unit, ends, length, objective, gap, products};
        const InteriorRows terms = interior_rows(vectors, 0, rows);
        const Index most = static_cast<Index>(records.shape(0));
        Stop stop(seconds_left, flag.data());
        Index made = 0;
        {
          nb::gil_scoped_release release;
          made = follow_small_path({Z.data(), rows, width, width, 1}, t.data(), l2, terms, enough, most,
                                   point, records.data(), stop);
        }
        return nb::make_tuple(made, point.length, point.objective, point.gap, point.products);
      },
      nb::arg("Z").noconvert(), nb::arg("t").noconvert(), nb::arg("l2"), nb::arg("vectors").noconvert(),
      nb::arg("enough"), nb::arg("records").noconvert(), nb::arg("theta").noconvert(),
      nb::arg("slope").noconvert(), nb::arg("unit"), nb::arg("ends"), nb::arg("length"), nb::arg("objective"),
      nb::arg("gap"), nb::arg("products"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "small_hinge",
      [](const InMatrix& Z, const Vector& t, double l2, OutMatrix vectors, double tolerance, double relative,
         double least, OutMatrix records, OutVector theta, double seconds_left, const Flag& flag) {
        const Index rows = static_cast<Index>(Z.shape(0)), width = static_cast<Index>(Z.shape(1));
        expect(rows >= 1 && width >= 1 && t.shape(0) == Z.shape(0) && vectors.shape(1) == Z.shape(0),
               "t and vectors must have one entry a row");
        expect(theta.shape(0) == Z.shape(1), "theta must have one entry a column");
        expect(records.shape(1) == 2 && l2 > 0.0, "records must have two columns, l2 must be positive");
        const InteriorRows terms = interior_rows(vectors, 0, rows);
        const Index most = static_cast<Index>(records.shape(0));
        Stop stop(seconds_left, flag.data());
        Index made = 0;
        bool found = false;
        {
          nb::gil_scoped_release release;
          found = small_hinge({Z.data(), rows, width, width, 1}, t.data(), l2, terms, tolerance, relative,
                              least, most, theta.data(), records.data(), &made, stop);
        }
        return nb::make_tuple(found, made);
      },
      nb::arg("Z").noconvert(), nb::arg("t").noconvert(), nb::arg("l2"), nb::arg("vectors").noconvert(),
      nb::arg("tolerance"), nb::arg("relative"), nb::arg("least"), nb::arg("records").noconvert(),
      nb::arg("theta").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_interior_point(nb::module_& m) {
  nb::class_<AnyRows>(m, "Rows");
  bind_dense_rows<double>(m);
  bind_dense_rows<float>(m);
  bind_sparse_rows<double, std::int32_t>(m);
  bind_sparse_rows<float, std::int32_t>(m);
  bind_sparse_rows<double, Index>(m);
  bind_sparse_rows<float, Index>(m);
  bind_steps(m);
  bind_row_products(m);
  bind_margin_pass(m);
  bind_small_path(m);
}

}  // namespace sixfold
