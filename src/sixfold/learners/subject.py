"""What a certificate speaks of: set down at the fit, compared when it is verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sixfold import __version__
from sixfold.certificate import Subject, plain_parameter
from sixfold.data.fingerprint import fingerprint, table_size
from sixfold.errors import CertificateError

# Up to here the fingerprint is taken at the fit, in some milliseconds; beyond it would slow fits down.
FINGERPRINT_BYTES = 1 << 24


def describe(model: Any, X: Any, y: Any, sample_weight: Any, before: Subject | None = None) -> Subject:
    """Return what the certificate of a model speaks of that has just learnt these rows, and those before."""
    rows, columns, size = table_size(X)
    if size > FINGERPRINT_BYTES:
        taken, note = (
            None,
            f"not taken at the fit of {size / 1e6:.0f} MB, to save time; verify(X, y) takes it",
        )
    else:
        taken = fingerprint(X, y, sample_weight)
        note = "" if taken else "there is none of rows that are neither numbers nor text"
    if before is not None:
        rows += before.rows
        if taken is not None and before.fingerprint is not None:  # they are sums over the rows
            taken = f"{(int(taken, 16) + int(before.fingerprint, 16)) % 2**64:016x}"
        else:
            taken, note = None, before.fingerprint_note or note
    return Subject(
        type(model).__name__,
        {name: plain_parameter(getattr(model, name)) for name in _parameter_names(model.__class__)},
        __version__,
        datetime.now(UTC).isoformat(timespec="seconds"),
        rows,
        columns,
        taken,
        note,
        model._relative_to(),
    )


@cache
def _parameter_names(learner: type) -> list[str]:
    # Looking at the signature takes longer than hashing a small table.
    return list(learner._get_param_names())  # type: ignore[attr-defined]


@contextmanager
def same_subject(
    subject: Subject | None, X: Any, y: Any, sample_weight: Any, handed_on: bool
) -> Iterator[Subject | None]:
    """Give the subject with the fingerprint of these data; a check that fails on others says so.

    A certificate that was handed on speaks of its data alone. That of the model itself may be checked on rows
    that were made anew, which differ by rounding.
    """
    taken, other = fingerprint(X, y, sample_weight), ""
    if subject is not None and taken is not None and taken != subject.fingerprint:
        if subject.fingerprint is not None:
            other = (
                f"X, y and the weights have the fingerprint {taken}, those of the fit {subject.fingerprint}: "
                "the data are not those of the fit. "
            )
        note = f"of the rows that were checked; those of the fit have {subject.fingerprint}" if other else ""
        subject = replace(subject, fingerprint=taken, fingerprint_note=note)
    try:
        yield subject
    except CertificateError as error:
        raise CertificateError(f"{other}{error}") from error
    if other and handed_on:
        raise CertificateError(f"{other}Pass X, y and, if there were weights, the sample_weight of the fit.")
