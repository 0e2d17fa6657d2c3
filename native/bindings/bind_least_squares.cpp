// Bindings of the loops behind least squares.
#include <limits>

#include "bindings/bindings.hpp"
#include "linear/least_squares/moment_fit.hpp"
#include "linear/least_squares/moments.hpp"
#include "linear/least_squares/normal_product.hpp"
#include "linear/least_squares/residuals.hpp"
#include "linear/least_squares/row_space.hpp"

namespace sixfold {
namespace {

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutFloats = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
void bind_moments(nb::module_& m) {
  m.def(
      "moments",
      [](const Matrix<T>& X, const Matrix<T>& Y, const std::optional<Vector>& weight, const Vector& shift,
         const std::optional<Vector>& row_shift, OutMatrix gram, double seconds_left, const Flag& flag) {
        const Table<T> x = table(X), y = table(Y);
        const std::size_t p = X.shape(1) + Y.shape(1) + 1;
        expect(x.rows == y.rows, "X and Y must have the same rows");
        expect(shift.shape(0) == p - 1, "shift must have one entry a column of X and Y");
        expect(gram.shape(0) == p && gram.shape(1) == p, "gram must be square, columns + targets + 1");
        const double* w = each_row(weight, x.rows);
        const double* s = shift.data();
        const double* r = each_row(row_shift, x.rows);
        double* g = gram.data();
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return moments(x, y, w, s, r, g, stop);
      },
      nb::arg("X").noconvert(), nb::arg("Y").noconvert(), nb::arg("weight").none(), nb::arg("shift"),
      nb::arg("row_shift").none(), nb::arg("gram").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
}

template <class T>
void bind_residual_slope(nb::module_& m) {
  m.def(
      "residual_slope",
      [](const Matrix<T>& X, const Matrix<T>& Y, Index target, const std::optional<Vector>& weight,
         const Vector& w, double b, double b_rest, const std::optional<Vector>& shift, OutVector slope,
         double seconds_left, const Flag& flag) {
        const Table<T> x = table(X), y = table(Y);
        expect(x.rows == y.rows && target >= 0 && target < y.columns, "X and Y must fit");
        expect(static_cast<Index>(w.shape(0)) == x.columns, "w must have one entry a column");
        expect(!shift || static_cast<Index>(shift->shape(0)) == x.columns,
               "shift must have one entry a column");
        expect(static_cast<Index>(slope.shape(0)) == x.columns + 1, "slope must have columns + 1 entries");
        const double* row_weight = each_row(weight, x.rows);
        const double* coefficients = w.data();
        const double* subtracted = shift ? shift->data() : nullptr;
        double* out = slope.data();
        double square = 0.0;
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = residual_slope(x, y.data + target * y.column_stride, y.row_stride, row_weight,
                                    coefficients, DoubleDouble{b, b_rest}, subtracted, out, &square, stop);
        }
        return nb::make_tuple(finished, square);
      },
      nb::arg("X").noconvert(), nb::arg("Y").noconvert(), nb::arg("target"), nb::arg("weight").none(),
      nb::arg("w"), nb::arg("b"), nb::arg("b_rest"), nb::arg("shift").none(), nb::arg("slope").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

template <class T>
void bind_moment_fit(nb::module_& m) {
  m.def(
      "moment_fit",
      [](const Matrix<T>& X, const Matrix<T>& Y, const std::optional<Vector>& weight, double l1, double l2,
         bool positive, bool centred, double rounding, double goal, OutVector room, OutMatrix R,
         double seconds_left, const Flag& flag) {
        const Table<T> x = table(X), y = table(Y);
        const Index d = x.columns, k = y.columns, p = d + k;
        expect(x.rows == y.rows, "X and Y must have the same rows");
        const bool factored = l1 == 0.0 && !positive;
        expect(static_cast<Index>(room.shape(0)) == p * (p + 2) + d * (k + 1) + k * (kMomentFigures + 1),
               "room must have the entries of everything that is found");
        expect(!factored || (static_cast<Index>(R.shape(0)) == d && static_cast<Index>(R.shape(1)) == d),
               "R must be square, one row a column");
        const double* of_rows = each_row(weight, x.rows);
        double* at = room.data();
        const auto take = [&at](Index count) { return std::exchange(at, at + count); };
        MomentRoom to{take(p), take(p), take(p * p), take(d * k), take(k), take(k * kMomentFigures),
                      take(d), R.data()};
        Stop stop(seconds_left, flag.data());
        MomentResult found;
        {
          nb::gil_scoped_release release;
          found = moment_fit(x, y, of_rows, {l1, l2, positive, centred, rounding, goal}, to, stop);
        }
        return nb::make_tuple(static_cast<int>(found.end), found.weight, found.inverse_norm, found.lost);
      },
      nb::arg("X").noconvert(), nb::arg("Y").noconvert(), nb::arg("weight").none(), nb::arg("l1"),
      nb::arg("l2"), nb::arg("positive"), nb::arg("centred"), nb::arg("rounding"), nb::arg("goal"),
      nb::arg("room").noconvert(), nb::arg("R").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
}

template <class T>
void bind_row_space(nb::module_& m) {
  m.def(
      "centre_rows",
      [](const Matrix<T>& X, const Vector& q, bool centred, OutVector mean, OutVector square,
         const std::optional<OutFloats>& panels, const Flag& flag) {
        const Table<T> x = table(X);
        expect(static_cast<Index>(q.shape(0)) == x.rows, "q must have one entry a row");
        expect(static_cast<Index>(mean.shape(0)) == x.columns && square.shape(0) == mean.shape(0),
               "mean and square must have one entry a column");
        expect(!panels || static_cast<Index>(panels->shape(0)) == panel_entries(x.rows, x.columns),
               "panels must have room for all columns");
        const double* share = q.data();
        double *to = mean.data(), *squares = square.data();
        float* room = panels ? panels->data() : nullptr;
        Stop stop(std::numeric_limits<double>::infinity(), flag.data());
        nb::gil_scoped_release release;
        return centre_rows(x, share, centred, to, squares, room, stop);
      },
      nb::arg("X").noconvert(), nb::arg("q"), nb::arg("centred"), nb::arg("mean").noconvert(),
      nb::arg("square").noconvert(), nb::arg("panels").none(), nb::arg("flag").noconvert());
  m.def(
      "centred_products",
      [](const Matrix<T>& X, const Vector& mean, const std::optional<InMatrix>& v, OutMatrix w,
         OutMatrix scores, const Flag& flag) {
        const Table<T> x = table(X);
        const std::size_t n = X.shape(0), targets = w.shape(0);
        expect(mean.shape(0) == X.shape(1) && w.shape(1) == X.shape(1), "one entry a column is needed");
        expect(!v || (v->shape(0) == targets && v->shape(1) == n), "v must have one entry a row");
        expect(scores.shape(0) == targets && scores.shape(1) == n, "scores must have one entry a row");
        const double *middle = mean.data(), *factors = v ? v->data() : nullptr;
        double *weights = w.data(), *to = scores.data();
        Stop stop(std::numeric_limits<double>::infinity(), flag.data());
        nb::gil_scoped_release release;
        return centred_products(x, middle, factors, static_cast<Index>(targets), weights, to, stop);
      },
      nb::arg("X").noconvert(), nb::arg("mean"), nb::arg("v").none(), nb::arg("w").noconvert(),
      nb::arg("scores").noconvert(), nb::arg("flag").noconvert());
}

void bind_descend_rows(nb::module_& m) {
  m.def("panel_entries", &panel_entries);
  m.def(
      "descend_rows",
      [](const Floats& panels, Index columns, const Vector& root_q, bool centred, double l2, double goal,
         Index most, OutVector left, OutVector a, const Flag& flag) {
        const Index rows = static_cast<Index>(root_q.shape(0));
        expect(static_cast<Index>(panels.shape(0)) == panel_entries(rows, columns),
               "panels must be those of the table");
        expect(left.shape(0) == root_q.shape(0) && a.shape(0) == root_q.shape(0),
               "left and a must have one entry a row");
        const float* of = panels.data();
        const double* root = root_q.data();
        double *rest = left.data(), *to = a.data();
        Stop stop(std::numeric_limits<double>::infinity(), flag.data());
        RowDescent found;
        {
          nb::gil_scoped_release release;
          found = descend_rows(of, rows, columns, root, centred, l2, goal, most, rest, to, stop);
        }
        return nb::make_tuple(found.steps, found.reached, found.stopped);
      },
      nb::arg("panels").noconvert(), nb::arg("columns"), nb::arg("root_q"), nb::arg("centred"), nb::arg("l2"),
      nb::arg("goal"), nb::arg("most"), nb::arg("left").noconvert(), nb::arg("a").noconvert(),
      nb::arg("flag").noconvert());
}

template <class T, class I>
void bind_normal_product(nb::module_& m) {
  using Values = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Numbers = nb::ndarray<const I, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "normal_product",
      [](const Values& data, const Numbers& column, const Numbers& start, const std::optional<Vector>& weight,
         double shift, const Vector& p, OutVector out, double seconds_left, const Flag& flag) {
        expect(start.shape(0) >= 1 && data.shape(0) == column.shape(0), "every entry must have a column");
        const Index rows = static_cast<Index>(start.shape(0)) - 1;
        const SparseRows<T, I> x{data.data(), column.data(), start.data(), rows,
                                 static_cast<Index>(p.shape(0))};
        expect(static_cast<Index>(x.start[rows]) <= static_cast<Index>(data.shape(0)),
               "start must not go beyond the entries");
        expect(out.shape(0) == p.shape(0), "out must have one entry a column");
        const double *of_rows = each_row(weight, rows), *vector = p.data();
        double *to = out.data(), sum = 0.0, square = 0.0;
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = normal_product(x, of_rows, shift, vector, to, &sum, &square, stop);
        }
        return nb::make_tuple(finished, sum, square);
      },
      nb::arg("data").noconvert(), nb::arg("column").noconvert(), nb::arg("start").noconvert(),
      nb::arg("weight").none(), nb::arg("shift"), nb::arg("p"), nb::arg("out").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_least_squares(nb::module_& m) {
  bind_moments<double>(m);
  bind_moments<float>(m);
  bind_residual_slope<double>(m);
  bind_residual_slope<float>(m);
  bind_moment_fit<double>(m);
  bind_moment_fit<float>(m);
  bind_row_space<double>(m);
  bind_row_space<float>(m);
  bind_descend_rows(m);
  bind_normal_product<double, std::int32_t>(m);
  bind_normal_product<float, std::int32_t>(m);
  bind_normal_product<double, Index>(m);
  bind_normal_product<float, Index>(m);
}

}  // namespace sixfold
