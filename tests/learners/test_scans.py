"""Tables in files: every learner gives what it gives for the same rows in memory."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    GridSearchCV,
    KNeighborsClassifier,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Nystroem,
    scan,
)
from sixfold.errors import InputError
from sixfold.learners.registry import LEARNERS, TRANSFORMERS

RNG = np.random.default_rng(0)


def made(rows, seed):
    """Random rows with duplicates, classes of several sizes and numbers to predict."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, 3)), 1)
    score = X @ [1.0, -2.0, 0.5] + rng.normal(size=rows)
    label = np.array(["late", "b", "c"], dtype=object)[np.digitize(score, [-1.5, 1.5])]
    label[:4] = ["late", "b", "c", "b"]
    label[4:8] = ["late", "b", "c", "late"]
    return X, label, score, rng.uniform(0.5, 2.0, rows)


def write(folder, X, label, score, weight, cuts):
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(X)], strict=True)):
        part = slice(begin, end)
        columns = {f"x{j}": X[part, j] for j in range(X.shape[1])}
        columns |= {"label": pa.array(label[part], pa.string()), "score": score[part], "weight": weight[part]}
        pq.write_table(pa.table(columns), folder / f"{number:03d}.parquet")
    return folder


def learned(model):
    """Return what a model has learnt, as arrays."""
    found = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and isinstance(value, np.ndarray | float | int):
            found[name] = np.asarray(value)
    return found


def decided(model, X):
    """Return which rows have a label that does not hang on the last digits, as on a margin."""
    if not hasattr(model, "decision_function"):
        return np.ones(len(X), dtype=bool)
    two = np.sort(model.decision_function(X), axis=1)[:, -2:]
    return two[:, 1] - two[:, 0] > 1e-9 * np.abs(two).max()


def quietly(call, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)


@pytest.mark.parametrize("learner", [*LEARNERS, *TRANSFORMERS], ids=lambda learner: learner.name)
@settings(max_examples=3)
@given(cuts=st.lists(st.integers(0, 60), max_size=5).map(sorted), seed=st.integers(0, 5))
def test_every_learner_learns_what_it_learns_in_memory(tmp_path_factory, learner, cuts, seed):
    X, label, score, weight = made(60, seed)
    folder = write(tmp_path_factory.mktemp("table"), X, label, score, weight, cuts)
    target = {"regression": "score", "search": None}.get(learner.task, "label")
    table = scan(folder, target=target, columns=["x0", "x1", "x2"])
    y = {"score": score, "label": label, None: None}[target]
    filed, plain = (quietly(learner.make().fit, *data) for data in ((table,), (X, y)))
    expected = learned(plain)
    assert list(filed.feature_names_in_) == ["x0", "x1", "x2"]
    assert {"feature_names_in_", *expected} >= set(learned(filed))
    for name, value in expected.items():
        np.testing.assert_array_equal(learned(filed)[name], value, err_msg=name)
    assert filed.certificate_.objective == plain.certificate_.objective


LARGE = [
    (LogisticRegression(), "label"),
    (LogisticRegression(C=np.inf, tol=1e-9), "label"),
    (LinearSVC(loss="hinge", tol=1e-9), "label"),
    (LinearSVC(), "label"),
    (LinearRegression(), "score"),
    (LinearRegression(penalty="l1", alpha=0.1), "score"),
    (DecisionTreeClassifier(max_depth=5), "label"),
    (KNeighborsClassifier(), "label"),
]


@pytest.mark.parametrize(
    ("model", "target"), LARGE, ids=lambda value: getattr(value, "__class__", value).__name__
)
def test_mapped_rows_in_many_blocks_with_arrays_in_files_give_the_same(tmp_path, monkeypatch, model, target):
    X, label, score, weight = made(3000, 1)
    folder = write(tmp_path, X, label, score, weight, [700, 701])
    plain = (
        quietly(model.fit, X, {"label": label, "score": score}[target], weight)
        if not isinstance(model, KNeighborsClassifier)
        else model.fit(X, label)
    )
    expected = learned(plain)
    answers, clear = plain.predict(X), decided(plain, X)
    for name, value in (
        ("sixfold.data.scan.table.PLAIN", 0),
        ("sixfold.data.blocks.BLOCK_BYTES", 10_000),
        ("sixfold.solvers.memory.LARGE", 4096),
    ):
        monkeypatch.setattr(name, value)
    weighted = None if isinstance(model, KNeighborsClassifier) else "weight"
    table = scan(folder, target=target, weight=weighted, columns=["x0", "x1", "x2"])
    filed = quietly(model.fit, table)
    for name, value in learned(filed).items():
        # A margin may be one over a length that is 0 but for rounding; there are many proofs of one optimum.
        if value.dtype.kind == "f" and name not in ("margin_", "dual_"):
            size = np.abs(expected[name]).max(initial=0.0)
            np.testing.assert_allclose(value, expected[name], rtol=1e-9, atol=1e-9 * size, err_msg=name)
    if target == "score":  # products of other shapes are rounded otherwise
        np.testing.assert_allclose(filed.predict(table), answers, rtol=1e-9)
    else:
        assert clear.mean() > 0.99
        np.testing.assert_array_equal(filed.predict(table)[clear], answers[clear])
    assert filed.certificate_.converged == plain.certificate_.converged
    filed.certificate_.verify(table)


def test_a_kernel_machine_of_rows_beyond_the_limit_says_what_to_use(tmp_path, monkeypatch):
    folder = write(tmp_path, *made(300, 1), [100])
    table = scan(folder, target="label", columns=["x0", "x1", "x2"])
    quietly(SVC().fit, table)
    monkeypatch.setattr("sixfold.data.scan.table.PLAIN", 0)
    with pytest.raises(InputError, match=r"these 300 do not fit .* SVC\(rank=1000\)"):
        SVC().fit(table)
    quietly(SVC(rank=20).fit, table)
    mapped = np.memmap(tmp_path / "rows", dtype=float, mode="w+", shape=(60, 3))  # as joblib hands on
    mapped[:] = RNG.normal(size=(60, 3))
    SVC().fit(mapped, np.arange(60) % 2)


def test_answers_of_a_scan_are_those_of_its_rows(tmp_path):
    X, label, score, weight = made(500, 2)
    table = scan(write(tmp_path, X, label, score, weight, [100]), target="label", columns=["x0", "x1", "x2"])
    model = LogisticRegression().fit(table)
    rows = table.read().X
    np.testing.assert_array_equal(model.predict(table), model.predict(rows))
    np.testing.assert_allclose(model.predict_proba(table), model.predict_proba(rows), rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(table), model.decision_function(rows), rtol=1e-12)
    assert model.score(table) == model.score(rows, label)
    weighted = scan(tmp_path, target="label", weight="weight", columns=["x0", "x1", "x2"])
    assert model.score(weighted) == model.score(rows, label, weight)
    features = Nystroem(n_components=4).fit(table)
    np.testing.assert_allclose(features.transform(table), features.transform(rows), rtol=1e-12)


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_answers_are_written_to_a_file(tmp_path, ending):
    folder = tmp_path / "in"
    folder.mkdir()
    X, label, score, weight = made(300, 3)
    table = scan(write(folder, X, label, score, weight, [100]), target="label", columns=["x0", "x1", "x2"])
    model = LogisticRegression().fit(table)
    out = tmp_path / f"answers.{ending}"
    assert model.predict_proba(table, out=out) == str(out)
    names = [f"predict_proba_{name}" for name in ("b", "c", "late")]
    written = scan(out, columns=names).read().X
    np.testing.assert_allclose(written, model.predict_proba(table), rtol=1e-12)
    model.predict(table, out=tmp_path / "labels.parquet")
    assert pq.read_table(tmp_path / "labels.parquet")["predict"].to_pylist() == model.predict(table).tolist()


def test_a_file_of_answers_is_there_only_when_it_is_complete(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    X, label, score, weight = made(300, 3)
    write(folder, X, label, score, weight, [100])
    model = LogisticRegression().fit(scan(folder, target="label", columns=["x0", "x1", "x2"]))
    last = folder / "002.parquet"
    whole = (folder / "001.parquet").read_bytes()
    last.write_bytes(whole)
    table = scan(folder, columns=["x0", "x1", "x2"])
    last.write_bytes(whole[:100])
    with pytest.raises(InputError, match=r"002\.parquet"):
        model.predict(table, out=tmp_path / "answers.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    with pytest.raises(InputError, match=r"answers\.txt"):
        model.predict(table, out=tmp_path / "answers.txt")


def test_gaps_are_named_by_file_row_and_column(tmp_path):
    X, label, score, weight = made(100, 4)
    X[[70, 90], 1] = np.nan
    folder = write(tmp_path, X, label, score, weight, [50])
    table = scan(folder, target="label", columns=["x0", "x1", "x2"])
    with pytest.raises(InputError, match=r"NaN: 2 such values.*'x1', row 20.*001.parquet"):
        LogisticRegression().fit(table)
    tree = DecisionTreeClassifier(max_depth=3).fit(table)  # which has a branch for what is unknown
    np.testing.assert_array_equal(
        tree.predict(table), DecisionTreeClassifier(max_depth=3).fit(X, label).predict(X)
    )


def test_targets_come_from_the_files(tmp_path):
    X, label, score, weight = made(100, 5)
    folder = write(tmp_path, X, label, score, weight, [])
    table = scan(folder, columns=["x0"])
    with pytest.raises(InputError, match=r"y was passed beside a scan.*target="):
        LinearRegression().fit(table, score)
    with pytest.raises(InputError, match=r"sample_weight was passed beside a scan.*weight="):
        LinearRegression().fit(scan(folder, target="score", columns=["x0"]), sample_weight=weight)
    with pytest.raises(InputError, match="requires y"):
        LinearRegression().fit(table)
    model = LinearRegression().fit(scan(folder, target="score", columns=["x0"]))
    with pytest.raises(InputError, match="no target to compare"):
        model.score(table)


def test_other_columns_than_those_of_the_fit_are_refused(tmp_path):
    X, label, score, weight = made(100, 5)
    folder = write(tmp_path, X, label, score, weight, [])
    model = LinearRegression().fit(scan(folder, target="score", columns=["x0", "x1"]))
    with pytest.raises(InputError, match="feature names"):
        model.predict(scan(folder, columns=["x1", "x0"]))


def test_a_failed_fit_leaves_the_model_as_it_was(tmp_path):
    X, label, score, weight = made(100, 5)
    folder = write(tmp_path, X, label, score, weight, [])
    model = LinearRegression().fit(X, score)
    before = dict(vars(model))
    with pytest.raises(InputError):
        model.fit(scan(folder, columns=["x0"]))
    assert vars(model) == before


@pytest.mark.parametrize(
    "use",
    [
        lambda table: GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}).fit(table),
        lambda table: KNeighborsClassifier().fit(table).kneighbors(table),
        lambda table: LogisticRegression().fit(table).explain(table),
        lambda table: DecisionTreeClassifier().fit(table).apply(table),
        np.asarray,
        len,
    ],
)
def test_what_takes_no_scan_says_what_does(tmp_path, use):
    X, label, score, weight = made(100, 5)
    table = scan(write(tmp_path, X, label, score, weight, []), target="label", columns=["x0"])
    with (
        pytest.raises(InputError, match=r"A scan was passed.*portions\(\)"),
        warnings.catch_warnings(action="ignore"),  # scikit-learn's, of names that it does not see
    ):
        use(table)


def test_progress_of_reading_is_printed(tmp_path, capsys):
    X, label, score, weight = made(100, 6)
    folder = write(tmp_path, X, label, score, weight, [50])
    LogisticRegression(verbose=1).fit(scan(folder, target="label", columns=["x0"]))
    assert "LogisticRegression: read 100 rows of 100" in capsys.readouterr().out
