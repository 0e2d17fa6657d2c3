"""What a search over parameters has found, as figures need it: settings, scores of folds, the choice.

Read from the attributes that scikit-learn's searches have (``cv_results_``, ``best_index_``, ``n_splits_``),
so theirs, ours and others with the same attributes are drawn alike. Scores whose name starts with ``neg_``
are losses with their sign turned; here they are losses again, and less is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_option
from sixfold.explain.last_step import last_step
from sixfold.explain.plots.style import is_number, number, on_log_scale, plain, require, slant_if_crowded

Array = NDArray[Any]

MEANINGS = {
    "n_neighbors": "number of neighbours, k",
    "C": "inverse strength of the penalty, C",
    "alpha": "strength of the penalty, alpha",
    "gamma": "gamma of the kernel",
    "degree": "degree of the polynomial",
    "max_depth": "greatest depth of the tree",
    "max_leaf_nodes": "most leaves of the tree",
    "min_samples_leaf": "least rows of a leaf",
    "min_samples_split": "least rows to split",
    "min_impurity_decrease": "least gain of a split",
    "ccp_alpha": "strength of pruning, ccp_alpha",
    "l1_ratio": "share of the L1 penalty, l1_ratio",
    "p": "power p of the Minkowski distance",
}
SCORES = {
    "accuracy": "accuracy",
    "r2": "R² (share of variance explained)",
    "roc_auc": "area under the ROC curve",
    "f1": "F1",
}


@dataclass(frozen=True)
class SearchResults:
    """The candidates of a search with one metric.

    Attributes
    ----------
    settings : list of dict
        The parameters of each candidate.
    parameters : list of str
        All that occur.
    mean, std : ndarray of shape (candidates,)
    folds : ndarray of shape (candidates, n_splits)
    train_mean, train_std : ndarray or None
        Of the rows that were learnt from, where the search has kept them.
    label : str
        What the metric is called.
    less_is_better : bool
    chosen, best : int or None
        The candidate that was chosen, and that with the best mean; None where every fit has failed.
    one_standard_error : bool
        Whether the simplest candidate within one standard error of the best was chosen.
    """

    settings: list[dict[str, Any]]
    parameters: list[str]
    mean: Array
    std: Array
    folds: Array
    train_mean: Array | None
    train_std: Array | None
    label: str
    less_is_better: bool
    chosen: int | None
    best: int | None
    one_standard_error: bool

    @property
    def n_splits(self) -> int:
        """The number of folds."""
        return int(self.folds.shape[1])

    @property
    def threshold(self) -> float:
        """The best mean, less one standard error of it: std / sqrt(folds), with folds - 1 in the std."""
        assert self.best is not None
        scores = self.folds[self.best]
        error = scores.std(ddof=1) / math.sqrt(scores.size) if scores.size > 1 else 0.0
        return float(self.mean[self.best] + (error if self.less_is_better else -error))

    def better(self, candidates: Sequence[int]) -> int | None:
        """Return the candidate with the best mean, the first of equal ones; None if all have failed."""
        finished = [index for index in candidates if np.isfinite(self.mean[index])]
        if not finished:
            return None
        return (min if self.less_is_better else max)(finished, key=lambda index: self.mean[index])

    def values(self, parameter: str) -> list[Any]:
        """Return the distinct values of a parameter: numbers ascending, then others as they come."""
        found: dict[Any, Any] = {}
        for setting in self.settings:
            if parameter in setting:
                found.setdefault(key(setting[parameter]), setting[parameter])
        numbers = sorted(value for value in found.values() if is_number(value))
        return numbers + [value for value in found.values() if not is_number(value)]

    def check_parameter(self, argument: str, parameter: Any) -> None:
        """Raise an :class:`InputError` with the nearest name unless the search has varied the parameter."""
        check_option(argument, parameter, self.parameters)

    def main_parameter(self) -> str:
        """Return the parameter of the choice with the most values, numbers before others."""
        require(bool(self.parameters), "The search has no parameters to draw: its grid is empty.")
        chosen = {} if self.chosen is None else self.settings[self.chosen]
        return max(
            chosen or self.parameters,
            key=lambda name: (sum(map(is_number, self.values(name))), len(self.values(name))),
        )


def key(value: Any) -> Any:
    """Return what tells values of a parameter apart, where they cannot be hashed too; True is not 1."""
    return (type(value).__name__ if not is_number(value) else "number", _hashable(value))


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def read_search(search: Any, metric: str | None = None) -> SearchResults:
    """Return what a fitted search has found; ``metric`` is one of several, None for that of the choice."""
    search = _as_search(search)
    results = getattr(search, "cv_results_", None)
    if not hasattr(results, "keys"):
        fitted = hasattr(search, "fit") and hasattr(search, "get_params")
        raise InputError(
            f"{type(search).__name__} has no cv_results_: a fitted search is needed, for instance "
            f"GridSearchCV(model, grid).fit(X, y), or a fitted LassoCV.{' Call fit first.' if fitted else ''}"
        )
    assert results is not None
    metrics = [name.removeprefix("mean_test_") for name in results if name.startswith("mean_test_")]
    refit = getattr(search, "refit", True)
    ruling = refit if isinstance(refit, str) and refit in metrics else metrics[0]
    if metric is None:
        metric = ruling
    check_option("metric", metric, metrics)
    splits = sorted(
        (int(match.group(1)), name)
        for name in results
        if (match := re.fullmatch(rf"split(\d+)_test_{re.escape(metric)}", name))
    )
    settings = [dict(setting) for setting in results["params"]]
    label, less = metric_label(search, metric)
    sign = -1.0 if less else 1.0
    mean = sign * np.asarray(results[f"mean_test_{metric}"], dtype=float)
    train = results.get(f"mean_train_{metric}")
    found = SearchResults(
        settings=settings,
        parameters=list(dict.fromkeys(name for setting in settings for name in setting)),
        mean=mean,
        std=np.asarray(results[f"std_test_{metric}"], dtype=float),
        folds=sign * np.array([results[name] for _, name in splits], dtype=float).T,
        train_mean=None if train is None else sign * np.asarray(train, dtype=float),
        train_std=None if train is None else np.asarray(results[f"std_train_{metric}"], dtype=float),
        label=label,
        less_is_better=less,
        chosen=None,
        best=None,
        one_standard_error=False,
    )
    best = found.better(range(len(settings)))
    chosen = best
    if metric == ruling and getattr(search, "best_index_", None) is not None:
        chosen = int(search.best_index_)
    rule = metric == ruling and getattr(search, "rule", "best") == "1se"
    return SearchResults(**(vars(found) | {"best": best, "chosen": chosen, "one_standard_error": rule}))


# -- models that choose their penalty themselves -------------------------------------------------------------


def has_scores(model: Any) -> bool:
    """Whether a model has chosen its penalty itself and has kept the scores."""
    return _as_search(model) is not model


def _as_search(model: Any) -> Any:
    """Return the scores of LassoCV, ElasticNetCV, RidgeCV or LogisticRegressionCV as a search has them."""
    model = last_step(model)
    if hasattr(model, "mse_path_") and hasattr(model, "alphas_"):
        errors = np.asarray(model.mse_path_, dtype=float)
        shape = (-1, *errors.shape[-2:])  # mixtures, alphas, folds
        ratios = np.ravel(getattr(model, "l1_ratio", 1.0))
        return _searched(
            -errors.reshape(shape),
            np.broadcast_to(np.asarray(model.alphas_, dtype=float), errors.shape[:-1]).reshape(shape[:-1]),
            ("alpha", float(model.alpha_)),
            (ratios, float(getattr(model, "l1_ratio_", ratios[0]))),
            "neg_mean_squared_error",
        )
    scores, tried = getattr(model, "scores_", None), getattr(model, "Cs_", None)
    if scores is not None and tried is not None:
        if isinstance(scores, dict):  # the same for all classes
            table = np.asarray(next(iter(scores.values())), dtype=float)
            table = table[:, None] if table.ndim == 2 else np.swapaxes(table, 1, 2)
        else:
            table = np.asarray(scores, dtype=float)
        ratios = np.ravel(getattr(model, "l1_ratios_", [None]))
        return _searched(
            np.moveaxis(table, 0, -1),  # mixtures, Cs, folds
            np.broadcast_to(np.asarray(tried, dtype=float), table.shape[1:]),
            ("C", float(np.ravel(model.C_)[0])),
            (ratios, np.ravel(getattr(model, "l1_ratio_", [None]))[0]),
            "accuracy" if model.scoring is None else model.scoring,
        )
    kept = getattr(model, "cv_results_", None)
    if isinstance(kept, np.ndarray) and kept.ndim == 2 and model.scoring is None:  # rows left out, alphas
        alphas = np.asarray(model.alphas, dtype=float)
        return _searched(
            -kept.T[None],
            alphas[None],
            ("alpha", float(model.alpha_)),
            ([None], None),
            "neg_mean_squared_error",
        )
    return model


def _searched(
    scores: Array, tried: Array, choice: tuple[str, float], mixtures: tuple[Any, Any], scoring: Any
) -> Any:
    """Return a search over strengths (mixtures, strengths) with scores (mixtures, strengths, folds)."""
    (name, best), (ratios, best_ratio) = choice, mixtures
    settings, several = [], len(ratios) > 1
    for ratio, strengths in zip(ratios, tried, strict=True):
        settings += [{name: float(at)} | ({"l1_ratio": ratio} if several else {}) for at in strengths]
    flat = scores.reshape(len(settings), -1)
    results = {"params": settings, "mean_test_score": flat.mean(axis=1), "std_test_score": flat.std(axis=1)}
    results |= {f"split{fold}_test_score": column for fold, column in enumerate(flat.T)}
    here = [
        index
        for index, setting in enumerate(settings)
        if np.isclose(setting[name], best, rtol=1e-12) and (not several or setting["l1_ratio"] == best_ratio)
    ]
    return SimpleNamespace(cv_results_=results, best_index_=here[0] if here else None, scoring=scoring)


def metric_label(search: Any, metric: str) -> tuple[str, bool]:
    """Return what a metric is called, and whether less of it is better."""
    name = metric
    if metric == "score":
        scoring: Any = getattr(search, "scoring", None)
        if getattr(scoring, "_sign", 1) < 0:  # made with greater_is_better=False
            return score_label(f"neg_{scoring._score_func.__name__}")
        if isinstance(scoring, str):
            name = scoring
        elif scoring is None:
            name = default_score(getattr(search, "estimator", None))
        else:
            name = getattr(
                scoring, "__name__", getattr(getattr(scoring, "_score_func", None), "__name__", "score")
            )
    return score_label(name)


def default_score(model: Any) -> str:
    """Return the name of what the ``score`` of a model is."""
    from sklearn.base import is_classifier, is_regressor

    if model is None:
        return "score"
    return "accuracy" if is_classifier(model) else "r2" if is_regressor(model) else "score"


def score_label(name: str) -> tuple[str, bool]:
    """Return what a score is called, and whether less is better: ``neg_`` means that its sign was turned.

    >>> score_label("neg_mean_squared_error"), score_label("accuracy")
    (('mean squared error', True), ('accuracy', False))
    """
    less = name.startswith("neg_")
    name = name.removeprefix("neg_")
    return SCORES.get(name, name.replace("_", " ")), less


def parameter_label(name: str) -> str:
    """Return what a parameter is called beside an axis.

    >>> parameter_label("n_neighbors"), parameter_label("svc__C"), parameter_label("weights")
    ('number of neighbours, k', 'inverse strength of the penalty, C (svc)', 'weights')
    """
    *steps, last = name.split("__")
    meaning = MEANINGS.get(last, last)
    return f"{meaning} ({'__'.join(steps)})" if steps else meaning


def value_text(value: Any) -> str:
    """Return a value of a parameter as it is written in a figure.

    >>> value_text(0.1 + 0.2), value_text(None), value_text("distance"), value_text(len)
    ('0.3', 'None', 'distance', 'len')
    """
    if is_number(value):
        return number(value, 3)
    if isinstance(value, str | bool | type(None)):
        return str(value)
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    text = " ".join(str(value).split())
    return text if len(text) <= 24 else f"{text[:23]}…"


def setting_text(setting: dict[str, Any]) -> str:
    """Return a setting in words: ``C = 10, gamma = 0.1``."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in setting.items())


@dataclass(frozen=True)
class ValueAxis:
    """Where the values of a parameter are on an axis.

    Attributes
    ----------
    values : list
    scale : {"linear", "log", "categories"}
    """

    values: list[Any]
    scale: str

    @classmethod
    def of(cls, values: list[Any]) -> ValueAxis:
        """Choose: numbers spread over decades, other numbers, or what only has an order."""
        if len(values) > 1 and all(map(is_number, values)):
            if on_log_scale(values):
                return cls(values, "log")
            # 0 among decades has no place on a logarithmic axis and would crowd a linear one.
            if not (min(values) == 0 and len(values) > 3 and on_log_scale([v for v in values if v != 0])):
                return cls(values, "linear")
        return cls(values, "categories")

    @property
    def ordered(self) -> bool:
        """Whether values have an order, so that a line may join them: numbers, and None for no limit."""
        return self.scale != "categories" or all(is_number(value) or value is None for value in self.values)

    def place(self, value: Any) -> float:
        """Return where a value is."""
        if self.scale != "categories":
            return float(value)
        return float([key(other) for other in self.values].index(key(value)))

    def apply(self, ax: Any, direction: str) -> None:
        """Set scale and ticks of the axis "x" or "y"."""
        axis = ax.xaxis if direction == "x" else ax.yaxis
        if self.scale == "log":
            (ax.set_xscale if direction == "x" else ax.set_yscale)("log")
        elif self.scale == "categories":
            texts = [plain(value_text(value)) for value in self.values]
            every = math.ceil(len(texts) / 25)
            axis.set_ticks(range(0, len(texts), every), texts[::every])
            if direction == "x":
                slant_if_crowded(ax)
        elif all(float(value).is_integer() for value in self.values):
            from matplotlib.ticker import MaxNLocator

            axis.set_major_locator(MaxNLocator(integer=True))
