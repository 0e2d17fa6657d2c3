"""A tree of rows on a cluster is the tree of the same rows in memory."""

import dataclasses

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.exceptions import DataConversionWarning

from sixfold import DecisionTreeClassifier, save
from sixfold import load as load_model
from sixfold.errors import InputError, StoppedEarly
from sixfold.solvers.streamed import tree as streamed

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# So small that every way to look for a threshold is taken by some hundred rows.
SMALL = {"SAMPLED": 60, "FEW_ROWS": 8, "BATCH": 64, "BINS": 4, "CELLS": 1 << 9, "FETCHED": 64, "MOST_ROWS": 9}


@pytest.fixture(autouse=True)
def here():
    """Run passes in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def coarse(monkeypatch):
    """Let sample, bins and batches be small, so that hundreds of rows go every way there is."""
    for name, value in SMALL.items():
        monkeypatch.setattr(streamed, name, value)


def rows_of(values, chunks):
    return da.from_array(values, chunks=(chunks, values.shape[1]) if values.ndim == 2 else (chunks,))


def cut(rows, ends):
    return tuple(np.diff([0, *sorted(end % (rows + 1) for end in ends), rows]).tolist())


def table(rows, columns, classes, kind, seed):
    """Return rows with ties, constant columns, duplicates, far and tiny values, and their labels."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns))
    if kind == "coarse":
        X = np.round(2 * X) / 2
    elif kind == "few":
        X = random.integers(0, 2, X.shape).astype(float)
    elif kind == "scales":
        X = X * 10.0 ** random.integers(-300, 300, columns)
    elif kind == "heavy":
        X[random.random(X.shape) < 0.6] = 0.0
    elif kind == "neighbours":  # between some there is no other number
        X = np.nextafter(1.0, 2.0) ** random.integers(0, 6, X.shape)
    X[:, columns // 2] = X[0, columns // 2] if rows else 0.0
    X[rows // 2 : rows // 2 + rows // 8] = X[: rows // 8]
    score = np.argsort(np.argsort(X[:, 0], kind="stable"), kind="stable") / max(rows, 1)
    labels = np.floor(classes * np.clip(score + 0.3 * random.standard_normal(rows), 0, 0.999)).astype(int)
    return X, labels


def same(found, true, exact=True):
    """Compare all that a tree consists of; where weights are added in another order, to their rounding."""
    for field in dataclasses.fields(true.tree_):
        one, other = getattr(found.tree_, field.name), getattr(true.tree_, field.name)
        if isinstance(other, np.ndarray) and field.name == "totals" and not exact:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())
        elif isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other, err_msg=field.name)
            assert one.dtype == other.dtype, field.name
        else:
            assert one == other, field.name
    np.testing.assert_array_equal(found.classes_, true.classes_)
    assert found.certificate_.kind == true.certificate_.kind


LIMITS = st.sampled_from(
    [
        {},
        {"criterion": "gini"},
        {"max_depth": 3},
        {"min_samples_leaf": 7},
        {"min_samples_split": 25, "criterion": "gini"},
        {"min_weight_fraction_leaf": 0.05},
        {"min_impurity_decrease": 0.01},
        {"ccp_alpha": 0.02},
        {"ccp_alpha": 0.02, "base": "e"},
        {"max_depth": 0},
    ]
)


@pytest.mark.usefixtures("coarse")
@given(
    rows=st.integers(1, 300),
    columns=st.integers(1, 5),
    classes=st.sampled_from([1, 2, 3, 9]),
    kind=st.sampled_from(["plain", "coarse", "few", "scales", "heavy", "neighbours"]),
    weights=st.sampled_from([None, "whole", "any", "zeros"]),
    ends=st.lists(st.integers(0, 300), max_size=5),
    limits=LIMITS,
    seed=st.integers(0, 2**16),
)
@settings(max_examples=150)
def test_the_tree_in_memory(rows, columns, classes, kind, weights, ends, limits, seed):
    X, y = table(rows, columns, classes, kind, seed)
    random = np.random.default_rng(seed)
    weight = {
        None: None,
        "whole": random.integers(1, 5, rows).astype(float),
        "any": random.random(rows) * 1e5,
        "zeros": np.maximum(random.integers(-1, 3, rows), np.arange(rows) == 0).astype(float),
    }[weights]
    if weights == "zeros":  # every class has a row that counts
        weight[np.unique(y, return_index=True)[1]] = 1.0
    chunks = cut(rows, ends)
    with dask.config.set(scheduler="synchronous"):
        given = None if weight is None else rows_of(weight, chunks)
        found = DecisionTreeClassifier(**limits).fit(rows_of(X, chunks), rows_of(y, chunks), given)
    true = DecisionTreeClassifier(**limits).fit(X, y, weight)
    same(found, true, exact=weights != "any")
    found.certificate_.verify(X, y, sample_weight=weight)


def test_tables_with_nodes_of_more_rows_than_are_brought_here():
    random = np.random.default_rng(0)
    X = np.hstack([random.standard_normal((150_000, 2)), np.round(random.standard_normal((150_000, 1)), 2)])
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * random.standard_normal(150_000) > 0).astype(int)
    found = DecisionTreeClassifier(max_depth=6).fit(rows_of(X, 40_000), rows_of(y, 40_000))
    same(found, DecisionTreeClassifier(max_depth=6).fit(X, y))


@pytest.mark.usefixtures("coarse")
def test_text_labels_class_weights_names_and_model_files(tmp_path):
    X, y = table(200, 3, 3, "coarse", 0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype({"b": np.float32})
    labels = pd.Series(np.array(["no", "perhaps", "yes"])[y])
    true = DecisionTreeClassifier(class_weight="balanced").fit(frame, labels)
    split = dd.from_pandas(frame, npartitions=3), dd.from_pandas(labels, npartitions=3)
    found = DecisionTreeClassifier(class_weight="balanced").fit(*split)
    same(found, true, exact=False)
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    save(found, tmp_path / "model.sixfold")
    loaded = load_model(tmp_path / "model.sixfold")
    loaded.certificate_.verify(frame, labels)
    np.testing.assert_array_equal(loaded.predict(split[0]).compute(), true.predict(frame))
    assert found.score(*split) == true.score(frame, labels)


@pytest.mark.usefixtures("coarse")
def test_single_precision_and_whole_numbers():
    X, y = table(250, 4, 2, "plain", 1)
    for kind, rows in ((np.float32, X), (np.int64, 100 * X), (np.uint8, 10 * X + 50)):
        rows = rows.astype(kind)  # noqa: PLW2901
        true = DecisionTreeClassifier(max_depth=5).fit(rows, y)
        same(DecisionTreeClassifier(max_depth=5).fit(rows_of(rows, 90), rows_of(y, 90)), true)


@pytest.mark.usefixtures("coarse")
def test_whole_numbers_that_are_one_as_floats_are_said():
    X, y = table(60, 2, 2, "coarse", 2)
    whole = X.astype(np.int64) + 2**53
    found = DecisionTreeClassifier().fit(rows_of(whole, 25), rows_of(y, 25))
    with pytest.warns(DataConversionWarning, match="takes different ones"):
        true = DecisionTreeClassifier().fit(whole, y)
    same(found, true)
    assert str(found.certificate_) == str(true.certificate_)
    assert "as float64 holds the numbers" in str(found.certificate_)


@pytest.mark.usefixtures("coarse")
def test_a_fit_that_is_stopped_keeps_the_tree_so_far():
    X, y = table(300, 3, 2, "plain", 3)
    with pytest.warns(StoppedEarly):
        model = DecisionTreeClassifier(time_limit=1e-9).fit(rows_of(X, 100), rows_of(y, 100))
    assert not model.certificate_.converged
    assert model.predict(X).shape == (300,)
    with pytest.warns(StoppedEarly):
        cut_short = DecisionTreeClassifier(callbacks=[lambda record: record.iteration == 2]).fit(
            rows_of(X, 100), rows_of(y, 100)
        )
    assert cut_short.get_depth() <= 2


REFUSED = {
    "search": ({"search": "optimal"}, "search='optimal' needs all rows"),
    "criterion": ({"criterion": "gain_ratio"}, "criterion='gain_ratio' needs all rows"),
    "prune": ({"prune": "reduced_error"}, "ccp_alpha"),
    "max_leaf_nodes": ({"max_leaf_nodes": 4}, "max_depth or ccp_alpha"),
    "max_features": ({"max_features": 1}, "max_features=1 needs all rows"),
    "trace": ({"trace": True}, "Use False"),
    "categories": ({"categorical_features": [0]}, "column of 0 and 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_rows_says_what_to_use(name):
    parameters, words = REFUSED[name]
    X, y = table(60, 2, 2, "plain", 4)
    model = DecisionTreeClassifier(**parameters)
    before = dict(model.__dict__)
    with pytest.raises(InputError, match=words):
        model.fit(rows_of(X, 20), rows_of(y, 20))
    assert model.__dict__ == before


def test_gaps_and_columns_of_truth_are_refused():
    X, y = table(60, 2, 2, "plain", 5)
    X[7, 1] = np.nan
    with pytest.raises(InputError, match="NaN"):
        DecisionTreeClassifier().fit(rows_of(X, 20), rows_of(y, 20))
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "paid": X[:, 0] > 0}), npartitions=2)
    with pytest.raises(InputError, match=r"astype\(\{'paid': 'int8'\}\)"):
        DecisionTreeClassifier().fit(frame, dd.from_pandas(pd.Series(y), npartitions=2))
