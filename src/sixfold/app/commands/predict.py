"""``sixfold predict``: the answers of a model for the rows of a file, however many there are.

    read some rows -> check and type them by the schema of the fit -> answer -> write, again and again

so that memory holds one piece at a time. Where the file has the target too, the score is told at the end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.many_files import data_files, pieces
from sixfold.app.one_interrupt import one_interrupt
from sixfold.app.plain_text import figure, listed, paragraph, print_json, say, visible
from sixfold.app.saved_model.model import SavedModel, open_model
from sixfold.app.saved_model.rows_of_the_fit import RowsOfTheFit
from sixfold.app.saved_model.running_score import RunningScore
from sixfold.app.saved_model.unseen_categories import UnseenCategories
from sixfold.app.table_output import Writer, output_format, stdout_writer, table_writer
from sixfold.errors import InputError, UsageError
from sixfold.plain_words import counted
from sixfold.selection.scoring import unsigned_metric

Array = NDArray[Any]

BATCH = 100_000  # rows at a time: 24 MB for thirty columns of numbers
STOPPED = 130  # the exit code of a program that Ctrl-C ended


def run(
    model: str,
    data: str,
    output: str | None = None,
    *,
    probabilities: bool = True,
    id_columns: Sequence[str] = (),
    keep_all: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Predict the rows of a file, and return the exit code.

    Parameters
    ----------
    model, data : str
        Files; ``data`` may be a folder, a glob, or ``example:NAME``.
    output : str or None
        Where to write, the format by its ending; None is stdout, as CSV (or JSON lines, ``as_json``).
    probabilities : bool
        Whether to write that of each class, where the model knows them.
    id_columns : sequence of str
        Columns of the data to keep before the predictions.
    keep_all : bool
        Whether to keep all of them.
    as_json : bool
        Whether to tell the outcome as JSON.
    quiet : bool
        Whether to tell nothing at all.
    """
    target = None if output is None else _checked_output(output, model, data)
    place: AbstractContextManager[Writer] = (
        stdout_writer("json lines" if as_json else "csv") if target is None else table_writer(target)
    )
    with one_interrupt():
        try:
            with place as writer:
                work = Predictions(open_model(model), data, probabilities, tuple(id_columns), keep_all)
                with _progress(target is None, quiet) as show:
                    for rows in work.write_to(writer):
                        show(rows)
        except BrokenPipeError:
            if target is not None:
                raise
            _forget_stdout()  # whoever read it has seen enough
            return 0
        except KeyboardInterrupt:
            where = f"{target} was not written" if target is not None else "the rows above are not all"
            say(f"Stopped by Ctrl-C: {where}.")
            return STOPPED
    if not quiet:
        _tell(work, model, data, target, as_json)
    return 0


class Predictions:
    """The predictions for one file, and what was noticed on the way.

    Attributes
    ----------
    rows : int
        So far.
    columns : list of str
        Those that are written.
    score : RunningScore or None
        None where the data have no target, or one that cannot be read.
    no_score : str
        Why it cannot.
    """

    def __init__(
        self, saved: SavedModel, data: str, probabilities: bool, id_columns: tuple[str, ...], keep_all: bool
    ) -> None:
        self.saved, self.data = saved, data
        self.probabilities = probabilities and saved.gives_probabilities
        self.id_columns, self.keep_all = id_columns, keep_all
        self.rows, self.no_score = 0, ""
        self.columns: list[str] = []
        self.score: RunningScore | None = None
        self.unseen = UnseenCategories(saved)
        self.of_the_fit = RowsOfTheFit(saved)

    def write_to(self, writer: Writer) -> Iterator[int]:
        """Write all rows, and give their number from time to time."""
        for number, piece in enumerate(pieces(self.data, self.saved.schema, BATCH)):
            if number == 0:
                self._begin(piece.frame)
            with piece.named():
                writer.write(self._answered(piece.frame, piece.first_row))
            self.rows += piece.frame.height
            yield self.rows

    def _begin(self, raw: Any) -> None:
        """Look at the columns of the first rows."""
        self.saved.schema.check_columns(raw)
        absent = [name for name in self.id_columns if name not in raw.columns]
        if absent:
            raise UsageError(
                f"The column {absent[0]!r}, which was to be kept, is not in the data. "
                f"It has {listed(map(repr, raw.columns), 12)}."
            )
        self.kept = raw.columns if self.keep_all else list(dict.fromkeys(self.id_columns))
        classes = self.saved.classes if self.probabilities else []
        self.names = _free_names(["prediction", *(f"probability of {one}" for one in classes)], self.kept)
        self.columns = [*self.kept, *self.names]
        if self.saved.target in raw.columns:
            self.score = RunningScore(self.saved)

    def _answered(self, raw: Any, first_row: int) -> Any:
        """Return the columns to write for some rows."""
        import polars as pl

        saved = self.saved
        typed = saved.schema.typed(raw, first_row)
        self.unseen.count(typed)
        score = self.score
        wanted = self.probabilities or (score is not None and score.needs_probabilities)
        if raw.height:
            predicted, chances = saved.answers(typed, wanted)
        else:
            predicted, chances = np.empty(0), np.empty((0, len(saved.classes))) if wanted else None
        if score is not None and raw.height:
            self._add_to(score, raw, first_row, typed, predicted, chances)
        kind = pl.Float64 if saved.task == "regression" else pl.String
        values = predicted.tolist() if kind == pl.Float64 else [str(one) for one in predicted.tolist()]
        answers = [pl.Series(self.names[0], values, kind)]
        if self.probabilities and chances is not None:
            answers += [
                pl.Series(name, np.ascontiguousarray(chances[:, number]), pl.Float64)
                for number, name in enumerate(self.names[1:])
            ]
        return pl.DataFrame([*raw.select(self.kept).iter_columns(), *answers])

    def _add_to(
        self,
        score: RunningScore,
        raw: Any,
        first_row: int,
        typed: Any,
        predicted: Array,
        chances: Array | None,
    ) -> None:
        try:
            y = self.saved.schema.target_values(raw, first_row)
            score.add(y, predicted, chances)
            self.of_the_fit.add(raw, typed, y)
        except InputError as error:  # predictions do not depend on the target
            self.score, self.no_score = None, str(error)

    def outcome(self) -> dict[str, Any]:
        """Return what is to be told, as plain data."""
        score = self.score
        scored = None
        if score is not None and score.rows:
            scored = {
                "metric": score.scoring,
                "value": score.value(),
                "rows": score.rows,
                "rows_without_target": score.without_target,
                "rows_of_the_fit": self.of_the_fit.all_there,
            }
        return {
            "rows": self.rows,
            "columns": self.columns,
            "score": scored,
            "no_score_because": self.no_score,
            "unseen_categories": self.unseen.to_dict(),
        }


def _checked_output(output: str, model: str, data: str) -> Path:
    """Return where to write, if that is neither the model nor the data."""
    path = Path(output)
    output_format(path)
    for other, what in ((model, "model"), *((file, "data") for file in data_files(data))):
        if path.exists() and Path(other).exists() and path.samefile(other):
            raise UsageError(f"The output {output!r} is the file of the {what}. Give it another name.")
    return path


def _free_names(wanted: list[str], taken: Sequence[str]) -> list[str]:
    """Return names that the kept columns do not have.

    >>> _free_names(["prediction"], ["id", "prediction"])
    ['prediction (2)']
    """
    used, names = set(taken), []
    for name in wanted:
        number, free = 2, name
        while free in used:
            free, number = f"{name} ({number})", number + 1
        used.add(free)
        names.append(free)
    return names


def _tell(work: Predictions, model: str, data: str, output: Path | None, as_json: bool) -> None:
    """Say what was done: on stdout, or on stderr where stdout holds the predictions."""
    found = work.outcome()
    if as_json and output is not None:
        format = output_format(output)[0]
        print_json({"model": model, "data": data, "output": str(output), "format": format, **found})
        return
    lines = []
    if output is not None:
        lines.append(f"{counted(work.rows, 'row')} predicted, written to {visible(output)}")
    elif work.rows == 0:
        lines.append("The data have no rows.")
    scored = found["score"]
    if scored is not None:
        words, sign = unsigned_metric(scored["metric"])
        line = f"{words} {figure(sign * scored['value'])} on {counted(scored['rows'], 'row')}"
        if scored["rows_without_target"]:
            line += f" ({scored['rows_without_target']:,} without a value in {work.saved.target!r} left out)"
        lines.append(line)
        if scored["rows_of_the_fit"]:
            lines.append(
                "Careful: these are the rows of the fit, which flatter it. `sixfold show` has its score "
                "on rows that it had not seen."
            )
    elif work.no_score:
        lines.append(f"No score: {work.no_score}")
    if said := str(work.unseen):
        lines.append(said)
    for line in lines:
        (say if output is None else print)(paragraph(line, "  ", ""))


@contextmanager
def _progress(to_stdout: bool, quiet: bool) -> Iterator[Any]:
    """Give what shows the number of rows: a line on stderr, in a terminal that holds nothing else."""
    if quiet or not sys.stderr.isatty() or (to_stdout and sys.stdout.isatty()):
        with nullcontext():
            yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda rows: bar.update(task, description=f"{rows:,} rows predicted")


def _forget_stdout() -> None:
    """Let the interpreter flush what is left of stdout to nowhere when it ends."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
