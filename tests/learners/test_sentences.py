"""What is said to people: of parameters and tables that cannot be used, of rows, limits and progress."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import sixfold
from sixfold import (
    SVC,
    DecisionTreeClassifier,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Perceptron,
)
from sixfold.errors import InputError, TimeLimitReached
from sixfold.explain.palette import COLOURS

CLASSIFIERS = [SVC, DecisionTreeClassifier, KNeighborsClassifier, LinearSVC, LogisticRegression, Perceptron]


@pytest.fixture
def table():
    return load_iris(return_X_y=True)


# -- parameters and tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [SVC, DecisionTreeClassifier, LinearSVC, LogisticRegression, Perceptron])
def test_a_seed_that_is_none_is_refused(learner, table):
    with pytest.raises(InputError, match="random_state='a' cannot be used to seed: pass a whole number"):
        learner(random_state="a").fit(*table)
    with pytest.raises(InputError, match="random_state=-1 is out of range"):
        learner(random_state=-1).fit(*table)


@pytest.mark.parametrize(
    "learner",
    [
        SVC(probability=True),
        DecisionTreeClassifier(max_features=2),
        LogisticRegression(solver="sgd", tol=0.1),
        Perceptron(max_iter=5, tol=None),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_a_generator_seeds_every_learner(learner, table):
    learner.set_params(random_state=np.random.default_rng(3)).fit(*table)


@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_weights_that_are_text_are_refused(learner, table):
    with pytest.raises(InputError, match=r"sample_weight='x' is of type str\. Pass one weight a row"):
        learner().fit(*table, sample_weight="x")


@pytest.mark.parametrize("learner", [*CLASSIFIERS, LinearRegression, KNeighborsRegressor])
def test_swapped_arguments_are_told(learner, table):
    X, y = table
    with pytest.raises(
        InputError, match=r"X has shape \(150,\) and y has shape \(150, 4\): they are swapped"
    ):
        learner().fit(y, X)


def test_every_column_of_text_is_named(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcd")).assign(town="x", street="y", house=1.0, floor="z")
    with pytest.raises(
        InputError, match=r"column 'town' .* holds 'x' in row 0; so do 'street', 'floor'\. Turn"
    ):
        LogisticRegression().fit(frame, y)
    with pytest.raises(InputError, match=r"column 'x4' .* holds 'x' in row 0; so does 'x5'\. Turn"):
        LogisticRegression().fit(frame.drop(columns="floor").to_numpy(dtype=object), y)
    many = pd.DataFrame({f"t{k}": ["x"] * 150 for k in range(14)})
    with pytest.raises(InputError, match=r"'t9' and 4 more\. Turn"):
        LogisticRegression().fit(many, y)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "l1"])
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree"])
def test_distances_that_square_nothing_take_large_numbers(metric, algorithm):
    X = np.array([[1e200, 0.0], [3e200, 1e200], [-1e200, 5e199], [0.0, 0.0]])
    model = KNeighborsRegressor(1, metric=metric, algorithm=algorithm).fit(X, np.arange(4.0))
    distances, rows = model.kneighbors([[2.9e200, 1e200]])
    assert rows.tolist() == [[1]]
    assert distances[0, 0] == pytest.approx(1e199)
    with pytest.raises(InputError, match="overflow"):
        KNeighborsRegressor(1, metric=metric).fit(5e107 * X, np.arange(4.0))
    with pytest.raises(InputError, match="overflow"):
        KNeighborsRegressor(1).fit(X, np.arange(4.0))


# -- rows, limits, progress --------------------------------------------------------------------------------


def test_explanations_call_rows_by_the_index_of_the_frame(table):
    X, y = table
    names = [f"flower {k}" for k in range(150)]
    frame = pd.DataFrame(X, index=names)
    frame.columns = list("abcd")
    for model in (KNeighborsClassifier(), KNeighborsRegressor(), SVC()):
        found = model.fit(frame, y).explain(frame.iloc[70])
        assert found.index == [names[row] for row in found.rows]
        assert f"row {found.index[0]} " in str(found)
        assert found.plot().get_yticklabels()[0].get_text().startswith(f"row {found.index[0]}")
        plain = model.fit(X, y).explain(X[70])
        assert plain.index == plain.rows


def test_added_rows_keep_their_names(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcd"))
    late = frame.iloc[100:].set_axis([f"late {k}" for k in range(50)])
    model = KNeighborsClassifier().fit(frame.iloc[:100], y[:100]).partial_fit(late, y[100:])
    assert set(model.explain(frame.iloc[120]).index) <= {*range(100), *late.index}
    assert model.explain(frame.iloc[120]).index[0] == "late 20"
    assert model.explain(frame.iloc[3]).index[0] == 3


def test_explanations_have_one_palette(table):
    from matplotlib.colors import to_hex

    X, y = table
    bars = SVC().fit(X, y).explain(X[70]).plot().patches
    assert {to_hex(bar.get_facecolor()) for bar in bars} <= set(COLOURS[:2])
    dots = KNeighborsClassifier(15).fit(X, y).explain(X[70]).plot().collections
    assert {to_hex(one.get_facecolor()[0]) for one in dots} <= {COLOURS[1], COLOURS[2]}  # as in the tree


def test_long_names_leave_the_axes_their_room(table):
    import matplotlib.pyplot as plt

    X, y = table
    measured = "as it was measured in the field by two botanists, in cm, and written down twice"
    columns = [f"{part} {size} {measured}" for part in ("sepal", "petal") for size in ("length", "width")]
    index = [
        f"flower number {k} of the herbarium of the Gaspe peninsula, second shelf from the left"
        for k in range(150)
    ]
    frame = pd.DataFrame(X, columns=columns, index=index)
    for model in (DecisionTreeClassifier(), SVC(), KNeighborsRegressor()):
        axes = model.fit(frame, y).explain(frame.iloc[70]).plot()
        axes.figure.canvas.draw()
        assert axes.get_position().width > 0.4
        assert axes.get_tightbbox().width <= 1.05 * axes.figure.bbox.width  # with the names beside it
        plt.close(axes.figure)


def test_a_leaf_says_which_limit_ended_it(table):
    X, y = table
    limits = {"max_depth": 2, "min_samples_split": 60, "min_samples_leaf": 40, "max_leaf_nodes": 3}
    for name, value in limits.items():
        model = DecisionTreeClassifier(**{name: value}).fit(X, y)
        assert f"{name}={value}" in model.explain(X[70]).reason
        assert "a limit was reached" not in model.export_svg()


def test_a_fit_of_neighbours_that_takes_too_long_speaks_of_the_fit():
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    with pytest.raises(TimeLimitReached, match="The fit was stopped by time_limit=1e-09 s before the search"):
        KNeighborsRegressor(algorithm="kd_tree", time_limit=1e-9).fit(X, X[:, 0])


def test_progress_of_an_svm_says_what_a_record_is_of(table, capsys):
    X, y = table
    SVC(verbose=True).fit(X, y)
    assert "SVC: binary SVM 1," in capsys.readouterr().out
    SVC(verbose=True).fit(X, y == 0)
    assert "SVC: round 1," in capsys.readouterr().out


def test_solver_of_scikit_learn_without_counterpart_is_shown_as_what_was_used(table):
    X, y = table
    asked = LogisticRegression(solver="newton-cg").fit(X, y)
    chosen = LogisticRegression().fit(X, y)
    assert asked.solver_ == chosen.solver_ != "Newton-CG"
    assert LogisticRegression(solver="newton-cg").fit(X, y == 1).solver_ == "Newton-CG"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_a_tree_of_whole_numbers_beyond_float64_speaks_of_those_that_float64_holds():
    X = (2**60 + np.arange(40))[:, None]
    y = np.arange(40) % 2
    certificate = DecisionTreeClassifier().fit(X, y).certificate_
    assert str(certificate).endswith("no tree fits these rows better, as float64 holds the numbers")
    certificate.verify(X, y)
    exact = DecisionTreeClassifier().fit(X - 2**60, y).certificate_
    assert str(exact).endswith("no tree fits these rows better")
    assert exact.objective == 0.0 < certificate.objective


# -- the command line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_is_printed_and_nothing_is_fitted(option):
    done = subprocess.run(
        [sys.executable, "-m", "sixfold", option], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith({"--help": "Usage: sixfold ", "--version": "sixfold "}[option])
    assert "held-out" not in done.stdout
    assert sixfold.__version__ in done.stdout or option == "--help"
