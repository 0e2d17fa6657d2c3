"""Two fits of the same data have the same pickle: dates and seconds are left out, as in model files."""

import copy
import pickle
import time

import numpy as np
import pytest

from sixfold.learners.registry import LEARNERS, TRANSFORMERS

ASKED = {"search": "kneighbors", "transformation": "transform"}


def fitted(learner):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    score = X[:, 0] + X[:, 1] ** 2 + 0.3 * random.normal(size=60)
    return learner.make().fit(X, score if learner.task == "regression" else (score > 1.0).astype(int)), X


@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@pytest.mark.parametrize("learner", LEARNERS + TRANSFORMERS, ids=lambda learner: learner.name)
def test_two_fits_of_the_same_data_have_the_same_pickle(learner, monkeypatch):
    first, X = fitted(learner)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 86400.0)
    second, _ = fitted(learner)
    assert first.certificate_.subject.date != second.certificate_.subject.date
    assert pickle.dumps(first) == pickle.dumps(second)
    again = pickle.loads(pickle.dumps(first))
    ask = ASKED.get(learner.task, "predict")
    assert np.array_equal(getattr(again, ask)(X), getattr(first, ask)(X))
    assert again.certificate_ == first.certificate_
    assert again.certificate_.subject.date == ""


@pytest.mark.filterwarnings("ignore:n_components > n_samples")
@pytest.mark.parametrize("learner", LEARNERS + TRANSFORMERS, ids=lambda learner: learner.name)
def test_pickling_and_copying_leave_the_model_its_date_and_seconds(learner):
    model, _ = fitted(learner)
    history = getattr(model, "history_", None)
    pickle.dumps(model)
    assert model.certificate_.subject.date
    assert copy.copy(model).certificate_.subject.date
    assert getattr(copy.copy(model), "history_", None) == getattr(model, "history_", None) == history
