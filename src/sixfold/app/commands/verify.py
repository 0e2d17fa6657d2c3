"""``sixfold verify``: recompute the certificate of a model from the data it was fitted to.

    fingerprint of the rows  =  that of the fit
    R(model) on the training rows  =  objective,     min R >= lower bound,     gap as claimed

The split of the fit is repeated, so that DATA is the file that was given to it. The checker is plain NumPy
and shares no code with the solvers.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from sixfold.app.commands.saved_model import SavedModel, open_model
from sixfold.app.plain_text import labelled, paragraph, print_json, visible
from sixfold.app.training_record import data_fingerprint, rows_of, training_rows
from sixfold.certificate import Certificate
from sixfold.data.files.tables import Table, read_table
from sixfold.errors import CertificateError, InputError
from sixfold.explain.certificate_words import in_plain_words
from sixfold.plain_words import counted

REFUTED = 1  # the exit code


def run(model: str, data: str, *, as_json: bool = False) -> int:
    """Check the certificate in a model file, and return the exit code: 1 where it does not hold."""
    saved = open_model(model)
    claimed = getattr(saved.learner, "certificate_", None)
    if claimed is None:
        raise InputError(
            f"{saved.name} holds a {type(saved.learner).__name__}, which claims nothing to be checked."
        )
    saved.require_split()
    table = read_table(data)
    differences = _data_differences(saved, table)
    found, said = _recomputed(saved, table, claimed)
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


def _data_differences(saved: SavedModel, table: Table) -> list[str]:
    """Return in what the data differ from those of the fit, by number of rows and columns and fingerprint."""
    rows = rows_of(saved.facts, table)
    facts = saved.facts.get("data") or {}
    found = []
    for name, here in (("rows", len(rows.y)), ("columns", len(table.frame.columns))):
        told = facts.get(name)
        if isinstance(told, int) and told != here:
            found.append(f"{here:,} {name} where the fit had {told:,}")
    told = facts.get("fingerprint")
    taken = data_fingerprint(rows.X, rows.y, rows.weight)
    if told and told != taken:
        found.append(f"fingerprint {taken} where the fit had {told}")
    return found


def _recomputed(saved: SavedModel, table: Table, claimed: Certificate) -> tuple[Certificate | None, str]:
    """Return the certificate that the checker finds, and what contradicts the one that is claimed."""
    X, y, weight = training_rows(saved.facts, table)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the fit, which was told of them
            return claimed.bind(saved.learner).verify(saved.inputs(X), y, weight), ""
    except CertificateError as error:
        return None, str(error)


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
