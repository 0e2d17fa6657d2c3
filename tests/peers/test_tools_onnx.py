"""skl2onnx converts what was fitted under the patch, whether it was imported before it or after it."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

SCRIPT = """
import sys
if sys.argv[1] == "before":
    import skl2onnx
import sixfold
patch = sixfold.patch_sklearn()
import numpy as np
import onnxruntime
import sklearn.linear_model
import skl2onnx
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

X, y = load_iris(return_X_y=True)
X = X.astype(np.float32)
two = (y > 0).astype(int)


def convert(model):
    converted = skl2onnx.to_onnx(model, X[:1]).SerializeToString()
    session = onnxruntime.InferenceSession(converted, providers=["CPUExecutionProvider"])
    answers, *scores = session.run(None, {"X": X})
    if scores and isinstance(scores[0], list):
        scores = [np.array([[row[label] for label in sorted(row)] for row in scores[0]])]
    return answers.ravel(), *scores


def agree(model, target, expected):
    model.fit(X.astype(float), target)
    assert type(model).__module__.startswith("sixfold") and model._ours is not None
    answers, scores = convert(model)
    np.testing.assert_array_equal(answers, model.predict(X))
    np.testing.assert_allclose(scores, expected(model), atol=1e-4)


def column(model):
    return model.decision_function(X)[:, None]


def both_signs(model):  # as skl2onnx has them, also for models of scikit-learn
    return np.column_stack([model.decision_function(X), -model.decision_function(X)])


agree(LogisticRegression(), two, lambda model: model.predict_proba(X))
agree(LogisticRegression(), y, lambda model: model.predict_proba(X))
agree(LinearSVC(), two, column)
agree(LinearSVC(), y, lambda model: model.decision_function(X))
agree(SVC(), two, both_signs)
agree(SVC(), y, lambda model: model.decision_function(X))
agree(SVC(kernel="linear"), y, lambda model: model.decision_function(X))

line = LinearRegression().fit(X.astype(float), X.sum(axis=1) + 0.1 * y)
np.testing.assert_allclose(convert(line)[0], line.predict(X), atol=1e-4)
whole = make_pipeline(StandardScaler(), SVC()).fit(X.astype(float), y)
np.testing.assert_array_equal(convert(whole)[0], whole.predict(X))

sixfold.unpatch_sklearn()
theirs = sklearn.linear_model.LogisticRegression(max_iter=1000).fit(X.astype(float), y)
assert type(theirs).__module__.startswith("sklearn")
np.testing.assert_array_equal(convert(theirs)[0], theirs.predict(X))
"""


@pytest.mark.parametrize("imported", ["before", "after"])
def test_models_under_the_patch_convert_and_answer_the_same(imported):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", SCRIPT, imported]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
