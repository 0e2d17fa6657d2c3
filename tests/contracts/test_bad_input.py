"""What cannot be used is refused with a sentence that names the column, row or parameter and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning

from contracts.certified import answers
from contracts.refusals import (
    LABELS,
    NAMES,
    X,
    Y,
    changed,
    every_learner,
    every_learner_of_known_numbers,
    every_linear_regressor,
    every_predictor,
    every_regressor,
    refuses,
    target,
)
from sixfold import ERMClassifier, ERMRegressor, LinearRegression
from sixfold.errors import RankWarning
from sixfold.solvers.base import missing_methods
from sixfold.solvers.registry import all_solvers


def learner_for(solver):
    """Return the first learner with a problem that this solver minimises."""
    learners = (
        LinearRegression(),
        LinearRegression(penalty="l1"),
        ERMRegressor("absolute"),
        ERMClassifier("logistic"),
        ERMClassifier("hinge"),
        ERMClassifier("softmax"),
    )
    for learner in learners:
        problem = learner._problem(1.0)
        if missing_methods(solver, problem) is None and solver.objection(problem) is None:
            return learner.set_params(solver=solver.name)
    raise AssertionError(f"{solver.name} minimises nothing")


every_solver = pytest.mark.parametrize("solver", all_solvers(), ids=lambda solver: solver.name)


def pandas(values):
    return pd.DataFrame(values, columns=NAMES)


def polars(values):
    return pl.DataFrame(values, schema=NAMES)


def lazy(values):
    return polars(values).lazy()


def arrow(values):
    return pa.table(dict(zip(NAMES, np.asarray(values).T, strict=True)))


TABLES = (pandas, polars, lazy, arrow)


# -- shapes -----------------------------------------------------------------------------------------------


@every_learner
@pytest.mark.parametrize(
    ("table", "rows", "sentence"),
    [
        (X[:0], 0, "Found array with 0 sample(s) (shape=(0, 3))"),
        (X[:0], 0, "The table is empty: pass at least one row."),
        (X[:, :0], 10, "The table has no columns: pass at least one."),
        (X[:, 0], 10, "X has shape (10,). Reshape your data: X.reshape(-1, 1) if it is one column"),
        (X[:, :, None], 10, "Found array with dim 3"),
        ([[1.0, 2.0], [3.0]], 2, "The rows are not all of one length"),
        (3.0, 10, "X is 3.0, of type float. Pass a table: rows of numbers."),
        (None, 10, "X is None, of type NoneType. Pass a table: rows of numbers."),
        ({"a": [1.0]}, 10, "X is {'a': [1.0]}, of type dict. Pass a table: rows of numbers."),
        (X + 1j, 10, "Complex data not supported: X holds complex numbers. Pass real ones."),
    ],
)
def test_what_is_no_table_is_refused(learner, table, rows, sentence):
    with refuses(sentence):
        learner.make().fit(table, target(learner)[:rows])


@every_predictor
def test_another_number_of_targets_is_refused(learner):
    with refuses("X has 10 rows, y has 5. Pass one target a row."):
        learner.make().fit(X, target(learner)[:5])


@every_predictor
def test_nothing_to_learn_is_refused(learner):
    with refuses("requires y to be passed, but the target y is None. Pass the values to learn."):
        learner.make().fit(X, None)


@every_regressor
@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        (Y[:, None, None], "y has shape (10, 1, 1). Pass one value a row"),
        (1.0, "y has shape (). Pass one value a row"),
        (sp.csr_array(Y[:, None]), "y is sparse, but targets are kept dense. Pass y.toarray()."),
        (Y + 1j, "Complex data not supported: y holds complex numbers. Pass real ones."),
    ],
    ids=["three axes", "one number", "sparse", "complex"],
)
def test_what_is_no_column_of_numbers_is_refused(learner, numbers, sentence):
    with refuses(sentence):
        learner.make().fit(X, numbers)


def test_several_targets_are_refused_where_one_is_predicted():
    with refuses("y has 2 columns, but ERMRegressor predicts one. Fit one model for each column."):
        ERMRegressor().fit(X, np.column_stack([Y, Y]))


def test_a_target_with_a_second_axis_is_used_with_a_warning_that_points_here():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        model = ERMRegressor().fit(X, Y[:, None])
    assert caught[0].filename == __file__
    assert model.coef_.shape == (3,)


@every_linear_regressor
@pytest.mark.parametrize("weight", [None, [0.0, 3.0]])
def test_one_row_that_counts_is_repeated_and_said_so(learner, weight):
    rows = slice(0, 1) if weight is None else slice(0, 2)
    with pytest.warns(RankWarning, match="Only one row counts, so nothing can be learnt") as caught:
        model = learner.make().fit(X[rows], Y[rows], weight)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(model.predict(X[3:5]), Y[rows][-1], rtol=1e-12)
    assert len(caught) == 1


# -- values that cannot be computed with -----------------------------------------------------------------


@every_learner_of_known_numbers
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix, *TABLES])
def test_the_first_value_that_is_not_finite_is_named(learner, kind, value, word):
    table = kind(changed(changed(X, (7, 2), value), (4, 1), value))
    column = "height" if kind in TABLES else "x1"
    sentence = f"2 such values, the first in row 4 of column '{column}' (number 1), counted from 0."
    with refuses(sentence) as caught:
        learner.make().fit(table, target(learner))
    assert str(caught.value).startswith(f"Input X contains {word}")


@every_solver
def test_no_solver_overlooks_a_value_that_is_not_finite(solver):
    learner = learner_for(solver)
    with refuses("in row 4 of column 'x1'"):
        learner.fit(changed(X, (4, 1), np.nan), LABELS if is_classifier(learner) else Y)
    if not is_classifier(learner):
        with refuses("in row 3"):
            learner.fit(X, changed(Y, 3, np.inf))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, 4.0]}),
        pd.DataFrame({"a": pd.array([True, None, False], dtype="boolean"), "b": [1.0, 2.0, 4.0]}),
        pl.DataFrame({"a": [1, None, 3], "b": [1.0, 2.0, 4.0]}),
        pl.DataFrame({"a": [True, None, False], "b": [1.0, 2.0, 4.0]}),
        pa.table({"a": [1, None, 3], "b": [1.0, 2.0, 4.0]}),
    ],
    ids=["pandas integers", "pandas booleans", "polars integers", "polars booleans", "arrow integers"],
)
def test_a_gap_in_a_column_is_named(table):
    with refuses("Input X contains NaN: in row 1 of column 'a' (number 0), counted from 0."):
        LinearRegression().fit(table, [1.0, 2.0, 3.0])


def test_masked_entries_are_missing():
    with refuses("Input X contains NaN: in row 4 of column 'x1'"):
        LinearRegression().fit(np.ma.masked_array(X, np.arange(30).reshape(10, 3) == 13), Y)


@every_regressor
def test_a_value_of_y_that_is_not_finite_is_named(learner):
    with refuses("Input y contains NaN: in row 3, counted from 0."):
        learner.make().fit(X, changed(Y, 3, np.nan))


@every_learner_of_known_numbers
def test_rows_to_predict_for_are_looked_at_too(learner):
    model = learner.make().fit(pandas(X), target(learner))
    with refuses("Input X contains NaN: in row 2 of column 'weight' (number 2), counted from 0."):
        answers(model, pandas(changed(X, (2, 2), np.nan)))


def text_table():
    return pd.DataFrame({"age": X[:, 0], "town": ["Bonn"] * 10})


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (text_table(), "town"),
        (text_table().astype({"town": "category"}), "town"),
        (pl.from_pandas(text_table()), "town"),
        (pl.from_pandas(text_table()).lazy(), "town"),
        (pa.Table.from_pandas(text_table()), "town"),
        (text_table().to_numpy(dtype=object), "x1"),
        (text_table().to_numpy().astype(str), "x1"),
        (text_table().to_numpy().tolist(), "x1"),
    ],
    ids=["pandas", "category", "polars", "lazy", "arrow", "objects", "strings", "lists"],
)
@every_learner_of_known_numbers
def test_a_text_column_is_named(learner, table, column):
    with refuses(f"column '{column}' (number 1, counted from 0) holds 'Bonn' in row 0. Turn categories into"):
        learner.make().fit(table, target(learner))


@pytest.mark.parametrize("kind", [lambda table: table, pl.from_pandas, pa.Table.from_pandas])
def test_a_column_of_dates_is_named(kind):
    table = kind(pd.DataFrame({"age": X[:, 0], "day": pd.date_range("2024-02-28", periods=10)}))
    with refuses("column 'day' (number 1, counted from 0) holds 2024-02-28"):
        LinearRegression().fit(table, Y)


def test_an_array_of_dates_is_refused():
    with refuses("column 'x0' (number 0, counted from 0) holds 2024-02-28"):
        LinearRegression().fit(np.array([["2024-02-28"], ["2024-02-29"]], dtype="datetime64[D]"), [1.0, 2.0])


def test_text_for_a_target_is_refused():
    with refuses("y must hold numbers, but row 2, counted from 0, is 'n/a'. Turn it into numbers first."):
        LinearRegression().fit(X, changed(Y.astype(object), 2, "n/a"))


@pytest.mark.parametrize("factors", [(1e200, 1.0), (1.0, 1e200)], ids=["X", "y"])
@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array])
@every_solver
def test_values_whose_squares_overflow_are_refused(solver, kind, factors):
    learner = learner_for(solver)
    y = LABELS if is_classifier(learner) else factors[1] * Y
    with refuses("squares, or whatever is computed from them, overflow. Divide the columns"):
        learner.fit(kind(max(factors) * X if is_classifier(learner) else factors[0] * X), y)


def test_values_that_overflow_are_refused_wide_cubed_and_in_batches_too():
    sentence = "so large that their squares, or whatever is computed from them, overflow"
    with refuses(sentence):
        LinearRegression().fit(1e200 * X.T, Y[:3])
    with refuses(sentence):
        ERMRegressor("cubed").fit(X, 1e150 * Y)
    model = LinearRegression().partial_fit(X, Y)
    with refuses(sentence):
        model.partial_fit(X, 1e200 * Y)
    np.testing.assert_allclose(model.partial_fit(X, Y).coef_, LinearRegression().fit(X, Y).coef_, rtol=1e-9)


# -- columns that are not those of the fit -----------------------------------------------------------------


@every_learner
def test_another_number_of_columns_is_refused(learner):
    model = learner.make().fit(X, target(learner))
    name = learner.name
    with refuses(
        f"X has 2 features, but {name} is expecting 3 features as input. Pass the columns of the fit"
    ):
        answers(model, X[:, :2])
    with refuses("X has 2 features"):
        model.certificate_.verify(X[:, :2], target(learner))


@pytest.mark.parametrize("kind", TABLES)
@every_learner
def test_other_names_are_refused(learner, kind):
    model = learner.make().fit(kind(X), target(learner))
    renamed = pd.DataFrame(X, columns=["age", "height", "mass"])
    reordered = pd.DataFrame(X, columns=["height", "age", "weight"])
    for table, sentence in [
        (
            renamed,
            "unseen at fit time:\n- mass\nFeature names seen at fit time, yet now missing:\n- weight",
        ),
        (reordered, "Feature names must be in the same order as they were in fit."),
        (renamed[["age", "height"]], "yet now missing:\n- weight"),
    ]:
        other = {pandas: lambda t: t, polars: pl.from_pandas, arrow: pa.Table.from_pandas}.get(
            kind, lambda t: pl.from_pandas(t).lazy()
        )(table)
        with refuses(sentence) as caught:
            answers(model, other)
        assert str(caught.value).endswith("Pass the columns of the fit, in that order.")


def test_two_columns_of_one_name_are_refused():
    with refuses("Give every column a name of its own."):
        LinearRegression().fit(pd.DataFrame(X, columns=["age", "age", "weight"]), Y)


# -- weights ---------------------------------------------------------------------------------------------


@every_predictor
@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (
            changed(np.ones(10), 6, -2.0),
            "the first is -2 at row 6. Weights say how much a row counts, so they",
        ),
        (np.zeros(10), "Every entry of sample_weight is zero, so no row counts."),
        (np.ones(5), "There are 5 weights for 10 rows. Pass one weight a row."),
        (changed(np.ones(10), 2, np.nan), "Input sample_weight contains NaN: in row 2, counted from 0."),
        (changed(np.ones(10), 2, np.inf), "Input sample_weight contains infinity"),
        (np.ones((10, 2)), "Sample weights must be 1D array or scalar, got 2 dimensions."),
        (["much"] * 10, "sample_weight must hold numbers, but row 0, counted from 0, is 'much'."),
        (np.ones(10) + 1j, "Complex data not supported: sample_weight holds complex numbers."),
    ],
    ids=["negative", "zero", "short", "nan", "inf", "two axes", "text", "complex"],
)
def test_weights_that_make_no_sense_are_refused(learner, weight, sentence):
    with refuses(sentence):
        learner.make().fit(X, target(learner), sample_weight=weight)
