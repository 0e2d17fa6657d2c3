"""`sixfold verify`: certificates that hold, and those that do not."""

import json
from dataclasses import replace

import polars as pl
import pytest
from sklearn.dummy import DummyClassifier

from sixfold import DecisionTreeClassifier, KNeighborsClassifier, LinearSVC, LogisticRegression, Perceptron
from sixfold.app.commands import verify
from sixfold.errors import InputError


@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(C=0.5),
        LinearSVC(C=0.1),
        DecisionTreeClassifier(max_depth=3),
        KNeighborsClassifier(7),
        Perceptron(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_a_fit_claims_is_confirmed(data, fit, learner, printed):
    fit(data, "a.sixfold", learner)
    assert verify.run("a.sixfold", "churn.csv") == 0
    out, _ = printed()
    assert "fingerprints agree" in " ".join(out.split())
    assert "Confirmed." in out


def test_the_outcome_as_json(data, model, printed):
    assert verify.run("churn.sixfold", "churn.csv", as_json=True) == 0
    told = json.loads(printed()[0])
    assert told["confirmed"] is True
    assert told["same_data"] is True
    assert told["claimed"]["objective"] == pytest.approx(told["recomputed"]["objective"])


def test_other_rows_are_named_by_their_number(data, model, printed):
    data.head(399).write_csv("fewer.csv")
    assert verify.run("churn.sixfold", "fewer.csv") == 1
    out, _ = printed()
    words = " ".join(out.split())
    assert "399 rows where the fit had 400" in words
    assert "Not confirmed:" in out


def test_one_changed_value_is_found(data, model, printed):
    changed = pl.when(pl.int_range(pl.len()) == 200).then(pl.lit("59")).otherwise("months")
    data.with_columns(months=changed).write_csv("changed.csv")
    verify.run("churn.sixfold", "changed.csv", as_json=True)
    told = json.loads(printed()[0])
    assert not told["same_data"]
    assert "fingerprint" in told["data_differences"][0]


def test_a_changed_model_is_found(data, model, printed):
    from sixfold.app.model_file import read_model, save

    file = read_model("churn.sixfold")
    file.model.steps[-1][1].coef_[0, 0] += 0.01
    save(file.model, "churn.sixfold", facts=file.facts)
    assert verify.run("churn.sixfold", "churn.csv") == 1
    assert "Not confirmed:" in printed()[0]


def test_figures_in_the_file_that_are_not_the_model_s_are_found(data, model, printed):
    from sixfold.app.model_file import read_model, save

    file = read_model("churn.sixfold")
    certificate = {**file.facts["certificate"], "gap": 0.0}
    save(file.model, "boast.sixfold", facts={**file.facts, "certificate": certificate})
    assert verify.run("boast.sixfold", "churn.csv") == 1
    assert "The file shows gap 0.0, the model in it has" in " ".join(printed()[0].split())


def test_a_claim_too_good_is_found(data, model, printed, monkeypatch):
    learner = model.steps[-1][1]
    true = learner.certificate_
    monkeypatch.setattr(type(learner), "certificate_", replace(true, objective=true.objective - 0.1))
    assert verify.run("churn.sixfold", "churn.csv") == 1
    assert "says the objective is" in " ".join(printed()[0].split())


def test_a_model_that_claims_nothing(data, fit):
    fit(data, "dummy.sixfold", DummyClassifier())
    with pytest.raises(InputError, match="which claims nothing"):
        verify.run("dummy.sixfold", "churn.csv")


def test_a_file_without_a_table(data, model):
    from sixfold.app.model_file import save

    save(model, "plain.sixfold")
    with pytest.raises(InputError, match=r"written by sixfold.save, not by `sixfold fit`"):
        verify.run("plain.sixfold", "churn.csv")
