"""Learners fit rows of Dask where they are, and find what they find in memory."""

import logging
import os
import pickle
import signal
import threading
import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.base import clone

import sixfold
from sixfold.data import dask_blocks
from sixfold.data.dask_blocks import DaskBlocks, Workers
from sixfold.errors import ClusterError, InputError, StoppedEarly
from sixfold.solvers.streamed import tree as streamed_tree

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

# Of sockets and loops of the cluster, when a worker has been killed.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
RNG = np.random.default_rng(0)
NAMES = list("abcd")
ROWS = 600
CHUNKS = (150, 1, 249, 0, 100, 100)  # one of one row, and an empty one


def table(rows=ROWS, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, 4)) * [1.0, 0.1, 5.0, 1.0] + [0.0, 3.0, 40.0, 0.0]
    s = (X - X.mean(axis=0)) / X.std(axis=0) @ random.standard_normal((4, 3))
    return X, {
        "number": s[:, 0] + random.standard_normal(rows),
        "two": np.where(s[:, 0] + random.logistic(size=rows) > 0, "yes", "no"),
        "three": np.argmax(s + random.gumbel(size=s.shape), axis=1),
        "weight": random.random(rows),
    }


def rows_of(values, chunks=CHUNKS):
    return da.from_array(values, chunks=(chunks, values.shape[1]) if values.ndim == 2 else (chunks,))


LEARNERS = {
    "least squares": (sixfold.LinearRegression(), "number"),
    "penalty": (sixfold.LinearRegression(penalty="l2", alpha=0.1), "number"),
    "ridge": (sixfold.Ridge(), "number"),
    "lasso": (sixfold.Lasso(alpha=0.1, tol=1e-12), "number"),
    "elastic net": (sixfold.ElasticNet(alpha=0.1, tol=1e-12), "number"),
    "ridge classes": (sixfold.RidgeClassifier(), "three"),
    "two classes": (sixfold.LogisticRegression(tol=1e-11), "two"),
    "no penalty": (sixfold.LogisticRegression(C=np.inf, tol=1e-9), "two"),
    "balanced": (sixfold.LogisticRegression(class_weight="balanced", tol=1e-11), "two"),
    "three classes": (sixfold.LogisticRegression(tol=1e-11), "three"),
    "absolute values": (sixfold.LogisticRegression(l1_ratio=1.0, C=0.1, tol=1e-11), "two"),
    "margin": (sixfold.LinearSVC(tol=1e-11), "two"),
    "three margins": (sixfold.LinearSVC(tol=1e-11), "three"),
    "hinge": (sixfold.LinearSVC(loss="hinge"), "two"),
    "three hinges": (sixfold.LinearSVC(loss="hinge"), "three"),
    "squared risk": (sixfold.ERMRegressor(loss="squared", penalty="l2", alpha=0.1, tol=1e-11), "number"),
    "risk": (sixfold.ERMClassifier(loss="logistic", penalty="l2", alpha=1e-3, tol=1e-11), "two"),
}


ONLINE = {
    "perceptron": (sixfold.Perceptron(shuffle=False), "two"),
    "perceptrons": (sixfold.Perceptron(shuffle=False, average=True, max_iter=6), "three"),
    "steps": (sixfold.SGDClassifier(shuffle=False, loss="log_loss", tol=1e-2), "three"),
    "steps of numbers": (sixfold.SGDRegressor(shuffle=False, learning_rate="adaptive", eta0=1e-4), "number"),
}


def same(found, true, digits=1e-9):
    size = np.abs(true.coef_).max()
    np.testing.assert_allclose(found.coef_, true.coef_, rtol=0, atol=digits * size)
    np.testing.assert_allclose(found.intercept_, true.intercept_, rtol=digits, atol=digits * size)
    assert found.coef_.shape == true.coef_.shape
    assert np.shape(found.intercept_) == np.shape(true.intercept_)
    assert found.n_features_in_ == true.n_features_in_
    if hasattr(true, "classes_"):
        np.testing.assert_array_equal(found.classes_, true.classes_)
    assert found.certificate_.kind == true.certificate_.kind
    assert found.certificate_.converged
    assert len(found.history_) >= 1
    np.testing.assert_array_equal(np.shape(found.n_iter_), np.shape(true.n_iter_))


# -- in this process -----------------------------------------------------------------------------------------


@pytest.fixture
def here():
    """Run passes in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_as_in_memory(name, weighted, tmp_path):
    X, columns = table()
    model, target = LEARNERS[name]
    weight = columns["weight"] if weighted else None
    true = clone(model).fit(X, columns[target], sample_weight=weight)
    given = None if weight is None else rows_of(weight, (200, 200, 200))  # which is cut as X is
    found = clone(model).fit(rows_of(X), rows_of(columns[target]), sample_weight=given)
    # A gap of 1e-12 leaves the root of it in coefficients; those of the fit in memory end there.
    same(found, true, 1e-6 if name == "elastic net" else 1e-9)
    found.certificate_.verify(X, columns[target], sample_weight=weight)
    assert found.certificate_.subject.rows == ROWS
    pickle.loads(pickle.dumps(found)).predict(X)
    sixfold.save(found, tmp_path / "model.sixfold")
    loaded = sixfold.load(tmp_path / "model.sixfold")
    loaded.certificate_.verify(X, columns[target], sample_weight=weight)


def cut(ends):
    """Return the lengths of blocks of 60 rows: some have one row, some none."""
    return tuple(np.diff([0, *sorted(ends), 60]).tolist())


def rows_by_class(target):
    """Return 60 rows in the order of their target: blocks have one class."""
    X, columns = table(60)
    order = np.argsort(columns[target], kind="stable")
    return X[order], columns[target][order]


@pytest.mark.parametrize("name", LEARNERS)
@given(st.lists(st.integers(0, 60), max_size=6))
@settings(max_examples=4)
def test_however_rows_are_cut(name, ends):
    model, target = LEARNERS[name]
    X, y = rows_by_class(target)
    with dask.config.set(scheduler="synchronous"):
        found = clone(model).fit(rows_of(X, cut(ends)), rows_of(y, cut(ends)))
    same(found, clone(model).fit(X, y), 1e-6 if name == "elastic net" else 1e-9)


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
@given(st.lists(st.integers(0, 60), max_size=6))
@settings(max_examples=10)
def test_however_rows_of_a_tree_of_neighbours_and_of_steps_are_cut(ends):
    chunks = cut(ends)
    models = {
        "tree": (sixfold.DecisionTreeClassifier(max_depth=4), "three"),
        "neighbours": (sixfold.KNeighborsClassifier(3), "three"),
        "numbers of neighbours": (sixfold.KNeighborsRegressor(3), "number"),
        **ONLINE,
    }
    for name, (model, target) in models.items():
        X, y = rows_by_class(target)
        X = np.round(X - X.mean(axis=0), 1)  # distances and thresholds that are equal
        with dask.config.set(scheduler="synchronous"):
            found = clone(model).fit(rows_of(X, chunks), rows_of(y, chunks))
            answers = found.predict(X)
        true = clone(model).fit(X, y)
        np.testing.assert_array_equal(answers, true.predict(X), err_msg=name)
        if name == "tree":
            for part in ("column", "threshold", "child", "rows", "totals"):
                np.testing.assert_array_equal(getattr(found.tree_, part), getattr(true.tree_, part))
        elif name in ONLINE:
            np.testing.assert_array_equal(found.coef_, true.coef_, err_msg=name)


@pytest.mark.usefixtures("here")
def test_data_frames_and_their_names():
    X, columns = table()
    frame = pd.DataFrame(X, columns=NAMES).assign(**columns)
    split = dd.from_pandas(frame, npartitions=5)
    for target, model in (("two", sixfold.LogisticRegression(tol=1e-11)), ("number", sixfold.Ridge())):
        true = clone(model).fit(frame[NAMES], frame[target], sample_weight=frame["weight"])
        found = clone(model).fit(split[NAMES], split[target], sample_weight=split["weight"])
        same(found, true)
        assert found.feature_names_in_.tolist() == NAMES
        answers = found.predict(split[NAMES])
        assert isinstance(answers, da.Array)
        np.testing.assert_array_equal(answers.compute().shape, (ROWS,))
        if target == "two":
            np.testing.assert_array_equal(answers.compute(), true.predict(frame[NAMES]))
            shares = found.predict_proba(split[NAMES]).compute()
            np.testing.assert_allclose(shares, true.predict_proba(frame[NAMES]), rtol=1e-8)
        score = found.score(split[NAMES], split[target], sample_weight=split["weight"])
        assert score == pytest.approx(true.score(frame[NAMES], frame[target], frame["weight"]), rel=1e-9)


@pytest.mark.usefixtures("here")
def test_chunks_of_unknown_length_and_of_columns():
    X, columns = table()
    some = X[:, 0] > -0.5
    true = sixfold.LogisticRegression(tol=1e-11).fit(X[some], columns["two"][some])
    mask = rows_of(some)
    found = sixfold.LogisticRegression(tol=1e-11).fit(rows_of(X)[mask], rows_of(columns["two"])[mask])
    same(found, true)
    cut = da.from_array(X, chunks=(100, 3))
    same(
        sixfold.Ridge().fit(cut, da.from_array(columns["number"], chunks=70)),
        sixfold.Ridge().fit(X, columns["number"]),
    )


@pytest.mark.usefixtures("here")
def test_float32_stays_float32():
    X, columns = table()
    found = sixfold.LogisticRegression(tol=1e-4).fit(rows_of(X.astype(np.float32)), rows_of(columns["two"]))
    assert found.coef_.dtype == np.float32


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_neighbors_are_those_in_memory(metric, weighted):
    X = RNG.integers(1, 5, (ROWS, 3)).astype(float)
    queries = RNG.integers(1, 5, (50, 3)).astype(float)
    _, columns = table()
    weight = columns["weight"] * (RNG.random(ROWS) > 0.2) if weighted else None
    given = None if weight is None else rows_of(weight)
    for kind, target in ((sixfold.KNeighborsClassifier, "three"), (sixfold.KNeighborsRegressor, "number")):
        true = kind(7, weights="distance", metric=metric).fit(X, columns[target], sample_weight=weight)
        found = kind(7, weights="distance", metric=metric).fit(
            rows_of(X), rows_of(columns[target]), sample_weight=given
        )
        for own, other in zip(found.kneighbors(queries), true.kneighbors(queries), strict=True):
            np.testing.assert_array_equal(own, other)
        np.testing.assert_array_equal(found.predict(queries), true.predict(queries))
        assert str(found.explain(queries[0])) == str(true.explain(queries[0]))
        assert found.n_samples_fit_ == ROWS
        assert found.certificate_.kind == "exact search"


@pytest.mark.usefixtures("here")
def test_stored_rows_elsewhere_say_what_they_cannot_do():
    X, columns = table()
    model = sixfold.KNeighborsClassifier().fit(rows_of(X), rows_of(columns["two"]))
    for ask in (
        lambda: model.predict(None),
        lambda: model.radius_neighbors(X[:3]),
        lambda: model.partial_fit(X, columns["two"]),
        lambda: pickle.dumps(model),
        lambda: model.predict(rows_of(X)),
        lambda: model.certificate_.verify(X, columns["two"]),
    ):
        with pytest.raises(InputError, match="on a cluster"):
            ask()


def with_gap(X):
    X = X.copy()
    X[402, 2] = np.nan
    return X


def frames(first, second, value=1.0):
    """Return a frame of two partitions with these columns, announced as those of the first, and labels."""
    named = (first, 1.0), (second, value)
    parts = [
        pd.DataFrame([[number] * len(names), [3.0] * len(names)], columns=names) for names, number in named
    ]
    with dask.config.set({"dataframe.convert-string": False}):
        X = dd.from_map(lambda k: parts[k], [0, 1], meta=parts[0].iloc[:0])
    return X, dd.from_pandas(pd.Series([0, 1, 0, 1]), npartitions=2)


X0, COLUMNS0 = table()
REFUSED = {
    "y in memory": (lambda: (rows_of(X0), COLUMNS0["two"]), "y is of type ndarray"),
    "no y": (lambda: (rows_of(X0), None), "the target y is None"),
    "a gap": (lambda: (rows_of(with_gap(X0)), rows_of(COLUMNS0["two"])), r"row 402 .*column 'x2'"),
    "fewer labels": (lambda: (rows_of(X0), da.from_array(COLUMNS0["two"][:500], chunks=100)), "has 500"),
    "quantities": (lambda: (rows_of(X0), rows_of(COLUMNS0["number"])), "which is a quantity and no class"),
    "one class": (lambda: (rows_of(X0), rows_of(np.full(ROWS, "a"))), "y has 1 class"),
    "no rows": (lambda: (rows_of(X0)[:0], rows_of(COLUMNS0["two"])[:0]), "pass at least one row"),
    "one axis": (lambda: (rows_of(X0[:, 0]), rows_of(COLUMNS0["two"])), "Expected 2D array"),
    "weights below 0": (
        lambda: (rows_of(X0), rows_of(COLUMNS0["two"]), rows_of(-COLUMNS0["weight"])),
        "Negative values",
    ),
    "weights of 0": (lambda: (rows_of(X0), rows_of(COLUMNS0["two"]), rows_of(np.zeros(ROWS))), "is zero"),
    "other partitions": (
        lambda: (
            dd.from_pandas(pd.DataFrame(X0), npartitions=3),
            dd.from_pandas(pd.Series(COLUMNS0["two"]), npartitions=2),
        ),
        "X has 3 partitions",
    ),
    "other rows": (
        lambda: (
            dd.from_pandas(pd.DataFrame(X0), npartitions=3),
            da.from_array(COLUMNS0["two"], chunks=(200, 201, 199)),
        ),
        "In partition [12] .*: X has 200 rows here, and y has (201|199)",
    ),
    "other columns": (
        lambda: frames(["a", "b"], ["b", "c"]),
        "In partition 1 .*: X has 2 columns where 2 are announced: it lacks column 'a'",
    ),
    "columns in another order": (lambda: frames(["a", "b"], ["b", "a"]), "In partition 1 .*another order"),
    "more columns": (lambda: frames(["a", "b"], ["a", "b", "c"]), "In partition 1 .*column 'c' more"),
    "text further down": (
        lambda: frames(["a", "b"], ["a", "b"], value="seven"),
        "In partition 1 .*column 'a' .* holds 'seven' in row 0",
    ),
    "a label that is missing": (
        lambda: (rows_of(X0), rows_of(np.where(np.arange(ROWS) == 402, None, COLUMNS0["two"]))),
        "In partition 4 .*the label of row 2",
    ),
    "text": (
        lambda: (
            dd.from_pandas(pd.DataFrame({"name": COLUMNS0["two"], "x": 1.0}), npartitions=2),
            dd.from_pandas(pd.Series(COLUMNS0["two"]), npartitions=2),
        ),
        "column 'name' is of type",
    ),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", REFUSED)
def test_bad_rows_are_refused(name):
    given, words = REFUSED[name]
    model = sixfold.LogisticRegression().fit(X0, COLUMNS0["two"])
    before = dict(model.__dict__)
    with pytest.raises(InputError, match=words):
        model.fit(*given())
    assert model.__dict__ == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (sixfold.SVC(), "Use LinearSVC"),
        (sixfold.DecisionTreeClassifier(search="optimal"), "fit a sample"),
        (sixfold.RadiusNeighborsClassifier(), "Fit a sample"),
        (sixfold.KNeighborsClassifier(metric="mahalanobis"), "Use a Minkowski distance"),
        (sixfold.ERMClassifier(loss="hinge", penalty="l1"), "needs penalty='l2'"),
        (sixfold.LogisticRegression(solver="sgd"), "solver='auto'"),
        (sixfold.LogisticRegression(warm_start=True), "leave it False"),
        (sixfold.LinearSVC(C=np.inf), "finite C"),
    ],
)
def test_learners_that_need_all_rows_say_what_to_use(model, words):
    with pytest.raises(InputError, match=words):
        model.fit(rows_of(X0), rows_of(COLUMNS0["two"]))


@pytest.mark.usefixtures("here")
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_are_those_in_memory_bit_by_bit(name, weighted):
    X, columns = table()
    X = X - X.mean(axis=0)
    model, target = ONLINE[name]
    weight = columns["weight"] if weighted else None
    true = clone(model).fit(X, columns[target], sample_weight=weight)
    given = None if weight is None else rows_of(weight)
    found = clone(model).fit(rows_of(X), rows_of(columns[target]), sample_weight=given)
    digits = 1e-9 if weighted else 0.0  # the sum of the weights is rounded in another order
    np.testing.assert_allclose(found.coef_, true.coef_, rtol=digits)
    np.testing.assert_allclose(found.intercept_, true.intercept_, rtol=digits)
    assert found.n_iter_ == true.n_iter_
    assert found.certificate_.kind == true.certificate_.kind
    found.certificate_.verify(X, columns[target], sample_weight=weight)


@pytest.mark.usefixtures("here")
def test_shuffled_steps_are_the_same_every_time():
    X, _ = table()
    models = [sixfold.Perceptron().fit(rows_of(X - X.mean(axis=0)), rows_of(X[:, 0] > 0.2)) for _ in range(2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].certificate_.kind == "separating plane"


@pytest.mark.usefixtures("here")
def test_what_takes_rows_in_memory_says_so():
    X, columns = table()
    given = rows_of(X), rows_of(columns["two"])
    model = sixfold.Perceptron(max_iter=1).fit(X, columns["two"])
    with pytest.raises(InputError, match="partial_fit takes rows in memory"):
        model.partial_fit(*given)
    with pytest.raises(InputError, match=r"verify\(X.compute"):
        model.certificate_.verify(*given)
    with pytest.raises(InputError, match="leave it False"):
        sixfold.SGDClassifier(early_stopping=True).fit(*given)


@pytest.mark.usefixtures("here")
def test_no_minimum_and_several():
    free = sixfold.LogisticRegression(C=np.inf)
    with pytest.raises(InputError, match="may be separated"):
        free.fit(rows_of(X0), rows_of(X0[:, 0] > 0))
    with pytest.raises(InputError, match="follow from others"):
        free.fit(rows_of(np.hstack([X0, X0[:, :1]])), rows_of(COLUMNS0["two"]))


def test_without_dask_it_is_named(monkeypatch):
    def missing():
        raise ImportError

    monkeypatch.setitem(__import__("sys").modules, "dask.delayed", None)
    with pytest.raises(ImportError, match=r"pip install 'sixfold\[dask\]'"):
        dask_blocks._dask()


# -- on a cluster --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def cluster():
    """Start four worker processes of one thread."""
    with distributed.LocalCluster(
        n_workers=4,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as one:
        yield one


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as one:
        one.wait_for_workers(2, timeout=60)  # one that was killed may still be on its way back
        yield one


@pytest.fixture
def killed(client, monkeypatch):
    """Kill a worker that has rows before a pass of a given number."""
    original, state = Workers.result, {"passes": 0, "at": 0, "killed": 0}

    def result(self, task, watch):
        state["passes"] += 1
        if state["passes"] == state["at"]:
            holding = {
                worker for workers in client.has_what().items() if workers[1] for worker in workers[:1]
            }
            processes = client.run(os.getpid)
            os.kill(processes[min(holding or processes)], signal.SIGKILL)
            state["killed"] += 1
        return original(self, task, watch)

    monkeypatch.setattr(Workers, "result", result)
    return state


@pytest.mark.parametrize("name", LEARNERS)
def test_a_worker_that_is_killed_changes_nothing(name, killed):
    X, columns = table()
    model, target = LEARNERS[name]
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(dask_blocks, "_client", lambda: None)
        found = clone(model).fit(rows_of(X), rows_of(columns[target]))
    same(found, clone(model).fit(X, columns[target]))
    killed.update(at=killed["passes"] // 2 + 1, passes=0)
    again = clone(model).fit(rows_of(X), rows_of(columns[target]))
    assert killed["killed"] == 1
    np.testing.assert_array_equal(again.coef_, found.coef_)
    np.testing.assert_array_equal(again.intercept_, found.intercept_)
    assert again.certificate_ == found.certificate_


@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
@pytest.mark.parametrize("name", ONLINE)
def test_a_worker_that_is_killed_between_two_epochs(name, killed):
    X, columns = table()
    X = X - X.mean(axis=0)
    model, target = ONLINE[name]
    true = clone(model).fit(X, columns[target])
    killed.update(at=5)
    found = clone(model).fit(rows_of(X), rows_of(columns[target]))
    np.testing.assert_array_equal(found.coef_, true.coef_)
    np.testing.assert_array_equal(found.intercept_, true.intercept_)
    assert killed["killed"] == 1


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05])
def test_a_worker_that_is_killed_while_a_pass_runs(seconds, client, monkeypatch):
    """It may have the rows, a result or part of it by then."""
    X, columns = table()
    rows = X[:, 0][:, None] * np.ones(40)
    rows = rows + np.random.default_rng(1).standard_normal(rows.shape)
    model = sixfold.LogisticRegression(tol=1e-11)
    found = clone(model).fit(rows_of(rows), rows_of(columns["two"]))
    original, state = Workers.result, {"passes": 0, "killed": 0}

    def result(self, task, watch):
        state["passes"] += 1
        if state["passes"] == 4:
            holding = [worker for worker, kept in client.has_what().items() if kept]
            process = client.run(os.getpid)[min(holding)]
            timer = threading.Timer(seconds, os.kill, (process, signal.SIGKILL))
            timer.start()
            try:
                return original(self, task, watch)
            finally:
                timer.join()
                state["killed"] += 1
        return original(self, task, watch)

    monkeypatch.setattr(Workers, "result", result)
    again = clone(model).fit(rows_of(rows), rows_of(columns["two"]))
    assert state["killed"] == 1
    np.testing.assert_array_equal(again.coef_, found.coef_)
    assert again.certificate_ == found.certificate_


def test_a_worker_that_is_killed_while_a_tree_grows(killed, monkeypatch):
    X, columns = table()
    monkeypatch.setattr(streamed_tree, "FEW_ROWS", 40)  # larger nodes are split by passes
    true = sixfold.DecisionTreeClassifier(max_depth=6).fit(X, columns["three"])
    for at in (4, 9):
        killed.update(at=killed["passes"] + at)
        found = sixfold.DecisionTreeClassifier(max_depth=6).fit(rows_of(X), rows_of(columns["three"]))
        for name in ("column", "threshold", "child", "rows", "totals"):
            np.testing.assert_array_equal(getattr(found.tree_, name), getattr(true.tree_, name))
    assert killed["killed"] == 2


def test_a_worker_that_is_killed_between_fit_and_query(killed):
    X, columns = table()
    model = sixfold.KNeighborsClassifier(5).fit(rows_of(X), rows_of(columns["three"]))
    killed.update(at=killed["passes"] + 1)
    true = sixfold.KNeighborsClassifier(5).fit(X, columns["three"])
    for own, other in zip(model.kneighbors(X[:40]), true.kneighbors(X[:40]), strict=True):
        np.testing.assert_array_equal(own, other)
    assert killed["killed"] == 1


@pytest.mark.parametrize(
    "model",
    [
        sixfold.LogisticRegression(),
        sixfold.LinearRegression(),
        sixfold.LinearSVC(),
        sixfold.Perceptron(max_iter=2),
        sixfold.KNeighborsClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_rows_do_not_come_here(client, model):
    def part(seed):
        return np.random.default_rng(seed).standard_normal((50_000, 8))

    delayed = [dask.delayed(part)(seed) for seed in range(8)]
    X = da.concatenate([da.from_delayed(one, (50_000, 8), float) for one in delayed])  # 26 MB
    y = (X[:, 0] - X[:, 1] + X[:, 2] ** 3 > 0.5).astype(np.int8)
    tracemalloc.start()
    try:
        model = clone(model).fit(X, y)
        if isinstance(model, sixfold.KNeighborsClassifier):
            model.kneighbors(np.zeros((50, 8)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5e6
    if isinstance(model, sixfold.KNeighborsClassifier):  # which answers for rows in memory
        return
    assert model.score(X, y) > (0.3 if isinstance(model, sixfold.LinearRegression) else 0.8)
    assert model.certificate_.converged or isinstance(model, sixfold.Perceptron)  # after two epochs


def test_the_same_whatever_there_are_of_workers(client):
    X, columns = table()
    on_cluster = sixfold.LogisticRegression().fit(rows_of(X), rows_of(columns["two"]))
    with dask.config.set(scheduler="synchronous"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_blocks, "_client", lambda: None)
        alone = sixfold.LogisticRegression().fit(rows_of(X), rows_of(columns["two"]))
    np.testing.assert_array_equal(on_cluster.coef_, alone.coef_)


def test_limits_callbacks_and_ctrl_c(client):
    X, columns = table()
    given = rows_of(X), rows_of(columns["two"])
    seen = []
    with pytest.warns(StoppedEarly):
        model = sixfold.LogisticRegression(
            tol=1e-13, callbacks=[lambda record: seen.append(record) or len(seen) == 2]
        ).fit(*given)
    assert len(model.history_) == len(seen) == 2
    assert not model.certificate_.converged
    with pytest.warns(StoppedEarly, match="time_limit"):
        model = sixfold.LogisticRegression(tol=1e-13, time_limit=1e-3).fit(*given)
    assert model.certificate_.lower_bound >= 0
    model = sixfold.LogisticRegression(
        tol=1e-13,
        callbacks=[lambda record: os.kill(os.getpid(), signal.SIGINT) if record.iteration == 2 else None],
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(*given)
    assert model.coef_.shape == (1, 4)


def test_fold_goes_from_block_to_block(client):
    X, columns = table()
    table_ = dask_blocks.check_collections(
        sixfold.Ridge(), rows_of(X), rows_of(columns["number"]), None, False
    )
    some = [k for k, length in enumerate(CHUNKS) if length]
    blocks = DaskBlocks(
        table_.workers, [table_.parts[k] for k in some], [CHUNKS[k] for k in some], 4, 1, ROWS, np.float64
    )
    assert blocks.fold(add_start, []) == [0, 150, 151, 400, 500]


def add_start(block, state):
    return [*state, block.start]


def test_rows_of_a_client_that_is_closed(cluster):
    X, columns = table()
    with distributed.Client(cluster):
        given = dask.persist(rows_of(X), rows_of(columns["two"]))
    with pytest.raises(ClusterError, match="a client that is closed"):
        sixfold.LogisticRegression().fit(*given)


def test_a_client_that_is_closed_in_the_middle(cluster):
    X, columns = table()
    with distributed.Client(cluster) as one:
        model = sixfold.LogisticRegression(
            tol=1e-13, callbacks=[lambda record: one.close() if record.iteration == 2 else None]
        )
        before = dict(model.__dict__)
        with pytest.raises(ClusterError, match="the model is as it was"):
            model.fit(rows_of(X), rows_of(columns["two"]))
    assert model.__dict__ == before
