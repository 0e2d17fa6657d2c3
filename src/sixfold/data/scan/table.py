"""A lazy table: which files, which columns, what they mean; read when a fit or a prediction asks for it.

files ─► batches of columns ─► rows of numbers ─► a scratch file ─► an array that is mapped from it
         decoded by threads     (an encoder for                      passes read at the speed of memory
         in the background      what is no number)                   while it is in the page cache
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from sixfold.data.scan.files import FileRows, FileSet, arrow, is_number, is_text
from sixfold.data.scan.scratch import Scratch
from sixfold.errors import InputError, check_number

Array = NDArray[Any]

LEAST_LIMIT = 256e6  # bytes: Python, NumPy and Arrow take half of that
NO_ARRAY = (
    "A scan was passed where rows in memory are expected. fit, predict, predict_proba, decision_function, "
    "transform, score and certificate_.verify of sixfold's learners take scans; for all else go through its "
    "rows, for part in table.portions(): ... part.X, or read all of them, table.read().X."
)
PLAIN = 1 / 16  # of the limit: rows that take no more are read into memory


def scan(
    path: Any,
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    encoder: Any = None,
    *,
    memory_limit: float | None = None,
    scratch: str | os.PathLike[str] | None = None,
    client: Any = None,
) -> Scan:
    """Return a table in files as one that learners read by themselves: it need not fit in memory.

    ``fit``, ``predict`` and its relatives, ``score`` and ``certificate_.verify`` take it in place of an
    array. Rows are decoded once, written to a scratch file, and mapped from there, so that every pass of a
    solver is a plain read; pages are let go of when the process comes near to its limit of memory. Results
    are those of the same rows in memory.

    Parameters
    ----------
    path : str, path, or list of these
        A file, a folder (with what is in its folders), a glob such as ``"sales/2024-*.parquet"``. Parquet
        (.parquet, .pq), Arrow IPC (.arrow, .feather, .ipc) or CSV (.csv, .csv.gz); the rows are in the order
        of the names.
    target : str, default=None
        The column to learn: numbers, or text for classes. Not needed to predict.
    weight : str, default=None
        A column of sample weights.
    columns : sequence of str, default=None
        Those to learn from; None takes all but ``target`` and ``weight``.
    encoder : TableEncoder, default=None
        Turns text, dates and gaps into numbers. One that is not fitted is fitted first, in a pass of its own.
    memory_limit : float, default=None
        Bytes that the process may hold, as far as rows and what is computed from each of them are concerned;
        None for half of the machine's memory.
    scratch : str or path, default=None
        The folder for the scratch file, 8 bytes a number (4 where all columns are float32); None for the
        system's folder of temporary files. The file has no name, and is gone when it is not needed any more.
    client : distributed.Client, default=None
        A cluster whose workers see the same files: ``fit`` lets them read the rows, which stay there.

    Returns
    -------
    Scan

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> from sixfold import LinearRegression, scan
    >>> folder = tempfile.mkdtemp()
    >>> for part in range(3):
    ...     x = np.arange(4.0) + 4 * part
    ...     pq.write_table(pa.table({"x": x, "y": 2 * x + 1}), os.path.join(folder, f"{part}.parquet"))
    >>> table = scan(folder, target="y")
    >>> model = LinearRegression().fit(table)
    >>> model.coef_, table.n_rows
    (array([2.]), 12)
    >>> model.predict(table)[:3]
    array([1., 3., 5.])
    """
    return Scan(path, target, weight, columns, encoder, memory_limit, scratch, client)


class ScanRows(np.ndarray[Any, Any]):
    """Rows of numbers that know the names of their columns."""

    columns: list[str]

    def __new__(cls, rows: Array, columns: list[str]) -> ScanRows:
        """Return a view of the rows."""
        view = rows.view(cls)
        view.columns = columns
        return view

    def __array_finalize__(self, other: Any) -> None:
        """Hand the names on where columns are the same."""
        self.columns = getattr(other, "columns", [])

    def header(self) -> Any:
        """Return a table without rows that has the names, for whoever looks for names in tables."""
        return arrow().table({name: arrow().array([], arrow().float64()) for name in self.columns})


@dataclass(frozen=True)
class Portion:
    """Some rows as numbers, with where they came from."""

    X: ScanRows
    y: Array | None
    weight: Array | None
    rows: FileRows


class Gap(NamedTuple):
    """The first value that is not finite, and how it is called."""

    where: str
    column: str
    value: float
    several: int

    def refuse(self) -> NoReturn:
        """Raise an :class:`InputError` that names file, row and column."""
        what = "NaN" if np.isnan(self.value) else "infinity"
        several = f"{self.several} such values, the first in" if self.several > 1 else "in"
        raise InputError(
            f"Input X contains {what}: {several} column {self.column!r}, {self.where}. Pass an encoder, "
            "which fills gaps, or leave such rows out."
        )


@dataclass(frozen=True)
class ScannedRows:
    """All rows as arrays.

    Attributes
    ----------
    X : ScanRows
    y, weight : ndarray or None
    gap : Gap or None
    mapped : bool
        Whether X is mapped from a file rather than in memory.
    """

    X: ScanRows
    y: Array | None
    weight: Array | None
    gap: Gap | None
    mapped: bool


class Scan:
    """A table in files; made by :func:`scan`, whose parameters are its attributes.

    Attributes
    ----------
    files : list of str
        In the order of their rows.
    columns : list of str
        The columns to learn from, as they are called in the files.
    n_rows : int or None
        None where the files have to be read to find out.
    """

    def __init__(
        self,
        path: Any,
        target: str | None,
        weight: str | None,
        columns: Sequence[str] | None,
        encoder: Any,
        memory_limit: float | None,
        scratch: str | os.PathLike[str] | None,
        client: Any = None,
    ) -> None:
        self.client = client
        check_number("memory_limit", memory_limit, at_least=LEAST_LIMIT, optional=True)
        self.path, self.target, self.weight, self.encoder = path, target, weight, encoder
        self.memory_limit = _half_of_memory() if memory_limit is None else float(memory_limit)
        self.scratch = tempfile.gettempdir() if scratch is None else os.fspath(scratch)
        self._files = FileSet(path)
        self.columns = self._chosen(columns)
        self._require_known()

    @property
    def files(self) -> list[str]:
        """The files, in the order of their rows."""
        return self._files.files

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; None where the files have to be read to find out."""
        return self._files.rows

    def __repr__(self) -> str:
        """Name files, columns and target."""
        files = (
            repr(self.files[0])
            if len(self.files) == 1
            else f"{len(self.files)} files from {self.files[0]!r} on"
        )
        rows = "" if self.n_rows is None else f", {self.n_rows:,} rows"
        target = "" if self.target is None else f", target={self.target!r}"
        return f"<Scan of {files}{rows}, {len(self.columns)} columns{target}>"

    # -- what it is not --------------------------------------------------------------------------------------

    def __array__(self, *args: Any, **options: Any) -> Array:
        """Refuse to be an array: rows are read by those who know that there may be many."""
        raise InputError(NO_ARRAY)

    @property
    def shape(self) -> tuple[int, int]:
        """Refuse to be an array."""
        raise InputError(NO_ARRAY)

    def __len__(self) -> int:
        """Refuse to be an array."""
        raise InputError(NO_ARRAY)

    # -- columns ---------------------------------------------------------------------------------------------

    def _chosen(self, columns: Sequence[str] | None) -> list[str]:
        there = self._files.schema.names
        special = {"target": self.target, "weight": self.weight}
        if isinstance(columns, str):
            raise InputError(
                f"columns={columns!r} is text. Pass a list of names, for instance [{columns!r}]."
            )
        for parameter, names in [
            *((key, [name]) for key, name in special.items()),
            ("columns", columns or []),
        ]:
            for name in names:
                if name is not None and name not in there:
                    raise InputError(
                        f"{parameter} names the column {name!r}, but {self.files[0]!r} has {_listed(there)}. "
                        "Check the spelling."
                    )
        chosen = (
            [name for name in there if name not in special.values()] if columns is None else list(columns)
        )
        if not chosen:
            raise InputError(f"{self.files[0]!r} has no column left to learn from. Name some in columns=.")
        for parameter, name in special.items():
            if name in chosen:
                raise InputError(
                    f"columns names {name!r}, and {parameter} does too. Leave it out of one of them."
                )
        doubled = [name for name in chosen if there.count(name) > 1 or chosen.count(name) > 1]
        if doubled:
            raise InputError(
                f"There are several columns {doubled[0]!r}. Give every column a name of its own."
            )
        return chosen

    def _require_known(self) -> None:
        """Raise an :class:`InputError` where files differ, or text would have to be a number."""
        schema = self._files.schema
        special = [name for name in (self.target, self.weight) if name is not None]
        numbers = [name for name in [*self.columns, *special] if is_number(schema.field(name).type)]
        if self.encoder is None:
            others = [name for name in self.columns if name not in numbers]
            if others:
                raise InputError(
                    f"Column {others[0]!r} of {self.files[0]!r} holds {schema.field(others[0]).type}, which "
                    "is no number. Pass encoder=TableEncoder(), or leave the column out by columns=."
                )
        if self.weight is not None and self.weight not in numbers:
            raise InputError(
                f"weight={self.weight!r} holds {schema.field(self.weight).type}. Weights are numbers."
            )
        if (
            self.target is not None
            and self.target not in numbers
            and not is_text(schema.field(self.target).type)
        ):
            raise InputError(
                f"target={self.target!r} holds {schema.field(self.target).type}. Targets are numbers, or "
                "text for classes."
            )
        self._files.require_columns([*self.columns, *special], numbers)

    def names(self) -> list[str]:
        """Return the columns as learners see them: those of the encoder, where there is one."""
        if self.encoder is None:
            return list(self.columns)
        self._fit_encoder()
        return [str(name) for name in self.encoder.get_feature_names_out()]

    def _fit_encoder(self) -> None:
        if not self.encoder.__sklearn_is_fitted__():
            batches = (rows.table for rows in self._files.batches(self.columns))
            self.encoder.fit_batches(batches, folder=self.scratch)

    # -- rows ------------------------------------------------------------------------------------------------

    def portions(self, *, with_target: bool = False) -> Iterator[Portion]:
        """Go through the rows as numbers, some at a time; an array is used again for the rows after next."""
        names, dtype = self.names(), self.dtype()
        special = [name for name in (self.target, self.weight) if with_target and name is not None]
        room = other = np.empty((0, len(names)), dtype=dtype)
        for rows in self._files.batches([*self.columns, *special]):
            count = rows.table.num_rows
            if count == 0:
                continue
            room, other = other, room
            room = room if count <= len(room) else np.empty((count, len(names)), dtype=dtype)
            X = room[:count]
            self._fill(X, rows)
            y = weight = None
            if with_target and self.target is not None:
                y = values_of(rows, self.target, "target")
            if with_target and self.weight is not None:
                weight = values_of(rows, self.weight, "weight")
            yield Portion(ScanRows(X, names), y, weight, rows)

    def dtype(self) -> np.dtype[Any]:
        """Return the type of the rows."""
        kinds = {str(self._files.schema.field(name).type) for name in self.columns}
        return np.dtype(np.float32 if kinds == {"float"} and self.encoder is None else np.float64)

    def _fill(self, X: Array, rows: FileRows) -> None:
        if self.encoder is not None:
            self.encoder.transform_batch(rows.table, first_row=rows.start, out=X)
            return
        compute, kind = arrow().compute, arrow().float64()
        for j, name in enumerate(self.columns):
            column = rows.table.column(name)
            if not arrow().types.is_floating(column.type):
                column = compute.cast(column, kind, safe=False)  # beyond 2^53 rounded, as NumPy does
            X[:, j] = column.to_numpy(zero_copy_only=False)

    def read(self, tell: Callable[[int, int | None], None] | None = None) -> ScannedRows:
        """Read all rows into a scratch file and return arrays that are mapped from it.

        ``tell`` is called with how many rows were read, and of how many.
        """
        names = self.names()
        gap, count = None, 0
        with ExitStack() as kept:
            rows = kept.enter_context(Scratch(self.scratch, len(names), self.dtype()))
            targets, weights = (kept.enter_context(_Column(self.scratch)) for _ in range(2))
            writer = kept.enter_context(ThreadPoolExecutor(1))  # while the next rows are put together
            written: Future[None] | None = None
            for portion in self.portions(with_target=True):
                if written is not None:
                    written.result()
                written = writer.submit(rows.append, portion.X)
                gap = first_gap(portion, gap)
                if portion.y is not None:
                    targets.append(portion.y)
                if portion.weight is not None:
                    weights.append(portion.weight)
                count += len(portion.X)
                if tell is not None:
                    tell(count, self.n_rows)
            if written is None:
                raise InputError(f"{self!r} has no rows. Scan files that hold some.")
            written.result()
            X = rows.rows()
            mapped = X.nbytes > PLAIN * self.memory_limit
            return ScannedRows(
                ScanRows(X if mapped else X.copy(), names),
                targets.values() if self.target is not None else None,
                weights.values() if self.weight is not None else None,
                gap,
                mapped,
            )

    def targets(self) -> tuple[Array | None, Array | None]:
        """Return the targets and the weights of all rows, without reading the other columns."""
        special = [name for name in (self.target, self.weight) if name is not None]
        with ExitStack() as kept:
            columns = [kept.enter_context(_Column(self.scratch)) for _ in special]
            for rows in self._files.batches(special) if special else ():
                for column, name in zip(columns, special, strict=True):
                    column.append(values_of(rows, name, "target" if name == self.target else "weight"))
            found = [column.values() for column in columns]
        return (
            found[0] if self.target is not None else None,
            found[-1] if self.weight is not None else None,
        )


class _Column:
    """The values of one column; text is kept as numbers of a dictionary until all of it is known."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._kept: Scratch | None = None
        self._numbers: dict[str, int] | None = None

    def __enter__(self) -> _Column:
        return self

    def __exit__(self, *error: object) -> None:
        if self._kept is not None:
            self._kept.close()

    def append(self, values: Array) -> None:
        if values.dtype.kind == "O":
            self._numbers = {} if self._numbers is None else self._numbers
            texts, places = np.unique(values.astype(str), return_inverse=True)
            known = [self._numbers.setdefault(text, len(self._numbers)) for text in texts.tolist()]
            values = np.array(known, dtype=np.int32)[places]
        if self._kept is None:
            self._kept = Scratch(self._folder, 1, values.dtype)
        if self._kept.dtype != values.dtype:  # whole numbers in one file, others in the next
            self._keep_as(np.result_type(self._kept.dtype, values.dtype))
        self._kept.append(values[:, None])

    def _keep_as(self, dtype: Any) -> None:
        assert self._kept is not None
        with self._kept as before:
            self._kept = Scratch(self._folder, 1, dtype)
            self._kept.append(before.rows())

    def values(self) -> Array:
        if self._kept is None:
            return np.empty(0)
        found = self._kept.rows()[:, 0]
        if self._numbers is None:
            return found
        return np.array([*self._numbers, ""], dtype=object)[:-1][found]


def values_of(rows: FileRows, name: str, parameter: str) -> Array:
    """Return targets or weights, none of which may be missing."""
    column, types = rows.table.column(name), arrow().types
    if isinstance(column, arrow().ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"{parameter}={name!r} has no value in {rows.where(row)}. Fill it in, or leave such rows out."
        )
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_decimal(column.type):
        column = arrow().compute.cast(column, arrow().float64(), safe=False)
    found: Array = column.to_numpy(zero_copy_only=False)
    bad = ~np.isfinite(found) if found.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{parameter}={name!r} is {found[row]} in {rows.where(row)}. Fill it in, or leave such rows out."
        )
    return found


def first_gap(portion: Portion, before: Gap | None) -> Gap | None:
    """Return the first value that is not finite, counting on from what was found before."""
    X = portion.X.view(np.ndarray)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(X)):
            return before
    bad = ~np.isfinite(X)
    count = int(bad.sum())
    if count == 0:
        return before
    if before is not None:
        return before._replace(several=before.several + count)
    row, column = (int(k) for k in np.argwhere(bad)[0])
    return Gap(portion.rows.where(row), portion.X.columns[column], float(X[row, column]), count)


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _half_of_memory() -> float:
    try:
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # a system that does not say
        return 4e9
