"""``python -m benchmarks.kernel.accuracy_by_rank``: what more landmarks are good for.

SVMs of 60,000 Fashion-MNIST images in the space of more and more landmarks, and the exact one: the share of
right test labels, and the share of the kernel's trace that the space holds. ``docs/figures/landmarks.json``
keeps them, and ``docs/figures/landmarks.py`` draws them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import limit_threads

KEPT = Path(__file__).parents[2] / "docs/figures/landmarks.json"
RANKS = (50, 100, 200, 400, 800, 1500, 2000, 3000)


def recorded(task: Any, rank: int | None) -> dict[str, Any]:
    """Return what an SVM of this rank knows; None for the exact one."""
    from sixfold import SVC

    model = SVC(C=task.C, gamma=task.gamma, rank=rank).fit(task.X, task.y)
    accuracy = float(np.mean(model.predict(task.Q) == task.truth))
    held = 1.0 if rank is None else model.trace_held_
    return {"rank": rank, "held": round(held, 4), "accuracy": round(accuracy, 4)}


def main() -> int:
    """Record all ranks."""
    limit_threads(2)
    from benchmarks.kernel.tasks import fashion

    task = fashion(60_000, 10_000, False)
    fits = [recorded(task, rank) for rank in (*RANKS, None)]
    lines = ",\n".join(json.dumps(one) for one in fits)
    KEPT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
