"""What cannot be used is refused with a sentence that names the column, row or parameter and what to do."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError

from sixfold import ERMClassifier, ERMRegressor, LinearRegression
from sixfold.errors import IncompatibleError, InputError, RankWarning
from sixfold.learners.registry import LEARNERS
from sixfold.solvers.base import missing_methods
from sixfold.solvers.registry import all_solvers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 3))
Y = X @ [1.0, 2.0, -1.0] + 0.1 * RNG.normal(size=10)
LABELS = np.where(Y - np.median(Y) > 0, "tall", "short")
NAMES = ["age", "height", "weight"]

every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
every_regressor = pytest.mark.parametrize(
    "learner", [one for one in LEARNERS if one.task == "regression"], ids=lambda learner: learner.name
)

every_linear_regressor = pytest.mark.parametrize(
    "learner",
    [one for one in LEARNERS if one.task == "regression" and one.hypothesis == "linear"],
    ids=lambda learner: learner.name,
)


def target(learner):
    """Return what the learner predicts: numbers or labels."""
    return Y if learner.task == "regression" else LABELS


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


def refuses(sentence, kind=InputError):
    """Expect this sentence, wherever it begins."""
    return pytest.raises(kind, match=re.escape(sentence))


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


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
        (X, 5, "X has 10 rows, y has 5. Pass one target a row."),
    ],
)
def test_what_is_no_table_is_refused(learner, table, rows, sentence):
    with refuses(sentence):
        learner.make().fit(table, target(learner)[:rows])


@every_learner
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


@every_learner
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


@every_learner
def test_rows_to_predict_for_are_looked_at_too(learner):
    model = learner.make().fit(pandas(X), target(learner))
    with refuses("Input X contains NaN: in row 2 of column 'weight' (number 2), counted from 0."):
        model.predict(pandas(changed(X, (2, 2), np.nan)))


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
@every_learner
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
    with refuses("so large that their squares (or cubes, with the cubed loss) overflow. Divide the columns"):
        learner.fit(kind(max(factors) * X if is_classifier(learner) else factors[0] * X), y)


def test_values_that_overflow_are_refused_wide_cubed_and_in_batches_too():
    sentence = "so large that their squares (or cubes, with the cubed loss) overflow"
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
        model.predict(X[:, :2])
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
            model.predict(other)
        assert str(caught.value).endswith("Pass the columns of the fit, in that order.")


def test_two_columns_of_one_name_are_refused():
    with refuses("Give every column a name of its own."):
        LinearRegression().fit(pd.DataFrame(X, columns=["age", "age", "weight"]), Y)


# -- weights ---------------------------------------------------------------------------------------------


@every_learner
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


# -- parameters --------------------------------------------------------------------------------------------


OUT_OF_RANGE = [
    (
        {"penalty": "ll2"},
        "penalty='ll2' is not an option; did you mean 'l2'? The options are ",
    ),
    (
        {"solver": "direkt"},
        "solver='direkt' is not an option; did you mean 'direct'? The options are 'auto',",
    ),
    ({"C": 0}, "C=0 is out of range: a number above 0 is needed."),
    ({"C": np.nan}, "C=nan is out of range: a number above 0 is needed."),
    ({"C": "1"}, "C='1' is of type str: a number above 0 is needed."),
    ({"on_separation": "ignore"}, "on_separation='ignore' is not an option"),
    ({"multi_class": "crammer_singer"}, "multi_class='crammer_singer' is not an option"),
    ({"alpha": -1}, "alpha=-1 is out of range: a finite number that is at least 0 is needed."),
    ({"alpha": np.inf}, "alpha=inf is out of range: a finite number that is at least 0 is needed."),
    ({"alpha": "1"}, "alpha='1' is of type str: a finite number that is at least 0 is needed."),
    ({"tol": -1e-3}, "tol=-0.001 is out of range: a number that is at least 0 is needed."),
    ({"tol": None}, "tol=None is of type NoneType: a number that is at least 0 is needed."),
    ({"max_iter": 0}, "max_iter=0 is out of range: a whole number that is at least 1 or None is needed."),
    (
        {"max_iter": 2.5},
        "max_iter=2.5 is of type float: a whole number that is at least 1 or None is needed.",
    ),
    ({"time_limit": 0}, "time_limit=0 is out of range: a number above 0 or None is needed."),
    (
        {"penalty": "elasticnet", "l1_ratio": 2},
        "l1_ratio=2 is outside 0 to 1. 0 is the l2 penalty, 1 the l1",
    ),
    ({"penalty": "elasticnet", "l1_ratio": "a"}, "l1_ratio='a' is outside 0 to 1."),
    ({"n_neighbors": 0}, "n_neighbors=0 is out of range: a whole number that is at least 1 is needed."),
    ({"n_neighbors": 2.5}, "n_neighbors=2.5 is of type float: a whole number that is at least 1 is needed."),
    ({"leaf_size": 0}, "leaf_size=0 is out of range: a whole number that is at least 1 is needed."),
    ({"weights": "distnce"}, "weights='distnce' is not an option; did you mean 'distance'? The options are"),
    ({"algorithm": "kdtree"}, "algorithm='kdtree' is not an option; did you mean 'kd_tree'? The options"),
    ({"metric": "cosin"}, "metric='cosin' is not an option; did you mean 'cosine'? The options are"),
    ({"metric_params": 2}, "metric_params=2 is no dictionary of parameters."),
    ({"metric": "minkowski", "p": 0}, "p=0 is out of range: a number above 0 is needed."),
    ({"n_jobs": 0}, "n_jobs=0 is no number of threads. Use None or -1 for all of them."),
    ({"fit_intercept": "no"}, "fit_intercept='no' is of type str: True or False is needed."),
    ({"callbacks": print}, "is no sequence of callables. Pass a list, for instance [print]."),
    ({"callbacks": ["print"]}, "callbacks=['print'] is no sequence of callables."),
]


@pytest.mark.parametrize(
    ("learner", "parameters", "sentence"),
    [
        pytest.param(learner, parameters, sentence, id=f"{learner.name}-{parameters}")
        for learner in LEARNERS
        for parameters, sentence in OUT_OF_RANGE
        if parameters.keys() <= learner.make().get_params().keys()
    ],
)
def test_a_parameter_out_of_range_is_named(learner, parameters, sentence):
    if learner.name == "Perceptron" and "tol" in parameters:
        return  # may be None there; see its own tests
    with refuses(sentence):
        learner.make(**parameters).fit(X, target(learner))


def test_positive_is_true_or_false():
    with refuses("positive='yes' is of type str: True or False is needed."):
        LinearRegression(positive="yes").fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"loss": "abs"}, "loss='abs' is not an option; did you mean 'absolute'? The options are 'squared',"),
        ({"learning_rate": "constnt"}, "learning_rate='constnt' is not an option; did you mean 'constant'?"),
        ({"eta0": -1}, "eta0=-1 is out of range: a number above 0 or None is needed."),
        ({"power_t": -1}, "power_t=-1 is out of range: a number that is at least 0 is needed."),
        ({"average": -3}, "average=-3 is out of range: a whole number that is at least 0 is needed."),
        ({"batch_size": 0}, "batch_size=0 is out of range: a whole number that is at least 1 is needed."),
        ({"shuffle": "yes"}, "shuffle='yes' is of type str: True or False is needed."),
    ],
    ids=lambda part: ",".join(f"{k}={v}" for k, v in part.items()) if isinstance(part, dict) else None,
)
def test_an_option_of_the_recipe_is_checked_whatever_the_solver(parameters, sentence):
    for solver in ("auto", "sgd"):
        with refuses(sentence):
            ERMRegressor(**parameters, solver=solver).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "sentence", "works"),
    [
        (
            {"loss": "absolute", "solver": "newton"},
            "solver='newton' does not fit loss='absolute' with penalty=None: the loss has kinks",
            "interior_point",
        ),
        (
            {"loss": "absolute", "solver": "direct"},
            "the direct solution exists for the squared loss only",
            "interior_point",
        ),
        (
            {"loss": "cubed", "solver": "interior_point"},
            "solver='interior_point' does not fit loss='cubed' with penalty=None: it is made for",
            "newton",
        ),
        (
            {"penalty": "l1", "solver": "direct"},
            "penalty='l1': a penalty with absolute values has no direct solution",
            "gd",
        ),
        ({"penalty": "elasticnet", "solver": "cg"}, "the penalty is not a square", "gd"),
        ({"penalty": "l1", "solver": "newton"}, "the penalty has kinks, where it has no curvature", "gd"),
    ],
)
def test_a_solver_that_does_not_fit_says_why_and_what_does(parameters, sentence, works):
    with refuses(sentence, IncompatibleError) as caught:
        ERMRegressor(**parameters).fit(X, Y)
    listed = str(caught.value).partition("What works: ")[2]
    assert repr(works) in listed
    assert repr(parameters["solver"]) not in listed
    # Every one that is offered does work.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in re.findall(r"'(\w+)'", listed):
            ERMRegressor(**(parameters | {"solver": solver, "max_iter": 2})).fit(X, Y)


def test_coefficients_that_must_be_positive_are_named():
    with refuses("with penalty=None and positive=True: it cannot keep the coefficients", IncompatibleError):
        LinearRegression(solver="direct", positive=True).fit(X, Y)


# -- order of calls ------------------------------------------------------------------------------------------


@every_learner
def test_a_learner_that_is_not_fitted_says_so(learner):
    model = learner.make()
    with refuses(f"This {learner.name} instance is not fitted yet.", NotFittedError):
        model.predict(X)
    with refuses(f"{learner.name} has no certificate_ before it is fitted.", AttributeError):
        model.certificate_  # noqa: B018


def test_batches_must_be_alike():
    model = LinearRegression().partial_fit(X, Y)
    with refuses("X has 2 features"):
        model.partial_fit(X[:, :2], Y)
    with refuses("y has 2 targets, but earlier batches had 1. Pass the same targets in every batch."):
        model.partial_fit(X, np.column_stack([Y, Y]))


@pytest.mark.parametrize("parameters", [{"penalty": "l1"}, {"positive": True}])
def test_batches_are_offered_only_where_they_add_up(parameters):
    assert hasattr(LinearRegression(penalty="l2"), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        LinearRegression(**parameters).partial_fit  # noqa: B018
    assert "partial_fit works with penalty=None or 'l2' and positive=False" in str(caught.value.__cause__)
