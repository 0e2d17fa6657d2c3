"""Rows on a cluster: the partitions of Dask collections as row blocks that never leave their workers.

    X, y, weight  ->  one NumPy block a partition, persisted where Dask put it  ->  reduce, fold

A pass sends one function to the workers (a module's own, or a ``functools.partial`` of one, with d or d x d
numbers in it) and brings one small result back:

    reduce    f(block) on every block, joined eight at a time in row order: a tree of one shape, so that the
              result does not depend on which worker computed what, nor on how many there are
    fold      f(block, state) from block to block: what travels is the state

A worker that dies takes its blocks along; Dask makes them again from the graph they came from, and the pass
goes on. While a pass runs, ``watch`` is called ten times a second, so that Ctrl-C and time limits are
honoured; what it raises cancels the pass. Without a ``distributed.Client`` the same passes run on Dask's
threads in this process, and partitions that are not persisted are made anew for each of them: no more of them
are in memory than there are threads.

This is the only module that imports Dask, and it does so when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from sixfold.data.blocks import Block, Blocks
from sixfold.data.checks import check_table, column_names, to_array, to_float
from sixfold.errors import ClusterError, InputError, MissingExtraError

Array = NDArray[Any]
Result = TypeVar("Result")

POLL = 0.1  # seconds between two looks at the time and at Ctrl-C
JOINED = 8  # results that are joined by one task
RETRIES = 3  # of a task that fails with its worker
PERSIST_HINT = (
    "Start the cluster and the client again, make the collections anew, and fit once more; the model is as "
    "it "
    "was before."
)


def is_collection(values: Any) -> bool:
    """Return whether these are rows of Dask; asking does not import it."""
    return hasattr(values, "__dask_graph__") and hasattr(values, "dask")


def _dask() -> Any:
    try:
        import dask
        import dask.delayed
    except ImportError as error:
        raise MissingExtraError(
            "Rows on a cluster need Dask, which is not installed. Install it: pip install 'sixfold[dask]'"
        ) from error
    return dask


# -- where passes run ----------------------------------------------------------------------------------------


class Workers:
    """Where the partitions are: a client's cluster, or this process."""

    def __init__(self) -> None:
        self.dask, self.client = _dask(), _client()
        self.require_running()

    def require_running(self) -> None:
        """Raise a :class:`ClusterError` where the client is closed or has lost its scheduler."""
        if self.client is not None and self.client.status not in ("running", "connecting"):
            raise ClusterError(f"The Dask client is {self.client.status!r}. {PERSIST_HINT}")

    def persist(self, parts: Sequence[Any]) -> list[Any]:
        """Return the same parts, which a cluster keeps from now on."""
        if self.client is None:
            return list(parts)
        return list(self.client.persist(list(parts), optimize_graph=False, retries=RETRIES))

    def task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a call that is made later."""
        return self.dask.delayed(function, pure=False, traverse=False)(*arguments)

    def held(self, function: Any) -> Any:
        """Return a function as data of the graph: sent once, however many tasks call it."""
        return self.dask.delayed(_Held(function), pure=False, traverse=False)

    def result(self, task: Any, watch: Callable[[], None] | None) -> Any:
        """Return what a task makes, looking up now and then."""
        if self.client is None:
            if watch is not None:
                watch()
            try:
                return self.dask.compute(task)[0]
            except ValueError as error:
                if "Missing dependency" not in str(error):
                    raise
                raise ClusterError(
                    "Some of the rows were kept by the workers of a client that is closed. " + PERSIST_HINT
                ) from error
        self.require_running()
        future = self.client.compute(task, optimize_graph=False, retries=RETRIES)
        try:
            return self._wait(future, watch)
        finally:
            # Cancelled where it has not ended; else released with this.
            if not future.done():
                future.cancel()

    def _wait(self, future: Any, watch: Callable[[], None] | None) -> Any:
        import distributed

        try:
            while not future.done():
                try:
                    distributed.wait(future, timeout=POLL)
                except TimeoutError:
                    self.require_running()
                if watch is not None:
                    watch()
            return future.result()
        except distributed.KilledWorker as error:
            raise ClusterError(
                "The same part of the work has ended several workers, which points to their memory: give "
                "each more, or make partitions smaller (repartition, rechunk)."
            ) from error
        except (distributed.CancelledError, OSError) as error:
            if future.status == "error":
                raise InputError(
                    f"Some of the rows cannot be read by the workers: {error}. Do they see the same files?"
                ) from error
            if future.status in ("cancelled", "lost") or isinstance(error, OSError):
                raise ClusterError(
                    "The cluster has dropped the work: its scheduler or the client was lost. " + PERSIST_HINT
                ) from error
            raise


def _client() -> Any:
    """Return the client that is in use; None where there is none."""
    try:
        import distributed
    except ImportError:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


class _Held:
    """A function, or a state, that Dask takes for data and does not look into."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _on_block(held: _Held, rows: Rows, start: int) -> Any:
    return held.value(Block(rows.X, rows.y, rows.weight, start))


def _on_rows(held: _Held, rows: Rows) -> Any:
    return held.value(rows)


def _of_partition(held: _Held, number: int, *parts: Any) -> Any:
    try:
        return held.value(*parts)
    except InputError as error:
        raise InputError(f"In partition {number} of the collection, counted from 0: {error}") from error


def _on_state(held: _Held, rows: Rows, start: int, state: Any) -> Any:
    before = state.value if isinstance(state, _Held) else state
    return held.value(Block(rows.X, rows.y, rows.weight, start), before)


def _join(held: _Held, *parts: Any) -> Any:
    return reduce(held.value, parts)


def _listed(*parts: Any) -> list[Any]:
    return list(parts)


# -- blocks --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """One partition as NumPy arrays: X in rows, y as it was given, weights where there are some."""

    X: Any
    y: Any
    weight: Array | None


class DaskBlocks(Blocks):
    """Row blocks that stay on their workers.

    Parameters
    ----------
    workers : Workers
    parts : list of delayed Rows
        One a partition that has rows.
    lengths : sequence of int
        Their rows.
    n_columns, n_targets, weight_sum, dtype
        As in :class:`~sixfold.data.blocks.Blocks`.
    """

    streamed = True

    def __init__(
        self,
        workers: Workers,
        parts: Sequence[Any],
        lengths: Sequence[int],
        n_columns: int,
        n_targets: int,
        weight_sum: float,
        dtype: Any,
    ) -> None:
        self.workers, self.parts = workers, list(parts)
        self.starts = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))])
        self.n_rows, self.n_columns, self.n_targets = int(self.starts[-1]), n_columns, n_targets
        self.weight_sum, self.dtype, self.sparse = weight_sum, np.dtype(dtype), False

    def __iter__(self) -> Iterator[Block]:
        """Refuse: rows do not leave their workers."""
        raise InputError(
            "This step needs all rows in one process, and they are on a cluster. Collect a sample of them "
            "first, for instance X.sample(frac=0.1).compute()."
        )

    def whole(self) -> Block:
        """Refuse: rows do not leave their workers."""
        return next(iter(self))

    def reduce(self, function: Callable[[Block], Result], join: Callable[[Result, Result], Result]) -> Result:
        """Return what the function makes of each block, joined in row order on the cluster."""
        task, held = self.workers.task, self.workers.held(function)
        starts = self.starts[:-1].tolist()
        level = [task(_on_block, held, part, start) for part, start in zip(self.parts, starts, strict=True)]
        return self._result(level, join)

    def _result(self, level: list[Any], join: Callable[[Any, Any], Any]) -> Any:
        joining = self.workers.held(join)
        while len(level) > 1:
            groups = [level[first : first + JOINED] for first in range(0, len(level), JOINED)]
            level = [
                self.workers.task(_join, joining, *group) if len(group) > 1 else group[0] for group in groups
            ]
        return self.workers.result(level[0], self.watch)

    def fold(self, function: Callable[[Block, Result], Result], state: Result) -> Result:
        """Return what the function makes of the state, which goes from worker to worker in row order."""
        task, held = self.workers.task, self.workers.held(function)
        going = self.workers.held(state)
        for part, start in zip(self.parts, self.starts[:-1].tolist(), strict=True):
            going = task(_on_state, held, part, start, going)
        result: Result = self.workers.result(going, self.watch)
        return result


# -- from collections to rows --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Checked collections: one delayed :class:`Rows` a partition, and what is known beforehand."""

    workers: Workers
    parts: list[Any]
    n_columns: int
    dtype: Any
    y_columns: int  # 0 where y has one axis

    def summaries(
        self, function: Callable[[Rows], Any], watch: Callable[[], None] | None = None
    ) -> list[Any]:
        """Return what the function makes of each partition, in their order: some numbers each."""
        held = self.workers.held(function)
        tasks = [self.workers.task(_of_partition, held, k, part) for k, part in enumerate(self.parts)]
        return list(self.workers.result(self.workers.task(_listed, *tasks), watch))

    def mapped(self, function: Callable[[Rows], Rows]) -> Table:
        """Return the table with the rows that the function makes of them, kept where these are."""
        held = self.workers.held(function)
        parts = [self.workers.task(_on_rows, held, part) for part in self.parts]
        return replace(self, parts=self.workers.persist(parts))


def check_collections(
    estimator: Any, X: Any, y: Any, sample_weight: Any, labels: bool, reset: bool = True
) -> Table:
    """Return the partitions of Dask collections as rows on their workers; their values are not looked at yet.

    Sets ``n_features_in_`` and ``feature_names_in_`` on the estimator, or compares unless ``reset``.
    With ``labels`` y is kept as it is.
    """
    workers = Workers()
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Pass the values "
            "to learn."
        )
    scalar = sample_weight is None or isinstance(sample_weight, int | float | np.number)
    for name, given in (("y", y), *(() if scalar else (("sample_weight", sample_weight),))):
        if not is_collection(given):
            kind = type(given).__name__
            raise InputError(
                f"X is a Dask collection, but {name} is of type {kind}. Pass it as a Dask array or column "
                "with "
                "the partitions of X, for instance a column of the same data frame."
            )
    X = _table(X)
    first = _meta(X)
    _require_numbers(first)
    head = check_table(estimator, first, reset)
    axes = _axes(y)
    if axes not in (1, 2) or (axes == 2 and labels and _width(y) != 1):
        raise InputError(
            f"y has {_width(y) if axes == 2 else axes} {'columns' if axes == 2 else 'axes'}. Pass one value "
            "a "
            "row."
        )
    together = [X, y] if scalar else [X, y, sample_weight]
    parts_x, parts_y, *parts_w = (_delayed(one) for one in _aligned(together))
    weights = (
        parts_w[0] if parts_w else [None if sample_weight is None else float(sample_weight)] * len(parts_x)
    )
    names = list(getattr(first, "columns", range(head.shape[1])))
    make = workers.held(partial(make_rows, names=names, dtype=head.dtype, labels=labels))
    number = range(len(parts_x))
    parts = [
        workers.task(_of_partition, make, *each)
        for each in zip(number, parts_x, parts_y, weights, strict=True)
    ]
    return Table(workers, workers.persist(parts), head.shape[1], head.dtype, _width(y) if axes == 2 else 0)


def make_rows(X: Any, y: Any, weight: Any, names: list[Any], dtype: Any, labels: bool) -> Rows:
    """Return one partition as arrays in the order in which loops read them."""
    _require_names(X, names)
    table = np.ascontiguousarray(to_array(X), dtype=dtype)
    n = table.shape[0]
    targets = y if labels else np.asarray(to_float(np.asarray(to_array(y)), "y"), dtype=dtype)
    if not labels:
        targets = np.ascontiguousarray(targets[:, None] if targets.ndim == 1 else targets)
    if len(y) != n:
        raise InputError(
            f"X has {n} rows here, and y has {len(y)}. Give both the same partitions: take X and y from one "
            "data frame, or rechunk arrays alike."
        )
    if weight is None:
        return Rows(table, targets, None)
    if np.ndim(weight) == 0:
        return Rows(table, targets, np.full(n, float(weight)))
    each = to_float(np.asarray(to_array(weight)), "sample_weight").astype(np.float64).reshape(-1)
    if each.shape[0] != n:
        raise InputError(
            f"X has {n} rows here, and sample_weight has {each.shape[0]}. Give both the same partitions."
        )
    return Rows(table, targets, each)


def _require_names(X: Any, names: list[Any]) -> None:
    """Raise an :class:`InputError` where a partition has other columns than its collection says."""
    own = list(getattr(X, "columns", range(X.shape[1])))
    if own == names:
        return
    missing, others = [n for n in names if n not in own], [n for n in own if n not in names]
    said = "they are in another order"
    if missing:
        said = f"it lacks column {missing[0]!r}"
    elif others:
        said = f"it has a column {others[0]!r} more"
    raise InputError(
        f"X has {len(own)} columns where {len(names)} are announced: {said}. Make all partitions alike, for "
        "instance by selecting the columns by name."
    )


def _table(X: Any) -> Any:
    """Return an array whose chunks hold whole rows; a data frame as it is."""
    shape = getattr(X, "shape", ())
    if len(shape) != 2:
        raise InputError(
            f"Expected 2D array, got {len(shape)}D array instead: X is a Dask collection with {len(shape)} "
            "axis"
            f"{'es' * (len(shape) != 1)}. Pass a data frame, or an array with rows and columns."
        )
    if hasattr(X, "rechunk") and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X


def frame_in_pieces(read: Callable[[Any], Any], pieces: Sequence[Any]) -> Any:
    """Return a data frame whose partitions workers read by themselves, ``read(piece)`` each."""
    import dask.config
    import dask.dataframe

    with dask.config.set({"dataframe.convert-string": False}):
        return dask.dataframe.from_map(read, pieces, meta=read(pieces[0]).iloc[:0])


def _meta(X: Any) -> Any:
    """Return a row or two with the names and types of X, and no values of it."""
    if hasattr(X, "_meta_nonempty"):
        return X._meta_nonempty
    if not isinstance(X._meta, np.ndarray):
        raise InputError(
            f"The chunks of X are of type {type(X._meta).__name__}, but rows on a cluster are kept dense. "
            "Pass "
            "X.map_blocks(lambda part: part.toarray()) or arrays of NumPy."
        )
    columns = X.shape[1]
    if np.isnan(columns):
        raise InputError("How many columns X has is not known. Call X.compute_chunk_sizes() first.")
    return np.zeros((1, int(columns)), dtype=X.dtype)


def _require_numbers(first: Any) -> None:
    """Raise an :class:`InputError` that names a column whose type is no number."""
    columns = getattr(first, "columns", None)
    if columns is None:
        kinds = [] if first.dtype.kind in "biuf" else [("X", first.dtype)]
    else:
        kinds = [
            (repr(name), kind) for name, kind in zip(columns, first.dtypes, strict=True) if not _number(kind)
        ]
    if kinds:
        name, kind = kinds[0]
        more = f" (and {len(kinds) - 1} more)" if len(kinds) > 1 else ""
        raise InputError(
            f"could not convert string to float: column {name}{more} is of type {kind}, which is no number. "
            "Turn categories into numbers first, for instance one column of 0 and 1 for each, and dates into "
            "days since one of them."
        )


def _number(kind: Any) -> bool:
    return getattr(kind, "kind", "O") in "biuf" and str(kind) != "category"


def _axes(y: Any) -> int:
    return len(getattr(y, "shape", ()))


def _width(y: Any) -> int:
    return int(y.shape[1])


def _aligned(collections: list[Any]) -> list[Any]:
    """Return the collections with the same partitions, where it is known how to."""
    X = collections[0]
    arrays = [one for one in collections if hasattr(one, "chunks")]
    known = all(not np.isnan(one.chunks[0]).any() for one in arrays)
    result = list(collections)
    if known and hasattr(X, "chunks"):
        rows = sum(X.chunks[0])
        for place, one in enumerate(collections):
            if not hasattr(one, "chunks"):
                continue
            if sum(one.chunks[0]) != rows:
                raise InputError(
                    f"Found input variables with inconsistent numbers of samples: X has {rows} rows, and "
                    f"{'y' if place == 1 else 'sample_weight'} has {sum(one.chunks[0])}. Pass one a row."
                )
            if one.chunks[0] != X.chunks[0]:
                result[place] = one.rechunk({0: X.chunks[0]})
    counts = [_count(one) for one in result]
    if len(set(counts)) > 1:
        raise InputError(
            f"X has {counts[0]} partitions, and y{' or sample_weight' * (len(counts) > 2)} has "
            f"{', '.join(map(str, counts[1:]))}. Give them the same: take them from one data frame, or "
            "rechunk "
            "arrays alike."
        )
    return result


def _count(collection: Any) -> int:
    return len(collection.chunks[0]) if hasattr(collection, "chunks") else int(collection.npartitions)


def _delayed(collection: Any) -> list[Any]:
    parts = collection.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def map_rows(function: Callable[[Any], Any], X: Any, example: Array) -> Any:
    """Return a lazy array of what the function makes of each partition of X; ``example`` is that of a row."""
    import dask.array

    workers = Workers()
    X = _table(X)
    held, rest = workers.held(function), example.shape[1:]
    lengths = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * _count(X)
    parts = [
        dask.array.from_delayed(
            workers.task(_on_part, held, part, _Held(example[:0])), (length, *rest), dtype=example.dtype
        )
        for part, length in zip(_delayed(X), lengths, strict=True)
    ]
    return dask.array.concatenate(parts)


def _on_part(held: _Held, part: Any, nothing: _Held) -> Any:
    return held.value(part) if len(part) else nothing.value


def one_row(X: Any) -> Any:
    """Return a row with the names and types of a collection, and no values of it."""
    return _meta(_table(X))[:1]


# -- what is wrong with values -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FirstBad:
    """The first value of a partition that cannot be computed with."""

    name: str  # "X", "y" or "sample_weight"
    row: int
    column: int
    value: float


def find_bad(rows: Rows) -> FirstBad | None:
    """Return the first value of X, of numeric targets or of the weights that is not finite, or negative."""
    for name, values in (("X", rows.X), ("y", rows.y), ("sample_weight", rows.weight)):
        if values is None or not isinstance(values, np.ndarray) or values.dtype.kind != "f":
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            bad = ~np.isfinite(values)
        if name == "sample_weight":
            bad |= values < 0
        if bad.any():
            place = np.argwhere(bad)[0]
            column = int(place[1]) if place.size > 1 else 0
            return FirstBad(name, int(place[0]), column, float(values[tuple(place)]))
    return None


def refuse(bad: FirstBad, before: int, partition: int, estimator: Any, n_columns: int) -> NoReturn:
    """Raise an :class:`InputError` that says which value of which row of which partition cannot be used."""
    where = f"row {before + bad.row} (row {bad.row} of partition {partition}, counted from 0)"
    if bad.name == "sample_weight" and bad.value < 0:
        raise InputError(
            f"Negative values in data passed to `sample_weight`: the first is {bad.value:g} in {where}. "
            "Weights "
            "say how much a row counts, so they must be 0 or more."
        )
    if bad.name == "X":
        where += f" of column {column_names(estimator, n_columns)[bad.column]!r}"
    what = "NaN" if np.isnan(bad.value) else "infinity or a value too large"
    raise InputError(
        f"Input {bad.name} contains {what}: the first in {where}. Fill in or drop such rows first; they "
        "cannot "
        "be computed with."
    )
