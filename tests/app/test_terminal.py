"""The whole way in a pseudo-terminal of 80 columns, as a person sees it; Ctrl-C; the same bytes twice."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sixfold

pexpect = pytest.importorskip("pexpect")
pytest.importorskip("polars")
pytest.importorskip("typer")

SIXFOLD = [sys.executable, "-m", "sixfold"]
SOURCE = str(Path(sixfold.__file__).parents[1])  # also where it is not installed
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(arguments, folder, timeout=120):
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "PYTHONPATH": SOURCE}
    environment.pop("NO_COLOR", None)
    return pexpect.spawn(
        SIXFOLD[0],
        [*SIXFOLD[1:], *arguments],
        cwd=str(folder),
        env=environment,
        dimensions=(40, 80),
        encoding="utf-8",
        timeout=timeout,
    )


def plain(text):
    return ESCAPES.sub("", text)


def test_from_a_table_to_answers(tmp_path):
    child = in_terminal(["fit", "example:iris", "-l", "tree", "-l", "logistic"], tmp_path)
    child.expect(pexpect.EOF)
    child.close()
    seen = plain(child.before)
    assert child.exitstatus == 0, seen
    for word in ("150 rows", "3 classes", "Leaderboard", "Chosen", "Test", "Certificate", "iris.sixfold"):
        assert word in seen
    assert "Traceback" not in seen
    lines = [line for one in seen.split("\n") for line in one.split("\r")]
    assert max(map(len, lines)) <= 80
    for name in ("iris.sixfold", "iris.report.html", "iris.report.json"):
        assert (tmp_path / name).stat().st_size > 0
    assert len(list(tmp_path.iterdir())) == 3  # no temporary file is left

    for arguments, words in [
        (["show", "iris.sixfold"], ["species", "150"]),
        (["explain", "iris.sixfold", "example:iris", "--row", "1"], ["setosa"]),
        (["verify", "iris.sixfold", "example:iris"], ["onfirmed"]),
        (["predict", "iris.sixfold", "example:iris", "-o", "answers.csv"], ["150"]),
        (["compare", "iris.sixfold", "iris.sixfold", "example:iris"], ["agree"]),
        (["examples"], ["example:iris"]),
    ]:
        child = in_terminal(arguments, tmp_path)
        child.expect(pexpect.EOF)
        child.close()
        seen = plain(child.before)
        assert child.exitstatus == 0, (arguments, seen)
        for word in words:
            assert word in seen, (arguments, seen)
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 151


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    child = in_terminal(["fit", "example:digits"], tmp_path)
    child.expect("tree")  # the cheap learners are done by then, or about to be
    child.expect("fits")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    seen = plain(child.before)
    assert child.exitstatus == 130, seen
    assert "what was finished is kept" in seen
    assert (tmp_path / "digits.sixfold").exists()
    assert "Traceback" not in seen


def test_the_same_run_twice_gives_the_same_bytes(tmp_path):
    digests = set()
    for threads in ("1", "2"):
        folder = tmp_path / threads
        subprocess.run(
            [*SIXFOLD, "fit", "example:wine", "--seed", "3", "-o", str(folder), "--quiet"],
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": SOURCE},
        )
        digests.add(hashlib.sha256((folder / "wine.sixfold").read_bytes()).hexdigest())
    assert len(digests) == 1


def test_help_imports_no_numbers():
    code = "import sys\nfrom sixfold.app.cli import main\nmain(['--help'])\nprint(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "polars", "sklearn", "rich", "matplotlib"} & set(printed.splitlines()[-1].split())
