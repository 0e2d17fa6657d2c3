// Bindings of the loops behind gradient steps.
#include "bindings/bindings.hpp"
#include "linear/first_order/empirical_loss.hpp"
#include "linear/first_order/row_shuffle.hpp"
#include "linear/first_order/stochastic_gradient.hpp"

namespace sixfold {
namespace {

using EpochNumbers = nb::ndarray<Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ShuffleState = nb::ndarray<std::uint64_t, nb::shape<1>, nb::c_contig, nb::device::cpu>;
using Orders = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

bool all_within(const Index* values, std::size_t count, Index end) {
  bool within = true;
  for (std::size_t at = 0; at < count; ++at) within &= values[at] >= 0 && values[at] < end;
  return within;
}

LossCode loss_code(int loss) {
  expect(loss >= 0 && loss <= static_cast<int>(LossCode::perceptron_zero_is_negative), "no such loss");
  return static_cast<LossCode>(loss);
}

void expect_targets(const InMatrix& y, Index rows, LossCode loss, std::size_t scores) {
  expect(static_cast<Index>(y.shape(0)) == rows, "y must have one row a row of X");
  expect(scores >= 1 && y.shape(1) == (loss == LossCode::softmax ? 1 : scores),
         "y must have one column a score, for softmax one in all");
  if (loss != LossCode::softmax) return;
  for (Index i = 0; i < rows; ++i)
    expect(y.data()[i] >= 0.0 && y.data()[i] < static_cast<double>(scores), "y must hold class indices");
}

DescentRule descent_rule(int loss, int schedule, double eta0, double rate, double l1, double l2,
                         bool positive, bool fit_intercept, Index batch_size, Index average_from) {
  expect(schedule >= 0 && schedule <= static_cast<int>(Schedule::invscaling), "no such schedule");
  expect(batch_size >= 1, "batch_size must be at least 1");
  return {loss_code(loss),
          static_cast<Schedule>(schedule),
          eta0,
          rate,
          l1,
          l2,
          positive,
          fit_intercept,
          batch_size,
          average_from};
}

// Of so many row numbers in all, the visits of the first pass.
RowOrder row_order(const Index* order, std::size_t numbers, std::size_t visits, const InMatrix& y,
                   const std::optional<Vector>& weight, Index rows, const DescentRule& rule, Index scores) {
  expect_targets(y, rows, rule.loss, static_cast<std::size_t>(scores));
  expect(all_within(order, numbers, rows), "order must hold row numbers");
  return {order, static_cast<Index>(visits), y.data(), static_cast<Index>(y.shape(1)),
          each_row(weight, rows)};
}

// w, b and their averages (empty where nothing is averaged) for `columns` columns, whichever way w lies.
Model model(OutMatrix& w, OutVector& b, OutMatrix& mean_w, OutVector& mean_b, Index* mistakes,
            std::size_t counts, Index updates, const DescentRule& rule, std::size_t columns,
            bool score_major) {
  const std::size_t scores = b.shape(0);
  expect(scores >= 1, "there must be a score");
  const auto fits = [&](const OutMatrix& m) {
    return m.shape(score_major ? 0 : 1) == scores && m.shape(score_major ? 1 : 0) == columns;
  };
  expect(fits(w), "w must have one entry a score and column");
  expect(rule.average_from < 0 || (fits(mean_w) && mean_b.shape(0) == scores), "averages must match w and b");
  expect(counts == scores, "mistakes must have one entry a score");
  return {w.data(), b.data(), mean_w.data(), mean_b.data(), mistakes, static_cast<Index>(scores), updates};
}

template <class T>
void bind_descend_dense(nb::module_& m) {
  m.def(
      "descend_dense",
      [](const Matrix<T>& X, const InMatrix& y, const std::optional<Vector>& weight, const Orders& orders,
         const std::optional<Vector>& center, const std::optional<Vector>& factor,
         const std::optional<InMatrix>& reference_w, const std::optional<Vector>& reference_b, OutMatrix w,
         OutVector b, OutMatrix mean_w, OutVector mean_b, EpochNumbers mistakes, Index enough, Index updates,
         int loss, int schedule, double eta0, double rate, double l1, double l2, bool positive,
         bool fit_intercept, Index batch_size, Index average_from, double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        const DescentRule rule = descent_rule(loss, schedule, eta0, rate, l1, l2, positive, fit_intercept,
                                              batch_size, average_from);
        expect(mistakes.shape(0) == orders.shape(0), "there must be an order and a count an epoch");
        Model state =
            model(w, b, mean_w, mean_b, mistakes.data(), mistakes.shape(1), updates, rule, X.shape(1), true);
        const RowOrder rows =
            row_order(orders.data(), orders.size(), orders.shape(1), y, weight, x.rows, rule, state.scores);
        Epochs epochs{static_cast<Index>(orders.shape(0)), enough, 0};
        expect(center.has_value() == factor.has_value(), "center and factor go together");
        expect(!center || (center->shape(0) == X.shape(1) && factor->shape(0) == X.shape(1)),
               "center and factor must have one entry a column");
        const double* middle = center ? center->data() : nullptr;
        const double* step = factor ? factor->data() : nullptr;
        expect(reference_w.has_value() == reference_b.has_value(), "reference_w and reference_b go together");
        expect(!reference_w || (reference_w->shape(0) == b.shape(0) && reference_w->shape(1) == X.shape(1) &&
                                reference_b->shape(0) == b.shape(0)),
               "the reference model must have the shape of w and b");
        expect(!reference_w || x.column_stride == 1 || x.columns == 1,
               "with a reference model, the columns of X must be next to each other");
        expect(!reference_w || epochs.count == 1, "a reference model is for one epoch");
        ReferenceModel reference{reference_w ? reference_w->data() : nullptr,
                                 reference_b ? reference_b->data() : nullptr, 0.0};
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = descend_dense(x, rows, middle, step, rule, state, epochs, reference, stop);
        }
        return nb::make_tuple(finished, epochs.made, state.updates, reference.loss);
      },
      nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").none(),
      nb::arg("orders").noconvert(), nb::arg("center").none(), nb::arg("factor").none(),
      nb::arg("reference_w").none(), nb::arg("reference_b").none(), nb::arg("w").noconvert(),
      nb::arg("b").noconvert(), nb::arg("mean_w").noconvert(), nb::arg("mean_b").noconvert(),
      nb::arg("mistakes").noconvert(), nb::arg("enough"), nb::arg("updates"), nb::arg("loss"),
      nb::arg("schedule"), nb::arg("eta0"), nb::arg("rate"), nb::arg("l1"), nb::arg("l2"),
      nb::arg("positive"), nb::arg("fit_intercept"), nb::arg("batch_size"), nb::arg("average_from"),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

template <class T, class I>
void bind_descend_sparse(nb::module_& m) {
  using Values = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Places = nb::ndarray<const I, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "descend_sparse",
      [](const Values& values, const Places& columns, const Places& starts, const InMatrix& y,
         const std::optional<Vector>& weight, const Orders& orders, OutMatrix w, OutVector b,
         OutMatrix mean_w, OutVector mean_b, EpochNumbers mistakes, Index enough, Index updates, int loss,
         int schedule, double eta0, double rate, double l1, double l2, bool positive, bool fit_intercept,
         Index batch_size, Index average_from, double seconds_left, const Flag& flag) {
        expect(starts.shape(0) >= 1, "starts must have one entry more than there are rows");
        const Index n = static_cast<Index>(starts.shape(0)) - 1, d = static_cast<Index>(w.shape(0));
        expect(starts.data()[0] >= 0 && static_cast<std::size_t>(starts.data()[n]) <= values.shape(0) &&
                   values.shape(0) == columns.shape(0),
               "values, columns and starts must fit");
        bool inside = true;
        for (Index i = 0; i < n; ++i) inside &= starts.data()[i] <= starts.data()[i + 1];
        for (std::size_t at = 0; at < columns.shape(0); ++at)
          inside &= columns.data()[at] >= 0 && static_cast<Index>(columns.data()[at]) < d;
        expect(inside, "columns must hold column numbers, starts must not fall");
        const DescentRule rule = descent_rule(loss, schedule, eta0, rate, l1, l2, positive, fit_intercept,
                                              batch_size, average_from);
        Model state =
            model(w, b, mean_w, mean_b, mistakes.data(), mistakes.shape(1), updates, rule, w.shape(0), false);
        const RowOrder rows =
            row_order(orders.data(), orders.size(), orders.shape(1), y, weight, n, rule, state.scores);
        expect(mistakes.shape(0) == orders.shape(0), "there must be an order and a count an epoch");
        Epochs epochs{static_cast<Index>(orders.shape(0)), enough, 0};
        const SparseTable<T, I> x{values.data(), columns.data(), starts.data(), n, d};
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = descend_sparse(x, rows, rule, state, epochs, stop);
        }
        return nb::make_tuple(finished, epochs.made, state.updates);
      },
      nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(),
      nb::arg("y").noconvert(), nb::arg("weight").none(), nb::arg("orders").noconvert(),
      nb::arg("w").noconvert(), nb::arg("b").noconvert(), nb::arg("mean_w").noconvert(),
      nb::arg("mean_b").noconvert(), nb::arg("mistakes").noconvert(), nb::arg("enough"), nb::arg("updates"),
      nb::arg("loss"), nb::arg("schedule"), nb::arg("eta0"), nb::arg("rate"), nb::arg("l1"), nb::arg("l2"),
      nb::arg("positive"), nb::arg("fit_intercept"), nb::arg("batch_size"), nb::arg("average_from"),
      nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

template <class T>
void bind_empirical_loss(nb::module_& m) {
  m.def(
      "empirical_loss",
      [](const Matrix<T>& X, const InMatrix& y, const std::optional<Vector>& weight, int loss,
         const OutMatrix& w, const OutVector& b, double seconds_left, const Flag& flag) {
        const Table<T> x = table(X);
        const LossCode code = loss_code(loss);
        expect(x.column_stride == 1 || x.columns == 1, "the columns of X must be next to each other");
        expect(w.shape(0) == b.shape(0) && w.shape(1) == X.shape(1),
               "w must have one entry a score and column");
        expect_targets(y, x.rows, code, b.shape(0));
        const double* row_weight = each_row(weight, x.rows);
        double total = 0.0;
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = empirical_loss(x, y.data(), static_cast<Index>(y.shape(1)), row_weight, code, w.data(),
                                    b.data(), static_cast<Index>(b.shape(0)), &total, stop);
        }
        return nb::make_tuple(finished, total);
      },
      nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").none(), nb::arg("loss"),
      nb::arg("w"), nb::arg("b"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_gradients(nb::module_& m) {
  m.def(
      "shuffle_rows",
      [](ShuffleState state, EpochNumbers orders) {
        const Index passes = static_cast<Index>(orders.shape(0)), rows = static_cast<Index>(orders.shape(1));
        std::uint64_t& counter = *state.data();
        Index* numbers = orders.data();
        nb::gil_scoped_release release;
        shuffle_rows(counter, passes, rows, numbers);
      },
      nb::arg("state").noconvert(), nb::arg("orders").noconvert());
  bind_empirical_loss<double>(m);
  bind_empirical_loss<float>(m);
  bind_descend_dense<double>(m);
  bind_descend_dense<float>(m);
  bind_descend_sparse<double, std::int32_t>(m);
  bind_descend_sparse<float, std::int32_t>(m);
  bind_descend_sparse<double, Index>(m);
  bind_descend_sparse<float, Index>(m);
}

}  // namespace sixfold
