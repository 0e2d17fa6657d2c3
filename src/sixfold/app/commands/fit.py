"""``sixfold fit``: from a table to a tuned, explained, saved model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from sixfold import __version__
from sixfold.app.fitting import FitOptions, FitResult, Prepared, prepare, tune
from sixfold.app.many_files import data_files
from sixfold.app.model_file import save
from sixfold.app.report import find_cautions, write_report
from sixfold.app.terminal import LABEL, Terminal
from sixfold.app.training_record import training_record
from sixfold.data.columns.schema import ColumnSchema
from sixfold.explain.certificate_words import in_plain_words
from sixfold.explain.last_step import last_step
from sixfold.plain_words import counted, width_of
from sixfold.selection.leaderboard import BASELINE
from sixfold.selection.memory import share_memory_stores

INTERRUPTED = 130
MOST_CAUTIONS = 5  # in the terminal; the report has all
MOST_NAMED = 6  # columns and classes


def run(options: FitOptions, *, as_json: bool = False, quiet: bool = False) -> int:
    """Fit, print and write; return the exit code."""
    terminal = Terminal(quiet or as_json)
    share_memory_stores()
    given = prepare(options)
    show_prepared(terminal, given)
    with given.within_memory():
        with terminal.watch() as watcher:
            result = tune(given, watcher)
        show_result(terminal, result)
        cautions = find_cautions(result)
        show_cautions(terminal, [one.sentence for one in cautions])
        record = training_record(result, [one.sentence for one in cautions])
        model = save(result.model, options.output / f"{result.name}.sixfold", facts=record)
        page, facts = write_report(result, options.output, cautions)
    if as_json:
        print(facts.read_text(encoding="utf-8"))
    show_files(terminal, [model, page, facts], options, result.chosen.name != BASELINE)
    return INTERRUPTED if result.stopped == "Ctrl-C" else 0


def show_prepared(terminal: Terminal, given: Prepared) -> None:
    """Print what was read and inferred, before the work begins."""
    table, schema = given.table, given.schema
    terminal.line(f"sixfold {__version__}\n")
    rows = f"{counted(len(given.y) + given.dropped, 'row')}, {counted(len(schema.columns), 'column')}"
    about = [table.about] if table.about else []
    terminal.paragraph("Data", f"{table.source}: {rows}", *about, *table.notes)
    terminal.paragraph("Target", *_target(given))
    terminal.paragraph("Columns", _kinds(schema.features))
    for one in schema.features:
        if one.reason:
            terminal.paragraph("", f"{one.name}: {one.reason}")
    aside = schema.set_aside
    for number, one in enumerate(aside[:MOST_NAMED]):
        terminal.paragraph("Set aside" if number == 0 else "", f"{one.name}: {one.reason}")
    if len(aside) > MOST_NAMED:
        terminal.paragraph("", f"and {len(aside) - MOST_NAMED} more, which the report lists")
    terminal.paragraph("Task", f"{given.task}, models are ranked by {given.metric}")
    who = "every learner that suits" if given.learners == ("all",) else ", ".join(given.learners)
    terminal.heading(f"Tuning {who}; {given.options.folds} folds")


def _target(given: Prepared) -> list[str]:
    """Return what the target is, in a line or two."""
    target = given.schema.target
    assert target is not None
    if given.task == "regression":
        low, middle, high = np.quantile(given.y, [0.0, 0.5, 1.0])
        said = [f"{target.name}: numbers from {low:.6g} to {high:.6g}, median {middle:.6g}"]
    else:
        counts = Counter(given.y.tolist()).most_common()
        shares = [f"{label} {_share(count / len(given.y))}" for label, count in counts[:MOST_NAMED]]
        more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
        said = [f"{target.name}: {len(counts)} classes, {', '.join(shares)}{more}"]
    if given.dropped:
        left_out = "which are" if given.dropped > 1 else "which is"
        said.append(f"missing in {counted(given.dropped, 'row')}, {left_out} left out")
    return said + [target.reason] * bool(target.reason)


def _share(share: float) -> str:
    """Return a share in percent; what is there is not told as 0%."""
    return f"{share:.0%}" if share >= 0.01 else f"{share * 100:.1g}%"


def _kinds(features: tuple[ColumnSchema, ...]) -> str:
    """Return how many columns there are of each kind, and in how many values are missing."""
    plural = {"number": "numbers", "category": "categories", "boolean": "yes or no", "date": "dates"}
    counts = Counter(one.kind for one in features)
    said = ", ".join(
        f"{count} {plural.get(kind, kind) if count > 1 or kind == 'boolean' else kind}"
        for kind, count in counts.items()
    )
    gaps = sum(one.missing > 0 for one in features)
    return said + f"; values are missing in {gaps}" * (gaps > 0)


def show_result(terminal: Terminal, result: FitResult) -> None:
    """Print the leaderboard, the choice and what it proves."""
    if result.stopped:
        terminal.heading(f"Stopped by {result.stopped}: what was finished is kept.")
    comparison, chosen = result.comparison, result.chosen
    terminal.heading("Leaderboard")
    for line in comparison.table_lines():
        terminal.line(line)
    terminal.line()
    settings = ", ".join(f"{name}={_plain(value)}" for name, value in chosen.parameters.items())
    terminal.paragraph("Chosen", f"{chosen.name} ({settings})" if settings else chosen.name, result.reason)
    if chosen.fitted_rows < result.train.size:
        note = next((one for one in chosen.notes if one.startswith("fitted to")), "")
        terminal.paragraph(
            "", note or f"fitted to {chosen.fitted_rows:,} of {result.train.size:,} training rows"
        )
    elif comparison.sample_rows:
        terminal.paragraph(
            "",
            f"tuned on {comparison.sample_rows:,} rows, then fitted to all {result.train.size:,} of training",
        )
    if result.test.size:
        baseline = next((one.test for one in comparison.entries if one.name == BASELINE), None)
        beside = "" if baseline is None or chosen.name == BASELINE else f"; the baseline has {baseline:.3f}"
        rows = f"{counted(result.test.size, 'row')} it has not seen"
        terminal.paragraph("Test", f"{result.metric} {chosen.test:.3f} on {rows}{beside}")
    certificate = getattr(last_step(result.model), "certificate_", None)
    terminal.paragraph("Certificate", in_plain_words(certificate))


def show_cautions(terminal: Terminal, cautions: list[str]) -> None:
    """Print what to be careful about."""
    for number, one in enumerate(cautions[:MOST_CAUTIONS]):
        terminal.paragraph("Careful" if number == 0 else "", one, mark="- ")
    if len(cautions) > MOST_CAUTIONS:
        terminal.paragraph("", f"and {len(cautions) - MOST_CAUTIONS} more, which the report lists")


def show_files(terminal: Terminal, written: list[Path], options: FitOptions, explained: bool) -> None:
    """Print what was written, and what can be done with it."""
    terminal.line()
    said = ("the model", "the report, for a browser", "the same for machines")
    names = [str(path) for path in written]
    width = max(map(width_of, names))
    lines = [
        f"{name}{' ' * (width - width_of(name))}  {what}" for name, what in zip(names, said, strict=True)
    ]
    if max(map(width_of, lines)) > terminal.width - LABEL:  # a path is not broken, so that it can be copied
        lines = names
    terminal.lines("Wrote", lines)
    terminal.line()
    model, label = names[0], "Next"
    if explained:
        terminal.command(label, ["sixfold", "explain", model, data_files(options.data)[0], "--row", "1"])
        label = ""
    terminal.command(label, ["sixfold", "predict", model, "NEW.csv", "-o", "predictions.csv"])


def _plain(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
