"""The native loops, built for several instruction sets; the best one this processor has is loaded.

``SIXFOLD_ISA`` (``v2``, ``v3``, ``v4`` or ``plain``) asks for another. Only solvers call these
loops: they check sizes and types first, and every loop has a plain NumPy oracle in the tests.
"""

import importlib
import os
from pathlib import Path
from typing import Any

from scipy.linalg import cython_blas

from sixfold._native import cpu

LEVELS = ("v2", "v3", "v4")


def _choose_level() -> str:
    built = [path.name for path in Path(__file__).parent.iterdir() if list(path.glob("core*"))]
    wanted = os.environ.get("SIXFOLD_ISA")
    if wanted is not None:
        if wanted not in built:
            raise ImportError(
                f"SIXFOLD_ISA={wanted!r} was asked for, but this build of sixfold has "
                f"{', '.join(sorted(built))}. Unset SIXFOLD_ISA or choose one of these."
            )
        return wanted
    best: str = cpu.level()
    usable = LEVELS[: LEVELS.index(best) + 1] if best in LEVELS else (best,)
    return max((level for level in usable if level in built), default="plain")


def _load(level: str) -> Any:
    module = importlib.import_module(f"sixfold._native.{level}.core")
    pointers = cython_blas.__pyx_capi__
    module.load_blas(pointers["dsyrk"], pointers["dgemm"], cython_blas.__file__)
    return module


level = _choose_level()
core = _load(level)
