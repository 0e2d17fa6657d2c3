"""`sixfold show`: all that a model file says of itself, within 80 columns."""

import json

import pytest

from sixfold.app.commands import show

LEADERBOARD = [
    {
        "learner": "logistic regression",
        "mean": 0.8512,
        "std": 0.02,
        "test": 0.84,
        "parameters": {"C": 0.1},
        "left_out": "",
    },
    {"learner": "tree", "mean": 0.8, "std": 0.03, "test": None, "parameters": {"max_depth": 3}},
    {"learner": "SVM (rbf)", "mean": None, "std": None, "test": None, "left_out": "time was over"},
]


@pytest.fixture
def told(data, model):
    from sixfold.app.model_file import read_model, save

    file = read_model("churn.sixfold")
    facts = {
        **file.facts,
        "choice": "the best mean score, and no simpler learner is within a standard error of it",
        "parameters": {"C": 0.1},
        "scores": {"cv_mean": 0.8512, "cv_std": 0.02, "test": 0.84, "baseline": 0.7},
        "leaderboard": LEADERBOARD,
        "cautions": ["The column 'months' predicts the target nearly alone."],
        "versions": {"sixfold": "0.1.0", "numpy": "2.0"},
    }
    save(file.model, "told.sixfold", facts=facts)
    return facts


def test_everything_is_said(told, printed):
    assert show.run("told.sixfold") == 0
    out, _ = printed()
    words = " ".join(out.split())
    for part in (
        "told.sixfold: a learner, predicts 'churned' (classification)",
        "churn: 400 rows, 5 columns; 300 to learn from, 100 held out; seed 0",
        told["data"]["fingerprint"],
        "accuracy: 0.851 ± 0.020 in cross-validation on 5 folds, 0.840 on the test rows",
        "no simpler learner is within a standard error",
        "logistic regression 0.851 ± 0.020 0.840",
        "C=0.1",
        "SVM (rbf) was left out: time was over",
        "price number 24",
        "churned boolean 0 target",
        "set aside customer",
        "- The column 'months' predicts the target nearly alone.",
        "sixfold 0.1.0, numpy 2.0",
    ):
        assert part in words, part


def test_json_holds_the_facts(told, printed):
    assert show.run("told.sixfold", as_json=True) == 0
    read = json.loads(printed()[0])
    assert read["file"] == "told.sixfold"
    assert read["facts"]["scores"] == told["scores"]


def test_a_file_without_facts_says_so(data, model, printed):
    from sixfold.app.model_file import save

    save(model, "plain.sixfold")
    assert show.run("plain.sixfold") == 0
    assert "written by sixfold.save, not by `sixfold fit`" in " ".join(printed()[0].split())


def test_strange_facts_do_no_harm(data, model, printed):
    from sixfold.app.model_file import save

    facts = {
        "target": "a\nb\x1b[31m" + "x" * 200,
        "task": "classification",
        "learner": "価格" * 50,
        "scores": {"test": float(2**70)},
        "leaderboard": ["?", {"learner": "y" * 90, "parameters": "none"}],
        "schema": {"columns": [{"name": "z" * 100, "kind": "number", "reason": "because " * 30}] * 60},
        "cautions": [{"text": "w" * 300}],
        "data": {"rows": "many"},
        "split": [],
    }
    save(model, "odd.sixfold", facts=facts)
    assert show.run("odd.sixfold") == 0
    out, _ = printed()
    assert "\x1b" not in out
    assert "and 20 columns more (--json lists all)" in out
