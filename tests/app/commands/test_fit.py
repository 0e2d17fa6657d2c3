"""What `sixfold fit` prints and writes."""

import shlex

import numpy as np
import pytest

from sixfold.app import cli

pytest.importorskip("polars")
pytest.importorskip("typer")


@pytest.fixture
def fit(tmp_path, monkeypatch, capsys):
    """Return a function that fits to lines of CSV, and returns the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def run(lines, *options, file="table.csv", target="y"):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        code = cli.main(["fit", file, "--target", target, "-l", "tree", *options])
        return code, *capsys.readouterr()

    return run


def learnable(rows=60):
    x = np.random.default_rng(0).standard_normal(rows)
    return ["x,y", *(f"{one:.4f},{'yes' if one > 0 else 'no'}" for one in x)]


def test_commands_to_copy_end_in_a_backslash_where_they_go_on(fit):
    name = "a folder with a long name and blanks/another one/the table of customers.csv"
    _, printed, _ = fit(learnable(), "-o", "a folder with a long name and blanks/out", file=name)
    after = printed[printed.index("Next") :].removeprefix("Next").replace("\\\n", " ")
    explain, predict = (shlex.split(line) for line in after.strip().splitlines())
    model = "a folder with a long name and blanks/out/the table of customers.sixfold"
    assert explain == ["sixfold", "explain", model, name, "--row", "1"]
    assert predict == ["sixfold", "predict", model, "NEW.csv", "-o", "predictions.csv"]
    assert f"Wrote        {model}\n" in printed  # whole: a path is copied too


def test_the_baseline_is_not_to_be_explained(fit):
    random = np.random.default_rng(0)
    lines = ["x,y", *(f"{random.random():.4f},{random.choice(['no', 'yes'])}" for _ in range(60))]
    code, printed, _ = fit(lines)
    assert code == 0
    assert "no learner does" in printed
    assert "sixfold explain" not in printed
    assert "sixfold predict" in printed


def test_control_characters_of_a_file_do_not_reach_the_terminal(fit):
    lines = learnable()
    lines[0] = "x,\x1b[31my"
    code, printed, _ = fit(lines, target="\x1b[31my")
    assert code == 0
    assert "\x1b" not in printed
    assert "\\x1b[31my" in printed


def test_one_row_is_one(fit):
    _, printed, _ = fit(["x,y", "1,a", "2,b", "3,a", "4,b", "5,a"])
    assert "on 1 row it has not seen" in printed


def test_a_rare_class_has_a_share(fit):
    lines = learnable(450)
    lines[1:] = [line.replace("yes", "no") for line in lines[1:]]
    lines[5], lines[205] = "9.5,rare", "9.6,rare"
    assert "2 classes, no 100%, rare 0.4%" in fit(lines)[1]
