// Bindings of the passes behind Newton's method and its relatives.
#include <chrono>
#include <functional>

#include "bindings/bindings.hpp"
#include "linear/smooth/linear_sweeps.hpp"
#include "linear/smooth/newton_fit.hpp"
#include "linear/smooth/newton_sweep.hpp"
#include "linear/smooth/slope_sums.hpp"
#include "linear/smooth/softmax_sweep.hpp"
#include "linear/smooth/truncated_newton.hpp"

namespace sixfold {
namespace {

using OptionalOut = std::optional<OutVector>;
using OutCube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

double* each_row_out(OptionalOut& values, Index rows) {
  if (!values) return nullptr;
  expect(static_cast<Index>(values->shape(0)) == rows, "scores and curvatures must have one entry a row");
  return values->data();
}

LossCode smooth_loss(int loss) {
  const LossCode code = static_cast<LossCode>(loss);
  expect(code == LossCode::squared || code == LossCode::cubed || code == LossCode::logistic ||
             code == LossCode::squared_hinge,
         "the loss must have a curvature");
  return code;
}

RowTerms row_terms(const Vector& y, const std::optional<Vector>& weight, OptionalOut& score,
                   OptionalOut& curvature, Index rows) {
  expect(static_cast<Index>(y.shape(0)) == rows, "y must have one entry a row");
  return {y.data(), each_row(weight, rows), each_row_out(score, rows), each_row_out(curvature, rows)};
}

template <class T>
using Values = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Sizes only: whether the places lie within the table is asked once a fit (`csr_is_sound`), not every pass.
template <class T, class I>
SparseTable<T, I> sparse_table(const Values<T>& values, const Values<I>& columns, const Values<I>& starts,
                               Index width) {
  expect(starts.shape(0) >= 1, "starts must have one entry more than there are rows");
  const Index n = static_cast<Index>(starts.shape(0)) - 1;
  expect(starts.data()[0] >= 0 && static_cast<std::size_t>(starts.data()[n]) <= values.shape(0) &&
             values.shape(0) == columns.shape(0),
         "values, columns and starts must fit");
  return {values.data(), columns.data(), starts.data(), n, width};
}

template <class Rows>
nb::tuple run_loss_sweep(const Rows& x, Index width, const Vector& y, const std::optional<Vector>& weight,
                         int loss, const Vector& w, double b, OptionalOut& score, OptionalOut& curvature,
                         OutVector& slope, double seconds_left, const Flag& flag) {
  const LossCode code = smooth_loss(loss);
  expect(static_cast<Index>(w.shape(0)) == width, "w must have one entry a column");
  expect(static_cast<Index>(slope.shape(0)) == width + 1, "slope must have columns + 1 entries");
  const RowTerms rows = row_terms(y, weight, score, curvature, x.rows);
  double value = 0.0;
  Stop stop(seconds_left, flag.data());
  bool finished = false;
  {
    nb::gil_scoped_release release;
    finished = loss_sweep(x, code, w.data(), b, rows, &value, slope.data(), stop);
  }
  return nb::make_tuple(finished, value);
}

template <class Rows>
bool run_curvature_sweep(const Rows& x, Index width, const Vector& curvature, const Vector& v, double c,
                         OutVector& product, double seconds_left, const Flag& flag) {
  expect(static_cast<Index>(curvature.shape(0)) == x.rows, "curvature must have one entry a row");
  expect(static_cast<Index>(v.shape(0)) == width, "v must have one entry a column");
  expect(static_cast<Index>(product.shape(0)) == width + 1, "product must have columns + 1 entries");
  Stop stop(seconds_left, flag.data());
  nb::gil_scoped_release release;
  return curvature_sweep(x, curvature.data(), v.data(), c, product.data(), stop);
}

template <class Rows>
bool run_column_squares(const Rows& x, const std::optional<Vector>& weight, const Vector& shift,
                        OutVector& squares, double seconds_left, const Flag& flag) {
  expect(squares.shape(0) == shift.shape(0) + 1, "squares must have columns + 1 entries");
  const double* row_weight = each_row(weight, x.rows);
  Stop stop(seconds_left, flag.data());
  nb::gil_scoped_release release;
  return column_squares(x, row_weight, shift.data(), squares.data(), stop);
}

void expect_classes(const Vector& y, Index classes) {
  bool known = true;
  for (std::size_t i = 0; i < y.shape(0); ++i)
    known &= y.data()[i] >= 0.0 && y.data()[i] < static_cast<double>(classes);
  expect(known, "y must hold class indices");
}

template <class Rows>
nb::tuple run_softmax_sweep(const Rows& x, Index width, const Vector& y, const std::optional<Vector>& weight,
                            const InMatrix& w, const Vector& b, OutMatrix& slope, double seconds_left,
                            const Flag& flag, const std::optional<Vector>& kept,
                            const std::optional<Vector>& share) {
  const std::size_t classes = b.shape(0);
  expect(classes >= 1 && static_cast<Index>(w.shape(0)) == width && w.shape(1) == classes,
         "w must have one entry a column and class");
  expect(static_cast<Index>(slope.shape(0)) == width + 1 && slope.shape(1) == classes,
         "slope must have columns + 1 rows, one entry a class");
  expect(static_cast<Index>(y.shape(0)) == x.rows, "y must have one entry a row");
  expect_classes(y, static_cast<Index>(classes));
  expect(kept.has_value() == share.has_value(), "kept and share come together");
  expect(!kept || (kept->shape(0) == classes && share->shape(0) == classes),
         "kept and share must have one entry a class");
  const double* row_weight = each_row(weight, x.rows);
  SoftmaxSums found{};
  Stop stop(seconds_left, flag.data());
  bool finished = false;
  {
    nb::gil_scoped_release release;
    finished = softmax_sweep(x, y.data(), row_weight, static_cast<Index>(classes), w.data(), b.data(),
                             kept ? kept->data() : nullptr, share ? share->data() : nullptr, &found,
                             slope.data(), nullptr, stop);
  }
  return nb::make_tuple(finished, found.value, found.log_chance, found.squares, found.depth);
}

// The steps of a descent with the seconds until then: kept, or told to those who ask to hear of them.
class NewtonSteps {
 public:
  explicit NewtonSteps(const std::optional<nb::callable>& report) : report_(report) {}

  bool operator()(Index target, double value, double gap) {
    if (report_) {
      nb::gil_scoped_acquire acquire;
      return nb::cast<bool>((*report_)(target, value, gap));
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    steps_.push_back({target, passed.count(), value, gap});
    return false;
  }
  nb::list heard() const {
    nb::list steps;
    for (const Step& step : steps_)
      steps.append(nb::make_tuple(step.target, step.seconds, step.value, step.gap));
    return steps;
  }

 private:
  struct Step {
    Index target;
    double seconds, value, gap;
  };

  const std::optional<nb::callable>& report_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Step> steps_;
};

template <class Rows>
nb::tuple run_truncated_newton(const Rows& x, Index columns, const Vector& y,
                               const std::optional<Vector>& weight, double weight_sum, int loss, double l2,
                               const Vector& shift, bool intercept, double spread, double enough,
                               Index most_steps, Index most_products, OutMatrix& theta, OutMatrix& step,
                               const std::optional<nb::callable>& report, double seconds_left,
                               const Flag& flag) {
  const LossCode code = static_cast<LossCode>(loss);
  const auto scores = static_cast<Index>(theta.shape(1));
  const bool classes = code == LossCode::softmax;
  expect(classes || scores == 1, "there must be one score, or one a class");
  if (!classes) smooth_loss(loss);
  expect(l2 > 0.0 && enough > 0.0, "a penalty is needed, and a gap that is small enough");
  expect(static_cast<Index>(theta.shape(0)) == columns + 1 && step.shape(0) == theta.shape(0) &&
             step.shape(1) == theta.shape(1) && static_cast<Index>(shift.shape(0)) == columns,
         "theta, step and shift must fit the columns");
  expect(static_cast<Index>(y.shape(0)) == x.rows, "y must have one entry a row");
  if (classes) expect_classes(y, scores);
  const TruncatedProblem<Rows> problem{x,
                                       columns,
                                       y.data(),
                                       each_row(weight, x.rows),
                                       weight_sum,
                                       code,
                                       scores,
                                       l2,
                                       shift.data(),
                                       intercept,
                                       spread,
                                       enough,
                                       most_steps,
                                       most_products};
  Stop stop(seconds_left, flag.data());
  NewtonSteps steps(report);
  NewtonEnd end{};
  {
    nb::gil_scoped_release release;
    end = truncated_newton(problem, theta.data(), step.data(), std::ref(steps), stop);
  }
  return nb::make_tuple(static_cast<int>(end), steps.heard());
}

template <class T>
void bind_dense(nb::module_& m) {
  m.def(
      "loss_sweep",
      [](const Matrix<T>& X, const Vector& y, const std::optional<Vector>& weight, int loss, const Vector& w,
         double b, OptionalOut score, OptionalOut curvature, OutVector slope, double seconds_left,
         const Flag& flag) {
        const Table<T> x = table(X);
        return run_loss_sweep(x, x.columns, y, weight, loss, w, b, score, curvature, slope, seconds_left,
                              flag);
      },
      nb::arg("X").noconvert(), nb::arg("y"), nb::arg("weight").none(), nb::arg("loss"), nb::arg("w"),
      nb::arg("b"), nb::arg("score").noconvert().none(), nb::arg("curvature").noconvert().none(),
      nb::arg("slope").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "curvature_sweep",
      [](const Matrix<T>& X, const Vector& curvature, const Vector& v, double c, OutVector product,
         double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        return run_curvature_sweep(x, x.columns, curvature, v, c, product, seconds_left, flag);
      },
      nb::arg("X").noconvert(), nb::arg("curvature"), nb::arg("v"), nb::arg("c"),
      nb::arg("product").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "column_squares",
      [](const Matrix<T>& X, const std::optional<Vector>& weight, const Vector& shift, OutVector squares,
         double seconds_left, const Flag& flag) {
        expect(shift.shape(0) == X.shape(1), "shift must have one entry a column");
        return run_column_squares(table(X), weight, shift, squares, seconds_left, flag);
      },
      nb::arg("X").noconvert(), nb::arg("weight").none(), nb::arg("shift"), nb::arg("squares").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "softmax_sweep",
      [](const Matrix<T>& X, const Vector& y, const std::optional<Vector>& weight, const InMatrix& w,
         const Vector& b, OutMatrix slope, double seconds_left, const Flag& flag,
         const std::optional<Vector>& kept, const std::optional<Vector>& share) {
        const Table<T> x = table(X);
        return run_softmax_sweep(x, x.columns, y, weight, w, b, slope, seconds_left, flag, kept, share);
      },
      nb::arg("X").noconvert(), nb::arg("y"), nb::arg("weight").none(), nb::arg("w"), nb::arg("b"),
      nb::arg("slope").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert(),
      nb::arg("kept") = nb::none(), nb::arg("share") = nb::none());
  m.def(
      "truncated_newton",
      [](const Matrix<T>& X, const Vector& y, const std::optional<Vector>& weight, double weight_sum,
         int loss, double l2, const Vector& shift, bool intercept, double spread, double enough,
         Index most_steps, Index most_products, OutMatrix theta, OutMatrix step,
         const std::optional<nb::callable>& report, double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        return run_truncated_newton(x, x.columns, y, weight, weight_sum, loss, l2, shift, intercept, spread,
                                    enough, most_steps, most_products, theta, step, report, seconds_left,
                                    flag);
      },
      nb::arg("X").noconvert(), nb::arg("y"), nb::arg("weight").none(), nb::arg("weight_sum"),
      nb::arg("loss"), nb::arg("l2"), nb::arg("shift"), nb::arg("intercept"), nb::arg("spread"),
      nb::arg("enough"), nb::arg("most_steps"), nb::arg("most_products"), nb::arg("theta").noconvert(),
      nb::arg("step").noconvert(), nb::arg("report").none(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "newton_sweep",
      [](const Matrix<T>& X, const Vector& y, const std::optional<Vector>& weight, int loss,
         const Vector& theta, const Vector& shift, OptionalOut score, OutVector slope, OutMatrix gram,
         double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        const LossCode code = smooth_loss(loss);
        const std::size_t width = X.shape(1) + 1;
        expect(theta.shape(0) == width && shift.shape(0) == width - 1,
               "theta and shift must fit the columns");
        expect(slope.shape(0) == width && gram.shape(0) == width && gram.shape(1) == width,
               "slope and gram must have columns + 1 entries a side");
        OptionalOut nothing;
        const RowTerms rows = row_terms(y, weight, score, nothing, x.rows);
        double value = 0.0;
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = newton_sweep(x, code, theta.data(), shift.data(), rows, &value, slope.data(),
                                  gram.data(), stop);
        }
        return nb::make_tuple(finished, value);
      },
      nb::arg("X").noconvert(), nb::arg("y"), nb::arg("weight").none(), nb::arg("loss"), nb::arg("theta"),
      nb::arg("shift"), nb::arg("score").noconvert().none(), nb::arg("slope").noconvert(),
      nb::arg("gram").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "slope_sums",
      [](const Matrix<T>& X, const Vector& y, const std::optional<Vector>& weight, double weight_sum,
         int loss, const Vector& w, double b, const Vector& shift, OutVector slope, OutVector lengths,
         OutVector sums, double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        const LossCode code = smooth_loss(loss);
        const std::size_t d = X.shape(1);
        expect(w.shape(0) == d && shift.shape(0) == d && slope.shape(0) == d && lengths.shape(0) == d,
               "w, shift, slope and lengths must fit the columns");
        expect(y.shape(0) == X.shape(0) && sums.shape(0) == kSums,
               "y must have one entry a row, and sums 8 entries");
        Index depth = 0;
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = slope_sums(x, y.data(), each_row(weight, x.rows), weight_sum, code, w.data(), b,
                                shift.data(), slope.data(), lengths.data(), sums.data(), &depth, stop);
        }
        return nb::make_tuple(finished, depth);
      },
      nb::arg("X").noconvert(), nb::arg("y"), nb::arg("weight").none(), nb::arg("weight_sum"),
      nb::arg("loss"), nb::arg("w"), nb::arg("b"), nb::arg("shift"), nb::arg("slope").noconvert(),
      nb::arg("lengths").noconvert(), nb::arg("sums").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
}

template <class T>
void bind_newton_fit(nb::module_& m) {
  m.def(
      "newton_fit",
      [](const Matrix<T>& X, const Matrix<T>& y, const std::optional<Vector>& weight, double weight_sum,
         int loss, double l2, bool intercept, double enough, double scale, Index most_steps, OutMatrix w,
         OutVector b, OutVector means, OutMatrix slope, OutVector lengths, OutVector reach, OutMatrix sums,
         std::optional<OutCube> curvature, bool started, const std::optional<nb::callable>& report,
         double seconds_left, const Flag& flag) {
        const LossCode code = static_cast<LossCode>(loss);
        const Table<T> x = table(X), targets = table(y);
        const bool classes = code == LossCode::softmax;
        const std::size_t d = X.shape(1), scores = b.shape(0);
        expect(code == LossCode::logistic || code == LossCode::squared_hinge || classes,
               "the loss must be logistic, squared hinge or softmax");
        expect(x.rows >= 1 && scores >= 1 && (l2 > 0.0 || (l2 == 0.0 && code == LossCode::logistic)),
               "rows and scores are needed, and a penalty but for the logistic loss");
        expect(targets.rows == x.rows && targets.columns == (classes ? 1 : static_cast<Index>(scores)),
               "y must have one entry a row and target");
        expect(w.shape(0) == d && w.shape(1) == scores && slope.shape(0) == d && slope.shape(1) == scores &&
                   means.shape(0) == d && lengths.shape(0) == d && reach.shape(0) == d,
               "w, slope, means, lengths and reach must fit the columns");
        expect(sums.shape(0) == scores && sums.shape(1) == kSums, "sums must have 8 entries a score");
        const std::size_t width = d + (intercept ? 1 : 0);
        expect(!curvature || (!classes && curvature->shape(0) == scores && curvature->shape(1) == width &&
                              curvature->shape(2) == width),
               "curvature must have a matrix a score");
        bool known = true;
        for (Index i = 0; classes && i < x.rows; ++i) {
          const T label = targets.row(i)[0];
          known &= label >= T{0} && label < static_cast<T>(scores);
        }
        expect(known, "y must hold class indices");
        const NewtonProblem<T> problem{x,          targets,    each_row(weight, x.rows),
                                       weight_sum, code,       static_cast<Index>(scores),
                                       l2,         intercept,  enough,
                                       scale,      most_steps, started};
        const NewtonModel model{
            w.data(),       b.data(),     means.data(), slope.data(),
            lengths.data(), reach.data(), sums.data(),  curvature ? curvature->data() : nullptr};
        Stop stop(seconds_left, flag.data());
        NewtonSteps steps(report);
        NewtonOutcome outcome;
        {
          nb::gil_scoped_release release;
          outcome = newton_fit(problem, model, std::ref(steps), stop);
        }
        return nb::make_tuple(static_cast<int>(outcome.end), steps.heard(), outcome.depth, outcome.wrong,
                              outcome.log_chance, outcome.largest, outcome.move);
      },
      nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").none(), nb::arg("weight_sum"),
      nb::arg("loss"), nb::arg("l2"), nb::arg("intercept"), nb::arg("enough"), nb::arg("scale"),
      nb::arg("most_steps"), nb::arg("w").noconvert(), nb::arg("b").noconvert(), nb::arg("means").noconvert(),
      nb::arg("slope").noconvert(), nb::arg("lengths").noconvert(), nb::arg("reach").noconvert(),
      nb::arg("sums").noconvert(), nb::arg("curvature").none(), nb::arg("started"), nb::arg("report").none(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
  m.def(
      "loss_sweep",
      [](const Values<T>& values, const Values<I>& columns, const Values<I>& starts, const Vector& y,
         const std::optional<Vector>& weight, int loss, const Vector& w, double b, OptionalOut score,
         OptionalOut curvature, OutVector slope, double seconds_left, const Flag& flag) {
        const Index width = static_cast<Index>(w.shape(0));
        return run_loss_sweep(sparse_table(values, columns, starts, width), width, y, weight, loss, w, b,
                              score, curvature, slope, seconds_left, flag);
      },
      nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(),
      nb::arg("y"), nb::arg("weight").none(), nb::arg("loss"), nb::arg("w"), nb::arg("b"),
      nb::arg("score").noconvert().none(), nb::arg("curvature").noconvert().none(),
      nb::arg("slope").noconvert(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "curvature_sweep",
      [](const Values<T>& values, const Values<I>& columns, const Values<I>& starts, const Vector& curvature,
         const Vector& v, double c, OutVector product, double seconds_left, const Flag& flag) {
        const Index width = static_cast<Index>(v.shape(0));
        return run_curvature_sweep(sparse_table(values, columns, starts, width), width, curvature, v, c,
                                   product, seconds_left, flag);
      },
      nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(),
      nb::arg("curvature"), nb::arg("v"), nb::arg("c"), nb::arg("product").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "column_squares",
      [](const Values<T>& values, const Values<I>& columns, const Values<I>& starts,
         const std::optional<Vector>& weight, const Vector& shift, OutVector squares, double seconds_left,
         const Flag& flag) {
        const Index width = static_cast<Index>(shift.shape(0));
        return run_column_squares(sparse_table(values, columns, starts, width), weight, shift, squares,
                                  seconds_left, flag);
      },
      nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(),
      nb::arg("weight").none(), nb::arg("shift"), nb::arg("squares").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "softmax_sweep",
      [](const Values<T>& values, const Values<I>& columns, const Values<I>& starts, const Vector& y,
         const std::optional<Vector>& weight, const InMatrix& w, const Vector& b, OutMatrix slope,
         double seconds_left, const Flag& flag, const std::optional<Vector>& kept,
         const std::optional<Vector>& share) {
        const Index width = static_cast<Index>(w.shape(0));
        return run_softmax_sweep(sparse_table(values, columns, starts, width), width, y, weight, w, b, slope,
                                 seconds_left, flag, kept, share);
      },
      nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(),
      nb::arg("y"), nb::arg("weight").none(), nb::arg("w"), nb::arg("b"), nb::arg("slope").noconvert(),
      nb::arg("seconds_left"), nb::arg("flag").noconvert(), nb::arg("kept") = nb::none(),
      nb::arg("share") = nb::none());
  m.def(
      "truncated_newton",
      [](const Values<T>& values, const Values<I>& columns, const Values<I>& starts, const Vector& y,
         const std::optional<Vector>& weight, double weight_sum, int loss, double l2, const Vector& shift,
         bool intercept, double spread, double enough, Index most_steps, Index most_products, OutMatrix theta,
         OutMatrix step, const std::optional<nb::callable>& report, double seconds_left, const Flag& flag) {
        const auto width = static_cast<Index>(shift.shape(0));
        return run_truncated_newton(sparse_table(values, columns, starts, width), width, y, weight,
                                    weight_sum, loss, l2, shift, intercept, spread, enough, most_steps,
                                    most_products, theta, step, report, seconds_left, flag);
      },
      nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(),
      nb::arg("y"), nb::arg("weight").none(), nb::arg("weight_sum"), nb::arg("loss"), nb::arg("l2"),
      nb::arg("shift"), nb::arg("intercept"), nb::arg("spread"), nb::arg("enough"), nb::arg("most_steps"),
      nb::arg("most_products"), nb::arg("theta").noconvert(), nb::arg("step").noconvert(),
      nb::arg("report").none(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  m.def(
      "csr_is_sound",
      [](const Values<I>& columns, const Values<I>& starts, Index width, const Values<T>& values) {
        if (starts.shape(0) < 1 || values.shape(0) != columns.shape(0)) return false;
        const std::size_t n = starts.shape(0) - 1;
        bool sound = starts.data()[0] >= 0 && static_cast<std::size_t>(starts.data()[n]) <= columns.shape(0);
        for (std::size_t i = 0; i < n; ++i) sound &= starts.data()[i] <= starts.data()[i + 1];
        for (std::size_t at = 0; at < columns.shape(0); ++at)
          sound &= columns.data()[at] >= 0 && static_cast<Index>(columns.data()[at]) < width;
        return sound;
      },
      nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), nb::arg("width"),
      nb::arg("values").noconvert());
}

}  // namespace

void bind_smooth(nb::module_& m) {
  bind_dense<double>(m);
  bind_dense<float>(m);
  bind_newton_fit<double>(m);
  bind_newton_fit<float>(m);
  bind_sparse<double, std::int32_t>(m);
  bind_sparse<float, std::int32_t>(m);
  bind_sparse<double, Index>(m);
  bind_sparse<float, Index>(m);
  m.def(
      "losses_along",
      [](int loss, const Vector& from, const Vector& to, double step, const Vector& y,
         const std::optional<Vector>& weight) {
        const LossCode code = smooth_loss(loss);
        const Index rows = static_cast<Index>(from.shape(0));
        expect(to.shape(0) == from.shape(0) && y.shape(0) == from.shape(0), "rows must fit");
        const double* row_weight = each_row(weight, rows);
        double value = 0.0, slope = 0.0;
        {
          nb::gil_scoped_release release;
          losses_along(code, from.data(), to.data(), step, y.data(), row_weight, rows, &value, &slope);
        }
        return nb::make_tuple(value, slope);
      },
      nb::arg("loss"), nb::arg("start"), nb::arg("end"), nb::arg("step"), nb::arg("y"),
      nb::arg("weight").none());
}

}  // namespace sixfold
