"""`sixfold explain`: one row, its answer, and why, in the columns of the table."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LinearRegression,
    LogisticRegression,
)
from sixfold.app.commands import explain
from sixfold.app.saved_model.model import SavedModel
from sixfold.data.columns.schema import ColumnSchema, TableSchema
from sixfold.data.encoder.table_encoder import TableEncoder
from sixfold.errors import InputError, UsageError

LEARNERS = {
    "linear": LogisticRegression(),
    "tree": DecisionTreeClassifier(max_depth=3),
    "neighbours": KNeighborsClassifier(n_neighbors=7),
    "neighbours by Gower": KNeighborsClassifier(n_neighbors=3, metric="gower"),
    "support vectors": SVC(),
}
KEPT = ("tree", "neighbours by Gower")
COLUMNS = ("age", "city", "plan", "income", "signup")
KINDS = ("number", "category", "category", "number", "date")


def customers(rows=200):
    random = np.random.default_rng(0)
    age, pro = random.integers(18, 80, rows), random.random(rows) < 0.4
    city = random.choice(["Paris", "Łódź", "東京"], rows)
    income = np.where(random.random(rows) < 0.1, np.nan, np.round(random.lognormal(10, 0.5, rows)))
    start = datetime.datetime(2020, 1, 1)
    frame = pl.DataFrame(
        {
            "customer": [f"c{k}" for k in range(rows)],
            "age": age.astype(float),
            "city": city,
            "plan": np.where(pro, "pro", "basic"),
            "income": pl.Series(income).fill_nan(None),
            "signup": [start + datetime.timedelta(days=int(k)) for k in random.integers(0, 1500, rows)],
        }
    ).with_columns(pl.col("signup").cast(pl.Datetime("ms")))
    left = age / 20 + 1.5 * (city == "Paris") + pro + random.standard_normal(rows) > 4.5
    return frame.with_columns(churn=pl.Series(np.where(left, "yes", "no")))


def schema(target="churn"):
    names = [(name, own) for name, own in zip(COLUMNS, KINDS, strict=True) if name != target]
    kind = "category" if target == "churn" else "number"
    features = [ColumnSchema(name, own) for name, own in names]
    return TableSchema((*features, ColumnSchema(target, kind, "target")))


@pytest.fixture
def ask(monkeypatch):
    """Return a function that fits a learner to customers, and explains one of their rows by it."""

    def run(learner, row=1, frame=None, target="churn", encoder=None, function=explain.run, **options):
        table = customers() if frame is None else frame
        columns, task = schema(target), "classification" if target == "churn" else "regression"
        X, y = columns.typed(customers()), customers()[target].to_numpy()
        steps = [("table", encoder or TableEncoder()), ("learner", learner)]
        model = Pipeline(steps).fit(X, y)
        facts = {"task": task, "target": target, "categories": {"plan": ["basic", "pro"]}}
        saved = SavedModel(Path("churn.sixfold"), model, facts, columns)
        monkeypatch.setattr(explain, "open_model", lambda path: saved)
        monkeypatch.setattr(explain, "table_batches", lambda data, schema, rows: table.iter_slices(64))
        if function is explain.run:
            return explain.run("churn.sixfold", "new.csv", row, **options)
        return explain.explain_row(saved, "new.csv", row)

    return run


def encoder_of(kind):
    return TableEncoder(categories="keep" if kind in KEPT else "one-hot")


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("row", [1, 64, 65, 200])
def test_every_learner_is_explained_in_the_columns_of_the_table(ask, printed, kind, row):
    assert ask(LEARNERS[kind], row, encoder=encoder_of(kind)) == 0
    text, _ = printed()
    first = customers().row(row - 1, named=True)
    assert f"row {row} of new.csv, not counting the header" in text
    if kind in ("linear", "tree"):
        assert f"age = {first['age']:.0f}, city = {first['city']}, plan = {first['plan']}" in text
    else:
        assert re.search(rf"^plan +{first['plan']} +(pro|basic) ", text, re.MULTILINE)
    assert f"the table says {first['churn']}" in text
    assert "=Paris" not in text
    assert not re.search(r"^ *row \d", text, re.MULTILINE)  # the training part has numbers of its own


@pytest.mark.parametrize("kind", LEARNERS)
def test_json(ask, printed, kind):
    ask(LEARNERS[kind], 2, encoder=encoder_of(kind), as_json=True)
    found = json.loads(printed()[0])
    assert found["kind"] == kind.split(" by")[0]
    assert found["row"] == 2
    assert found["values"]["signup"] == str(customers()["signup"][1].date())
    assert found["actual"] == customers()["churn"][1]
    assert found["target"] == "churn"
    assert found["explanation"]["answer"] == found["answer"]
    assert found["unseen"] == []


def test_contributions_are_those_of_the_columns(ask):
    found = ask(LogisticRegression(), 3, function=None)
    one = found.explanation
    assert sorted(one.columns) == sorted(COLUMNS)
    assert one.start + sum(one.contributions) == pytest.approx(one.score)
    assert one.probability == pytest.approx(found.probabilities[found.answer])
    own = customers().row(2, named=True)
    shown = dict(zip(one.columns, one.values, strict=True))
    assert shown["city"] == own["city"]
    assert shown["signup"] == str(own["signup"].date())
    means = dict(zip(one.columns, one.means, strict=True))
    assert means["age"] == pytest.approx(customers()["age"].mean())
    filled = customers()["income"].fill_null(customers()["income"].median())
    assert means["income"] == pytest.approx(filled.mean())
    assert means["city"] is None


@pytest.mark.parametrize("kind", ["neighbours", "neighbours by Gower", "support vectors"])
def test_training_rows_have_the_values_of_the_table(ask, kind):
    found = ask(LEARNERS[kind], 5, encoder=encoder_of(kind), function=None)
    table = customers()
    for row, values in zip(found.explanation.rows, found.alike, strict=False):
        own = table.row(row, named=True)
        assert values == {name: own[name] for name in COLUMNS}


def test_a_training_row_is_told_to_be_one(ask, printed):
    ask(KNeighborsClassifier(), 5)
    assert "the same in every column: perhaps it is this row" in printed()[0]
    ask(KNeighborsClassifier(), 5, customers().with_columns(age=pl.col("age") + 0.5))
    assert "the same in every column" not in printed()[0]


def test_regressions(ask, printed):
    ask(LinearRegression(penalty="l2", alpha=1e-3), 4, target="age")
    text, _ = printed()
    assert "what each column adds to the prediction" in text
    assert re.search(r"^age: [\d.]+; the table says \d+$", text, re.MULTILINE)
    ask(KNeighborsRegressor(), 4, target="age")
    assert "leaving out one neighbour" in printed()[0]


def test_a_row_with_gaps_and_a_new_category(ask, printed):
    frame = customers().with_columns(
        city=pl.lit("Atlantis"), plan=pl.lit("free"), income=pl.lit(None, pl.Float64)
    )
    for kind, learner in LEARNERS.items():
        if kind != "support vectors":
            ask(learner, 1, frame, encoder=encoder_of(kind))
            text, _ = printed()
            assert re.search("income( =)? +missing", text)
            assert "plan = free, which the model has not met" in text


def test_a_table_without_the_target(ask, printed):
    ask(LogisticRegression(), 1, customers().drop("churn", "customer"))
    assert "the table says" not in printed()[0]


def test_a_row_beyond_the_table(ask):
    with pytest.raises(UsageError, match=r"--row 201 is beyond the table: new\.csv has 200 rows"):
        ask(LogisticRegression(), 201)
    with pytest.raises(UsageError, match="--row 0 is no row: they are counted from 1"):
        ask(LogisticRegression(), 0)
    with pytest.raises(UsageError, match="has 0 rows"):
        ask(LogisticRegression(), 1, customers().clear())


def test_rows_behind_are_not_read(ask, monkeypatch):
    ask(LogisticRegression(), 1)

    def batches(data, schema, rows):
        yield customers()
        raise AssertionError("read on")

    monkeypatch.setattr(explain, "table_batches", batches)
    assert explain.run("churn.sixfold", "new.csv", 200) == 0


def test_a_learner_that_cannot_explain(ask):
    with pytest.raises(InputError, match="GaussianNB, which cannot explain one answer"):
        ask(GaussianNB(), 1)


def test_the_baseline_says_that_it_ignores_the_columns(ask, printed):
    ask(DummyClassifier(), 1)
    assert "it ignores the columns, and answers the most frequent class" in " ".join(printed()[0].split())
    ask(DummyRegressor(), 1, target="age", as_json=True)
    found = json.loads(printed()[0])
    assert found["kind"] == "baseline"
    assert "answers the mean of the training rows" in found["explanation"]["text"]


def test_of_hundreds_of_columns_some_are_shown(monkeypatch, printed):
    names = [f"c{k}" for k in range(300)]
    frame = pl.DataFrame(np.random.default_rng(0).standard_normal((30, 300)), schema=names)
    frame = frame.with_columns(churn=pl.Series(["yes", "no"] * 15))
    columns = TableSchema(
        (*(ColumnSchema(name, "number") for name in names), ColumnSchema("churn", "category", "target"))
    )
    for learner in (LogisticRegression(), KNeighborsClassifier(), SVC()):
        model = learner.fit(columns.typed(frame), frame["churn"].to_numpy())
        saved = SavedModel(Path("churn.sixfold"), model, {"target": "churn"}, columns)
        monkeypatch.setattr(explain, "open_model", lambda path, saved=saved: saved)
        monkeypatch.setattr(explain, "table_batches", lambda data, schema, rows: iter([frame]))
        assert explain.run("churn.sixfold", "new.csv", 7) == 0
        text = printed()[0]
        assert "c39" in text
        assert "and 260 more columns (--json has all)" in " ".join(text.split())
        assert len(text.splitlines()) < 70


def test_times_of_day_are_shown_to_the_minute():
    day = datetime.datetime(2021, 3, 6)
    times = [day, day.replace(hour=14), day.replace(hour=14, second=7)]
    assert [explain._cell(one) for one in times] == ["2021-03-06", "2021-03-06 14:00", "2021-03-06 14:00:07"]


def test_a_model_without_an_encoder_is_explained_by_its_own_columns(monkeypatch, printed):
    frame = customers().select("age", "churn")
    columns = TableSchema((ColumnSchema("age", "number"), ColumnSchema("churn", "category", "target")))
    for learner in (LogisticRegression(), KNeighborsClassifier(), SVC()):
        model = learner.fit(columns.typed(frame), frame["churn"].to_numpy())
        saved = SavedModel(Path("churn.sixfold"), model, {"target": "churn"}, columns)
        monkeypatch.setattr(explain, "open_model", lambda path, saved=saved: saved)
        monkeypatch.setattr(explain, "table_batches", lambda data, schema, rows: iter([frame]))
        assert explain.run("churn.sixfold", "new.csv", 7) == 0
        assert "age" in printed()[0]


@pytest.mark.parametrize("kind", LEARNERS)
def test_from_a_model_file_and_a_table_file(folder, printed, kind):
    from sixfold.app.model_file import save
    from sixfold.data.columns.schema import infer_schema
    from sixfold.data.files.tables import read_table

    customers().with_columns(pl.col("signup").dt.strftime("%d.%m.%Y")).write_csv("new.csv", separator=";")
    raw = read_table("new.csv").frame
    columns = infer_schema(raw, "churn")
    assert [one.name for one in columns.features] == list(COLUMNS)
    model = Pipeline([("table", encoder_of(kind)), ("learner", LEARNERS[kind])])
    model.fit(columns.typed(raw), columns.target_values(raw).astype(str))
    facts = {"task": "classification", "target": "churn", "schema": columns.to_dict()}
    save(model, "churn.sixfold", facts=facts)
    assert explain.run("churn.sixfold", "new.csv", 3) == 0
    text, _ = printed()
    first = customers().row(2, named=True)
    for value in (first["city"], first["plan"], f"{first['age']:.0f}"):
        assert value in text
    assert "not pro" not in text  # the schema remembers both categories
    if kind != "tree":
        assert str(first["signup"].date()) in text


def test_many_columns_and_long_names(monkeypatch, printed):
    random = np.random.default_rng(0)
    names = [f"a long name of the column number {k} 温度の平均値" for k in range(40)]
    frame = pl.DataFrame({name: random.standard_normal(60) * 10.0**k for k, name in enumerate(names, -20)})
    y = random.choice(["a label that is long", "another one, no shorter than the first"], 60)
    columns = TableSchema(tuple(ColumnSchema(name, "number") for name in names))
    for learner in (LogisticRegression(), KNeighborsClassifier(), SVC(), DecisionTreeClassifier()):
        model = Pipeline([("table", TableEncoder()), ("learner", learner)]).fit(frame, y)
        saved = SavedModel(Path("churn.sixfold"), model, {"target": "a target 目的"}, columns)
        monkeypatch.setattr(explain, "open_model", lambda path, saved=saved: saved)
        monkeypatch.setattr(explain, "table_batches", lambda data, schema, rows: iter([frame]))
        assert explain.run("churn.sixfold", "new.csv", 7) == 0
        printed()
