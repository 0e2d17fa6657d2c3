"""What the columns of a table are: kinds, roles, and how their text becomes values.

    raw table  -> infer_schema ->  TableSchema  -> typed ->  numbers, categories and dates to learn from
                                                -> target_values, column_values -> y, weights, groups

A schema is inferred once, from the training table, and saved with the model; it reads every later table.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sixfold.data.columns.column_kinds import column_kind
from sixfold.data.columns.schema_checks import checked_columns
from sixfold.data.columns.text_kinds import table_conventions
from sixfold.data.columns.values import values_of
from sixfold.errors import InputError, UsageError, check_option
from sixfold.plain_words import counted

Array = NDArray[Any]

FEW_VALUES = 20  # whole numbers with at most so many different ones are classes, unless said otherwise
ROWS_OF_A_CLASS = 20  # whole numbers with as many rows each may be classes though they are many
NO_GROUP = "(missing)"


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
        Frequent values, as written.
    reading : dict
        How text becomes values: ``{"decimal": ",", "thousands": ".", "currency": "€", "percent": True}``,
        ``{"format": "%d.%m.%Y"}``, ``{"time": "%H:%M"}``, ``{"true": "yes", "false": "no"}``,
        ``{"numbers": True}`` (labels that are numbers); ``"missing"`` and ``"kept"`` list words.
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

    def typed(self, raw: Any, first_row: int = 0) -> Any:
        """Return the features as numbers (Float64), categories (String) and dates (Datetime).

        Parameters
        ----------
        raw : polars.DataFrame
            With these columns, among others and in any order.
        first_row : int
            How many rows came before, in earlier batches; messages count on from it.
        """
        import polars as pl

        self.check_columns(raw)
        columns = [values_of(raw[one.name], one.kind, one.reading, first_row) for one in self.features]
        return pl.DataFrame(
            [column.alias(one.name) for column, one in zip(columns, self.features, strict=True)]
        )

    def target_values(self, raw: Any, first_row: int = 0) -> Array:
        """Return labels as text, or float64 where the target is a number; None or NaN where it is missing."""
        if self.target is None:
            raise InputError("This schema has no target column.")
        _check_names(raw, [self.target.name])
        return _as_array(self.target, raw, first_row)

    def column_values(self, raw: Any, role: str, first_row: int = 0, *, whole: bool = True) -> Array | None:
        """Return the weights as float64, or the groups as text; None where there is no such column.

        Weights must not all be 0 where these are all rows, ``whole``.
        """
        for one in self.columns:
            if one.role == role:
                _check_names(raw, [one.name])
                values = _as_array(one, raw, first_row)
                if role == "weight":
                    _check_weights(one.name, values, first_row, whole)
                if role == "group":
                    values[[value is None for value in values]] = NO_GROUP
                return values
        return None

    def check_columns(self, raw: Any) -> None:
        """Raise an :class:`InputError` that names the columns which are not there."""
        _check_names(raw, [one.name for one in self.features])

    def extra_columns(self, raw: Any) -> list[str]:
        """Return the columns that the schema does not know; they are not read."""
        known = {one.name for one in self.columns}
        return [name for name in raw.columns if name not in known]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        plain = [asdict(one) for one in self.columns]
        return {"columns": [{**one, "examples": list(one["examples"])} for one in plain]}

    @classmethod
    def from_dict(cls, plain: Any) -> Self:
        """Return the schema that :meth:`to_dict` wrote; anything else is an :class:`InputError`."""
        return cls(tuple(ColumnSchema(**one) for one in checked_columns(plain)))


def _as_array(one: ColumnSchema, raw: Any, first_row: int) -> Array:
    import polars as pl

    if one.kind == "number":
        numbers = values_of(raw[one.name], "number", one.reading, first_row)
        return np.asarray(numbers.fill_null(np.nan).to_numpy(), dtype=np.float64)
    labels = values_of(raw[one.name], "date" if one.kind == "date" else "category", one.reading, first_row)
    return np.array(labels.cast(pl.String).to_list(), dtype=object)


def _check_weights(name: str, values: Array, first_row: int, whole: bool = True) -> None:
    wrong = np.flatnonzero(~(values >= 0))
    if wrong.size:
        value = values[wrong[0]]
        given = "is missing" if np.isnan(value) else f"is {value:g}"
        raise InputError(
            f"Column {name!r}, row {first_row + wrong[0] + 1:,}: the weight {given}. Weights are numbers "
            "from 0 on, one for each row."
        )
    if whole and values.size and not values.any():
        raise InputError(f"Column {name!r} has only weights of 0: at least one row must count.")


def _check_names(raw: Any, names: Iterable[str]) -> None:
    """Raise an :class:`InputError` for columns that are not in the table, with names that are near."""
    there = list(raw.columns)
    lost = [name for name in names if name not in there]
    if not lost:
        return
    spare = [name for name in there if name not in names]
    parts = []
    for name in lost[:5]:
        near = nearest(name, spare)
        parts.append(f"{name!r}" + (f" (there is {near!r})" if near else ""))
    more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
    word = "Column" if len(lost) == 1 else "Columns"
    verb = "is" if len(lost) == 1 else "are"
    raise InputError(
        f"{word} {', '.join(parts)}{more} {verb} not in the table, but needed. It has {_listed(there)}."
    )


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like another one, or None.

    >>> nearest("Prize", ["id", "price"]), nearest("colour", ["id", "price"])
    ('price', None)
    """
    folded = {one.strip().casefold(): one for one in names}
    found = difflib.get_close_matches(name.strip().casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def infer_schema(
    frame: Any,
    target: str,
    *,
    task: str = "auto",
    weights: str | None = None,
    groups: str | None = None,
    ids: Sequence[str] = (),
) -> TableSchema:
    """Return what the columns of a raw frame are.

    Parameters
    ----------
    frame : polars.DataFrame
    target : str
        The column to predict.
    task : {"auto", "classification", "regression"}
        By default text, booleans and at most 20 different whole numbers are classes.
    weights, groups : str or None
    ids : sequence of str
        Columns to be set aside.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"size": ["1,5", "2,5", "4,0"], "kind": ["a", "b", "a"]})
    >>> schema = infer_schema(frame, "kind")
    >>> [(one.name, one.kind, one.role) for one in schema.columns]
    [('size', 'number', 'feature'), ('kind', 'category', 'target')]
    >>> schema.typed(frame)["size"].to_list()
    [1.5, 2.5, 4.0]
    """
    check_option("task", task, ("auto", "classification", "regression"))
    ids = (ids,) if isinstance(ids, str) else tuple(ids)
    roles = _roles(frame, target, weights, groups, ids)
    conventions = table_conventions(frame)
    columns = []
    for one in frame.iter_columns():
        found = column_kind(one, conventions)
        role = roles.get(one.name, "feature" if found.used else "set aside")
        column = ColumnSchema(
            one.name,
            found.kind,
            role,
            found.reason,
            found.missing,
            found.distinct,
            found.examples,
            found.reading,
        )
        if role == "target":
            column = _target(column, one, task)
        elif role == "weight":
            column = _weight(column, one)
        elif role == "group":
            column = _group(column)
        elif one.name in ids:
            column = replace(column, kind="identifier", reason="named as an identifier")
        columns.append(column)
    schema = TableSchema(tuple(columns))
    _check_features(schema)
    return schema


def _roles(
    frame: Any, target: str, weights: str | None, groups: str | None, ids: Sequence[str]
) -> dict[str, str]:
    """Return the roles that were given to columns, after a look whether they are there."""
    named = [("target", target), ("weight", weights), ("group", groups)]
    named += [("set aside", name) for name in ids]
    roles: dict[str, str] = {}
    for role, name in named:
        if name is None:
            continue
        what = "identifier" if role == "set aside" else role
        if name not in frame.columns:
            near = nearest(name, frame.columns)
            hint = f" Did you mean {near!r}?" if near else ""
            raise UsageError(
                f"There is no column {name!r} for the {what}.{hint} The columns are {_listed(frame.columns)}."
            )
        if roles.get(name, role) != role:
            raise UsageError(f"Column {name!r} cannot be the {roles[name]} and the {what}: name two columns.")
        roles[name] = role
    return roles


def _target(column: ColumnSchema, values: Any, task: str) -> ColumnSchema:
    """Return the target as a number (regression) or as classes."""
    name, present = column.name, values.len() - column.missing
    if column.kind == "empty":
        raise InputError(f"The target {name!r} has no values: there is nothing to learn from.")
    if values.dtype.is_nested():
        raise InputError(f"The target {name!r} {column.reason}: name a column of numbers or classes.")
    if column.distinct == 1:
        where = f"{column.examples[0]} in every row" + " that has a value" * (column.missing > 0)
        raise InputError(f"The target {name!r} is {where}: there is nothing to predict. Name another column.")
    number = column.kind == "number" or (column.kind == "identifier" and values.dtype.is_numeric())
    if task == "regression":
        if not number:
            values_of(values, "number", column.reading)
            raise InputError(f"The target {name!r} holds {column.kind} values: regression needs numbers.")
        return replace(column, kind="number", reason="")
    if number and task == "auto" and not _few_whole_numbers(values, column, present):
        return replace(column, kind="number", reason=_perhaps_classes(values, column, present))
    if column.kind == "date" and task == "auto":
        raise InputError(
            f"The target {name!r} holds dates, which are neither numbers nor classes: predict a number "
            "instead, such as the days since a fixed date."
        )
    if column.distinct == present and present > FEW_VALUES:
        raise InputError(
            f"The target {name!r} is different in every row: nothing can be learned about classes of one "
            "row. Name another column."
        )
    kind = "boolean" if column.kind == "boolean" else "date" if column.kind == "date" else "category"
    reading = {**column.reading, "numbers": True} if number else column.reading
    column = replace(column, kind=kind, reading=reading)
    return replace(column, reason=_rare_classes(column, values))


def _few_whole_numbers(values: Any, column: ColumnSchema, present: int) -> bool:
    """Return whether numbers are few and whole, with two rows for each on average: then they are classes."""
    if column.distinct > FEW_VALUES or (column.distinct > 2 and 2 * column.distinct > present):
        return False
    numbers = values_of(values, "number", column.reading)
    return bool((numbers == numbers.round()).all())


def _perhaps_classes(values: Any, column: ColumnSchema, present: int) -> str:
    """Return a remark on whole numbers that are many, but with many rows for each, or ""."""
    if ROWS_OF_A_CLASS * column.distinct > present:
        return ""
    numbers = values_of(values, "number", column.reading)
    if not bool((numbers == numbers.round()).all()):
        return ""
    return (
        f"{column.distinct} different whole numbers are taken as amounts; if they name classes, say so: "
        "--task classification"
    )


def _rare_classes(column: ColumnSchema, values: Any) -> str:
    """Return a remark on classes of one row, or ""."""
    labels = values_of(values, "date" if column.kind == "date" else "category", column.reading).drop_nulls()
    counts = labels.rename("label").value_counts(sort=True)
    rare = counts.filter(counts["count"] == 1)["label"].to_list()
    if not rare:
        return ""
    shown = ", ".join(str(one) for one in sorted(rare)[:5]) + (", ..." if len(rare) > 5 else "")
    return f"{counted(len(rare), 'class')} of one row only: {shown}"


def _weight(column: ColumnSchema, values: Any) -> ColumnSchema:
    numbers = values_of(values, "number", column.reading)
    _check_weights(column.name, numbers.fill_null(np.nan).to_numpy(), 0)
    return replace(column, kind="number", reason="")


def _group(column: ColumnSchema) -> ColumnSchema:
    if column.distinct < 2:
        raise InputError(f"The group column {column.name!r} has one group only: at least two are needed.")
    reading = {**column.reading, "numbers": True} if column.kind == "number" else column.reading
    kind = column.kind if column.kind in ("date", "boolean") else "category"
    return replace(column, kind=kind, reason="", reading=reading)


def _check_features(schema: TableSchema) -> None:
    if schema.features:
        return
    reasons = "; ".join(f"{one.name!r}: {one.reason}" for one in schema.set_aside[:5])
    told = f" Set aside were {reasons}." if reasons else ""
    raise InputError(f"No column is left to predict from.{told} Add columns that describe the rows.")


def known_values(y: Array) -> NDArray[np.bool_]:
    """Return where a target has a value.

    >>> known_values(np.array(["a", None], dtype=object)).tolist()
    [True, False]
    """
    if y.dtype.kind == "f":
        return np.isfinite(y)
    return np.asarray(y != None, dtype=bool)  # noqa: E711 - entry by entry


def infer_task(schema: TableSchema) -> str:
    """Return "classification" or "regression"."""
    if schema.target is None:
        raise InputError("This schema has no target column.")
    return "regression" if schema.target.kind == "number" else "classification"


__all__ = ["ColumnSchema", "TableSchema", "infer_schema", "infer_task", "known_values", "nearest"]
