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

from sixfold import load, save
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
