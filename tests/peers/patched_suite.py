"""scikit-learn's own tests with ``sixfold.patch_sklearn()``: ``python -m tests.peers.patched_suite``.

Prints how many of the tests that speak of a replaced class pass, by file, the reasons for the others, and how
many fits were ours and how many were handed back. ``--write`` renews the table in docs/zero-edits.md.

Each file runs in a process of its own with this module as a plugin of pytest.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

REQUEST = "SIXFOLD_PATCHED_SUITE"  # the environment variable by which the plugin hears where to write
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "zero-edits.md"
MODULES = (
    "linear_model/tests/test_base.py",
    "linear_model/tests/test_logistic.py",
    "linear_model/tests/test_ridge.py",
    "linear_model/tests/test_coordinate_descent.py",
    "linear_model/tests/test_sparse_coordinate_descent.py",
    "linear_model/tests/test_sgd.py",
    "svm/tests/test_svm.py",
    "svm/tests/test_sparse.py",
    "tree/tests/test_tree.py",
    "tree/tests/test_export.py",
    "neighbors/tests/test_neighbors.py",
    "neighbors/tests/test_neighbors_pipeline.py",
    "neighbors/tests/test_graph.py",
    "model_selection/tests/test_search.py",
)


@dataclass(frozen=True)
class Outcome:
    """How the tests of a file ended, and who has fitted."""

    passed: list[str]
    failed: dict[str, str]
    fits: dict[str, int]  # by "sixfold" and "scikit-learn"


def run(module: str, package: str = "sklearn", patched: bool = True) -> Outcome:
    """Run tests of a package in a fresh process; of scikit-learn those that speak of a replaced class."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        environment = os.environ | {
            REQUEST: json.dumps({"answer": str(answer), "package": package, "patched": patched}),
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
        }
        environment.pop("PYTEST_ADDOPTS", None)
        home = Path(importlib.util.find_spec(package).origin).parent
        configuration = Path(folder) / "pytest.ini"  # an empty one: neither ours nor scikit-learn's applies
        configuration.write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "patched_suite", "-p", "no:cacheprovider"]
        command += ["-c", str(configuration), "--rootdir", str(home), "--confcutdir", str(home)]
        done = subprocess.run(
            [*command, str(home / module)],
            env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        if not answer.exists():
            raise RuntimeError(f"scikit-learn's tests did not run:\n{done.stdout}\n{done.stderr}")
        return Outcome(**json.loads(answer.read_text()))


def run_all(modules: Iterable[str] = MODULES) -> dict[str, Outcome]:
    """Return the outcome of each file, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(modules, pool.map(run, modules), strict=True))


def table(outcomes: dict[str, Outcome]) -> str:
    """Return what passes as a table in Markdown."""
    lines = ["| scikit-learn's tests | pass | of | fits by sixfold | handed back |", "|---|---|---|---|---|"]
    total: Counter[str] = Counter()
    for module, one in outcomes.items():
        of, (ours, theirs) = len(one.passed) + len(one.failed), one.fits.values()
        lines.append(f"| {module.removesuffix('.py')} | {len(one.passed)} | {of} | {ours:,} | {theirs:,} |")
        total.update(one.fits | {"passed": len(one.passed), "of": of})
    share = f"{total['passed']:,} ({100 * total['passed'] / max(total['of'], 1):.1f}%)"
    lines.append(f"| all | {share} | {total['of']:,} | {total['sixfold']:,} | {total['scikit-learn']:,} |")
    return "\n".join(lines)


def main() -> None:
    from tests.peers.patched_differences import reason_of

    parser = argparse.ArgumentParser(prog="python -m tests.peers.patched_suite")
    parser.add_argument("modules", nargs="*", default=MODULES, help="files of tests, below sklearn/")
    parser.add_argument("--write", action="store_true", help="renew the table in docs/zero-edits.md")
    parser.add_argument("--why", action="store_true", help="print the errors")
    options = parser.parse_args()
    outcomes = run_all(options.modules)
    print(table(outcomes))
    for module, one in outcomes.items():
        for name, why in sorted(one.failed.items()):
            print(f"{module}::{name.partition('::')[2]}: {reason_of(name) or 'NOT LISTED'}")
            if options.why:
                print("    " + "\n    ".join(why.splitlines()[-12:]))
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        found = re.sub(r"\| scikit-learn's tests \|.*?\n\n", table(outcomes) + "\n\n", text, flags=re.DOTALL)
        PAGE.write_text(found, encoding="utf-8")


# -- the plugin, in the other process ------------------------------------------------------------------


class Plugin:
    """Patches, keeps the tests that speak of a replaced class, and notes how they end and who has fitted."""

    def __init__(self, answer: str, package: str, patched: bool) -> None:
        from sixfold.patch import drop_in, replace

        self.answer, self.passed, self.failed = Path(answer), set(), {}
        self.package = package
        self.fits: Counter[str] = Counter({"sixfold": 0, "scikit-learn": 0})
        self.names = frozenset(replace.drop_in_names())
        if patched:
            replace.patch_sklearn()
        self.ours = tuple(replace._replaced)
        drop_in._say = self.heard

    def heard(self, model, method, what):
        if method.startswith(("fit", "partial_fit")):
            self.fits[what.partition(":")[0]] += 1

    def pytest_collection_modifyitems(self, items):
        from sixfold.patch import replace

        by_theirs = {theirs: ours for ours, theirs in replace._replaced.items()}
        for module in {item.module for item in items}:  # some import from private modules
            for name, value in list(vars(module).items()):
                if isinstance(value, type) and value in by_theirs:
                    setattr(module, name, by_theirs[value])
        items[:] = [item for item in items if self.concerns(item)]

    def concerns(self, item):
        if self.package != "sklearn":
            return True
        parameters = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
        parameters += [value for one in parameters if isinstance(one, dict) for value in one.values()]
        parameters += [value for one in parameters if isinstance(one, (list, tuple)) for value in one]
        if any(
            isinstance(value, self.ours) or value in self.ours for value in parameters if _is_plain(value)
        ):
            return True
        if any(isinstance(value, str) and value in self.names for value in parameters):
            return True
        return bool(self.names & set(_names(item.function.__code__)))

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.rpartition("/")[2]
        if report.failed:
            self.failed[name] = str(report.longrepr)
        elif report.when == "call" and report.passed:
            self.passed.add(name)

    def pytest_sessionfinish(self):
        outcome = {"passed": sorted(self.passed - self.failed.keys()), "failed": self.failed}
        self.answer.write_text(json.dumps(outcome | {"fits": self.fits}))


def _is_plain(value):
    return isinstance(value, type) or hasattr(value, "get_params")


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _names(constant)


def pytest_configure(config):
    """Start the plugin in the process that ``run`` has started."""
    if REQUEST in os.environ:
        config.pluginmanager.register(Plugin(**json.loads(os.environ[REQUEST])))


if __name__ == "__main__":
    main()
