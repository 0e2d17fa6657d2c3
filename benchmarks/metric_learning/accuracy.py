"""``python -m benchmarks.metric_learning.accuracy [set ...]``: are learnt distances better on new rows.

Ten stratified folds, the same for all. In each, five nearest neighbours answer for the rows of the fold, by

    plain            Euclidean distance of standardised columns
    NCA, LMNN        distances learnt from the other nine folds, of standardised columns, as they come
    NCA, whitening   the same, from a start by which each class spreads by 1 in every direction

The sets are those of the Penn benchmarks beside the project that have classes and between 150 and 2,400
complete rows. Printed is a Markdown table: accuracies, and in brackets how far a learnt distance is above the
plain one, with the standard error of the mean of the ten differences.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.__main__ import limit_threads

Array = NDArray[Any]

FOLDS = 10
NEIGHBORS = 5
SETS = (
    "analcatdata_authorship",
    "car",
    "clean1",
    "cmc",
    "dermatology",
    "ecoli",
    "german",
    "glass",
    "house_votes_84",
    "ionosphere",
    "mfeat_morphological",
    "mfeat_zernike",
    "monk1",
    "monk2",
    "monk3",
    "movement_libras",
    "penguins",
    "segmentation",
    "sonar",
    "soybean",
    "tic_tac_toe",
    "titanic",
    "tokyo1",
    "wdbc",
    "yeast",
)
PLAIN, LEARNT = "plain", ("NCA", "NCA, whitening", "LMNN")
NAMES = (PLAIN, *LEARNT)


def makers() -> dict[str, Callable[[], Any]]:
    """Return what makes each contender."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from sixfold import (
        KNeighborsClassifier,
        LargeMarginNearestNeighbor,
        NeighborhoodComponentsAnalysis,
        distances,
    )

    def learnt(transformer: Any) -> Any:
        pipeline = make_pipeline(StandardScaler(), transformer)
        return KNeighborsClassifier(NEIGHBORS, metric=distances.Learned(pipeline))

    return {
        PLAIN: lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(NEIGHBORS)),
        "NCA": lambda: learnt(NeighborhoodComponentsAnalysis()),
        "NCA, whitening": lambda: learnt(NeighborhoodComponentsAnalysis(init="whitening")),
        "LMNN": lambda: learnt(LargeMarginNearestNeighbor()),
    }


def rows_of(name: str) -> tuple[Array, Array]:
    """Return a table without the rows in which something is not known, and without classes of one row."""
    from tests import pmlb

    X, y = pmlb.load(name)
    known = ~np.isnan(X).any(axis=1)
    X, y = X[known], y[known]
    classes, counts = np.unique(y, return_counts=True)
    enough = np.isin(y, classes[counts >= 3])  # two are left where a fold holds out one
    return X[enough], y[enough]


def accuracies(X: Array, y: Array) -> dict[str, Array]:
    """Return the share of right answers of each contender in each fold."""
    from sklearn.model_selection import StratifiedKFold

    found: dict[str, list[float]] = {name: [] for name in NAMES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds; fits that meet max_iter
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
            for name, make in makers().items():
                model = make().fit(X[train], y[train])
                found[name].append(float(np.mean(model.predict(X[test]) == y[test])))
    return {name: np.array(values) for name, values in found.items()}


def table(found: dict[str, tuple[tuple[int, int], dict[str, Array]]]) -> str:
    """Return the table: a set a line, and how often a learnt distance is as good."""
    from benchmarks.report import table as lines_of

    lines = [["table", "rows x columns", *NAMES]]
    good = dict.fromkeys(LEARNT, 0)
    for title, ((rows, columns), of) in found.items():
        entries = [f"{of[PLAIN].mean():.3f}"]
        for name in LEARNT:
            difference = of[name] - of[PLAIN]
            mean, error = difference.mean(), difference.std(ddof=1) / np.sqrt(FOLDS)
            good[name] += bool(mean >= -error)
            entries.append(f"{of[name].mean():.3f} ({mean:+.3f} ± {error:.3f})")
        lines.append([title, f"{rows:,} x {columns}", *entries])
    last = [f"{good[name]} of {len(found)}" for name in LEARNT]
    lines.append(["better, or equal within one standard error", "", "", *last])
    return "\n".join(lines_of(lines))


def main(arguments: Sequence[str] | None = None) -> int:
    from tests import pmlb

    parser = argparse.ArgumentParser(prog="python -m benchmarks.metric_learning.accuracy")
    parser.add_argument("sets", nargs="*", metavar="set", help="names of sets; all by default")
    parser.add_argument("--threads", type=int, default=2, help="threads of a fit (default: 2)")
    asked = parser.parse_args(arguments)
    limit_threads(asked.threads)
    if unknown := set(asked.sets) - set(SETS):
        parser.error(f"no set is called {', '.join(sorted(unknown))}")
    found = {}
    for name in asked.sets or SETS:
        if name in pmlb.PATHS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            X, y = rows_of(name)
            found[name] = (X.shape, accuracies(X, y))
    print(table(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
