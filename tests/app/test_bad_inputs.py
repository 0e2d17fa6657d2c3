"""Bad input gets a sentence on what is wrong and what to do, and the right exit code; never a traceback."""

import gzip
import os

import pytest

pytest.importorskip("polars")
pytest.importorskip("typer")

from sixfold.app.cli import main

GOOD = "age,city,bought\n" + "".join(
    f"{20 + k % 40},{'Rome' if k % 3 else 'Oslo'},{'yes' if k % 40 < 17 else 'no'}\n" for k in range(60)
)
FAST = ["--learner", "tree", "--folds", "2"]
USAGE, BAD_DATA = 2, 3


@pytest.fixture
def table(tmp_path):
    def write(text, name="shop.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return str(path)

    return write


def said(capsys, arguments):
    """Return the exit code and what was printed to stderr."""
    code = main(arguments)
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    return code, " ".join(printed.err.split())


CASES = {
    "an empty file": ("", "empty", BAD_DATA),
    "blank lines only": ("\n\n\n", "empty", BAD_DATA),
    "a header only": ("age,city,bought\n", "no row", BAD_DATA),
    "a constant target": ("age,bought\n" + "1,yes\n2,yes\n" * 15, "yes in every row", BAD_DATA),
    "a ragged line": (GOOD.replace("\n", "\n", 1) + "33,Rome,yes,extra\n", "line 62", BAD_DATA),
    "equal names": ("age,age,bought\n1,2,yes\n3,4,no\n", "'age'", BAD_DATA),
    "a zip archive": (b"PK\x03\x04" + bytes(200), "zip", BAD_DATA),
    "no target": ("age,bought\n" + "".join(f"{k},\n" for k in range(30)), "bought", BAD_DATA),
}


@pytest.mark.parametrize("case", CASES)
def test_a_table_that_cannot_be_used(case, table, capsys, tmp_path):
    text, words, expected = CASES[case]
    path = table(text)
    code, sentence = said(capsys, ["fit", path, "-t", "bought", *FAST, "-o", str(tmp_path / "out")])
    assert code == expected
    assert words.lower() in sentence.lower()
    assert len(sentence) > 30


def test_a_missing_file_and_the_nearest(table, capsys, tmp_path):
    path = table(GOOD, "customers.csv")
    wrong = path.replace("customers", "custmers")
    code, sentence = said(capsys, ["fit", wrong, "-t", "bought", "-o", str(tmp_path)])
    assert code == USAGE
    assert "custmers.csv" in sentence
    assert "customers.csv" in sentence


def test_a_misspelt_target_and_the_nearest(table, capsys, tmp_path):
    code, sentence = said(capsys, ["fit", table(GOOD), "-t", "bougth", "-o", str(tmp_path)])
    assert code == USAGE
    assert "'bought'" in sentence


def test_no_target_named(table, capsys, tmp_path):
    code, sentence = said(capsys, ["fit", table(GOOD), "-o", str(tmp_path)])
    assert code == USAGE
    assert "--target" in sentence
    assert "bought" in sentence


def test_one_row_of_a_class_is_no_obstacle_but_said(table, capsys, tmp_path):
    path = table(GOOD + "31,Rome,maybe\n")
    assert main(["fit", path, "-t", "bought", *FAST, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "maybe" in printed


def test_a_column_without_values_is_set_aside(table, capsys, tmp_path):
    text = GOOD.replace("age,city", "age,empty,city").replace(",Rome", ",,Rome").replace(",Oslo", ",,Oslo")
    assert main(["fit", table(text), "-t", "bought", *FAST, "-o", str(tmp_path / "out")]) == 0
    assert "empty:" in capsys.readouterr().out


def test_latin_1_is_read_and_said(table, capsys, tmp_path):
    path = table(GOOD.replace("Oslo", "Malmö"), encoding="latin-1")
    assert main(["fit", path, "-t", "bought", *FAST, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "latin-1" in printed.lower() or "1252" in printed


def test_bytes_that_are_no_text(table, capsys, tmp_path):
    code, sentence = said(capsys, ["fit", table(bytes(range(256)) * 20), "-t", "y", "-o", str(tmp_path)])
    assert code == BAD_DATA
    assert len(sentence) > 30


def test_a_cut_off_gzip(table, capsys, tmp_path):
    path = table(gzip.compress(GOOD.encode() * 50)[:-20], "shop.csv.gz")
    code, sentence = said(capsys, ["fit", path, "-t", "bought", "-o", str(tmp_path)])
    assert code == BAD_DATA
    assert "shop.csv.gz" in sentence


def test_a_folder_that_cannot_be_written_is_found_before_the_work(table, capsys, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, sentence = said(
        capsys, ["fit", str(tmp_path / "missing.csv"), "-t", "y", "-o", str(blocked / "out")]
    )
    assert code == USAGE
    assert "--output" in sentence  # and not the missing file, which is looked at later


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write(table, capsys, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    code, sentence = said(capsys, ["fit", table(GOOD), "-t", "bought", "-o", str(locked)])
    assert code == USAGE
    assert "--output" in sentence


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "shop.csv").write_text(GOOD)
    asked = ["fit", str(folder / "shop.csv"), "-t", "bought", *FAST, "-o", str(folder), "--quiet"]
    assert main(asked) == 0
    return str(folder / "shop.sixfold")


@pytest.mark.parametrize("command", ["predict", "explain", "verify"])
def test_other_columns_than_at_the_fit(command, model, table, capsys):
    other = table(GOOD.replace("age,city", "agee,city"), "other.csv")
    code, sentence = said(capsys, [command, model, other])
    assert code == BAD_DATA
    assert "'age'" in sentence
    assert "'agee'" in sentence


def test_text_where_numbers_were(model, table, capsys, tmp_path):
    other = table(GOOD.replace("\n25,", "\nyoung,"), "other.csv")
    code, sentence = said(capsys, ["predict", model, other, "-o", str(tmp_path / "p.csv")])
    assert code == BAD_DATA
    assert "'age'" in sentence
    assert "young" in sentence
    assert not (tmp_path / "p.csv").exists()


def test_a_file_that_is_no_model(table, capsys):
    code, sentence = said(capsys, ["show", table(GOOD)])
    assert code == BAD_DATA
    assert "shop.csv" in sentence


@pytest.mark.parametrize("command", [["show"], ["predict"], ["explain"], ["verify"]])
def test_a_model_that_is_not_there(command, table, capsys, tmp_path):
    rest = [] if command == ["show"] else [table(GOOD)]
    code, sentence = said(capsys, [*command, str(tmp_path / "none.sixfold"), *rest])
    assert code == USAGE
    assert "none.sixfold" in sentence


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--metric", "acuracy"], "'accuracy'"),
        (["--learner", "forest"], "tree"),
        (["--task", "clustering"], "classification"),
        (["--rule", "2se"], "1se"),
        (["--test-fraction", "1.5"], "0.2"),
        (["--weights", "agge"], "'age'"),
        (["--folds", "1"], "folds"),
        (["--time-limit", "-3"], "time-limit"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_an_option_that_cannot_be(option, words, table, capsys, tmp_path):
    code, sentence = said(capsys, ["fit", table(GOOD), "-t", "bought", "-o", str(tmp_path / "out"), *option])
    assert code == USAGE
    assert words in sentence
