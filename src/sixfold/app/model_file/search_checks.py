"""What the fitted attributes of searches have to be: results of one length, and the best among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.metrics._scorer import _PassthroughScorer, _Scorer

from sixfold.app.model_file.attributes import Attributes

OWN_SCORE = "the estimator's own"  # what stands for the scorer that asks the estimator


def check_search(a: Attributes, model: Any) -> None:
    """Check the results of a search; its scorers, which are stored by name, become scorers."""
    from sixfold.selection.search_certificate import SearchCertificate

    a.require(isinstance(model.estimator, BaseEstimator), "estimator", "is no estimator")
    results = a.take("cv_results_", dict)
    a.require(all(type(name) is str for name in results), "cv_results_", "have names that are no text")
    settings = results.get("params")
    a.require(type(settings) is list and settings, "cv_results_", "have no settings")
    a.require(all(type(one) is dict for one in settings), "cv_results_", "have settings that are none")
    for name, value in results.items():
        same = isinstance(value, np.ndarray | list) and len(value) == len(settings)
        a.require(same, "cv_results_", f"have {name[:60]!r} of another length than the settings")
    a.whole("best_index_", 0, len(settings) - 1, optional=True)
    a.take("best_params_", dict, optional=True)
    a.number("best_score_", finite=False, optional=True)
    best = a.take("best_estimator_", optional=True)
    a.require(best is None or type(best) is type(model.estimator), "best_estimator_", "is another estimator")
    a.flag("multimetric_")
    a.whole("n_splits_", 1)
    a.take("_checked_cv_orig", optional=True)
    a.number("refit_time_", optional=True)
    a.take("certificate_", SearchCertificate, optional=True)
    a.array("nested_scores_", "f", (None,), finite=False, optional=True)
    a.take("nested_params_", list, optional=True)
    names = a.array("feature_names_in_", "O", (None,), optional=True)
    if names is not None:
        a.require(all(type(one) is str for one in names), "feature_names_in_", "are not all text")
    stored = a.take("scorer_", str, dict)
    if isinstance(stored, dict):
        a.values["scorer_"] = {name: _scorer(a, one, model) for name, one in stored.items()}
    else:
        a.values["scorer_"] = _scorer(a, stored, model)


def _scorer(a: Attributes, name: Any, model: Any) -> Any:
    if name == OWN_SCORE:
        return _PassthroughScorer(model.estimator)
    a.require(type(name) is str and name in get_scorer_names(), "scorer_", "is no scorer of scikit-learn")
    return get_scorer(name)


def keep_search(fitted: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a search with its scorers by name, and without the time it took."""
    from sixfold.app.model_file.parts import keep_scorer

    def named(scorer: Any) -> Any:
        if type(scorer) is _PassthroughScorer:
            return OWN_SCORE
        return keep_scorer(scorer)["name"] if type(scorer) is _Scorer else scorer

    kept = dict(fitted)
    if "scorer_" in kept:
        scorers = kept["scorer_"]
        several = isinstance(scorers, dict)
        kept["scorer_"] = {key: named(one) for key, one in scorers.items()} if several else named(scorers)
    if "cv_results_" in kept:
        kept["cv_results_"] = {
            name: np.zeros(len(value)) if name.endswith("_time") else value
            for name, value in kept["cv_results_"].items()
        }
    if "refit_time_" in kept:
        kept["refit_time_"] = 0.0
    return kept
