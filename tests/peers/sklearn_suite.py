"""Runs scikit-learn's own tests, which come with its wheel, with a class of ours put in place of theirs.

``run`` starts pytest in a process of its own with this file as a plugin. The plugin replaces the class before
the test modules are imported, keeps the tests that speak of it, and writes down how each of them ended.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType

REQUEST = "SIXFOLD_SKLEARN_SUITE"  # the environment variable by which the plugin hears what to do


@dataclass(frozen=True)
class Suite:
    """Test modules of scikit-learn for one of our classes.

    Attributes
    ----------
    ours, theirs : str
        "package.module.Class"; theirs is replaced where it is imported from.
    modules : tuple of str
        The files of tests, below ``sklearn/``.
    fewest : int
        How many tests pass at least: the class was replaced, and its tests were found.
    differences : dict
        Tests ("file.py::test", with its parameters or for all of them) that do not pass, each with the reason
        in one line. Those that the installed version of scikit-learn does not have are ignored.
    elsewhere : tuple of str
        Beginnings of the names of tests that use the class to test something else, which are not run.
    tables : tuple of str
        Names of dictionaries of classes by name, through which tests of the modules reach theirs.
    mixins : tuple of str
        Classes of scikit-learn that its tests look for among the bases of a class. Ours takes their place as
        a subclass of them, in which its own methods come first.
    also : dict
        Other classes of scikit-learn that are replaced as well, each with the name of ours.
    about : tuple of str
        Names of which one has to occur in a test for it to be run, where the name of theirs says too little.
    """

    ours: str
    theirs: str
    modules: tuple[str, ...]
    fewest: int = 1
    differences: dict[str, str] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    mixins: tuple[str, ...] = ()
    also: dict[str, str] = field(default_factory=dict)
    about: tuple[str, ...] = ()

    def expects(self, name: str) -> str | None:
        """Return the difference under which this test is listed, or None."""
        return next((key for key in (name, name.partition("[")[0]) if key in self.differences), None)


@dataclass(frozen=True)
class Outcome:
    """How the tests ended.

    Attributes
    ----------
    passed : list of str
    failed : dict
        The message of each test that failed.
    """

    passed: list[str]
    failed: dict[str, str]


def run(suite: Suite) -> Outcome:
    """Run the suite in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        request = {"ours": suite.ours, "theirs": suite.theirs, "answer": str(answer)}
        request |= {"elsewhere": suite.elsewhere, "tables": suite.tables, "mixins": suite.mixins}
        request |= {"also": suite.also, "about": suite.about}
        environment = os.environ | {
            REQUEST: json.dumps(request),
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
        }
        environment.pop("PYTEST_ADDOPTS", None)
        home = Path(importlib.import_module("sklearn").__file__).parent
        configuration = Path(folder) / "pytest.ini"  # an empty one: neither ours nor scikit-learn's applies
        configuration.write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "sklearn_suite", "-p", "no:cacheprovider"]
        command += ["-c", str(configuration), "--rootdir", str(home), "--confcutdir", str(home)]
        command += [str(home / module) for module in suite.modules]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=600
        )
        if not answer.exists():
            raise RuntimeError(f"scikit-learn's tests did not run:\n{done.stdout}\n{done.stderr}")
        return Outcome(**json.loads(answer.read_text()))


def require_listed(suite: Suite) -> None:
    """Run the suite; raise unless what does not pass is what is listed."""
    outcome = run(suite)
    assert len(outcome.passed) >= suite.fewest
    unexpected = {name: why for name, why in outcome.failed.items() if suite.expects(name) is None}
    assert not unexpected, "\n\n".join(f"{name}\n{why}" for name, why in unexpected.items())
    met = {suite.expects(name) for name in outcome.failed}
    ran = {suite.expects(name) for name in [*outcome.passed, *outcome.failed]}
    assert ran - {None} <= met, "a listed difference is none any more"


# -- the plugin, in the other process ------------------------------------------------------------------


def _load(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _speaks_of(code: CodeType, name: str) -> bool:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return name in code.co_names or any(_speaks_of(part, name) for part in inner)


def _replace(theirs, ours):
    module, _, name = theirs.rpartition(".")
    setattr(importlib.import_module(module), name, ours)


class Plugin:
    """Replaces the class, keeps the tests that speak of it, and notes how they end."""

    def __init__(self, ours, theirs, answer, elsewhere, tables, mixins, also, about):
        module, _, self.name = theirs.rpartition(".")
        self.tables, self.about = tables, about or (self.name,)
        self.ours, self.answer, self.elsewhere = _load(ours), Path(answer), tuple(elsewhere)
        if mixins:
            bases = (self.ours, *map(_load, mixins))
            self.ours = type(self.ours)(self.name, bases, {"__module__": module})  # pickle finds it there
        self.passed, self.failed = set(), {}
        classes = {theirs: self.ours} | {other: _load(own) for other, own in also.items()}
        if also:
            importlib.import_module("sklearn.ensemble")  # whose classes are made from those of trees
        for other, own in classes.items():
            _replace(other, own)
        self.kinds = tuple(own for other, own in classes.items() if other.rpartition(".")[2] in self.about)

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self.concerns(item)]

    def concerns(self, item):
        if item.name.startswith(self.elsewhere):
            return False
        parameters = list(item.callspec.params.values()) if hasattr(item, "callspec") else []
        parameters += [value for one in parameters if isinstance(one, dict) for value in one.values()]
        # By identity: parameters may be arrays, which equal nothing as a whole.
        if any(isinstance(value, self.kinds) or id(value) in map(id, self.kinds) for value in parameters):
            return True
        # A function of the test module that makes one, such as SparseSGDClassifier(**parameters).
        makers = [value.__name__ for value in parameters if isinstance(value, FunctionType)]
        if any(maker.endswith(self.name) for maker in makers):
            return True
        named = [value for value in parameters if isinstance(value, str) and value[:1].isupper()]
        code = item.function.__code__
        if any(_speaks_of(code, table) for table in self.tables) and named:
            return self.name in named
        return any(_speaks_of(code, name) for name in (*self.about, *self.tables))

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.rpartition("/")[2]
        if report.failed:
            self.failed[name] = str(report.longrepr)
        elif report.when == "call" and report.passed:
            self.passed.add(name)

    def pytest_sessionfinish(self):
        outcome = {"passed": sorted(self.passed - self.failed.keys()), "failed": self.failed}
        self.answer.write_text(json.dumps(outcome))


def pytest_configure(config):
    """Start the plugin in the process that ``run`` has started."""
    if REQUEST in os.environ:
        config.pluginmanager.register(Plugin(**json.loads(os.environ[REQUEST])))
