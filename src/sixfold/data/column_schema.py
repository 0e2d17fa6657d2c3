"""What the columns of a table are: kinds, roles, and how their text becomes values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

KINDS = ("number", "category", "boolean", "date", "text", "identifier", "constant", "empty")
ROLES = ("feature", "target", "weight", "group", "set aside")


@dataclass(frozen=True)
class ColumnSchema:
    """One column.

    Attributes
    ----------
    name, kind, role : str
    reason : str
        Why it was set aside, or is read as it is; empty where that is plain.
    missing, distinct : int
    examples : tuple of str
    reading : dict
        How text becomes values.
    """

    name: str
    kind: str
    role: str = "feature"
    reason: str = ""
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableSchema:
    """All columns of a table, in its order."""

    columns: tuple[ColumnSchema, ...]

    @property
    def features(self) -> tuple[ColumnSchema, ...]:
        """The columns to predict from."""
        return tuple(one for one in self.columns if one.role == "feature")

    @property
    def set_aside(self) -> tuple[ColumnSchema, ...]:
        """The columns that are not used, each with a reason."""
        return tuple(one for one in self.columns if one.role == "set aside")

    @property
    def target(self) -> ColumnSchema | None:
        """The column to predict."""
        return next((one for one in self.columns if one.role == "target"), None)

    def typed(self, raw: Any) -> Any:
        """Return the features as numbers (Float64), categories (String) and dates (Datetime)."""
        import polars as pl

        kinds = {"number": pl.Float64, "date": pl.Datetime("ms")}
        return raw.select(pl.col(one.name).cast(kinds.get(one.kind, pl.String)) for one in self.features)

    def target_values(self, raw: Any) -> Array:
        """Return labels as text, or float64 where the target is a number."""
        assert self.target is not None
        values = raw[self.target.name]
        if self.target.kind == "number":
            return np.asarray(values.to_numpy(), dtype=np.float64)
        return np.array([None if one is None else str(one) for one in values.to_list()], dtype=object)

    def column_values(self, raw: Any, role: str) -> Array | None:
        """Return the weights as float64, or the groups as objects; None where there is no such column."""
        for one in self.columns:
            if one.role == role:
                return raw[one.name].to_numpy()
        return None

    def check_columns(self, raw: Any) -> None:
        """Raise an :class:`InputError` that names the columns which are not there."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"columns": [{**asdict(one), "examples": list(one.examples)} for one in self.columns]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the schema that :meth:`to_dict` wrote."""
        columns = [ColumnSchema(**{**one, "examples": tuple(one["examples"])}) for one in plain["columns"]]
        return cls(tuple(columns))


def infer_schema(
    frame: Any,
    target: str,
    *,
    task: str = "auto",
    weights: str | None = None,
    groups: str | None = None,
    ids: Sequence[str] = (),
) -> TableSchema:
    """Return what the columns of a raw frame are."""
    roles = {target: "target", weights: "weight", groups: "group"} | dict.fromkeys(ids, "set aside")
    columns = []
    for one in frame.iter_columns():
        role = roles.get(one.name, "feature")
        number = one.dtype.is_numeric() and not (role == "target" and one.n_unique() <= 20)
        if task != "auto" and role == "target":
            number = task == "regression"
        kind = "number" if number else "date" if one.dtype.is_temporal() else "category"
        columns.append(ColumnSchema(one.name, kind, role, "", one.null_count(), one.n_unique()))
    return TableSchema(tuple(columns))


def infer_task(schema: TableSchema) -> str:
    """Return "classification" or "regression"."""
    assert schema.target is not None
    return "regression" if schema.target.kind == "number" else "classification"
