"""Parameters that were chosen at an end of their grid: beyond it something better may lie."""

from __future__ import annotations

from typing import Any

import numpy as np

NATURAL_ENDS = {"n_neighbors": 1, "max_depth": 1, "ccp_alpha": 0.0}  # beyond these there is nothing to try


def grid_edges(search: Any) -> list[tuple[str, float, str]]:
    """Return parameters chosen at an end of their grid where the mean score still rises towards it."""
    results = getattr(search, "cv_results_", None)
    if results is None or not len(results["params"]) or not hasattr(search, "best_index_"):
        return []
    settings, chosen = results["params"], results["params"][search.best_index_]
    mean = np.asarray(results["mean_test_score"], dtype=float)
    found = []
    for name, value in chosen.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        rest = {key: one for key, one in chosen.items() if key != name}
        along = sorted(
            (setting[name], mean[k])
            for k, setting in enumerate(settings)
            if isinstance(setting.get(name), int | float)
            and {key: one for key, one in setting.items() if key != name} == rest
        )
        short = name.rsplit("__", 1)[-1]
        if len(along) < 3 or value == NATURAL_ENDS.get(short):
            continue
        for end, beside, which in ((along[0], along[1], "smallest"), (along[-1], along[-2], "largest")):
            if value == end[0] and end[1] > beside[1]:
                found.append((short, float(value), which))
    return found
