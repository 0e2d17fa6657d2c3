"""The files of cases, in the order of the page, and which of their cases a name asks for.

They are loaded on demand: the libraries behind them read the number of threads at their import.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import NamedTuple

from benchmarks.means import Mean, geometric_mean
from benchmarks.runner import Case, Row


class Family(NamedTuple):
    """A file of cases and its heading on the page; the file's docstring is what the page says first."""

    file: str
    title: str

    @property
    def text(self) -> str:
        """Who is compared, how, and what accuracy means."""
        return import_module(f"benchmarks.{self.file}").__doc__.strip()

    @property
    def cases(self) -> tuple[Case, ...]:
        """What is measured."""
        return import_module(f"benchmarks.{self.file}").CASES

    @property
    def means(self) -> tuple[Mean, ...]:
        """Which of them are summed up by a mean."""
        return getattr(import_module(f"benchmarks.{self.file}"), "MEANS", ())

    @property
    def works(self) -> list[tuple[str, tuple[str, ...]]]:
        """The titles of all that the page shows, each with its peers; sixfold where it is alone."""
        cases = [(case.title, case.contenders[1:] or case.contenders) for case in self.cases]
        works = [(title, tuple(one.name for one in shown)) for title, shown in cases]
        return works + [(mean.title, (mean.peer,)) for mean in self.means]

    def names(self, case: Case) -> tuple[str, str, str]:
        """Return what asks for a case: the room, the file, the case itself."""
        return self.file.partition(".")[0], self.file, case.name


FAMILIES = (
    Family("linear.regression", "Linear regression"),
    Family("linear.classifiers", "Linear classifiers"),
    Family("linear.wide", "Wide tables"),
    Family("linear.exemplars", "Exemplar machines"),
    Family("trees.cases", "Decision trees"),
    Family("trees.optimal", "Trees that are proven to be the best"),
    Family("kernel.cases", "Support vector machines with kernels"),
    Family("kernel.landmarks", "Kernels for many rows"),
    Family("neighbors.cases", "Nearest neighbours"),
    Family("metric_learning.nca", "Neighbourhood components"),
    Family("metric_learning.lmnn", "Large margin nearest neighbours"),
    Family("selection.cases", "Choosing hyperparameters"),
    Family("app.cases", "From a file to answers"),
    Family("patch.cases", "One line added to your script"),
)


def chosen_cases(wanted: Iterable[str], full: bool = True) -> list[Case]:
    """Return the cases of these names; raise a ValueError for an unknown one.

    Where there are none, return all cases, without the long ones unless the run is a full one.
    """
    wanted = set(wanted)
    named = [(family.names(case), case) for family in FAMILIES for case in family.cases]
    known = dict.fromkeys(name for names, _ in named for name in names)
    if unknown := wanted - known.keys():
        said = ", ".join(sorted(unknown))
        raise ValueError(f"no family, file or case is called {said}; there are {', '.join(known)}")
    if wanted:
        return [case for names, case in named if wanted.intersection(names)]
    return [case for _, case in named if full or not case.long]


def measured_means(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the means over cases that were all measured."""
    means = [mean for family in FAMILIES for mean in family.means]
    return [row for mean in means for row in geometric_mean(mean, rows)]
