"""What the fitted attributes of learners with landmarks have to be: loops read them by these shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sixfold.app.model_file.attributes import Attributes
from sixfold.app.model_file.learner_checks import check_svc, require_learner


def check_nystroem(a: Attributes, model: Any) -> None:
    """Check the landmarks and their normalisation."""
    from sixfold.geometry.kernels import Kernel, Precomputed

    require_learner(a, model)
    a.whole("n_iter_")
    d, kernel = a.columns(least=1), a.take("kernel_")
    a.require(isinstance(kernel, Kernel), "kernel_", "is no kernel")
    given = isinstance(kernel, Precomputed)
    index = a.indices("component_indices_", d if given else 1 << 62)
    a.require(np.unique(index).size == index.size, "component_indices_", "has a row twice")
    a.require(index.dtype == np.int64, "component_indices_", "is of another type")
    components = a.matrix("components_", (0, 0) if given else (index.size, d))
    a.require(not sp.issparse(components) or components.format == "csr", "components_", "is not CSR")
    factors = a.array("normalization_", "f", (index.size, index.size))
    types = (components.dtype, np.float64) if components.dtype == np.float32 else (np.float64,)
    a.require(factors.dtype in types, "normalization_", "is of another type than components_")


def check_svc_with_rank(a: Attributes, model: Any) -> None:
    """Check an SVM, in the space of landmarks or not."""
    if "multipliers_" in a.values:
        multipliers = a.take("multipliers_")
        a.require(sp.issparse(multipliers) and multipliers.format == "csr", "multipliers_", "is not CSR")
        intercept = a.values.get("intercept_")
        svms = intercept.size if isinstance(intercept, np.ndarray) else 0
        shape = a.values.get("shape_fit_")
        rows = shape[0] if isinstance(shape, tuple) and shape else 0
        a.matrix("multipliers_", (svms, rows))
        held = a.number("trace_held_")
        a.require(0.0 <= held <= 1.0, "trace_held_", "is no share")
    check_svc(a, model)
