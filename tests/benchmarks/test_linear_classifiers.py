"""The judge of linear classifiers, against an objective worked out here and a fit by a peer."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.linear import classifier_tasks
from benchmarks.linear.classifier_tasks import excess, few_relevant, overlapping, share_wrong, text_like


@pytest.fixture(autouse=True)
def no_bounds_kept(monkeypatch):
    monkeypatch.setattr(classifier_tasks, "_LOWER", {})


def test_excess_is_the_difference_of_objectives_relative_to_the_zero_model():
    task = overlapping("logistic", True, quick=True)
    signs = np.where(task.y > 0, 1.0, -1.0)

    def objective(w, b):
        return w @ w / (2 * task.C * len(signs)) + np.logaddexp(0, -signs * (task.X @ w + b)).mean()

    peer = LogisticRegression(C=task.C, tol=1e-10, max_iter=10_000).fit(task.X, task.y)
    w, b = peer.coef_[0], float(peer.intercept_[0])
    assert excess(task, (w, b)) == pytest.approx(0.0, abs=1e-8)
    moved = (objective(w + 0.1, b - 0.2) - objective(w, b)) / np.log(2.0)
    assert excess(task, (w + 0.1, b - 0.2)) == pytest.approx(moved, rel=1e-5)


@pytest.mark.parametrize("make", [few_relevant, lambda quick: text_like("hinge", quick)])
def test_without_an_intercept_the_zero_model_is_far_from_the_best(make):
    task = make(quick=True)
    assert not task.fit_intercept
    zero = np.zeros(task.X.shape[1])
    assert excess(task, (zero, 5.0)) == excess(task, (zero, 0.0)) > 1e-2


def test_the_share_of_rows_on_the_wrong_side():
    task = overlapping("hinge", False, quick=True)._replace(X=np.array([[1.0], [2.0], [-1.0], [-2.0]]))
    assert share_wrong(task._replace(y=np.array([1, 1, 0, 1])), (np.array([[1.0]]), np.array([0.0]))) == 0.25
