"""Whether plain data is a column schema: types, kinds, roles, readings, names.

What a model file holds may have been changed by anyone, so nothing is taken on trust.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sixfold.data.columns.kind import KINDS, ROLES, USABLE
from sixfold.data.columns.text_dates import TIMES, date_formats
from sixfold.errors import InputError

TEXT = {"name", "kind", "role", "reason"}
COUNTS = {"missing", "distinct"}
WORDS = {"missing", "kept"}
FLAGS = {"percent", "numbers"}
KEYS = TEXT | COUNTS | {"examples", "reading"}
CHOICES: dict[str, Any] = {
    "decimal": (".", ","),
    "thousands": ("", ",", ".", " ", "'"),
    "format": date_formats(),
    "time": TIMES,
}


def checked_columns(plain: Any) -> list[dict[str, Any]]:
    """Return the arguments of the columns in plain data; an :class:`InputError` names what is wrong."""
    if not isinstance(plain, Mapping) or set(plain) != {"columns"} or not isinstance(plain["columns"], list):
        raise InputError("A schema is a mapping with a list of 'columns'.")
    columns: list[dict[str, Any]] = []
    names: set[str] = set()
    for number, one in enumerate(plain["columns"], 1):
        where = f"Column {number} of the schema"
        if not isinstance(one, Mapping) or not all(isinstance(key, str) for key in one) or set(one) != KEYS:
            raise InputError(f"{where} must have {', '.join(sorted(KEYS))}, and nothing else.")
        _check_types(where, one)
        if one["name"] in names:
            raise InputError(f"{where} has the name {one['name']!r} of another one.")
        names.add(one["name"])
        if one["kind"] not in KINDS:
            raise InputError(f"{where}: {one['kind'][:60]!r} is not a kind; they are {', '.join(KINDS)}.")
        if one["role"] not in ROLES:
            raise InputError(f"{where}: {one['role'][:60]!r} is not a role; they are {', '.join(ROLES)}.")
        if one["role"] != "set aside" and one["kind"] not in USABLE:
            raise InputError(f"{where}: a column of kind {one['kind']!r} cannot be a {one['role']}.")
        columns.append(
            {**one, "examples": tuple(one["examples"]), "reading": checked_reading(where, one["reading"])}
        )
    for role in ("target", "weight", "group"):
        if sum(one["role"] == role for one in columns) > 1:
            raise InputError(f"The schema has more than one {role} column.")
    return columns


def _check_types(where: str, one: Mapping[str, Any]) -> None:
    for key in TEXT:
        if not isinstance(one[key], str):
            raise InputError(f"{where}: {key!r} must be text.")
    for key in COUNTS:
        if type(one[key]) is not int or one[key] < 0:
            raise InputError(f"{where}: {key!r} must be a whole number from 0 on.")
    if not _is_words(one["examples"]):
        raise InputError(f"{where}: 'examples' must be a list of texts.")
    if not isinstance(one["reading"], Mapping):
        raise InputError(f"{where}: 'reading' must be a mapping.")


def checked_reading(where: str, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reading as a dict; an :class:`InputError` where an entry is unknown or of a wrong type."""
    for key, value in reading.items():
        if key in CHOICES:
            right = isinstance(value, str) and value in CHOICES[key]
        elif key in WORDS:
            right = _is_words(value)
        elif key in FLAGS:
            right = value is True
        else:
            right = key in ("true", "false", "currency") and isinstance(value, str)
        if not right:
            raise InputError(f"{where}: its reading has an entry {key!r} that cannot be used.")
    if ("true" in reading) != ("false" in reading):
        raise InputError(f"{where}: its reading needs both 'true' and 'false'.")
    if reading.get("decimal", ".") == reading.get("thousands"):
        raise InputError(f"{where}: the mark of decimals and that of thousands are the same.")
    return {key: list(value) if key in WORDS else value for key, value in reading.items()}


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
