"""Scans whose files are read by the workers of a cluster: the models of the same rows in memory."""

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

from sixfold import SVC, LinearRegression, LogisticRegression, TableEncoder, scan
from sixfold.data.scan.pieces import PieceReader, pieces_of
from sixfold.errors import InputError

# Of sockets of clusters that other tests in this process have killed workers of.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
ROWS = 900


@pytest.fixture(scope="module")
def client():
    """Give a cluster whose one worker is a thread of this process."""
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as one,
    ):
        yield one


@pytest.fixture
def folder(tmp_path):
    """Write four files, the last with a town that no other has, and one with no rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    number = X @ [1.0, -2.0] + rng.normal(size=ROWS)
    towns = np.array(["Ulm", "Bonn", "Kiel"])[np.arange(ROWS) % 2 + (np.arange(ROWS) > 800)]
    columns = {"a": X[:, 0], "b": X[:, 1], "town": towns, "w": rng.uniform(0.5, 2.0, ROWS), "number": number}
    columns["label"] = np.where(number + rng.logistic(size=ROWS) > 0, "yes", "no")
    for part, (begin, end) in enumerate([(0, 100), (100, 100), (100, 700), (700, ROWS)]):
        table = pa.table({name: values[begin:end] for name, values in columns.items()})
        pq.write_table(table, tmp_path / f"{part}.parquet", row_group_size=150)
    return tmp_path


@pytest.mark.parametrize(
    ("model", "target"),
    [(LogisticRegression(), "label"), (LinearRegression(), "number")],
    ids=["label", "number"],
)
def test_workers_read_what_this_process_would_read(client, folder, model, target):
    given = {"target": target, "weight": "w", "columns": ["a", "b"]}
    plain = model.fit(scan(folder, **given))
    coef, intercept, objective = plain.coef_.copy(), plain.intercept_, plain.certificate_.objective
    found = model.fit(scan(folder, **given, client=client))
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-9)
    np.testing.assert_allclose(found.intercept_, intercept, rtol=1e-9)
    assert found.certificate_.objective == pytest.approx(objective, rel=1e-9)
    assert found.feature_names_in_.tolist() == ["a", "b"]
    assert found.certificate_.converged
    assert found.score(scan(folder, **given)) == pytest.approx(model.score(scan(folder, **given)))


def test_an_encoder_goes_to_the_workers(client, folder):
    given = {"target": "label", "columns": ["a", "town"]}
    plain = LogisticRegression().fit(scan(folder, **given, encoder=TableEncoder()))
    found = LogisticRegression().fit(scan(folder, **given, encoder=TableEncoder(), client=client))
    assert found.feature_names_in_.tolist() == ["a", "town=Bonn", "town=Kiel", "town=Ulm"]
    np.testing.assert_allclose(found.coef_, plain.coef_, rtol=1e-9, atol=1e-12)


def test_pieces_are_row_groups_and_cover_every_row(folder, monkeypatch):
    monkeypatch.setattr("sixfold.data.scan.pieces.PIECE", 200)
    table = scan(folder, target="number", columns=["a", "b"])
    pieces, read = pieces_of(table), PieceReader(table)
    assert [len(piece.groups) for piece in pieces if piece.file.endswith("2.parquet")] == [2, 2]
    frames = [read(piece) for piece in pieces]
    np.testing.assert_array_equal(np.concatenate([frame[["a", "b"]] for frame in frames]), table.read().X)


def test_what_needs_all_rows_says_so(client, folder):
    with pytest.raises(InputError, match="SVC needs all rows"):
        SVC().fit(scan(folder, target="label", columns=["a"], client=client))
    with pytest.raises(InputError, match="requires y"):
        LogisticRegression().fit(scan(folder, columns=["a"], client=client))
    with pytest.raises(InputError, match="beside a scan"):
        LogisticRegression().fit(scan(folder, columns=["a"], client=client), [0, 1])
