"""Writing: a model taken apart, read again to be sure, and put in place in one step."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sixfold import __version__
from sixfold.app.model_file.container import pieces
from sixfold.app.model_file.read import model_from
from sixfold.app.model_file.versions import FORMAT
from sixfold.app.whole_file import write_whole
from sixfold.errors import ModelFileError


def save(model: Any, path: str | os.PathLike[str], *, facts: Mapping[str, Any] | None = None) -> Path:
    """Write a fitted model to a file that :func:`sixfold.load` reads.

    The file holds numbers and words, no code: see docs/model-files.md. The same model gives the same bytes;
    dates, durations and callbacks are not kept. It is written to a temporary name and renamed, so that a file
    which is there is replaced by a whole one or not at all.

    Parameters
    ----------
    model : estimator
        A fitted learner or search of sixfold, or a pipeline of scikit-learn's usual transformers and one.
    path : str or path
        Usually ends in ``.sixfold``.
    facts : mapping, default=None
        What else is to be known about the model, as JSON has it: ``read_model(path).facts``.

    Returns
    -------
    pathlib.Path
        The path.

    Raises
    ------
    ModelFileError
        Where the model is not fitted, holds something that a file cannot (a function, an object of another
        class), or the file cannot be written.
    """
    target = Path(path)
    parts = model_pieces(model, facts)
    try:
        write_whole(target, parts)
    except OSError as error:
        reason = {
            FileNotFoundError: f"there is no folder {str(target.parent)!r}",
            NotADirectoryError: f"{str(target.parent)!r} is no folder",
            IsADirectoryError: "there is a folder of that name",
            PermissionError: f"you may not write to the folder {str(target.parent)!r}",
        }.get(type(error), str(error))
        raise ModelFileError(
            f"The model cannot be written to {str(target)!r}: {reason}. Pass a path in a folder that you may "
            "write to."
        ) from error
    return target


def model_pieces(model: Any, facts: Mapping[str, Any] | None = None) -> list[Any]:
    """Return the bytes of the file of a model, in pieces."""
    from sixfold.app.model_file.classes import describe
    from sixfold.app.model_file.encode import Encoder
    from sixfold.app.model_file.values import Refusal

    _require_fitted(model)
    encoder = Encoder(describe)
    node = encoder.node(model, "")
    tree = {
        "class": type(model).__name__,
        "facts": _checked_facts(facts),
        "model": node,
        "sixfold": __version__,
        "versions": _versions(),
    }
    parts = pieces(FORMAT, tree, encoder.arrays)
    try:
        model_from(b"".join(parts), "the file")
    except Refusal as error:
        raise ModelFileError(
            f"The model cannot be saved, since it could not be loaded: {error.where[:200]} {error.reason}. "
            "Fit it again, or use pickle, which whoever loads it has to trust."
        ) from error
    return parts


def _require_fitted(model: Any) -> None:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(model, BaseEstimator):
        raise ModelFileError(
            f"{model!r:.60} is of type {type(model).__name__}, and a model file holds a fitted learner, "
            "search or pipeline. Pass one."
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise ModelFileError(f"The {type(model).__name__} is not fitted. Call fit before saving.") from error


def _checked_facts(facts: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return facts as JSON has them."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(facts or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"facts cannot be written as JSON: {error}. Pass text, finite numbers, lists and dictionaries."
        ) from error
    return plain


def _versions() -> dict[str, str]:
    """Return the versions of what the model was made with."""
    import numpy
    import scipy
    import sklearn

    return {"numpy": numpy.__version__, "scikit-learn": sklearn.__version__, "scipy": scipy.__version__}
