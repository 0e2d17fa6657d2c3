"""Reading: from the bytes of a file to a model that has been checked throughout."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sixfold.app.model_file.container import (
    LENGTH_BYTES,
    header_length,
    parse,
    parse_header,
    require_digest,
)
from sixfold.app.model_file.versions import require_known, upgraded
from sixfold.errors import ModelFileError

DESCRIPTION = {"class", "facts", "model", "sixfold", "versions"}
START_BYTES = 16
BLOCK = 1 << 20  # bytes that are read at a time where they are only added to the digest


@dataclass(frozen=True)
class ModelFile:
    """A model with what was written down about it.

    Attributes
    ----------
    model : estimator
    facts : dict
        What was passed as ``facts`` when it was saved: JSON.
    header : dict
        ``class`` (of a pipeline that of its last step as well, in ``learner``), ``format``, ``sixfold`` (the
        version that has written it), ``versions`` (of other libraries), ``bytes``.
    """

    model: Any
    facts: dict[str, Any]
    header: dict[str, Any]


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that :func:`sixfold.save` has written to a file.

    Everything in the file is checked, and nothing in it is run: a file from a stranger can be wrong about the
    world, but not do harm.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        It predicts as the saved one did, to the last bit.

    Raises
    ------
    ModelFileError
        Where the file is no model file, is damaged, or holds what this version does not know.
    """
    return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Return the model in a file with its facts and header.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    ModelFile
    """
    source = Path(path)
    return model_from(_bytes(source), str(source))


def read_header(path: str | os.PathLike[str]) -> ModelFile:
    """Return facts and header of a file without making the model, which is None.

    The digest is checked, so that what is told is what was written; the arrays are not looked at.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    ModelFile
    """
    source = Path(path)
    try:
        size = source.stat().st_size
        with source.open("rb") as file:
            start = file.read(START_BYTES)
            length = header_length(start, size, str(source))
            file.seek(0)
            start = file.read(LENGTH_BYTES + length)
            require_digest(start, iter(lambda: file.read(BLOCK), b""), str(source))
    except OSError as error:
        raise _unreadable(source, error) from error
    version, tree = parse_header(start, size, str(source))
    require_known(version, str(source))
    _require_description(tree, str(source))
    return ModelFile(None, tree["facts"], _told(tree, version, size))


def model_from(data: bytes, source: str) -> ModelFile:
    """Return the model that the bytes of a file describe; ``source`` is what errors call it."""
    from sixfold.app.model_file.classes import BUILDERS
    from sixfold.app.model_file.decode import Decoder
    from sixfold.app.model_file.values import Refusal, refuse

    container = parse(data, source)
    version = container.version
    try:
        container = upgraded(container, source)
        tree = container.tree
        _require_description(tree, source)
        decoder = Decoder(container.arrays, BUILDERS)
        model = decoder.value(tree["model"], "")
    except ModelFileError:
        raise
    except Exception as error:  # which no check has foreseen; no file may end in another error
        reason = f"cannot be put together ({type(error).__name__}: {error!s:.200})"
        raise Refusal("the model", reason) from error
    if not hasattr(model, "get_params"):
        refuse("the model", "is no estimator")
    if type(model).__name__ != tree["class"]:
        refuse("the model", f"is a {type(model).__name__}, and said to be a {tree['class'][:60]}")
    unused = container.arrays.keys() - decoder.used
    if unused:
        refuse(f"the array {min(unused)[:80]!r}", "belongs to nothing")
    return ModelFile(model, tree["facts"], _told(tree, version, len(data)))


def _bytes(source: Path) -> bytes:
    try:
        return source.read_bytes()
    except OSError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Path, error: OSError) -> ModelFileError:
    reason = {
        FileNotFoundError: "there is no such file",
        IsADirectoryError: "it is a folder",
        PermissionError: "you may not read it",
    }.get(type(error), str(error))
    return ModelFileError(f"{source} cannot be read: {reason}. Pass the path of a model file.")


def _require_description(tree: dict[str, Any], source: str) -> None:
    kinds = {"class": str, "facts": dict, "model": dict, "sixfold": str, "versions": dict}
    if set(tree) != DESCRIPTION or any(type(tree[name]) is not kind for name, kind in kinds.items()):
        raise ModelFileError(
            f"{source} is damaged: its description is not made of {', '.join(sorted(DESCRIPTION))}. Save the "
            "model again."
        )


def _told(tree: dict[str, Any], version: int, size: int) -> dict[str, Any]:
    return {
        "class": tree["class"],
        "format": version,
        "sixfold": tree["sixfold"],
        "versions": tree["versions"],
        "bytes": size,
    }
