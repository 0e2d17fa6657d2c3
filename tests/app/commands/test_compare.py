"""`sixfold compare`: two models on the rows that neither has seen."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, log_loss

from sixfold import DecisionTreeClassifier, KNeighborsRegressor, LogisticRegression, Perceptron
from sixfold.app.commands import compare
from sixfold.errors import InputError, UsageError


@pytest.fixture
def tree(data, fit):
    return fit(data, "tree.sixfold", DecisionTreeClassifier(max_depth=3))


def new_rows(data):
    """Write rows like those of the fit, but others."""
    frame = data.with_columns(months=(pl.col("months").cast(pl.Int64) % 59 + 1).cast(pl.String))
    frame.write_csv("new.csv")
    return frame, frame.select(
        pl.col("months").cast(pl.Float64), pl.col("price").cast(pl.Float64), pl.col("city")
    )


def test_scores_are_those_of_scikit_learn(data, model, tree, printed):
    frame, typed = new_rows(data)
    assert compare.run("churn.sixfold", "tree.sixfold", "new.csv", as_json=True) == 0
    told = json.loads(printed()[0])
    scores = {one["metric"]: one for one in told["scores"]}
    y = frame["churned"].to_numpy()
    for name, one in (("first", model), ("second", tree)):
        assert scores["accuracy"][name] == pytest.approx(accuracy_score(y, one.predict(typed)))
        assert scores["neg_log_loss"][name] == pytest.approx(-log_loss(y, one.predict_proba(typed)))
    assert told["about_rows"] == ""
    different = int((model.predict(typed) != tree.predict(typed)).sum())
    assert told["agreement"]["different"] == different == sum(p["rows"] for p in told["agreement"]["pairs"])
    assert told["tests"][0]["only_first_right"] + told["tests"][0]["only_second_right"] == different
    where = told["agreement"]["rows"][0]
    assert where["first"] == model.predict(typed)[where["row"] - 1] != where["second"]


def test_only_rows_that_were_held_out_by_both_are_used(data, model, fit, printed):
    fit(data, "other.sixfold", DecisionTreeClassifier(max_depth=3), seed=1)
    compare.run("churn.sixfold", "churn.sixfold", "churn.csv", as_json=True)
    alone = json.loads(printed()[0])
    assert alone["rows"] == 100
    assert "only the 100 rows that were held out are used, of 400" in alone["about_rows"]
    compare.run("churn.sixfold", "other.sixfold", "churn.csv", as_json=True)
    both = json.loads(printed()[0])
    assert 0 < both["rows"] < 60


def test_a_model_that_has_seen_every_row_is_flattered_and_that_is_said(data, fit, printed):
    fit(data, "all.sixfold", LogisticRegression(), split={"seed": 0, "test_size": 0.0, "fitted_rows": 10**9})
    assert compare.run("all.sixfold", "all.sixfold", "churn.csv") == 0
    assert "no row is new to both models" in " ".join(printed()[0].split())


def test_people_read_a_verdict(data, model, tree, printed):
    assert compare.run("churn.sixfold", "tree.sixfold", "churn.csv") == 0
    out, _ = printed()
    words = " ".join(out.split())
    assert "is better than" in words
    assert "McNemar's exact test" in words
    assert "chance" in words


def test_the_same_model_twice_is_a_draw(data, model, printed):
    compare.run("churn.sixfold", "churn.sixfold", "churn.csv")
    assert "Neither is better: both have the same accuracy on 100 rows." in printed()[0]


def test_a_model_without_probabilities_has_no_log_loss(data, model, fit, printed):
    fit(data, "perceptron.sixfold", Perceptron())
    compare.run("churn.sixfold", "perceptron.sixfold", "churn.csv", as_json=True)
    told = json.loads(printed()[0])
    loss = next(one for one in told["scores"] if one["metric"] == "neg_log_loss")
    assert loss["second"] is None
    assert [one["test"] for one in told["tests"]] == [
        "McNemar's exact test of right answers",
        "sign-flip test of recalls",
    ]


def test_numbers_are_compared_by_their_errors(data, price_model, fit, printed):
    fit(data, "near.sixfold", KNeighborsRegressor(15), "price", "regression")
    assert compare.run("price.sixfold", "near.sixfold", "churn.csv") == 0
    out, _ = printed()
    assert "the predictions differ by" in " ".join(out.split())
    compare.run("price.sixfold", "near.sixfold", "churn.csv", as_json=True)
    told = json.loads(printed()[0])
    assert [one["metric"] for one in told["scores"]] == [
        "r2",
        "neg_mean_absolute_error",
        "neg_root_mean_squared_error",
    ]
    assert all(0.0 <= one["p"] <= 1.0 for one in told["tests"])


def test_rows_are_numbered_as_in_the_file(data, price_model, fit, printed):
    fit(data, "near.sixfold", KNeighborsRegressor(15), "price", "regression")
    compare.run("price.sixfold", "near.sixfold", "churn.csv", as_json=True)
    for one in json.loads(printed()[0])["agreement"]["rows"]:
        assert float(data["price"][one["row"] - 1]) == one["target"]


def test_two_questions_cannot_be_compared(data, model, price_model):
    with pytest.raises(UsageError, match="do not answer the same question"):
        compare.run("churn.sixfold", "price.sixfold", "churn.csv")


def test_data_without_the_target(data, model):
    data.drop("churned").write_csv("new.csv")
    with pytest.raises(InputError, match="no column 'churned'"):
        compare.run("churn.sixfold", "churn.sixfold", "new.csv")


def test_where_models_differ_is_found():
    from sixfold.app.saved_model.where_models_differ import parts_that_differ

    random = np.random.default_rng(0)
    age, city = random.uniform(20, 60, 400), random.choice(["a", "b"], 400)
    typed = pl.DataFrame({"age": age, "city": city, "noise": random.random(400)})
    found = parts_that_differ(typed, (age > 50).astype(float))
    assert [one.column for one in found] == ["age"]
    assert found[0].inside > 0.9
    assert found[0].outside < 0.1
    assert parts_that_differ(typed, np.zeros(400)) == []


@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize("names", [("churn.sixfold", "tree.sixfold"), ("price.sixfold", "near.sixfold")])
def test_few_rows_are_enough_to_print(data, model, tree, price_model, fit, rows, names, printed):
    fit(data, "near.sixfold", KNeighborsRegressor(15), "price", "regression")
    data.drop_nulls().tail(rows).write_csv("few.csv")
    assert compare.run(*names, "few.csv") == 0
    assert "better" in printed()[0]
    assert compare.run(*names, "few.csv", as_json=True) == 0
    assert json.loads(printed()[0])["rows"] == rows


def test_labels_that_no_model_knows_are_wrong_for_both(data, model, tree, printed):
    data.with_columns(churned=pl.lit("perhaps")).write_csv("strange.csv")
    assert compare.run("churn.sixfold", "tree.sixfold", "strange.csv") == 0
    assert "Neither is better" in printed()[0]


def test_models_of_other_classes(data, model, fit, printed):
    third = pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.lit("later")).otherwise("churned")
    fit(data.with_columns(churned=third), "three.sixfold", DecisionTreeClassifier(max_depth=3))
    assert compare.run("churn.sixfold", "three.sixfold", "churn.csv", as_json=True) == 0
    told = json.loads(printed()[0])
    assert {one["metric"] for one in told["scores"]} >= {"accuracy", "neg_log_loss"}


def test_no_row_with_an_answer(data, model):
    data.with_columns(churned=pl.lit(None, pl.String)).write_csv("none.csv")
    with pytest.raises(InputError, match="no row with a value in 'churned'"):
        compare.run("churn.sixfold", "churn.sixfold", "none.csv")
