"""Fuzz the reader of model files with atheris: ``python tests/fuzz/fuzz_model_file.py -max_total_time=300``.

A third of the inputs are files, sealed first so that the digest does not stop all of them at the door. Others
are descriptions, put into a file with the arrays of a model. The others are the numbers of up to six changes
that someone who knows the format would make, one after the other. Whatever comes, the reader either raises a
ModelFileError or returns a model that answers with numbers, with an error of ours, or with a ValueError of
scikit-learn.

Needs ``pip install atheris``. The suite runs tests/app/model_file/test_mutations.py instead.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))
import sixfold.app.model_file.classes  # noqa: F401 - which imports all that is to be watched
from sixfold.app.model_file.read import model_from
from sixfold.app.model_file.write import model_pieces
from sixfold.errors import ModelFileError, SixfoldError
from tests.app.model_file.saved_models import answers, case
from tests.fuzz.model_file_mutations import (
    closed,
    edit_array,
    edit_entry,
    edit_tree,
    grow_array,
    opened,
    sealed,
)

WATCHED = "sixfold.app.model_file"
NAMES = ("tree, categories", "neighbours, tree", "svm, sparse", "least squares", "encoder", "pipeline, table")
CHANGES = 6

warnings.simplefilter("ignore")
FILES = [b"".join(model_pieces(case(name)[0], {"target": "y"})) for name in NAMES]


def watch(module: ModuleType) -> None:
    """Have the branches of all functions of a module counted.

    ``atheris.instrument_imports`` sees none of them where the package is installed in place, by a loader of
    its own.
    """
    spaces = [vars(module), *(vars(one) for one in vars(module).values() if isinstance(one, type))]
    for one in [one for space in spaces for one in space.values()]:
        function = getattr(one, "__func__", one)  # of a class method
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            atheris.instrument_func(function)


def one_input(data: bytes) -> None:
    """Read one file, and ask its model if there is one."""
    if len(data) < 2:
        return
    name, rest = NAMES[data[0] % len(NAMES)], data[2:]
    if data[1] % 3 == 2:
        file = FILES[data[0] % len(FILES)]
        for start in range(0, min(len(rest), 4 * CHANGES), 4):
            rng = random.Random(rest[start : start + 4])
            try:
                file = rng.choice([edit_tree, edit_array, edit_entry, grow_array])(file, rng)
            except (TypeError, ValueError, LookupError, OverflowError):
                break  # the changes before have left nothing that could be changed so
    elif data[1] % 3 == 1:
        header, _, arrays = opened(FILES[data[0] % len(FILES)])
        file = closed(header, rest.decode("utf-8", "replace"), arrays)
    else:
        file = sealed(rest)
    try:
        model = model_from(file, "the file").model
    except ModelFileError as error:
        if "cannot be put together" in str(error):
            raise
        return
    with suppress(SixfoldError, ValueError):
        answers(model, case(name)[1])


def corpus() -> str:
    """Return a folder with files and descriptions to begin with."""
    folder = tempfile.mkdtemp()
    for number, data in enumerate(FILES):
        Path(folder, f"file {number}").write_bytes(bytes([number, 0]) + data)
        text = opened(data)[0]["__metadata__"]["sixfold"].encode()
        Path(folder, f"description {number}").write_bytes(bytes([number, 1]) + text)
        Path(folder, f"changes {number}").write_bytes(bytes([number, 2]) + b"some")
    return folder


if __name__ == "__main__":
    for name, module in list(sys.modules.items()):
        if name.startswith(WATCHED):
            watch(module)
    given = sys.argv if any(os.path.exists(one) for one in sys.argv[1:]) else [*sys.argv, corpus()]
    atheris.Setup([*given, "-max_len=65536", "-rss_limit_mb=4096", "-timeout=20"], one_input)
    atheris.Fuzz()
