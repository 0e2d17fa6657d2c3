"""Every model predicts after loading as it did before saving, to the last bit."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LogisticRegression,
    load,
    save,
)
from sixfold.app.model_file.classes import CLASSES
from tests.app.model_file.saved_models import NAMES, answers, case, same

WITHOUT_CERTIFICATE = ("labels", "logistic path, means", "dummy", "dummy regressor")


def plain_repr(model: Any) -> str:
    """Return what is printed, without addresses in memory."""
    return re.sub(r" at 0x[0-9A-F]+", "", repr(model), flags=re.IGNORECASE)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what loads the model of a case, each once."""
    folder, known = tmp_path_factory.mktemp("models"), {}

    def get(name: str) -> Any:
        if name not in known:
            known[name] = load(save(case(name)[0], folder / "model.sixfold"))
        return known[name]

    return get


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_same_to_the_last_bit(name: str, loaded: Any) -> None:
    model, X, _ = case(name)
    before, after = answers(model, X), answers(loaded(name), X)
    assert before.keys() == after.keys()
    assert [question for question in before if not same(before[question], after[question])] == []


@pytest.mark.parametrize("name", NAMES)
def test_certificates_say_the_same_and_can_be_checked(name: str, tmp_path: Any) -> None:
    model, X, y = case(name)
    again = load(save(model, tmp_path / "model.sixfold"))
    if isinstance(model, Pipeline):
        assert str(again[-1].certificate_) == str(model[-1].certificate_)
        return
    if name in WITHOUT_CERTIFICATE:
        assert not hasattr(again, "certificate_")
        return
    assert str(again.certificate_) == str(model.certificate_)
    checked = hasattr(model.certificate_, "verify") and not name.endswith("weights")
    if checked and ("in batches" not in name or "neighbours" in name):  # others speak of the last batch
        again.certificate_.verify(X, y)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_names_and_copies_survive(name: str, loaded: Any) -> None:
    model, again = case(name)[0], loaded(name)
    assert type(again) is type(model)
    assert plain_repr(again) == plain_repr(model)
    assert plain_repr(clone(again)) == plain_repr(clone(model))
    if hasattr(model, "feature_names_in_"):
        assert same(again.feature_names_in_, model.feature_names_in_)
    if hasattr(model, "classes_"):
        assert same(again.classes_, model.classes_)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_of_a_loaded_model_is_the_same_file(name: str, tmp_path: Any) -> None:
    model = case(name)[0]
    first = save(model, tmp_path / "first.sixfold")
    second = save(load(first), tmp_path / "second.sixfold")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_pickle_keeps_working(name: str) -> None:
    model, X, _ = case(name)
    again = pickle.loads(pickle.dumps(model))
    before, after = answers(model, X), answers(again, X)
    assert all(same(before[question], after[question]) for question in before)


@pytest.mark.parametrize(
    "name", ["least squares in batches", "perceptron in batches", "erm in batches", "neighbours in batches"]
)
def test_batches_go_on_after_loading(name: str, tmp_path: Any) -> None:
    model, X, y = case(name)
    again = load(save(model, tmp_path / "model.sixfold"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = clone(model)
        more.__dict__.update(pickle.loads(pickle.dumps(model)).__dict__)
        before = answers(more.partial_fit(X[:20], y[:20]), X)
        after = answers(again.partial_fit(X[:20], y[:20]), X)
    assert all(same(before[question], after[question]) for question in before)


def test_explanations_survive(loaded: Any) -> None:
    for name in ("tree, categories", "neighbours", "svm, probabilities", "neighbours, gower"):
        model, X, _ = case(name)
        row = X.iloc[[7]] if hasattr(X, "iloc") else X[7]
        assert str(loaded(name).explain(row)) == str(model.explain(row))
    assert str(loaded("tree, categories").trace_) == str(case("tree, categories")[0].trace_)
    assert str(loaded("least squares").summary()) == str(case("least squares")[0].summary())


def test_figures_survive(loaded: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    for name in ("tree", "least squares", "grid", "lasso path"):
        assert loaded(name).plot() is not None


def test_every_class_has_been_saved(tmp_path: Any) -> None:
    """A class without a case here would be a class that nobody has tried."""
    text = "".join(save(case(name)[0], tmp_path / "model.sixfold").read_text("latin-1") for name in NAMES)
    assert [name for name in CLASSES if f'\\"{name}\\"' not in text] == []


def test_what_a_fit_took_is_not_kept(loaded: Any) -> None:
    assert {record.seconds for record in loaded("logistic").history_} <= {0.0}
    assert loaded("logistic").certificate_.subject.date == ""
    assert loaded("grid").refit_time_ == 0.0
    assert not loaded("grid").cv_results_["mean_fit_time"].any()
    scores = [model.cv_results_["mean_test_score"] for model in (loaded("grid"), case("grid")[0])]
    assert np.array_equal(*scores)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2**62, -(2**62)] * 5),
        np.array(["", "a"] * 5),
        np.array([True, False] * 5),
        np.array([0.0, 1.0] * 5, dtype=np.float32),
        np.array(["x", "longer \U0001f600 \x00 text"] * 5, dtype=object),
        np.array([1, 2] * 5, dtype=np.uint8),
    ],
    ids=["large", "empty", "booleans", "float32", "objects", "bytes"],
)
@pytest.mark.parametrize("kind", [LogisticRegression, DecisionTreeClassifier, KNeighborsClassifier, SVC])
def test_labels_of_every_kind_come_back(kind: Any, labels: Any, tmp_path: Any) -> None:
    X = np.column_stack([np.arange(10.0), np.full(10, 7.0), [1e300, -1e300] * 5])[
        :, : 2 if kind is SVC else 3
    ]
    X = X[:, :2] if kind in (LogisticRegression, KNeighborsClassifier) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind().fit(X, labels)
    before, after = answers(model, X), answers(load(save(model, tmp_path / "model")), X)
    assert all(same(before[question], after[question]) for question in before)


def test_one_row_and_one_class(tmp_path: Any) -> None:
    one = KNeighborsClassifier(1).fit([[1.0, 2.0]], ["a"])
    assert load(save(one, tmp_path / "model")).predict([[0.0, 0.0]]).tolist() == ["a"]
    stump = DecisionTreeClassifier().fit([[1.0], [1.0]], ["a", "a"])
    assert load(save(stump, tmp_path / "model")).predict([[5.0]]).tolist() == ["a"]
    mean = KNeighborsRegressor(1).fit([[1.0]], [3.0])
    assert load(save(mean, tmp_path / "model")).predict([[5.0]]).tolist() == [3.0]


def test_numpys_numbers_as_parameters(tmp_path: Any) -> None:
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    model = SVC(C=np.float32(2.5), degree=np.int64(2), random_state=np.random.default_rng(1)).fit(X, y)
    again = load(save(model, tmp_path / "model"))
    assert (type(again.C), again.C, type(again.degree)) == (np.float32, 2.5, np.int64)
    model = KNeighborsClassifier(np.int64(3), class_weight={0: 1, 1: np.float64(2)}).fit(X, y)
    assert load(save(model, tmp_path / "model")).n_neighbors == 3
