"""What a search is asked to try, checked before anything is fitted."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator

from sixfold.errors import InputError


def check_grid(name: str, grid: Any) -> None:
    """Raise an :class:`InputError` unless this is a dictionary of non-empty sequences, or a list of them."""
    grids = [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(grids, Sequence) or isinstance(grids, str) or not grids:
        raise InputError(
            f"{name}={grid!r} names nothing to try. Pass a dictionary of parameters and lists of values, "
            "for instance {'n_neighbors': [1, 3, 5]}, or a list of such dictionaries."
        )
    for one in grids:
        if not isinstance(one, Mapping):
            raise InputError(f"{name} holds {one!r}, which is no dictionary of parameters and values.")
        for parameter, values in one.items():
            if hasattr(values, "__len__") and not isinstance(values, str) and len(values) == 0:
                raise InputError(
                    f"{name} has an empty list for {parameter!r}, so there is nothing to try. Give it a "
                    "value, or leave the parameter out."
                )


def check_names(model: Any, names: Iterable[str]) -> None:
    """Raise an :class:`InputError` naming the nearest parameter where the model has none of a name."""
    known = model.get_params(deep=True)
    for name in names:
        # A grid may put another learner into a step of a pipeline, whose parameters show only then.
        if name in known or (name.partition("__")[0] in names and "__" in name):
            continue
        if not isinstance(known.get(name.rpartition("__")[0], model), BaseEstimator):
            continue  # may take names that it does not list
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        ends = [own for own in known if own.endswith(f"__{name}")]
        hint = f"; did you mean {(ends or near)[0]!r}?" if ends or near else "."
        own = ends or [one for one in known if "__" not in one]
        raise InputError(
            f"{type(model).__name__} has no parameter {name!r}{hint} Its parameters are {', '.join(own)}."
        )
