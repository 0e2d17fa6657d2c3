"""``python -m benchmarks.trees.gap_over_time``: how the best tree so far and the bound of a search meet.

Two searches for the tree of depth 4 with the fewest errors, of ConTree's sets: raisin until the best tree is
proven, rice until ``--seconds`` have passed. ``docs/figures/gap-over-time.json`` keeps what ``history_`` says
of them (seconds, errors, bound), and ``docs/figures/draw.py`` draws it.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import limit_threads

KEPT = Path(__file__).parents[2] / "docs/figures/gap-over-time.json"
SETS = ("raisin", "rice")
DEPTH = 4


def recorded(name: str, seconds: float) -> dict[str, Any]:
    """Return how the search in one set went."""
    from sixfold import DecisionTreeClassifier
    from sixfold.errors import StoppedEarly
    from tests import contree

    X, y = contree.load(name)
    greedy = DecisionTreeClassifier(max_depth=DEPTH).fit(X, y)
    model = DecisionTreeClassifier(search="optimal", objective="error", max_depth=DEPTH, time_limit=seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)  # that is what a limit is for
        model.fit(X, y)
    history = [
        [round(one.seconds, 4), round(one.objective * y.size), round((one.objective - one.gap) * y.size)]
        for one in model.history_
    ]
    claim = model.certificate_.claim.partition(":")[0]
    return {
        "set": name,
        "rows": int(y.size),
        "greedy": int((greedy.predict(X) != y).sum()),
        "seconds": history[-1][0],
        "claim": claim,
        "history": history,
    }


def written(threads: int, searches: list[dict[str, Any]]) -> str:
    """Return what is kept, a step of a search a line.

    >>> print(written(2, [{"set": "a", "history": [[0.1, 5, 0], [0.2, 4, 4]]}]), end="")
    {"threads": 2, "searches": [{"set": "a", "history": [
    [0.1, 5, 0],
    [0.2, 4, 4]]}]}
    """
    text = json.dumps({"threads": threads, "searches": searches})
    return text.replace("[[", "[\n[").replace("], [", "],\n[") + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees.gap_over_time")
    parser.add_argument("--seconds", type=float, default=60.0, help="most of one search (default: 60)")
    parser.add_argument("--threads", type=int, default=2, help="threads of a search (default: 2)")
    asked = parser.parse_args(arguments)
    threads = limit_threads(asked.threads)
    searches = [recorded(name, asked.seconds) for name in SETS]
    KEPT.write_text(written(threads, searches), encoding="utf-8")
    for search in searches:
        print(f"{search['set']}: {search['history'][-1]}, {search['claim']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
