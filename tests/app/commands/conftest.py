"""Small models in files, as `sixfold fit` writes them."""

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import Pipeline


def churn(rows=400, seed=0):
    """Return a table as it is read from CSV: everything is text, some values are missing."""
    random = np.random.default_rng(seed)
    months, price = random.integers(1, 60, rows), random.normal(50.0, 20.0, rows).round(2)
    city = random.choice(["Bern", "Zürich", "Łódź"], rows)
    left = (months < 20) & (price > 45.0) | (random.random(rows) < 0.1)
    frame = pl.DataFrame(
        {
            "customer": [f"c{k:05d}" for k in range(rows)],
            "months": months.astype(str),
            "price": price.astype(str),
            "city": city,
            "churned": np.where(left, "yes", "no"),
        }
    )
    return frame.with_columns(price=pl.when(pl.int_range(pl.len()) % 17 == 3).then(None).otherwise("price"))


def fit(frame, path, learner, target="churned", task="classification", seed=0, **more):
    """Fit a pipeline to the training part of a frame, and write it with the facts of a fit."""
    from sixfold import DecisionTreeClassifier, TableEncoder
    from sixfold.app.model_file import save
    from sixfold.app.training_record import data_fingerprint, rows_of, training_rows
    from sixfold.data.columns.schema import infer_schema
    from sixfold.data.files.tables import Table

    typed = frame.with_columns(pl.col("months", "price").cast(pl.Float64))
    schema = infer_schema(typed, target, task=task, ids=("customer",))
    facts = {
        "task": task,
        "target": target,
        "metric": "accuracy" if task == "classification" else "R-squared",
        "scoring": "accuracy" if task == "classification" else "r2",
        "learner": "a learner",
        "schema": schema.to_dict(),
        "split": {"seed": seed, "test_size": 0.25, "fitted_rows": 10**9},
        "categories": {"city": ["Bern", "Zürich", "Łódź"]},
        **more,
    }
    categories = "keep" if isinstance(learner, DecisionTreeClassifier) else "one-hot"
    table = Table(frame, "churn", "churn.csv", "csv")
    rows = rows_of(facts, table)
    chosen = training_rows(facts, rows)
    X, y = rows.X[chosen], rows.y[chosen]
    model = Pipeline([("table", TableEncoder(categories=categories)), ("learner", learner)]).fit(X, y)
    facts["split"] |= {"train_rows": len(y), "test_rows": len(rows.y) - len(y), "folds": 5}
    facts["data"] = {
        "name": "churn",
        "rows": len(rows.y),
        "columns": frame.width,
        "fingerprint": data_fingerprint(rows.X, rows.y, rows.weight),
    }
    certificate = getattr(learner, "certificate_", None)
    if certificate is not None:
        facts["certificate"] = {**certificate.to_dict(), "text": str(certificate)}
    save(model, path, facts=facts)
    return model


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data(folder):
    """Return the table in churn.csv."""
    frame = churn()
    frame.write_csv("churn.csv")
    return frame


@pytest.fixture
def model(data):
    """Return the classifier in churn.sixfold."""
    from sixfold import LogisticRegression

    return fit(data, "churn.sixfold", LogisticRegression())


@pytest.fixture
def price_model(data):
    """Return the regression in price.sixfold."""
    from sixfold import LinearRegression

    return fit(data, "price.sixfold", LinearRegression(penalty="l2", alpha=1e-6), "price", "regression")


@pytest.fixture
def printed(capsys):
    """Return a function that gives what was printed, and looks at its width."""

    from sixfold.app.plain_text import width_of

    def read():
        out, err = capsys.readouterr()
        lines = (
            [] if out[:1] in ("{", "[") else out.splitlines()
        ) + err.splitlines()  # JSON is as wide as it is
        wide = [line for line in lines if width_of(line) > 80]
        assert not wide, wide
        return out, err

    return read


@pytest.fixture(name="fit")
def fit_fixture():
    """Return the function that fits and writes."""
    return fit
