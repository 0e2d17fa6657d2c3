// Bindings of the loops behind coordinate descent.
#include "bindings/bindings.hpp"
#include "linear/l1/columns.hpp"
#include "linear/l1/coordinate_descent.hpp"
#include "linear/l1/proximal_newton.hpp"

namespace sixfold {
namespace {

// The column loops walk along rows or along columns, never with a stride in both.
template <class T>
Table<T> streamed(const Matrix<T>& m) {
  const Table<T> t = table(m);
  expect(t.column_stride == 1 || t.row_stride == 1 || t.rows <= 1, "X must be contiguous along an axis");
  return t;
}

const Index* columns_of(const Indices& chosen, Index columns, Index least = 0) {
  for (std::size_t k = 0; k < chosen.shape(0); ++k)
    expect(chosen.data()[k] >= least && chosen.data()[k] < columns, "a chosen column does not exist");
  return chosen.data();
}

template <class T>
void bind_columns(nb::module_& m) {
  m.def(
      "correlations",
      [](const Matrix<T>& X, const std::optional<Indices>& chosen, const Vector& shift, const InMatrix& v,
         OutMatrix out, double seconds_left, const Flag& flag) {
        const Table<T> x = streamed(X);
        const Index* ids = chosen ? columns_of(*chosen, x.columns) : nullptr;
        const Index columns = chosen ? static_cast<Index>(chosen->shape(0)) : x.columns;
        expect(!chosen || x.row_stride == 1 || x.rows <= 1, "chosen columns must be contiguous");
        expect(static_cast<Index>(v.shape(1)) == x.rows, "v must have one entry a row");
        expect(static_cast<Index>(shift.shape(0)) == columns, "shift must have one entry a column");
        expect(out.shape(0) == v.shape(0) && static_cast<Index>(out.shape(1)) == columns,
               "out must have one entry for every pair of a row of v and a column");
        const double *s = shift.data(), *vectors = v.data();
        const Index count = static_cast<Index>(v.shape(0));
        double* sums = out.data();
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return correlations(x, ids, columns, s, vectors, count, sums, stop);
      },
      nb::arg("X").noconvert(), nb::arg("chosen").none(), nb::arg("shift"), nb::arg("v"),
      nb::arg("out").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "combination",
      [](const Matrix<T>& X, const Indices& chosen, const Vector& shift, const Vector& w, OutVector out,
         double seconds_left, const Flag& flag) {
        const Table<T> x = streamed(X);
        const Index* columns = columns_of(chosen, x.columns);
        const Index count = static_cast<Index>(chosen.shape(0));
        expect(shift.shape(0) == chosen.shape(0) && w.shape(0) == chosen.shape(0),
               "shift and w must have one entry a chosen column");
        expect(static_cast<Index>(out.shape(0)) == x.rows, "out must have one entry a row");
        const double *s = shift.data(), *coefficients = w.data();
        double* sums = out.data();
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return combination(x, columns, count, s, coefficients, sums, stop);
      },
      nb::arg("X").noconvert(), nb::arg("chosen"), nb::arg("shift"), nb::arg("w"), nb::arg("out").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "gram_rows",
      [](const Matrix<T>& X, const InMatrix& root, const Indices& group, const Indices& chosen, Index old,
         const Vector& shift, OutMatrix gram, double seconds_left, const Flag& flag) {
        const Table<T> x = streamed(X);
        const Index* columns = columns_of(chosen, x.columns, -1);
        const Index count = static_cast<Index>(chosen.shape(0));
        expect(static_cast<Index>(root.shape(0)) == x.rows, "root must have one row a row");
        expect(group.shape(0) == chosen.shape(0), "group must have one entry a chosen column");
        const RowRoots roots{root.data(), static_cast<Index>(root.shape(1)), group.data()};
        for (Index k = 0; k < count; ++k)
          expect(roots.group[k] >= 0 && roots.group[k] < roots.groups, "a group does not exist");
        const double* s = shift.data();
        expect(old >= 0 && old <= count, "old must not exceed the chosen columns");
        expect(static_cast<Index>(shift.shape(0)) == count, "shift must have one entry a chosen column");
        expect(static_cast<Index>(gram.shape(0)) == count - old && static_cast<Index>(gram.shape(1)) == count,
               "gram must have a row for each new and a column for each chosen column");
        double* sums = gram.data();
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return gram_rows(x, roots, columns, old, count, s, sums, stop);
      },
      nb::arg("X").noconvert(), nb::arg("root"), nb::arg("group"), nb::arg("chosen"), nb::arg("old"),
      nb::arg("shift"), nb::arg("gram").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

void bind_descend_gram(nb::module_& m) {
  m.def(
      "descend_gram",
      [](const InMatrix& gram, OutVector slope, OutVector w, double l1, double l2, bool positive,
         Index most_epochs, double goal, double seconds_left, const Flag& flag) {
        const std::size_t count = gram.shape(0);
        expect(gram.shape(1) == count, "gram must be square");
        expect(slope.shape(0) == count && w.shape(0) == count, "slope and w must fit gram");
        const double* g = gram.data();
        double *slopes = slope.data(), *coefficients = w.data();
        const Descent descent{l1, l2, positive, most_epochs, goal};
        Stop stop(seconds_left, flag.data());
        DescentResult result{};
        {
          nb::gil_scoped_release release;
          result = descend_gram(g, static_cast<Index>(count), slopes, coefficients, descent, stop);
        }
        return nb::make_tuple(result.finished, result.epochs);
      },
      nb::arg("gram").noconvert(), nb::arg("slope").noconvert(), nb::arg("w").noconvert(), nb::arg("l1"),
      nb::arg("l2"), nb::arg("positive"), nb::arg("most_epochs"), nb::arg("goal"), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
}

template <class T>
void bind_descend_columns(nb::module_& m) {
  m.def(
      "descend_columns",
      [](const Matrix<T>& X, const Vector& weight, const Vector& mean, const Vector& curvature, OutVector v,
         OutVector w, double l1, double l2, bool positive, Index most_epochs, double goal,
         double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        expect(x.row_stride == 1 || x.rows <= 1, "X must be contiguous along columns");
        const double *q = each_row(weight, x.rows), *centre = mean.data(), *h = curvature.data();
        expect(static_cast<Index>(mean.shape(0)) == x.columns && curvature.shape(0) == mean.shape(0) &&
                   w.shape(0) == mean.shape(0),
               "mean, curvature and w must have one entry a column");
        expect(static_cast<Index>(v.shape(0)) == x.rows, "v must have one entry a row");
        double *residual = v.data(), *coefficients = w.data();
        const Descent descent{l1, l2, positive, most_epochs, goal};
        Stop stop(seconds_left, flag.data());
        DescentResult result{};
        {
          nb::gil_scoped_release release;
          result = descend_columns(x, q, centre, h, residual, coefficients, descent, stop);
        }
        return nb::make_tuple(result.finished, result.epochs);
      },
      nb::arg("X").noconvert(), nb::arg("weight"), nb::arg("mean"), nb::arg("curvature"),
      nb::arg("v").noconvert(), nb::arg("w").noconvert(), nb::arg("l1"), nb::arg("l2"), nb::arg("positive"),
      nb::arg("most_epochs"), nb::arg("goal"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

template <class T>
using Places = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T, class I>
SparseColumns<T, I> sparse_columns(const Places<T>& data, const Places<I>& row, const Places<I>& start,
                                   Index rows, Index columns) {
  expect(static_cast<Index>(start.shape(0)) == columns + 1, "start must have columns + 1 entries");
  expect(data.shape(0) == row.shape(0), "data and row must have the same entries");
  const SparseColumns<T, I> x{data.data(), row.data(), start.data(), rows, columns};
  expect(x.start[0] == 0 && static_cast<std::size_t>(x.start[columns]) == data.shape(0),
         "start must end with the number of entries");
  for (Index j = 0; j < columns; ++j) expect(x.start[j] <= x.start[j + 1], "start must not fall");
  for (std::size_t k = 0; k < row.shape(0); ++k)
    expect(x.row[k] >= 0 && x.row[k] < rows, "an entry lies outside the rows");
  return x;
}

// Returns how it ends, and the intercept; `report` hears of every pass over all columns.
template <class Columns>
nb::tuple run_proximal_newton(const Columns& Z, const Vector& y, const Vector& q, int loss, double l1,
                              double l2, bool positive, bool intercept, double goal, OutVector& w, double c,
                              const nb::callable& report, double seconds_left, const Flag& flag) {
  const LossCode code = static_cast<LossCode>(loss);
  expect(code == LossCode::logistic || code == LossCode::squared_hinge,
         "the loss must be logistic or squared hinge");
  expect(static_cast<Index>(y.shape(0)) == Z.rows && static_cast<Index>(q.shape(0)) == Z.rows,
         "y and q must have one entry a row");
  expect(static_cast<Index>(w.shape(0)) == Z.columns, "w must have one entry a column");
  const ScoreProblem problem{y.data(), q.data(), code, l1, l2, positive, intercept, goal};
  Stop stop(seconds_left, flag.data());
  const ProximalReport ask = [&](double value, double gap) {
    nb::gil_scoped_acquire acquire;
    return nb::cast<bool>(report(value, gap));
  };
  double* weights = w.data();
  ProximalEnd end{};
  {
    nb::gil_scoped_release release;
    end = proximal_newton(Z, problem, weights, &c, ask, stop);
  }
  return nb::make_tuple(static_cast<int>(end), c);
}

template <class T>
void bind_proximal_newton(nb::module_& m) {
  m.def(
      "proximal_newton",
      [](const Matrix<T>& X, const Vector& shift, const Vector& y, const Vector& q, int loss, double l1,
         double l2, bool positive, bool intercept, double goal, OutVector w, double c,
         const nb::callable& report, double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        expect(x.row_stride == 1 || x.rows <= 1, "X must be contiguous along columns");
        expect(static_cast<Index>(shift.shape(0)) == x.columns, "shift must have one entry a column");
        const ShiftedColumns<T> Z{x.data, x.rows, x.columns, x.column_stride, shift.data()};
        return run_proximal_newton(Z, y, q, loss, l1, l2, positive, intercept, goal, w, c, report,
                                   seconds_left, flag);
      },
      nb::arg("X").noconvert(), nb::arg("shift"), nb::arg("y"), nb::arg("q"), nb::arg("loss"), nb::arg("l1"),
      nb::arg("l2"), nb::arg("positive"), nb::arg("intercept"), nb::arg("goal"), nb::arg("w").noconvert(),
      nb::arg("c"), nb::arg("report"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

template <class T, class I>
void bind_sparse_proximal_newton(nb::module_& m) {
  m.def(
      "sparse_proximal_newton",
      [](const Places<T>& data, const Places<I>& row, const Places<I>& start, const Vector& y,
         const Vector& q, int loss, double l1, double l2, bool positive, bool intercept, double goal,
         OutVector w, double c, const nb::callable& report, double seconds_left, const Flag& flag) {
        const Index rows = static_cast<Index>(y.shape(0)), columns = static_cast<Index>(w.shape(0));
        return run_proximal_newton(sparse_columns<T, I>(data, row, start, rows, columns), y, q, loss, l1, l2,
                                   positive, intercept, goal, w, c, report, seconds_left, flag);
      },
      nb::arg("data").noconvert(), nb::arg("row").noconvert(), nb::arg("start").noconvert(), nb::arg("y"),
      nb::arg("q"), nb::arg("loss"), nb::arg("l1"), nb::arg("l2"), nb::arg("positive"), nb::arg("intercept"),
      nb::arg("goal"), nb::arg("w").noconvert(), nb::arg("c"), nb::arg("report"), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
}

template <class T, class I>
void bind_descend_sparse_columns(nb::module_& m) {
  m.def(
      "descend_sparse_columns",
      [](const Places<T>& data, const Places<I>& row, const Places<I>& start, const Vector& weight,
         const Vector& mean, const Vector& curvature, OutVector v, double lift, OutVector w, double l1,
         double l2, bool positive, Index most_epochs, double goal, double seconds_left, const Flag& flag) {
        const Index rows = static_cast<Index>(v.shape(0)), columns = static_cast<Index>(w.shape(0));
        const SparseColumns<T, I> x = sparse_columns<T, I>(data, row, start, rows, columns);
        const double *q = each_row(weight, rows), *centre = mean.data(), *h = curvature.data();
        expect(mean.shape(0) == w.shape(0) && curvature.shape(0) == w.shape(0),
               "mean, curvature and w must have one entry a column");
        double *residual = v.data(), *coefficients = w.data();
        const Descent descent{l1, l2, positive, most_epochs, goal};
        Stop stop(seconds_left, flag.data());
        DescentResult result{};
        {
          nb::gil_scoped_release release;
          result = descend_sparse_columns(x, q, centre, h, residual, &lift, coefficients, descent, stop);
        }
        return nb::make_tuple(result.finished, result.epochs, lift);
      },
      nb::arg("data").noconvert(), nb::arg("row").noconvert(), nb::arg("start").noconvert(),
      nb::arg("weight"), nb::arg("mean"), nb::arg("curvature"), nb::arg("v").noconvert(), nb::arg("lift"),
      nb::arg("w").noconvert(), nb::arg("l1"), nb::arg("l2"), nb::arg("positive"), nb::arg("most_epochs"),
      nb::arg("goal"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_coordinates(nb::module_& m) {
  bind_columns<double>(m);
  bind_columns<float>(m);
  bind_descend_gram(m);
  bind_descend_columns<double>(m);
  bind_descend_columns<float>(m);
  bind_descend_sparse_columns<double, std::int32_t>(m);
  bind_descend_sparse_columns<double, std::int64_t>(m);
  bind_descend_sparse_columns<float, std::int32_t>(m);
  bind_descend_sparse_columns<float, std::int64_t>(m);
  bind_proximal_newton<double>(m);
  bind_proximal_newton<float>(m);
  bind_sparse_proximal_newton<double, std::int32_t>(m);
  bind_sparse_proximal_newton<double, std::int64_t>(m);
  bind_sparse_proximal_newton<float, std::int32_t>(m);
  bind_sparse_proximal_newton<float, std::int64_t>(m);
}

}  // namespace sixfold
