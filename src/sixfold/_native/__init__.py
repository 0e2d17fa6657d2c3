"""The native loops, built for several instruction sets; the best one this processor has is loaded.

``SIXFOLD_ISA`` (``v2``, ``v3``, ``v4`` or ``plain``) asks for another. Only solvers call these
loops: they check sizes and types first, and every loop has a plain NumPy oracle in the tests.
"""

import importlib
import importlib.util
import os
from typing import Any

from scipy.linalg import cython_blas

from sixfold._native import cpu

LEVELS = ("v2", "v3", "v4")


def _choose_level() -> str:
    wanted = os.environ.get("SIXFOLD_ISA")
    if wanted is not None:
        if not _is_built(wanted):
            built = ", ".join(level for level in (*LEVELS, "plain") if _is_built(level))
            raise ImportError(
                f"SIXFOLD_ISA={wanted!r} was asked for, but this build of sixfold has {built}. "
                "Unset SIXFOLD_ISA or choose one of these."
            )
        return wanted
    best = cpu.level()
    usable = LEVELS[: LEVELS.index(best) + 1] if best in LEVELS else (best,)
    return next((level for level in reversed(usable) if _is_built(level)), "plain")


def _is_built(level: str) -> bool:
    try:
        return importlib.util.find_spec(f"{__name__}.{level}.core") is not None
    except ModuleNotFoundError:  # not even the folder is there
        return False


def _load(level: str) -> Any:
    module = importlib.import_module(f"{__name__}.{level}.core")
    module.load_blas(cython_blas.__pyx_capi__["dgemm"], cython_blas.__file__)
    return module


level = _choose_level()
core = _load(level)
