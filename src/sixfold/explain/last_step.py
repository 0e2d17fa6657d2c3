"""The learner in a model: the last step of a pipeline, or the model itself."""

from __future__ import annotations

from typing import Any


def last_step(model: Any) -> Any:
    """Return the learner at the end of a pipeline, or the model itself.

    >>> from sklearn.pipeline import make_pipeline
    >>> last_step(make_pipeline("passthrough", "learner")), last_step("learner")
    ('learner', 'learner')
    """
    return model.steps[-1][1] if hasattr(model, "steps") else model
