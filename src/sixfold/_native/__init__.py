"""The native loops, built for one or several instruction sets; the best one this processor has is loaded.

``SIXFOLD_ISA`` (``v2``, ``v3``, ``v4`` or ``plain``) asks for another. Only solvers call these
loops: they check sizes and types first, and every loop has a plain NumPy oracle in the tests.
"""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Any

from scipy.linalg import cython_blas

from sixfold._native import cpu

LEVELS = ("plain", "v2", "v3", "v4")  # each runs on processors of the next, too


def choose_level(wanted: str | None, built: Sequence[str], best: str) -> str:
    """Return the level to load, where the processor has at most ``best``."""
    runs = [level for level in built if LEVELS.index(level) <= LEVELS.index(best)]
    if wanted is None and runs:
        return runs[-1]
    if wanted in runs:
        return str(wanted)
    asked = "" if wanted is None else f"SIXFOLD_ISA={wanted!r} was asked for, but "
    offer = f"Unset SIXFOLD_ISA, choose {' or '.join(runs)}, or" if runs else "Please"
    raise ImportError(
        f"{asked}this build has loops for {', '.join(built)}, and this processor runs at most {best}. "
        f"{offer} build other levels: pip install . --config-settings=cmake.define.SIXFOLD_LEVELS=all"
    )


def built_levels() -> list[str]:
    """Return the levels that were built, the oldest processors' first."""
    return [level for level in LEVELS if _is_built(level)]


def _is_built(level: str) -> bool:
    try:
        return importlib.util.find_spec(f"{__name__}.{level}.core") is not None
    except ModuleNotFoundError:  # not even the folder is there
        return False


def _load(level: str) -> Any:
    module = importlib.import_module(f"{__name__}.{level}.core")
    blas_users = [cython_blas.__file__, importlib.import_module("numpy.linalg._umath_linalg").__file__]
    module.load_blas(cython_blas.__pyx_capi__["dgemm"], blas_users)
    return module


level = choose_level(os.environ.get("SIXFOLD_ISA"), built_levels(), cpu.level())
core = _load(level)
