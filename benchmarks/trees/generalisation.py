"""``python -m benchmarks.trees.generalisation [set ...]``: whether the best trees are better on new rows.

Ten stratified folds, the same for all. In each, four trees of one size learn from the other nine:

    greedy                  the best split by entropy, then the best below it
    lookahead               the best two levels at every node
    optimal, errors         the fewest errors of all trees of this depth
    optimal, entropy        the least entropy of the leaves of all trees of this depth

The first search for the fewest errors decides the size: the others may have as many leaves as its tree has,
and the same depth. On the tenth fold the share of right answers counts, and the log-loss, in nats. A leaf
without a row of a class would give it probability 0 and, sooner or later, an infinite loss, so for all trees
a leaf with n rows, n_c of class c, answers (n_c + 1) / (n + classes).

The sets are ConTree's and some Penn benchmarks, all that lie beside the project; of more than 5,000 rows a
stratified sample. A search that is not done within ``--seconds`` gives the best tree it has; the table says
how many were proven. Printed are Markdown tables, a depth each.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.__main__ import limit_threads

Array = NDArray[Any]

FOLDS = 10
ROWS = 5_000
CONTREE = ("bank", "raisin", "wilt", "rice", "segment", "fault", "occupancy", "avila", "htru")
PMLB = (
    "car",
    "cmc",
    "ecoli",
    "german",
    "glass",
    "ionosphere",
    "phoneme",
    "sonar",
    "tic_tac_toe",
    "titanic",
    "wdbc",
)
GREEDY, LOOKAHEAD, ERRORS, ENTROPY = "greedy", "lookahead", "optimal, errors", "optimal, entropy"
TREES: dict[str, dict[str, Any]] = {
    ERRORS: {"search": "optimal", "objective": "error"},
    ENTROPY: {"search": "optimal", "objective": "entropy"},
    GREEDY: {},
    LOOKAHEAD: {"search": "lookahead"},
}
SHOWN = (GREEDY, LOOKAHEAD, ERRORS, ENTROPY)
LIMITED = (ERRORS, ENTROPY)  # those whose search may not end in time


class Score(NamedTuple):
    """How one tree answered the rows it had not seen, how large it is, and whether it is proven."""

    accuracy: float
    log_loss: float
    leaves: int
    proven: bool


def rows_of(name: str) -> tuple[Array, Array]:
    """Return a table without the rows in which something is not known, and classes numbered from 0."""
    from benchmarks.gauntlet.tables import sample
    from tests import contree, pmlb

    X, y = (contree if name in CONTREE else pmlb).load(name)
    known = ~np.isnan(X).any(axis=1)
    X, y = X[known], y[known]
    some = sample(y, ROWS, classes=True)
    return X[some], np.unique(y[some], return_inverse=True)[1]


def available(names: Sequence[str]) -> list[str]:
    """Return those of the sets that are on this machine."""
    from tests import contree, pmlb

    return [name for name in names if name in contree.PATHS or name in pmlb.PATHS]


def smoothed(model: Any, X: Array, y: Array, asked: Array, classes: int) -> Array:
    """Return what the leaves say of the asked rows: the shares of the classes, one row of each added."""
    ends, place = np.unique(model.apply(X), return_inverse=True)
    counts = np.ones((ends.size, classes))
    np.add.at(counts, (place, y), 1.0)
    return (counts / counts.sum(axis=1, keepdims=True))[np.searchsorted(ends, model.apply(asked))]


def scored(model: Any, X: Array, y: Array, test: Array, truth: Array, classes: int) -> Score:
    """Return how a fitted tree answers the rows of the fold that was left out."""
    chance = smoothed(model, X, y, test, classes)
    return Score(
        float(np.mean(model.predict(test) == truth)),
        float(-np.mean(np.log(chance[np.arange(truth.size), truth]))),
        int(model.get_n_leaves()),
        bool(model.certificate_.converged),
    )


def fold_scores(X: Array, y: Array, depth: int, seconds: float, threads: int) -> Iterator[dict[str, Score]]:
    """Return the scores of all trees, fold after fold."""
    from sklearn.model_selection import StratifiedKFold

    from sixfold import DecisionTreeClassifier

    classes = int(y.max()) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds; searches that are cut short
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
            scores: dict[str, Score] = {}
            leaves = None
            for name, options in TREES.items():
                limits = {"max_depth": depth, "max_leaf_nodes": leaves, "n_jobs": threads}
                limits["time_limit"] = seconds if name in LIMITED else None
                model = DecisionTreeClassifier(**options, **limits).fit(X[train], y[train])
                scores[name] = scored(model, X[train], y[train], X[test], y[test], classes)
                if name == ERRORS and scores[name].leaves < 2**depth:
                    # A tree of one leaf alone asks nothing; a limit of two is the least there is.
                    leaves = max(scores[name].leaves, 2)
            yield scores


def averages(folds: list[dict[str, Score]]) -> dict[str, Array]:
    """Return accuracy, log-loss, leaves and share of proven trees of each kind, averaged over the folds."""
    return {name: np.mean([fold[name] for fold in folds], axis=0) for name in SHOWN}


def table(depth: int, found: dict[str, dict[str, Array]]) -> str:
    """Return the table of a depth: a set a line, the best of each line in bold, then what it adds up to."""
    from benchmarks.report import table as lines_of

    head = [
        "set",
        "leaves",
        *(f"accuracy: {name}" for name in SHOWN),
        *(f"log-loss: {name}" for name in SHOWN),
    ]
    lines = [[*head, "proven: errors, entropy"]]
    for title, of in found.items():
        accuracy, loss, leaves, proven = np.array([of[name] for name in SHOWN]).T
        sizes = sorted({f"{size:.1f}" for size in leaves}, key=float)
        lines.append(
            [
                title,
                " to ".join(dict.fromkeys([sizes[0], sizes[-1]])),
                *_emphasised(accuracy, accuracy.max(), "{:.1%}"),
                *_emphasised(loss, loss.min(), "{:.3f}"),
                ", ".join(f"{proven[SHOWN.index(name)]:.0%}" for name in LIMITED),
            ]
        )
    if len(found) > 1:
        every = np.array([[of[name] for name in SHOWN] for of in found.values()])
        accuracy, loss = every[:, :, 0], every[:, :, 1]
        means = [f"{value:.1%}" for value in accuracy.mean(axis=0)]
        means += [f"{value:.3f}" for value in loss.mean(axis=0)]
        more = [*_more(accuracy, "{:+.1%} ± {:.1%}"), *_more(loss, "{:+.3f} ± {:.3f}")]
        lines.append(["mean", "", *means, ""])
        lines.append(["more than greedy ± standard error", "", *more, ""])
        lines.append(["sets better, worse than greedy", "", *_compared(accuracy), *_compared(-loss), ""])
    return "\n".join([f"Depth {depth}:", "", *lines_of(lines), ""])


def _emphasised(values: Sequence[float], best: float, form: str) -> list[str]:
    """Return the figures, those that look like the best of them in bold."""
    said = [form.format(value) for value in values]
    return [f"**{one}**" if one == form.format(best) else one for one in said]


def _more(values: Array, form: str) -> list[str]:
    """Return the mean difference to the greedy tree, and its standard error over the sets."""
    excess = values - values[:, [SHOWN.index(GREEDY)]]
    error = excess.std(axis=0, ddof=1) / np.sqrt(len(excess))
    return [
        "" if name == GREEDY else form.format(mean, spread)
        for name, mean, spread in zip(SHOWN, excess.mean(axis=0), error, strict=True)
    ]


def _compared(values: Array) -> list[str]:
    """Return on how many sets each kind is better and worse than the greedy tree."""
    greedy = values[:, [SHOWN.index(GREEDY)]]
    better, worse = (values > greedy).sum(axis=0), (values < greedy).sum(axis=0)
    return [
        "" if name == GREEDY else f"{more}, {less}"
        for name, more, less in zip(SHOWN, better, worse, strict=True)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees.generalisation")
    parser.add_argument("sets", nargs="*", metavar="set", help="names of sets; all by default")
    parser.add_argument("--depths", nargs="+", type=int, default=[2, 3, 4], help="of the trees")
    parser.add_argument("--seconds", type=float, default=10.0, help="most of one search (default: 10)")
    parser.add_argument("--threads", type=int, default=2, help="threads of a search (default: 2)")
    asked = parser.parse_args(arguments)
    threads = limit_threads(asked.threads)
    if unknown := set(asked.sets) - {*CONTREE, *PMLB}:
        parser.error(f"no set is called {', '.join(sorted(unknown))}")
    names = available(asked.sets or [*CONTREE, *PMLB])
    for depth in asked.depths:
        found = {}
        for name in names:
            print(f"depth {depth}: {name} ...", file=sys.stderr, flush=True)
            found[name] = averages(list(fold_scores(*rows_of(name), depth, asked.seconds, threads)))
        print(table(depth, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
