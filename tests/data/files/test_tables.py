from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sixfold.data.files import file_bytes, tables
from sixfold.data.files.tables import TableFileError, read_table, table_batches
from sixfold.errors import InputError

FRAME = pl.DataFrame({"size": [1.5, None, 3.25], "kind": ["a", "b", None], "count": [1, 2, 3]})


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(path: Path) -> list[tuple[object, ...]]:
    """Return the rows of a file, after a look whether batches give the same."""
    frame = read_table(path).frame
    batches = pl.concat(table_batches(path, rows=2), how="vertical_relaxed")
    assert batches.columns == frame.columns
    assert batches.height == frame.height
    return frame.rows()


def refusal(path: Path) -> str:
    """Return the message of a file that cannot be read; batches have the same."""
    with pytest.raises(InputError) as whole:
        read_table(path)
    with pytest.raises(InputError) as batches:
        list(table_batches(path, rows=2))
    first, second = str(whole.value), str(batches.value)
    assert first.split(":", maxsplit=1)[0] == second.split(":", maxsplit=1)[0]
    return first


WRITERS: dict[str, Callable[[Path], object]] = {
    "a.csv": FRAME.write_csv,
    "a.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "a.txt": lambda path: FRAME.write_csv(path, separator="|"),
    "a.parquet": FRAME.write_parquet,
    "a.arrow": FRAME.write_ipc,
    "a.feather": lambda path: FRAME.write_ipc(path, compression="zstd"),
    "stream.arrow": FRAME.write_ipc_stream,
    "a.jsonl": FRAME.write_ndjson,
    "a.ndjson": FRAME.write_ndjson,
    "a.json": FRAME.write_json,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".xz"])
def test_every_format_also_compressed(tmp_path: Path, name: str, packed: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    packers = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    if packed:
        path = write(tmp_path, name + packed, packers[packed](path.read_bytes()))
    assert rows(path) == FRAME.rows()
    table = read_table(path)
    formats = {"csv": "csv", "tsv": "tsv", "txt": "csv", "parquet": "parquet", "json": "json lines"}
    ending = name.split(".")[1]
    expected = formats.get(ending, "arrow" if ending in ("arrow", "feather") else "json lines")
    assert (table.format, table.name, table.bytes) == (
        expected,
        name.split(".", maxsplit=1)[0],
        path.stat().st_size,
    )


def test_zstandard(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "a.csv.zst", compression="zstd")
    assert rows(tmp_path / "a.csv.zst") == FRAME.rows()


def test_gzip_is_known_without_its_ending(tmp_path: Path) -> None:
    assert rows(write(tmp_path, "a.csv", gzip.compress(b"a,b\n1,2\n"))) == [(1, 2)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, line_end: str) -> None:
    text = line_end.join(["größe,b", "ä €,2", "ö,3", ""])
    path = write(tmp_path, "a.csv", text.encode(encoding))
    assert rows(path) == [("ä €", 2), ("ö", 3)]
    assert read_table(path).frame.columns == ["größe", "b"]


def test_big_endian_with_mark(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"\xfe\xff" + "a,b\nä,2\n".encode("utf-16-be"))
    assert rows(path) == [("ä", 2)]
    assert read_table(path).encoding == "utf-16-be"


def test_windows_1252_is_said_with_the_first_line_that_shows_it(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "name;x\nA;1\nMüller \u2013 5 €;2\n".encode("cp1252"))
    assert rows(path) == [("A", 1), ("Müller \u2013 5 €", 2)]
    table = read_table(path)
    assert table.encoding == "cp1252"
    assert table.notes[-1] == "line 3 is not UTF-8, so such lines were read as Windows-1252 (Latin-1)"


def test_mixed_encodings_are_told_apart_line_by_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"name,x\n" + "Zoë,1\n".encode() + "Zoë,2\n".encode("latin-1"))
    assert rows(path) == [("Zoë", 1), ("Zoë", 2)]
    assert rows(write(tmp_path, "b.csv", b"name,x\n\x81\xe4,1\n")) == [("\x81ä", 1)]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
def test_the_delimiter_is_found_whatever_the_ending(tmp_path: Path, mark: str, ending: str) -> None:
    text = "\n".join(mark.join(row) for row in [("a", "b", "c"), ("x y", "2", "3"), ("z", "5", "6")])
    path = write(tmp_path, f"a.{ending}", text)
    assert rows(path) == [("x y", 2, 3), ("z", 5, 6)]
    assert read_table(path).delimiter == mark


def test_decimal_commas_do_not_divide(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a;b\n1,5;2,5\n3,5;4,5\n")
    assert rows(path) == [("1,5", "2,5"), ("3,5", "4,5")]


def test_points_are_left_as_text_beside_decimal_commas(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a;b;c\n1,5;2.500;1\n3,5;4.000;2\n")
    assert rows(path) == [("1,5", "2.500", 1), ("3,5", "4.000", 2)]


def test_quoted_fields_hold_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    text = 'a,b,c\n1,"x, ""y""\nz",3\n2,"",\n'
    assert rows(write(tmp_path, "a.csv", text)) == [(1, 'x, "y"\nz', 3), (2, "", None)]


def test_quotes_inside_fields_are_text(tmp_path: Path) -> None:
    text = 'a,b,c\n1,5" pipe,3\n2,6" pipe,4\n3,7" pipe,5\n'
    assert rows(write(tmp_path, "a.csv", text)) == [(1, '5" pipe', 3), (2, '6" pipe', 4), (3, '7" pipe', 5)]


def test_quotes_that_never_close_are_text_where_every_line_is_whole_without_them(tmp_path: Path) -> None:
    text = 'a\tb\n"the\t1\nlong"\t2\nday\t3\n"again\t4\n'
    assert rows(write(tmp_path, "a.tsv", text)) == [('"the', 1), ('long"', 2), ("day", 3), ('"again', 4)]


@pytest.mark.parametrize("odd", ['5" pipe', '"pipe', '"'])
def test_a_lone_quote_does_not_swallow_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    monkeypatch.setattr(file_bytes, "BLOCK", 64)
    monkeypatch.setattr(file_bytes, "LONGEST_RECORD", 256)
    lines = [f"{k},{odd if k == 5 else 'tube'},{k + 1}" for k in range(200)]
    frame = read_table(write(tmp_path, "a.csv", "\n".join(["a,b,c", *lines]))).frame
    assert frame["a"].to_list() == list(range(200))
    assert frame["b"].to_list() == ["tube"] * 5 + [odd] + ["tube"] * 194


@pytest.mark.parametrize(
    ("text", "columns", "first"),
    [
        ("a,b,\n1,2,\n3,4,\n", ["a", "b"], (1, 2)),
        ("a,b\n1,2,\n3,4,\n", ["a", "b"], (1, 2)),
        ("a,b,\n1,2\n3,4\n", ["a", "b"], (1, 2)),
        ("\n\na,b\n1,2\n", ["a", "b"], (1, 2)),
        ("# made by x, y\n#\na,b\n1,2\n", ["a", "b"], (1, 2)),
        ("#a,b\n1,2\n3,4\n", ["a", "b"], (1, 2)),
        ("sep=;\na;b\n1;2\n", ["a", "b"], (1, 2)),
        ("Report of May;;\n;;\na;b;c\n1;2;3\n4;5;6\n", ["a", "b", "c"], (1, 2, 3)),
        (" a , b\n1,2\n", ["a", "b"], (1, 2)),
        ('" a ","b"\n1,2\n', ["a", "b"], (1, 2)),
        (",b\n7,2\n8,4\n", ["column 1", "b"], (7, 2)),
        ("Unnamed: 0,b\n7,2\n8,4\n", ["column 1", "b"], (7, 2)),
        ("a,b\n1,2\n\n   \n,\n3,4\n,\n\n", ["a", "b"], (1, 2)),
        ("a,b\nr1,1,2\nr2,3,4\n", ["row name", "a", "b"], ("r1", 1, 2)),
        ("1.5,2\n3.5,4\n", ["column 1", "column 2"], (1.5, 2)),
        ("0,1,2\n7,8,9\n", ["0", "1", "2"], (7, 8, 9)),
        ("2019,2020\n7,8\n", ["2019", "2020"], (7, 8)),
        ("a, b\n1, 2\n", ["a", "b"], (1, 2)),
    ],
)
def test_headers_and_lines_around_them(
    tmp_path: Path, text: str, columns: list[str], first: tuple[object, ...]
) -> None:
    path = write(tmp_path, "a.csv", text)
    found = rows(path)
    assert read_table(path).frame.columns == columns
    assert found[0] == first
    assert len(found) <= 2


def test_notes_say_what_was_done(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "# x\na;;b\n1;5;N/A\n\n2;6;3\n")
    assert read_table(path).notes == (
        "comment lines above the header were passed over",
        "fields are separated by semicolons",
        "without a name in the header: column 2",
        "1 blank row passed over",
        "'N/A' among numbers counted as missing",
    )
    assert "only numbers" in read_table(write(tmp_path, "b.csv", "1.5,2\n3,4\n")).notes[0]


@pytest.mark.parametrize("block", [8, 1 << 20])
def test_blank_rows_are_counted_but_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(file_bytes, "BLOCK", block)
    path = write(tmp_path, "a.csv", "a,b\n\n1,2\n,\n\n\n3,4\n,\n\n")
    assert rows(path) == [(1, 2), (3, 4)]
    assert read_table(path).notes == ("4 blank rows passed over",)
    assert read_table(write(tmp_path, "b.csv", "a,b\n1,2\n,\n\n")).notes == ()


@pytest.mark.parametrize("block", [2, 1 << 20])
def test_a_column_of_one_has_gaps_but_no_blank_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(file_bytes, "BLOCK", block)
    assert rows(write(tmp_path, "a.csv", "a\n1\n\n\n\n3\n\n\n")) == [(1,), *[(None,)] * 3, (3,)]


def test_codes_with_leading_zeros_and_telephone_numbers_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "zip,phone,x\n02139,+4930123,1\n10001,+4930124,-0.5\n")
    assert rows(path) == [("02139", "+4930123", 1.0), ("10001", "+4930124", -0.5)]


def test_words_that_are_missing_only_among_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "mark,x\nx,1\n,x\nx,2.5\n")
    assert rows(path) == [("x", 1.0), (None, None), ("x", 2.5)]


def test_huge_numbers(tmp_path: Path) -> None:
    text = "a,b,c\n9223372036854775808,1e400,9223372036854775807\n1,2,1\n"
    path = write(tmp_path, "a.csv", text)
    assert read_table(path).frame.rows() == [(2.0**63, "1e400", 2**63 - 1), (1.0, "2", 1)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_bytes, "BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
def test_a_column_whose_first_text_comes_late_is_text_from_the_start(tmp_path: Path) -> None:
    lines = ["1.50,7,"] * 50 + ["late,007,5"] + ["2.50,8,NA"] * 50
    frame = read_table(write(tmp_path, "a.csv", "a,b,c\n" + "\n".join(lines))).frame
    assert frame["a"].to_list() == ["1.50"] * 50 + ["late"] + ["2.50"] * 50
    assert frame["b"].to_list() == ["7"] * 50 + ["007"] + ["8"] * 50
    assert frame["c"].to_list() == [None] * 50 + [5] + [None] * 50


@pytest.mark.usefixtures("small_blocks")
def test_line_numbers_of_later_blocks(tmp_path: Path) -> None:
    good = ["1,2,3", '4,"x\ny",6'] * 40
    for bad, found in (("7,8", "2 fields, fewer"), ("7,8,9,0", "4 fields, more")):
        path = write(tmp_path, "a.csv", "\n".join(["a,b,c", *good, bad, *good]))
        assert refusal(path).startswith(f"a.csv, line 122: {found} than the 3 that the header names.")
    lines = ['{"a": 1}'] * 50 + ['{"a": ']
    assert refusal(write(tmp_path, "a.jsonl", "\n".join(lines))).startswith("a.jsonl, line 51 is not JSON")


@pytest.mark.usefixtures("small_blocks")
def test_the_line_that_is_not_utf8_may_come_late(tmp_path: Path) -> None:
    lines = [b"a,b"] + [b"x,1"] * 100 + ["ä,1".encode("cp1252")]
    assert (
        read_table(write(tmp_path, "a.csv", b"\n".join(lines))).notes[-1].startswith("line 102 is not UTF-8")
    )


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(-(10**9), 10**9),
            st.text(
                st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]),
                max_size=30,
            ),
            st.sampled_from(["1.5", "2", "N/A", "x", "-3e5"]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 50),
)
def test_batches_equal_the_whole(tmp_path: Path, records: list[tuple[int, str, str]], size: int) -> None:
    path = tmp_path / "a.csv"
    frame = pl.DataFrame(records, schema={"n": pl.Int64, "text": pl.String, "m": pl.String}, orient="row")
    frame.write_csv(path, quote_style="always")
    whole = read_table(path).frame
    batches = list(table_batches(path, rows=size))
    assert [one.height for one in batches[:-1]] == [size] * (len(batches) - 1)
    assert whole["n"].to_list() == frame["n"].to_list()
    assert pl.concat(batches).rows() == frame.with_columns(pl.col("n").cast(pl.String)).rows()
    if not frame["text"].str.contains(r"[0-9]").any():
        assert whole["text"].cast(pl.String).to_list() == frame["text"].to_list()


def test_json_of_many_shapes(tmp_path: Path) -> None:
    lines = [{"a": 1, "b": "x"}, {"a": 2.5}, {"c": [1], "a": None}]
    path = write(tmp_path, "a.jsonl", "\n\n".join(json.dumps(one) for one in lines))
    assert read_table(path).frame.rows() == [(1.0, "x", None), (2.5, None, None), (None, None, [1])]
    mixed = write(tmp_path, "b.jsonl", '{"a": 1}\n{"a": true}\n{"a": NaN}\n')
    assert read_table(mixed).frame["a"].to_list() == [1, 1, None]


def test_json_batches_have_the_columns_that_are_needed(tmp_path: Path) -> None:
    from sixfold.data.columns.schema import ColumnSchema, TableSchema

    schema = TableSchema((ColumnSchema("a", "number"), ColumnSchema("b", "category")))
    path = write(tmp_path, "a.jsonl", '{"a": 1}\n{"a": 2}\n')
    (batch,) = table_batches(path, schema)
    assert schema.typed(batch).rows() == [(1.0, None), (2.0, None)]


def workbook(inner: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(inner, "x")
    return stream.getvalue()


PACKED = gzip.compress(os.urandom(2000).hex().encode())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "\n \n", "a.csv is empty"),
        ("a.csv", "# only a comment\n", "a.csv is empty but for comments"),
        ("a.csv", "a,b,c\n1,2,3\n4,5\n", "a.csv, line 3: 2 fields, fewer than the 3 that the header names."),
        ("a.csv", "a,b\n1,2\n1,2,3\n", 'a comma, put it between quotes ("...").'),
        ("a.csv", 'a,b\n1,"2,5\n3,4\n', "a.csv, line 2: a quote opens a field that is never closed."),
        ("a.csv", "a,b,a,b\n1,2,3,4\n", "several columns of one name: 'a', 'b'"),
        ("a.csv", "a,a \n1,2\n", "several columns of one name: 'a'"),
        ("a.csv", "a,b,\n" + "1,2,\n" * 300 + "1,2,3\n", "has values in field 3"),
        ("a.csv", workbook("xl/workbook.xml"), "an Excel workbook: open it and save the sheet as CSV"),
        ("a.csv", workbook("a.csv"), "a zip archive: unpack it"),
        ("a.csv", b"\xd0\xcf\x11\xe0" + b"\0" * 100, "an old Excel workbook"),
        ("a.csv", bytes(range(256)) * 9, "holds binary data"),
        ("a.csv", b"%PDF-1.4 ...", "a PDF document"),
        ("a.csv", b"<!DOCTYPE html><html>", "is a web page"),
        ("a.csv", b"SQLite format 3\0...", "an SQLite database"),
        ("a.csv", b"\xff\xfea\0,\0b\0\n\0\x00\xd8a\0", "begins as UTF-16-LE text"),
        ("a.csv.gz", PACKED[:-100], "its end is missing"),
        ("a.csv.gz", PACKED[:-8] + b"\0" * 8, "damaged (CRC check failed"),
        ("a.csv.gz", PACKED[:20] + b"\xff" * 50 + PACKED[70:], "a.csv.gz is compressed, but damaged"),
        ("a.parquet.gz", gzip.compress(b"PAR1" + os.urandom(300_000))[:-100], "its end is missing"),
        ("a.parquet", "a,b\n1,2\n", "not a Parquet file"),
        ("a.parquet", b"PAR1" + b"\0" * 50, "a Parquet file that is damaged or cut off"),
        ("a.arrow", b"ARROW1\0\0" + b"\0" * 50, "an Arrow file that is damaged or cut off"),
        ("a.json", '{\n"a": [1, 2]\n}\n', "one JSON object, not a table"),
        ("a.json", '{"a": [1, 2]}', "one JSON object, not a table"),
        ("a.json", "[1, 2]", "not of objects"),
        ("a.json", "[]", "not of objects"),
        ("a.json", '[{"a": 1},', "a.json is not JSON"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "a.jsonl, line 2 is not JSON"),
        ("a.jsonl", '{"a": 1}\n[1]\n', "a.jsonl, line 2 is not an object"),
        ("a.jsonl", "a,b\n1,2\n", "a.jsonl, line 1 is not JSON"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    assert message in refusal(write(tmp_path, name, content))


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\n\n,\n", "a;b\r\n;\r\n"])
def test_a_header_alone_is_no_table_but_an_empty_batch(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "a.csv", text)
    with pytest.raises(TableFileError, match=r"a\.csv has names of columns, but no rows"):
        read_table(path)
    (batch,) = table_batches(path)
    assert (batch.columns, batch.height) == (["a", "b"], 0)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    write(tmp_path, "churn.csv", "a,b\n1,2\n")
    assert refusal(tmp_path / "chrun.csv").endswith(f"Did you mean {tmp_path / 'churn.csv'}?")
    assert refusal(tmp_path / "zzz.parquet").endswith("Check the name, and the folder it is in.")
    assert "is not there either" in refusal(tmp_path / "nowhere" / "a.csv")
    assert "is a folder" in refusal(tmp_path)


def test_a_damaged_parquet_page(tmp_path: Path) -> None:
    pl.DataFrame({"a": range(1000), "b": ["x", "y"] * 500}).write_parquet(tmp_path / "a.parquet")
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[8:60] = b"\xff" * 52
    assert "damaged" in refusal(write(tmp_path, "a.parquet", bytes(data)))


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Given:
        buffer = io.BytesIO(b"a,b\n1,2\n")

    monkeypatch.setattr(tables.sys, "stdin", Given)
    table = read_table("-")
    assert (table.frame.rows(), table.name) == ([(1, 2)], "standard input")


MEASURE = """
import re, sys
from pathlib import Path
from sixfold.data.files.tables import table_batches

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

batches = table_batches(sys.argv[1], rows=20_000)
rows = next(batches).height
before = peak()
rows += sum(batch.height for batch in batches)
print(rows, (peak() - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_batches_need_no_more_memory_for_more_rows(tmp_path: Path, name: str) -> None:
    numbers = np.random.default_rng(0).random((400_000, 12))
    frame = pl.DataFrame(numbers)
    if name == "a.parquet":
        frame.write_parquet(tmp_path / name, row_group_size=20_000)
    else:
        data = frame.write_csv().encode()
        write(tmp_path, name, gzip.compress(data, 1) if name.endswith("gz") else data)
    command = [sys.executable, "-c", MEASURE, str(tmp_path / name)]
    rows, grown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(rows) == 400_000
    # The numbers alone are 38 MB, as text 96.
    assert int(grown) < (35 if name == "a.parquet" else 60)


def test_unicode_names_and_one_row(tmp_path: Path) -> None:
    assert rows(write(tmp_path, "größe 🐕.csv", "ä 🐕,b\n1,2")) == [(1, 2)]
    assert read_table(tmp_path / "größe 🐕.csv").name == "größe 🐕"
