"""Tables that are written piece by piece: formats, atomic writes, errors before the work."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from sixfold.app.table_output import output_format, stdout_writer, table_writer
from sixfold.errors import InputError, UsageError

FIRST = pl.DataFrame({"name": ["a", 'b "quoted", b'], "p": [0.1, 1e-300]})
SECOND = pl.DataFrame({"name": ["line\nbreak", "价格"], "p": [None, 0.3]})
READERS = {
    "out.csv": pl.read_csv,
    "out.CSV": pl.read_csv,
    "out.csv.gz": pl.read_csv,
    "out.tsv": lambda path: pl.read_csv(path, separator="\t"),
    "out.tsv.gz": lambda path: pl.read_csv(path, separator="\t"),
    "out.jsonl": pl.read_ndjson,
    "out.ndjson.gz": lambda path: pl.read_ndjson(gzip.decompress(path.read_bytes())),
    "out.parquet": pl.read_parquet,
    "out.arrow": pl.read_ipc,
    "out.feather": pl.read_ipc,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("pieces", [[FIRST], [FIRST, SECOND], [FIRST.clear(), SECOND, FIRST]])
def test_pieces_are_read_back_as_one_table(tmp_path, name, pieces):
    path = tmp_path / name
    with table_writer(path) as writer:
        for piece in pieces:
            writer.write(piece)
            assert not path.exists()
    assert READERS[name](path).equals(pl.concat(pieces))
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["out.csv", "out.tsv.gz", "out.parquet", "out.arrow"])
def test_no_rows_leave_a_header(tmp_path, name):
    with table_writer(tmp_path / name) as writer:
        writer.write(FIRST.clear())
    assert READERS[name](tmp_path / name).columns == ["name", "p"]


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.jsonl", "out.parquet", "out.arrow"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, InputError])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, name, error):
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(error), table_writer(path) as writer:  # noqa: PT012
        writer.write(FIRST)
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        with table_writer(tmp_path / name) as writer:
            writer.write(FIRST)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("out.xlsx", "ends with .xlsx, which says no format. Use one of .csv"),
        ("out", "has no ending"),
        ("out.gz", "has no ending"),
        ("out.parquet.gz", "Use 'out.parquet'"),
        ("missing/out.csv", "does not exist"),
        ("file/out.csv", "is a file"),
        ("folder.csv", "is a folder: name a file in it"),
    ],
)
def test_what_cannot_be_written_is_found_before_the_work(tmp_path, name, said):
    (tmp_path / "file").touch()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError) as error, table_writer(tmp_path / name):
        pytest.fail("the work began")
    assert said in str(error.value)


def test_a_folder_without_permission_is_found_before_the_work(tmp_path, monkeypatch):
    def refused(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refused)
    with (
        pytest.raises(UsageError, match=r"cannot be written to \(Permission denied\)"),
        table_writer(tmp_path / "a.csv"),
    ):
        pytest.fail("the work began")


def test_a_full_disk_is_told_in_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"Writing '.*a.csv' failed: No space left on device"):  # noqa: PT012, SIM117
        with table_writer(tmp_path / "a.csv") as writer:

            class Full:
                def write(self, data):
                    raise OSError(28, "No space left on device")

                def close(self):
                    raise OSError(28, "No space left on device")

            monkeypatch.setattr(writer, "file", Full())
            writer.write(FIRST)
    assert not list(tmp_path.iterdir())


def test_lists_do_not_fit_into_text(tmp_path):
    nested = pl.DataFrame({"tags": [["a"], ["b", "c"]]})
    with (
        pytest.raises(InputError, match="column 'tags' holds lists or records"),
        table_writer(tmp_path / "a.csv") as writer,
    ):
        writer.write(nested)
    with table_writer(tmp_path / "a.jsonl") as writer:
        writer.write(nested)
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[1]) == {"tags": ["b", "c"]}


@pytest.mark.parametrize(("name", "read"), [("a.parquet", pl.read_parquet), ("a.arrow", pl.read_ipc)])
def test_pieces_of_other_types_find_a_common_one(tmp_path, name, read):
    pieces = [
        pl.DataFrame({"n": [1], "x": [1], "t": [1], "e": [None]}),
        pl.DataFrame({"n": [2], "x": [0.5], "t": ["two"], "e": ["there"]}),
    ]
    with table_writer(tmp_path / name) as writer:
        for piece in pieces:
            writer.write(piece)
    found = read(tmp_path / name)
    assert found.dtypes == [pl.Int64, pl.Float64, pl.String, pl.String]
    assert found.rows() == [(1, 1.0, "1", None), (2, 0.5, "two", "there")]


def test_stdout_takes_rows(capsys):
    with stdout_writer() as writer:
        writer.write(FIRST.head(1))
        writer.write(SECOND.tail(1))
    assert capsys.readouterr().out == "name,p\na,0.1\n价格,0.3\n"


def test_endings_are_looked_at_without_their_case():
    assert output_format(Path("A.Csv.GZ")) == ("csv", True)
