"""Categories that a model meets for the first time, counted."""

from __future__ import annotations

from typing import Any

from sixfold.app.plain_text import listed
from sixfold.app.saved_model.model import SavedModel
from sixfold.plain_words import counted

EXAMPLES = 3  # that are named for a column
MOST = 1000  # categories of a column


class UnseenCategories:
    """Counts rows whose category in a column was not among the training rows.

    Attributes
    ----------
    rows : int
        With one such value at least.
    by_column : dict
        Column to the number of rows and some of the values.
    """

    def __init__(self, saved: SavedModel) -> None:
        self.known = known_categories(saved)
        self.rows = 0
        self.by_column: dict[str, tuple[int, list[str]]] = {}

    def count(self, typed: Any) -> None:
        """Look at some rows of a typed frame."""
        import polars as pl

        there = [name for name in self.known if name in typed.columns]
        if not there or not typed.height:
            return
        strange = typed.select(
            (pl.col(name).is_not_null() & ~pl.col(name).is_in(self.known[name])).alias(name) for name in there
        )
        rows = strange.select(pl.any_horizontal(pl.all()).sum()).item()
        if not rows:
            return
        self.rows += rows
        for column in strange.iter_columns():
            if count := column.sum():
                before, values = self.by_column.get(column.name, (0, []))
                new = typed[column.name].filter(column).unique(maintain_order=True).to_list()
                values = list(dict.fromkeys([*values, *new]))[:EXAMPLES]
                self.by_column[column.name] = before + count, values

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "rows": self.rows,
            "columns": {
                name: {"rows": count, "examples": values} for name, (count, values) in self.by_column.items()
            },
        }

    def __str__(self) -> str:
        if not self.rows:
            return ""
        columns = [
            f"{name} ({listed(map(repr, values))}{' ...' * (len(values) == EXAMPLES)})"
            for name, (_, values) in self.by_column.items()
        ]
        return f"{counted(self.rows, 'row')} with a category that the model has not met: {listed(columns, 4)}"


def categories_of(typed: Any, rows: Any) -> dict[str, list[str]]:
    """Return the categories that some rows of a typed frame have, by column, sorted: what a model has met.

    Columns with more than a thousand of them are left out: new ones are no news there.

    >>> import polars as pl
    >>> categories_of(pl.DataFrame({"age": [30.0, 40.0], "city": ["Bern", None]}), [0, 1])
    {'city': ['Bern']}
    """
    import polars as pl

    words = typed.select(pl.selectors.string())  # before the rows are: numbers need not be copied
    distinct = {one.name: one.gather(rows).drop_nulls().unique() for one in words.iter_columns()}
    return {name: sorted(one.to_list()) for name, one in distinct.items() if one.len() <= MOST}


def known_categories(saved: SavedModel) -> dict[str, list[str]]:
    """Return the categories that a model has met, by column, as its file says.

    Its encoder knows less: rare ones share a column there, and two make one.
    """
    told = saved.facts.get("categories")
    if not isinstance(told, dict):
        return {}
    return {name: [str(one) for one in values] for name, values in told.items() if isinstance(values, list)}
