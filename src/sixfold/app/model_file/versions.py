"""Versions of the format, and how a file of an older one becomes one of the next.

1    the first
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sixfold.app.model_file.container import Container
from sixfold.errors import ModelFileError

FORMAT = 1

UPGRADES: dict[int, Callable[[Container], Container]] = {}


def upgraded(container: Container, source: str) -> Container:
    """Return a container in the format of this version."""
    require_known(container.version, source)
    while container.version < FORMAT:
        container = replace(UPGRADES[container.version](container), version=container.version + 1)
    return container


def require_known(version: int, source: str) -> None:
    """Raise a :class:`ModelFileError` where a file is of a newer format than this version reads."""
    if version > FORMAT:
        raise ModelFileError(
            f"{source} was written in format {version}, and this sixfold reads up to {FORMAT}: upgrade it, "
            "for instance by pip install --upgrade sixfold."
        )
