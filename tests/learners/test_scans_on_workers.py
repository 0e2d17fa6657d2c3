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


def folder_of(path, *tables):
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), path / f"{number}.parquet", row_group_size=100)
    return path


def whole(rows=300, **others):
    a = np.arange(rows) * 1.0
    return {"a": a, "b": -a, "y": np.arange(rows) % 2, **others}


def with_one(place, value):
    column = np.zeros(300)
    column[place] = value
    return column


@pytest.mark.parametrize(
    ("bad", "target", "words"),
    [
        (whole(b=with_one(250, np.nan)), "y", "NaN: in column 'b', row 250, .*1.parquet"),
        (whole(b=with_one(120, -np.inf)), "y", "infinity: in column 'b', row 120, .*1.parquet"),
        (whole(y=with_one(250, np.nan)), "y", "target='y' is nan in row 250, .*1.parquet"),
        (
            whole(town=pa.array([None if k == 77 else "u" for k in range(300)])),
            "town",
            "target='town' has no value in row 77, .*1.parquet",
        ),
    ],
    ids=["gap", "infinity", "target", "label"],
)
def test_what_cannot_be_computed_with_is_named_by_file_and_row(
    client, tmp_path, monkeypatch, bad, target, words
):
    monkeypatch.setattr("sixfold.data.scan.pieces.PIECE", 100)
    first = whole(town=["u", "v"] * 150) if target == "town" else whole()
    table = scan(folder_of(tmp_path, first, bad), target=target, columns=["a", "b"], client=client)
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    before = dict(vars(model))
    with pytest.raises(InputError, match=words):
        model.fit(table)
    assert vars(model) == before


def cut_off(path):
    path.write_bytes(path.read_bytes()[:900])


def damage(path):
    found = bytearray(path.read_bytes())
    found[100:2000] = bytes(range(256)) * 8
    path.write_bytes(found[: path.stat().st_size])


@pytest.mark.parametrize("spoil", [cut_off, damage, lambda path: path.unlink()])
def test_files_that_are_spoilt_after_the_scan_are_named(client, tmp_path, spoil):
    table = scan(folder_of(tmp_path, whole(), whole(3000)), target="y", client=client)
    spoil(tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"1\.parquet' cannot be read.*Is it complete"):
        LogisticRegression().fit(table)


def test_csv_files_of_which_one_has_no_rows(client, tmp_path):
    (tmp_path / "0.csv").write_text("a,y\n" + "".join(f"{k % 7},{k % 2}\n" for k in range(50)))
    (tmp_path / "1.csv").write_text("a,y\n")
    found = LogisticRegression().fit(scan(tmp_path, target="y", client=client))
    plain = LogisticRegression().fit(scan(tmp_path, target="y"))
    np.testing.assert_allclose(found.coef_, plain.coef_, rtol=1e-9)


def test_float32_stays_float32(client, tmp_path):
    single = np.random.default_rng(0).normal(size=300).astype(np.float32)
    folder_of(tmp_path, {"a": single, "y": np.arange(300) % 2})
    found = LogisticRegression(tol=1e-4).fit(scan(tmp_path, target="y", client=client))
    assert found.coef_.dtype == LogisticRegression().fit(scan(tmp_path, target="y")).coef_.dtype == np.float32


def test_what_needs_all_rows_says_so(client, folder):
    with pytest.raises(InputError, match="SVC needs all rows"):
        SVC().fit(scan(folder, target="label", columns=["a"], client=client))
    with pytest.raises(InputError, match="requires y"):
        LogisticRegression().fit(scan(folder, columns=["a"], client=client))
    with pytest.raises(InputError, match="beside a scan"):
        LogisticRegression().fit(scan(folder, columns=["a"], client=client), [0, 1])
