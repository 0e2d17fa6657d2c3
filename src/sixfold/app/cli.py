"""``sixfold``: the command line.

    fit       a table to a tuned, explained, saved model
    predict   new rows with a saved model
    explain   one answer
    show      what a model file holds
    verify    recompute the certificate from the data
    compare   two models on the same rows
    examples  the built-in tables

Exit codes: 0 done; 1 `verify` found that a certificate does not hold; 2 something on the command line has to
change; 3 something in a file has to change; 130 stopped by Ctrl-C, what was finished is kept.

Commands are imported when they are run, so that ``--help`` takes no longer than reading it is worth.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

from sixfold import __version__
from sixfold.app.one_interrupt import one_interrupt

try:
    import typer
except ImportError:  # an error of our own would take longer to import than to read
    raise SystemExit("sixfold: the command line needs a few packages: pip install 'sixfold[app]'") from None

DONE, USAGE, BAD_DATA, INTERRUPTED = 0, 2, 3, 130

# Rich would make help pages prettier, and take longer to import than they take to read.
app = typer.Typer(
    name="sixfold",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Begin with: sixfold fit    (it needs no data of your own)",
)

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file, NAME.sixfold.")]
DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet, Arrow, JSON lines (or one of these .gz), a folder or 'glob*' of these, or "
        "example:NAME.",
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Most memory to use, such as 2GB; for large files.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"sixfold {__version__}")
        raise typer.Exit


@app.callback()
def _sixfold(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """From a table to a tuned, explained, saved model that proves its fit."""


@app.command()
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="[DATA]",
            show_default=False,
            help="CSV, TSV, Parquet, Arrow, JSON lines (or one of these .gz), a folder or 'glob*' of these, "
            "or example:NAME; without it example:breast_cancer.",
        ),
    ] = "example:breast_cancer",
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The column to predict.")
    ] = None,
    learners: Annotated[
        list[str] | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME",
            help="Try only this one, such as tree, svm, knn; can be repeated.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="By what models are ranked; else one that suits."
        ),
    ] = None,
    task: Annotated[str, typer.Option(metavar="TASK", help="auto, classification or regression.")] = "auto",
    rule: Annotated[
        str,
        typer.Option(metavar="RULE", help="1se: the simplest within a standard error of the best; or best."),
    ] = "1se",
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="Of the cross-validation.")] = 5,
    test_fraction: Annotated[
        float,
        typer.Option(metavar="SHARE", help="The share of rows that is held out for the test at the end."),
    ] = 0.2,
    seed: Annotated[int, typer.Option(metavar="N", help="Draws the test rows and the folds.")] = 0,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Most seconds for everything.", show_default=False)
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says how much each row counts.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column whose equal values stay in one part, such as a patient."
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="A column to set aside; can be repeated."),
    ] = None,
    memory_limit: MemoryLimit = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="The folder for what is written.")
    ] = ".",
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What to call the files; else as the data.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Tune every learner on a table, choose one, explain and save it.

    Writes NAME.sixfold (the model), NAME.report.html (for people) and NAME.report.json (for machines).
    """
    from pathlib import Path

    from sixfold.app.commands import fit as command
    from sixfold.app.fitting import FitOptions

    options = FitOptions(
        data=data,
        target=target,
        task=task,
        learners=tuple(learners or ("all",)),
        metric=metric,
        folds=folds,
        seed=seed,
        time_limit=time_limit,
        test_fraction=test_fraction,
        rule=rule,
        weights=weights,
        groups=groups,
        ids=tuple(ids or ()),
        memory_limit=memory_limit,
        output=Path(output),
        name=name,
    )
    return command.run(options, as_json=as_json, quiet=quiet)


@app.command()
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Where to; the ending is the format. Without it, CSV is printed.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", "-k", metavar="COLUMN", help="A column to copy from DATA; can be repeated."),
    ] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Copy all columns from DATA.")] = False,
    probabilities: Annotated[
        bool, typer.Option(help="Write a column with the probability of each class.")
    ] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Predict new rows, however many, with a saved model."""
    from sixfold.app.commands import predict as command

    return command.run(
        model,
        data,
        output,
        probabilities=probabilities,
        id_columns=tuple(keep or ()),
        keep_all=keep_all,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def explain(
    model: ModelFile,
    data: DataFile,
    row: Annotated[
        int, typer.Option("--row", "-r", metavar="N", min=1, help="Which row of DATA, counted from 1.")
    ] = 1,
    as_json: AsJson = False,
) -> int:
    """Explain the answer for one row of a table."""
    from sixfold.app.commands import explain as command

    return command.run(model, data, row, as_json=as_json)


@app.command()
def show(model: ModelFile, as_json: AsJson = False) -> int:
    """Show what a model file holds, and what it was fitted to."""
    from sixfold.app.commands import show as command

    return command.run(model, as_json=as_json)


@app.command()
def verify(
    model: ModelFile, data: DataFile, memory_limit: MemoryLimit = None, as_json: AsJson = False
) -> int:
    """Recompute a model's certificate from the data it was fitted to."""
    from sixfold.app.commands import verify as command

    return command.run(model, data, memory_limit=memory_limit, as_json=as_json)


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A model file.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    data: DataFile,
    as_json: AsJson = False,
) -> int:
    """Compare two models on the same rows."""
    from sixfold.app.commands import compare as command

    return command.run(first, second, data, as_json=as_json)


@app.command()
def examples(as_json: AsJson = False) -> int:
    """List the built-in tables, to be used as example:NAME."""
    from sixfold.app.commands import examples as command

    return command.run(as_json=as_json)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; what went wrong is said in a sentence."""
    # Polars' allocator keeps what is freed for ten seconds: of a million rows of 30 columns, 160 MB of 680.
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:500,muzzy_decay_ms:0")
    try:
        with one_interrupt():
            returned: Any = app(args=arguments, prog_name="sixfold", standalone_mode=False)
    except typer.Exit as exit_:
        return int(exit_.exit_code)
    except typer.Abort:
        return _say("Stopped.", INTERRUPTED)
    except KeyboardInterrupt:
        return _say("Stopped; nothing was written.", INTERRUPTED)
    except Exception as error:
        return _explain(error)
    return int(returned or DONE)


def _explain(error: Exception) -> int:
    """Print what an error says, and return its exit code; errors that are not ours are bugs, and raised."""
    if hasattr(error, "format_message"):  # one of Typer's: the command line could not be read
        context = getattr(error, "ctx", None)
        hint = f"\nSee: {context.command_path} --help" if context is not None else ""
        return _say(f"{error.format_message()}{hint}", USAGE)
    from sixfold.errors import MissingExtraError, SixfoldError, UsageError

    if isinstance(error, BrokenPipeError):  # whoever read along has had enough
        sys.stderr.close()
        return DONE
    if not isinstance(error, SixfoldError):
        raise error
    asked = isinstance(error, UsageError | MissingExtraError) or isinstance(
        error.__cause__, FileNotFoundError
    )
    return _say(str(error), USAGE if asked else BAD_DATA)


def _say(sentence: str, code: int) -> int:
    print(f"sixfold: {sentence}", file=sys.stderr)
    return code
