"""``python -m sixfold.patch script.py [argument ...]``, ``-m module``, ``-c code``: run it, patched."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from sixfold.patch.replace import patch_sklearn

USAGE = "usage: python -m sixfold.patch (script.py | -m module | -c code) [argument ...]"


def main(arguments: Sequence[str]) -> None:
    """Run a script, a module or a line of code with scikit-learn's classes replaced."""
    if (
        not arguments
        or arguments[0] in ("-h", "--help")
        or (arguments[0] in ("-m", "-c") and not arguments[1:])
    ):
        print(f"{USAGE}\n\nRuns it with sixfold in place of scikit-learn's classes. SIXFOLD_VERBOSE=1 says")
        print("on stderr, a line a call, whether sixfold has answered or scikit-learn, and why.")
        raise SystemExit(0 if arguments[:1] in (["-h"], ["--help"]) else 2)
    patch_sklearn()
    first, *others = arguments
    if first == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *others[1:]]
        space = vars(sys.modules["__main__"])  # where pickle looks for what is defined
        exec(compile(others[0], "<string>", "exec"), space)
    else:
        sys.argv = list(arguments)
        sys.path[0] = str(Path(first).resolve().parent)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
