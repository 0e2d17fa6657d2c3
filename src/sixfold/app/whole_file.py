"""Files that appear when they are whole: written under a hidden name in the same folder, and renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LONGEST_NAME = 100  # characters of it that go into the hidden name: file systems allow 255 bytes


def write_whole(path: Path, pieces: Iterable[Any]) -> None:
    """Write pieces of bytes; a file of that name is replaced by a whole one, or stays as it is.

    Raises
    ------
    OSError
        Where that cannot be done; nothing is left behind.
    """
    hidden = path.parent / f".{path.name[:LONGEST_NAME]}.{secrets.token_hex(4)}.part"
    with hidden.open("xb") as file:
        try:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(hidden, path)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise
