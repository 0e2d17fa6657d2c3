"""Folders, globs and --memory-limit: the same models, predictions and checks as of one file in memory."""

import io
import json
import os
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sixfold.app import cli, fitting, many_files, stored_rows
from sixfold.app.commands import predict
from sixfold.app.fitting import FitOptions, run_fit
from sixfold.app.many_files import pieces, plain_name
from sixfold.app.saved_model.model import open_model
from sixfold.app.stored_rows import RowSample
from sixfold.app.stored_rows import stored_rows as stored
from sixfold.data.columns.schema import infer_schema
from sixfold.errors import InputError, UsageError
from sixfold.explain.last_step import last_step
from sixfold.selection import refit

PARTS = ((0, 150), (150, 150), (150, 151), (151, 400))


@pytest.fixture
def table(folder):
    """Write a table into one file and into several, as CSV, Parquet, Arrow and JSON lines."""
    random = np.random.default_rng(0)
    rows = 400
    x = random.normal(50.0, 20.0, (rows, 2)).round(2)
    frame = pl.DataFrame(
        {
            "number": np.arange(1, rows + 1),
            "a": x[:, 0],
            "b": x[:, 1],
            "city": random.choice(["Bern", "Zürich", "Łódź"], rows),
            "since": pl.Series(np.datetime64("2020-01-01") + random.integers(0, 900, rows)),
            "weight": random.integers(1, 4, rows),
            "y": np.where(x[:, 0] + random.normal(0.0, 10.0, rows) > 50, "yes", "no"),
        }
    ).with_columns(
        b=pl.when(pl.int_range(pl.len()) % 17 == 3).then(None).otherwise("b"),
        y=pl.when(pl.int_range(pl.len()) % 50 == 7).then(None).otherwise("y"),
    )
    writers = {
        "csv": pl.DataFrame.write_csv,
        "parquet": pl.DataFrame.write_parquet,
        "arrow": pl.DataFrame.write_ipc,
        "jsonl": pl.DataFrame.write_ndjson,
    }
    for ending, write in writers.items():
        os.mkdir(ending)
        write(frame, f"whole.{ending}")
        for number, (start, stop) in enumerate(PARTS):
            if start < stop or ending != "jsonl":  # JSON lines without a line are no table
                write(frame[start:stop], f"{ending}/{number}.{ending}")
    return frame


def fitted(data, **options):
    options = {"learners": ("logistic",), "target": "y", "output": "out", **options}
    return run_fit(FitOptions(data=data, **{**options, "output": Path(options["output"])}))


def same(one, other, columns=True):
    assert np.array_equal(last_step(one.model).coef_, last_step(other.model).coef_)
    assert one.chosen.test == other.chosen.test
    assert one.schema == other.schema or not columns
    assert (len(one.y), one.dropped, one.task) == (len(other.y), other.dropped, other.task)
    assert one.X.equals(other.X)


@pytest.mark.parametrize(
    "data", ["csv", "csv/*.csv", "parquet/", "arrow/[0-9].arrow", "jsonl", "whole.csv --memory-limit 300MB"]
)
@pytest.mark.parametrize("options", [{}, {"weights": "weight"}, {"groups": "city"}])
def test_a_fit_to_files_is_that_to_one(table, data, options):
    data, _, limit = data.partition(" --memory-limit ")
    ending = data.split("/")[0].removeprefix("whole.")
    found = fitted(data, memory_limit=limit or None, **options)
    whole = fitted(f"whole.{ending}", **options)
    same(found, whole)
    assert [one.name for one in found.schema.set_aside if "counts the rows" in one.reason] == ["number"]


def test_learners_tuned_on_a_sample_are_fitted_to_all_rows_within_memory(table, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE_ROWS", 120)
    monkeypatch.setattr(refit, "PORTION", 50)
    whole, found = fitted("whole.csv"), fitted("csv", memory_limit="300MB")
    same(found, whole)
    assert found.chosen.fitted_rows == found.train.size > 300
    # Trees read rows that are in memory: as many as there is room for.
    monkeypatch.setattr(refit, "SHARE_OF_LIMIT", 250 * 8 * 8 / 300e6)
    tree = fitted("csv", memory_limit="300MB", learners=("tree",), rule="best")
    assert 240 <= tree.chosen.fitted_rows < tree.train.size
    assert any("MB as" in note for note in tree.chosen.notes)
    monkeypatch.setattr(refit, "SHARE_OF_LIMIT", 50 * 8 * 5 / 300e6)
    found = fitted("csv", memory_limit="300MB")
    assert found.chosen.fitted_rows == found.train.size
    assert any("for the sake of memory" in note for note in found.chosen.notes)


def test_commands_take_folders_and_globs(table, capsys, monkeypatch):
    assert cli.main(["fit", "csv", "-t", "y", "-l", "logistic", "-o", "out"]) == 0
    printed = capsys.readouterr().out
    assert "400 rows, 7 columns" in printed
    assert "4 files, from csv/0.csv on" in printed
    assert "explain out/csv.sixfold csv/0.csv --row 1" in printed.replace("\\\n", "").replace("  ", " ")
    assert open_model("out/csv.sixfold").facts["data"]["rows"] == 392
    for data in ("csv", "parquet/*.parquet", "whole.csv"):
        for limit in ([], ["--memory-limit", "300MB"]):
            assert cli.main(["verify", "out/csv.sixfold", data, *limit]) == 0
            printed = capsys.readouterr().out
            assert "fingerprints agree" in printed.replace("\n              ", " ")
            assert "Confirmed." in printed
    assert cli.main(["verify", "out/csv.sixfold", "csv/[013].csv"]) in (0, 1)
    assert "391 rows where the fit had 392" in capsys.readouterr().out.replace("\n              ", " ")
    monkeypatch.setattr("sixfold.app.commands.verify.PORTION", 70)
    assert cli.main(["verify", "out/csv.sixfold", "csv"]) == 0
    for data, out in (("whole.csv", "one"), ("csv", "many"), ("parquet/*", "typed")):
        assert cli.main(["predict", "out/csv.sixfold", data, "-o", f"{out}.parquet"]) == 0
    one, many, typed = (pl.read_parquet(f"{name}.parquet") for name in ("one", "many", "typed"))
    assert one.equals(many)
    assert one.equals(typed)


# -- samples ---------------------------------------------------------------------------------------------


def test_a_sample_of_few_rows_is_all_of_them(table):
    sample = RowSample()
    for piece in pieces("csv", rows=37):
        sample.add(piece.frame)
    assert sample.rows == 400
    assert sample.schema("y") == infer_schema(pl.read_csv("whole.csv", infer_schema=False), "y")


def test_a_sample_of_many_rows_says_what_columns_are(table, monkeypatch):
    monkeypatch.setattr(stored_rows, "SAMPLE_CELLS", 7 * 100)
    monkeypatch.setattr(stored_rows, "LEAST_SAMPLE", 10)
    sample = RowSample()
    for piece in pieces("parquet", rows=37):
        sample.add(piece.frame)
    assert sample.rows == 400
    assert sum(one.height for one in sample.first) == 50
    assert 10 < sum(one.height for one in sample.others) <= 50
    whole, found = infer_schema(table, "y"), sample.schema("y")
    assert [(one.name, one.kind, one.role) for one in found.columns] == [
        (one.name, one.kind, one.role) for one in whole.columns
    ]
    assert found.set_aside[0].reason == "counts the rows: 1, 2, 3, ..."


def test_keys_that_only_later_json_lines_have(table, monkeypatch):
    monkeypatch.setattr("sixfold.data.files.file_bytes.BLOCK", 2000, raising=False)
    records = table.to_dicts()
    for number, record in enumerate(records):
        record["since"] = str(record["since"])
        for key in ("b", "y") if number < 120 else ():
            del record[key]
    lines = "\n".join(json.dumps(record) for record in records)
    Path("late.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setattr(stored_rows, "pieces", partial(pieces, rows=64))
    same(fitted("late.jsonl", memory_limit="300MB"), fitted("late.jsonl"))


def test_rows_are_mapped_and_their_file_has_no_name(table, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "csv"))
    before = os.listdir("csv")
    found = stored("parquet", infer_schema(table, "y"))
    assert os.listdir("csv") == before
    assert found.mapped.nbytes > 400 * 5 * 8
    assert found.X.height == len(found.y) == 392


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no disk that is always full")
def test_a_full_disk_is_said(table, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: io.FileIO("/dev/full", "r+"))
    with pytest.raises(InputError, match=r"no space left in .* by the environment variable TMPDIR"):
        stored("parquet", infer_schema(table, "y"))


# -- what is wrong ---------------------------------------------------------------------------------------


def said(capsys, *arguments):
    code = cli.main(list(arguments))
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, " ".join(printed.err.split())


def changed(change, name="parquet/1.parquet", rows=slice(0, 30)):
    frame = pl.read_parquet("whole.parquet")[rows]
    change(frame).write_parquet(name)


def cut(path):
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 20)


CASES = {
    "no file": (lambda: None, "none.csv", 2, "There is no file none.csv"),
    "no folder": (lambda: None, "none/", 2, "There is no file none/"),
    "no match": (lambda: None, "none*.csv", 2, "No file is called like 'none*.csv'"),
    "an empty folder": (lambda: os.mkdir("none"), "none", 2, "folder 'none' holds no files"),
    "a column less": (
        lambda: changed(lambda frame: frame.drop("b")),
        "parquet",
        3,
        "parquet/1.parquet has no column 'b', which parquet/0.parquet has",
    ),
    "a column more": (
        lambda: changed(lambda frame: frame.with_columns(more=1)),
        "parquet",
        3,
        "parquet/1.parquet has a column 'more', which parquet/0.parquet does not have",
    ),
    "another type": (
        lambda: changed(lambda frame: frame.with_columns(pl.col("b").cast(pl.String))),
        "parquet",
        3,
        "Column 'b' of parquet/1.parquet holds text, and numbers in parquet/0.parquet",
    ),
    "a truncated file": (
        lambda: cut("parquet/3.parquet"),
        "parquet",
        3,
        "parquet/3.parquet is a Parquet file",
    ),
    "no rows": (
        lambda: [changed(lambda frame: frame[:0], f"parquet/{k}.parquet") for k in range(4)],
        "parquet",
        3,
        "no rows",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_files_that_cannot_be_used(case, table, capsys):
    prepare, data, expected, words = CASES[case]
    prepare()
    code, sentence = said(capsys, "fit", data, "-t", "y", "-l", "tree", "-o", "out")
    assert code == expected
    assert words in sentence
    assert os.listdir("out") == []


def test_text_among_numbers_is_found_in_its_file(table, capsys, monkeypatch):
    monkeypatch.setattr(stored_rows, "SAMPLE_CELLS", 7 * 100)
    monkeypatch.setattr(stored_rows, "LEAST_SAMPLE", 10)
    monkeypatch.setattr(stored_rows, "pieces", partial(pieces, rows=64))
    monkeypatch.setattr(predict, "BATCH", 64)
    lines = Path("csv/3.csv").read_text(encoding="utf-8").splitlines()
    fields = lines[201].split(",")
    lines[201] = ",".join([fields[0], "lots", *fields[2:]])
    Path("csv/3.csv").write_text("\n".join(lines), encoding="utf-8")
    code, sentence = said(capsys, "fit", "csv", "-t", "y", "-l", "tree", "-o", "out")
    assert code == 3
    assert "csv/3.csv: Column 'a', row 201: 'lots' is not a number" in sentence
    assert cli.main(["fit", "whole.csv", "-t", "y", "-l", "tree", "-o", "out", "-q"]) == 0
    code, sentence = said(capsys, "predict", "out/whole.sixfold", "csv", "-o", "scores.csv")
    assert code == 3
    assert "csv/3.csv: Column 'a', row 201: 'lots' is not a number" in sentence


def test_what_was_written_before_stays_where_a_file_is_damaged(table, capsys):
    assert cli.main(["fit", "parquet", "-t", "y", "-l", "tree", "-o", "out", "-q"]) == 0
    assert cli.main(["predict", "out/parquet.sixfold", "parquet", "-o", "scores.csv", "-q"]) == 0
    before = Path("scores.csv").read_bytes()
    cut("parquet/3.parquet")
    there = sorted(os.listdir())
    for command in (["predict", "-o", "scores.csv"], ["verify"]):
        code, sentence = said(capsys, command[0], "out/parquet.sixfold", "parquet", *command[1:])
        assert code == 3
        assert "parquet/3.parquet is a Parquet file that is damaged or cut off" in sentence
    assert Path("scores.csv").read_bytes() == before
    assert sorted(os.listdir()) == there


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["fit", "csv", "-t", "y", "--memory-limit", "2X"],
            "--memory-limit '2X' is no size. Say it like 2GB",
        ),
        (
            ["fit", "csv", "-t", "y", "--memory-limit", "2MB"],
            "--memory-limit 2MB is less than .* 256MB at least",
        ),
        (["fit", "-", "-t", "y", "--memory-limit", "2GB"], "'-' can be read once"),
        (["fit", "csv"], "Which column is to be predicted"),
        (["fit", "csv", "-t", "z"], "no column 'z' for the target"),
        (["predict", "whole.csv", "csv", "-o", "csv/0.csv"], "'csv/0.csv' is the file of the data"),
    ],
)
def test_commands_that_cannot_be_done(arguments, words, table, capsys):
    code, sentence = said(capsys, *arguments)
    assert code == 2
    assert re.search(words, sentence), sentence


def test_weights_may_be_0_in_a_file_but_not_in_all(table):
    shutil.rmtree("csv")
    os.mkdir("csv")
    for number, weight in enumerate((0, 1)):
        table[200 * number : 200 * number + 200].with_columns(weight=weight).write_csv(f"csv/{number}.csv")
    assert len(fitted("csv", weights="weight").y) == 392
    table[:200].with_columns(weight=0).write_csv("csv/1.csv")
    with pytest.raises(InputError, match="only weights of 0"):
        fitted("csv", weights="weight")
    with pytest.raises(InputError, match="only weights of 0"):
        stored("csv", infer_schema(table, "y", weights="weight"))


def test_rows_without_a_target_need_not_be_readable(table):
    lines = table[:30].write_csv().splitlines()
    fields = lines[8].split(",")
    assert fields[-1] == ""
    lines[8] = ",".join([fields[0], "lots", *fields[2:]])
    for number, part in enumerate((lines, [lines[0], *lines[9:]])):
        Path(f"csv/{number}.csv").write_text("\n".join(part), encoding="utf-8")
    schema = infer_schema(table, "y")
    assert len(stored("csv/[01].csv", schema).y) == 29 + 22
    lines[9] = lines[8] + "yes"
    Path("csv/0.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=r"csv/0.csv: Column 'a', row [89]: 'lots'"):
        stored("csv/[01].csv", schema)


def test_names_of_files():
    assert plain_name("a/b/2024*.csv") == "2024"
    assert plain_name("a/b/*.csv") == "b"
    with pytest.raises(UsageError, match="is no size"):
        many_files.bytes_of("GB")
