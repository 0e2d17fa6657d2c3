"""``python -m sixfold``: every learner on built-in data, in one table.

Each learner is fitted on three quarters of the rows and scored on the rest (R-squared for numbers, share of
right answers for classes). ``--help`` says so, ``--version`` prints the version.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sixfold import __version__
from sixfold.data.examples import Example, load_example
from sixfold.learners.registry import LEARNERS, Demonstration, RegisteredLearner

HEADER = ("learner", "data", "held-out score", "seconds", "solver", "certificate")


@dataclass(frozen=True)
class Outcome:
    """One line of the table, and the model behind it."""

    cells: tuple[str, ...]
    model: Any
    example: Example


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit every learner, print the table and the coefficients of linear regression."""
    parser = argparse.ArgumentParser(
        prog="python -m sixfold",
        description="Fit every learner on built-in data, three quarters of the rows of each, and print a "
        "table: the score on the other rows, the seconds, the solver and what the certificate says. It takes "
        "some seconds.",
        epilog="To fit your own data, use the learners from Python, for instance: from sixfold import "
        "LogisticRegression; model = LogisticRegression().fit(X, y); print(model.certificate_).",
    )
    parser.add_argument("--version", action="version", version=f"sixfold {__version__}")
    parser.parse_args(arguments)
    print("sixfold: every learner on built-in data, fitted on 75% of the rows, scored on the rest\n")
    outcomes = [
        show(learner, demonstration) for learner in LEARNERS for demonstration in learner.demonstrations
    ]
    print(format_table(HEADER, [outcome.cells for outcome in outcomes]))
    for outcome in outcomes:
        if hasattr(outcome.model, "summary"):
            # The tables are plain arrays, whose columns have no names.
            outcome.model.feature_names_in_ = outcome.example.columns
            print(f"\n{outcome.cells[0]} on {outcome.example.name}: {outcome.example.about}\n")
            print(outcome.model.summary())
            break
    return 0


def show(learner: RegisteredLearner, demonstration: Demonstration) -> Outcome:
    """Fit one learner on one built-in table and score it on rows it has not seen."""
    from sklearn.model_selection import train_test_split

    example = load_example(demonstration.example)
    X, X_test, y, y_test = train_test_split(example.X, example.y, random_state=0)
    model = learner.make(**demonstration.parameters)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    cells = (
        f"{learner.name} ({demonstration.title})",
        example.name,
        f"{model.score(X_test, y_test):.3f}",
        f"{seconds:.3f}",
        model.solver_ if hasattr(model, "solver_") else model.algorithm_,
        str(model.certificate_),
    )
    return Outcome(cells, model, example)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the rows under the header, columns aligned."""
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in [header, *rows]
    ]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join(line.rstrip() for line in [lines[0], rule, *lines[1:]])
