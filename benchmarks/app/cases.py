"""From a file to answers, against scikit-learn with pandas and with joblib.

Answers are read from a CSV file and written to another: `sixfold predict` with a saved model, and the usual
script, pandas in portions of 100,000 rows with a pipeline of SimpleImputer, StandardScaler, OneHotEncoder and
LogisticRegression. The same preprocessing by itself is TableEncoder beside that ColumnTransformer, on the
frame that each likes best. Saving is writing, reading and predicting once, beside joblib, which checks
nothing that it reads.

Accuracy is the share of labels that differ from those of the model in memory, or the largest difference of
the encoded tables.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import unchanged
from benchmarks.runner import Case, Contender

PORTION = 100_000
CITIES = ("Berlin", "Oslo", "Paris", "Prague", "Rome", "Vienna")
PLANS = ("basic", "plus", "pro")
NUMBERS = 26


class FileTask(NamedTuple):
    """A table as columns, and where its files go."""

    X: Any
    y: Any
    folder: Path

    @property
    def path(self) -> Path:
        """The table as a CSV file."""
        return self.folder / "table.csv"


def mixed_table(rows: int, quick: bool) -> FileTask:
    """Return numbers and categories, written to a file as well."""
    import polars as pl

    count = 2_000 if quick else rows
    rng = np.random.default_rng(0)
    values = rng.normal(size=(count, NUMBERS)).round(4)
    city, plan = rng.integers(0, len(CITIES), count), rng.integers(0, len(PLANS), count)
    score = values[:, :6] @ np.linspace(1.0, 0.2, 6) + 0.5 * (city == 2) - 0.4 * (plan == 0)
    y = np.where(score + rng.logistic(size=count) > 0, "yes", "no")
    columns = {f"x{k}": values[:, k] for k in range(NUMBERS)}
    columns |= {"city": np.array(CITIES)[city], "plan": np.array(PLANS)[plan]}
    task = FileTask(pl.DataFrame(columns), y, Path(tempfile.mkdtemp(prefix="sixfold-bench-")))
    task.X.write_csv(task.path)
    return task


def train_rows(task: FileTask) -> int:
    return min(20_000, len(task.y))


def ours(task: FileTask) -> Any:
    """Return our pipeline, fitted."""
    from sklearn.pipeline import Pipeline

    from sixfold import LogisticRegression, TableEncoder

    rows = train_rows(task)
    model = Pipeline([("table", TableEncoder()), ("learner", LogisticRegression())])
    return model.fit(task.X[:rows], task.y[:rows])


def theirs_before() -> Any:
    """Return what scikit-learn's users put before a linear model."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    named = [f"x{k}" for k in range(NUMBERS)]
    return make_column_transformer((numbers, named), (words, ["city", "plan"]))


def theirs(task: FileTask) -> Any:
    """Return the same pipeline of scikit-learn, fitted."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    rows = train_rows(task)
    return make_pipeline(theirs_before(), LogisticRegression(max_iter=1000)).fit(
        task.X[:rows].to_pandas(), task.y[:rows]
    )


class Prediction(NamedTuple):
    """What answers a file, where to, and what its model says in memory."""

    model: Any
    output: Path
    expected: Any


def saved(task: FileTask) -> Prediction:
    """Write our model with the schema of its columns, as `sixfold fit` does."""
    from sixfold import save
    from sixfold.data.columns.schema import infer_schema

    model = ours(task)
    rows = task.X[: train_rows(task)].with_columns(y=task.y[: train_rows(task)])
    facts = {"task": "classification", "target": "y", "schema": infer_schema(rows, "y").to_dict()}
    path = save(model, task.folder / "model.sixfold", facts=facts)
    return Prediction(path, task.folder / "ours.csv", model.predict(task.X))


def predict_ours(job: Prediction, task: FileTask) -> Prediction:
    from sixfold.app.commands import predict

    predict.run(str(job.model), str(task.path), str(job.output), quiet=True)
    return job


def in_memory(task: FileTask) -> Prediction:
    model = theirs(task)
    return Prediction(model, task.folder / "theirs.csv", model.predict(task.X.to_pandas()))


def predict_theirs(job: Prediction, task: FileTask) -> Prediction:
    """Answer the file in portions, label and probabilities, as `sixfold predict` does."""
    import pandas as pd

    for number, part in enumerate(pd.read_csv(task.path, chunksize=PORTION)):
        shares = job.model.predict_proba(part)
        labels = job.model.classes_[shares.argmax(axis=1)]
        columns = {f"probability of {name}": shares[:, k] for k, name in enumerate(job.model.classes_)}
        answer = pd.DataFrame({"prediction": labels, **columns})
        answer.to_csv(job.output, index=False, mode="a" if number else "w", header=number == 0)
    return job


def labels_changed(task: FileTask, job: Prediction) -> float:
    import polars as pl

    written = pl.read_csv(job.output)["prediction"].to_numpy()
    return float(np.mean(written != job.expected)) if written.size == len(job.expected) else 1.0


def in_polars(task: FileTask) -> Any:
    return task.X


def in_pandas(task: FileTask) -> Any:
    return task.X.to_pandas()


def encode_ours(frame: Any, task: FileTask) -> Any:
    from sixfold import TableEncoder

    return TableEncoder().fit_transform(frame)


def encode_theirs(frame: Any, task: FileTask) -> Any:
    return theirs_before().fit_transform(frame)


def encoded_apart(task: FileTask, encoded: Any) -> float:
    """Return the largest difference from standardised columns of numbers."""
    values = task.X.select(task.X.columns[:NUMBERS]).to_numpy()
    exact = (values - values.mean(axis=0)) / values.std(axis=0)
    return float(np.abs(encoded[:, :NUMBERS] - exact).max())


def stored(task: FileTask) -> Any:
    """Return neighbours, whose file holds all rows."""
    from sixfold import KNeighborsClassifier

    X = task.X.select(task.X.columns[:NUMBERS]).to_numpy()
    model = KNeighborsClassifier().fit(X, task.y)
    return model, X[:100], model.predict(X[:100]), task.folder / "neighbours.sixfold"


def through_our_file(job: Any, task: FileTask) -> Any:
    from sixfold import load, save

    model, rows, expected, path = job
    return load(save(model, path)).predict(rows), expected


def through_joblib(job: Any, task: FileTask) -> Any:
    import joblib

    model, rows, expected, path = job
    joblib.dump(model, path.with_suffix(".joblib"))
    return joblib.load(path.with_suffix(".joblib")).predict(rows), expected


def answers_changed(task: FileTask, answer: Any) -> float:
    return float(np.mean(answer[0] != answer[1]))


CASES = (
    Case(
        "predict_file",
        "answers for a CSV file, 500,000 x 28",
        partial(mixed_table, 500_000),
        (
            Contender("sixfold", saved, predict_ours, unchanged),
            Contender("scikit-learn, pandas", in_memory, predict_theirs, unchanged),
        ),
        labels_changed,
        accuracy=0.0,
        with_memory=False,
    ),
    Case(
        "encode_table",
        "mixed table to numbers, 500,000 x 28",
        partial(mixed_table, 500_000),
        (
            Contender("sixfold", in_polars, encode_ours, unchanged),
            Contender("scikit-learn, pandas", in_pandas, encode_theirs, unchanged),
            Contender("scikit-learn, Polars", in_polars, encode_theirs, unchanged),
        ),
        encoded_apart,
        accuracy=1e-9,
        with_memory=False,
    ),
    Case(
        "model_file",
        "save, load and predict: neighbours, 100,000 x 26",
        partial(mixed_table, 100_000),
        (
            Contender("sixfold", stored, through_our_file, unchanged),
            Contender("joblib", stored, through_joblib, unchanged),
        ),
        answers_changed,
        accuracy=0.0,
        with_memory=False,
        long=True,
    ),
)
