"""``sixfold verify``: recompute the certificate of a model from the data it was fitted to.

    fingerprint of the rows  =  that of the fit
    R(model) on the training rows  =  objective,     min R >= lower bound,     gap as claimed

The split of the fit is repeated, so that DATA is the file that was given to it. The checker is plain NumPy
and shares no code with the solvers.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.app.many_files import bytes_of, is_several, pieces
from sixfold.app.plain_text import labelled, paragraph, print_json, visible
from sixfold.app.saved_model.model import SavedModel, open_model
from sixfold.app.stored_rows import KnownRows, stored_rows
from sixfold.app.training_record import data_fingerprint, rows_of, training_rows
from sixfold.certificate import Certificate
from sixfold.data.files.tables import read_table
from sixfold.errors import CertificateError, InputError, UsageError
from sixfold.explain.certificate_words import in_plain_words
from sixfold.plain_words import counted
from sixfold.solvers.memory import bounded_memory

Array = NDArray[Any]

REFUTED = 1  # the exit code
PORTION = 50_000  # rows that are encoded at a time


def run(model: str, data: str, *, memory_limit: str | None = None, as_json: bool = False) -> int:
    """Check the certificate in a model file, and return the exit code: 1 where it does not hold."""
    saved = open_model(model)
    claimed = getattr(saved.learner, "certificate_", None)
    if claimed is None:
        raise InputError(
            f"{saved.name} holds a {type(saved.learner).__name__}, which claims nothing to be checked."
        )
    saved.require_split()
    limit = bytes_of(memory_limit)
    rows, columns = _rows(saved, data, limit)
    with nullcontext() if limit is None else bounded_memory(limit, tempfile.gettempdir(), rows.mapped):
        differences = _data_differences(saved, rows, columns)
        found, said = _recomputed(saved, rows, claimed)
    said = said or _file_differences(saved, claimed)
    if as_json:
        print_json(
            {
                "model": model,
                "data": data,
                "confirmed": not said,
                "same_data": not differences,
                "data_differences": differences,
                "reason": said,
                "claimed": _figures(claimed),
                "recomputed": None if found is None else _figures(found),
            }
        )
    else:
        _tell(saved, data, claimed, found, differences, said)
    return REFUTED if said else 0


def _rows(saved: SavedModel, data: str, limit: float | None) -> tuple[KnownRows, int]:
    """Return the rows of the data, and how many columns they have."""
    if limit is None and not is_several(data):
        table = read_table(data)
        return rows_of(saved.facts, table), len(table.frame.columns)
    if data == "-":
        raise UsageError("--memory-limit needs files, which are read twice: '-' can be read once.")
    columns = next(pieces(data, rows=1000)).frame.width
    return stored_rows(data, saved.schema), columns


def _data_differences(saved: SavedModel, rows: KnownRows, columns: int) -> list[str]:
    """Return in what the data differ from those of the fit, by number of rows and columns and fingerprint."""
    facts = saved.facts.get("data") or {}
    found = []
    for name, here in (("rows", len(rows.y)), ("columns", columns)):
        told = facts.get(name)
        if isinstance(told, int) and told != here:
            found.append(f"{here:,} {name} where the fit had {told:,}")
    told = facts.get("fingerprint")
    taken = data_fingerprint(rows.X, rows.y, rows.weight)
    if told and told != taken:
        found.append(f"fingerprint {taken} where the fit had {told}")
    return found


def _recomputed(saved: SavedModel, rows: KnownRows, claimed: Certificate) -> tuple[Certificate | None, str]:
    """Return the certificate that the checker finds, and what contradicts the one that is claimed."""
    chosen = training_rows(saved.facts, rows)
    y, weight = rows.y[chosen], None if rows.weight is None else rows.weight[chosen]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the fit, which was told of them
            return claimed.bind(saved.learner).verify(_inputs(saved, rows.X, chosen), y, weight), ""
    except CertificateError as error:
        return None, str(error)


def _inputs(saved: SavedModel, X: Any, rows: Array) -> Any:
    """Return these rows as the learner sees them: numbers portion by portion, into one array."""
    first = saved.inputs(X[rows[:PORTION]])
    if rows.size <= PORTION:
        return first
    if not isinstance(first, np.ndarray):
        return saved.inputs(X[rows])
    inputs = np.empty((rows.size, first.shape[1]), dtype=first.dtype)
    for start in range(0, rows.size, PORTION):
        inputs[start : start + PORTION] = saved.inputs(X[rows[start : start + PORTION]])
    return inputs


def _file_differences(saved: SavedModel, claimed: Certificate) -> str:
    """Return in what the figures that the file shows differ from those of the model's certificate."""
    told = saved.facts.get("certificate")
    if not isinstance(told, dict):
        return ""
    own = claimed.to_dict()
    for name in ("kind", "objective", "gap", "lower_bound"):
        if name in told and told[name] != own[name]:
            return (
                f"The file shows {name.replace('_', ' ')} {told[name]!r}, the model in it has {own[name]!r}."
            )
    return ""


def _figures(certificate: Certificate) -> dict[str, Any]:
    plain = certificate.to_dict()
    names = ("kind", "objective", "lower_bound", "gap", "relative_gap", "scale", "converged")
    return {name: plain[name] for name in names} | {"text": str(certificate)}


def _tell(
    saved: SavedModel,
    data: str,
    claimed: Certificate,
    found: Certificate | None,
    differences: list[str],
    said: str,
) -> None:
    """Print the outcome in plain words."""
    rows = (saved.facts.get("split") or {}).get("fitted_rows")
    trained = f" ({counted(rows, 'training row')})" if isinstance(rows, int) else ""
    if differences:
        print(
            labelled("data", f"{visible(data)} is not what the model was fitted to: {'; '.join(differences)}")
        )
    else:
        print(
            labelled("data", f"{visible(data)} is what the model was fitted to{trained}; fingerprints agree")
        )
    print(labelled("claim", str(claimed)))
    print()
    print(f"{'':14}{'claimed':>24}{'recomputed':>24}")
    for name, words in (("objective", "objective"), ("lower_bound", "lower bound"), ("gap", "gap")):
        other = "" if found is None else _exact(getattr(found, name))
        print(f"{words:14}{_exact(getattr(claimed, name)):>24}{other:>24}".rstrip())
    print()
    if said:
        print(paragraph(f"Not confirmed: {said}"))
    elif differences:
        print(paragraph("Confirmed for these rows, although they are not all those of the fit."))
    else:
        print(paragraph(f"Confirmed. {in_plain_words(claimed)}"))


def _exact(value: float) -> str:
    return f"{value:.15g}" if math.isfinite(value) else "none"
