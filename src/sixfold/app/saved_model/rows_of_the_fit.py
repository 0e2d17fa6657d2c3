"""Whether rows that come in pieces are, all together, the table that a model was fitted to.

The fingerprint of a table is a sum over its rows, so that those of the pieces add up to it.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sixfold.app.saved_model.model import SavedModel
from sixfold.app.training_record import data_fingerprint
from sixfold.data.columns.schema import known_values

Array = NDArray[Any]


class RowsOfTheFit:
    """Adds up fingerprints, until there are more rows than the fit had."""

    def __init__(self, saved: SavedModel) -> None:
        told = saved.facts.get("data") or {}
        self._schema, self._told = saved.schema, told.get("fingerprint")
        rows = told.get("rows")
        self._left: int = rows if isinstance(rows, int) else -1
        self._sum = 0

    def add(self, raw: Any, typed: Any, y: Array) -> None:
        """Add some rows, of which those with a known target count."""
        weighted = next((one.name for one in self._schema.columns if one.role == "weight"), None)
        known = known_values(y)
        if self._left < known.sum() or (weighted is not None and weighted not in raw.columns):
            self._left = -1
            return
        if not known.all():
            raw, typed, y = raw.filter(known), typed.filter(known), y[known]
        self._left -= len(y)
        weight = self._schema.column_values(raw, "weight")
        labels = y if y.dtype.kind == "f" else y.astype(str)
        self._sum += int(data_fingerprint(typed, labels, weight), 16)

    @property
    def all_there(self) -> bool:
        """Whether the rows so far are those of the fit."""
        return self._left == 0 and f"{self._sum % 2**64:016x}" == self._told
