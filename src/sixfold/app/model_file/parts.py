"""The parts of models that are more than values: certificates, trees, kernels, stored rows, folds.

A part is stored as the list of its fields, in the order of the table :data:`PARTS`, which also says what is
checked. Durations and dates are left out: the same fit gives the same file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from sixfold.app.model_file import part_checks as checks
from sixfold.app.model_file.attributes import Attributes
from sixfold.app.model_file.decode import Decoder
from sixfold.app.model_file.encode import Encoder
from sixfold.app.model_file.tree_checks import check_tree
from sixfold.app.model_file.values import refuse
from sixfold.errors import ModelFileError


@dataclass(frozen=True)
class Part:
    """How a part is stored.

    Attributes
    ----------
    home : str
        The module of its class.
    fields : tuple of str
    check : callable
        Checks the fields.
    kept : callable
        Returns what the fields are, where they are not attributes of that name.
    made : callable
        Makes the part of its fields, where that is not a call of the class.
    later : dict
        The last of its fields, where older files lack them, and what they are then.
    """

    home: str
    fields: tuple[str, ...]
    check: checks.Check
    kept: Callable[[Any], dict[str, Any]] | None = None
    made: Callable[[dict[str, Any]], Any] | None = None
    later: dict[str, Any] = field(default_factory=dict)

    def values(self, part: Any) -> list[Any]:
        """Return the fields of a part."""
        if self.kept is not None:
            found = self.kept(part)
            return [found[name] for name in self.fields]
        return [getattr(part, name) for name in self.fields]


def _keep_rows(store: Any) -> dict[str, Any]:
    stats = store.stats
    counts = (int(stats.queries), int(stats.pairs), int(stats.computed))
    return vars(store) | {"rows": store.rows, "stats": counts}


def _make_rows(values: dict[str, Any]) -> Any:
    from sixfold.learners.neighbors.stored_rows import SearchStats, StoredRows

    store = StoredRows(values["metric"], values["parameters"], values["algorithm"], values["leaf_size"])
    store.add(values["rows"], values["weight"], values["kinds"])
    store.stats = SearchStats(*values["stats"])
    return store


def _keep_trace(trace: Any) -> dict[str, Any]:
    """Return a trace column by column: a large tree has many thousand splits to tell of."""
    nodes = trace.nodes
    splits = [split for node in nodes for split in node.splits]
    totals = [pair for node in nodes for pair in node.totals.items()]
    kept: dict[str, list[Any]] = {
        f"{part} {name}": [getattr(one, name) for one in listed]
        for part, listed in (("node", nodes), ("split", splits))
        for name in checks.TRACED[part]
        if name not in ("splits", "totals")
    }
    kept["node splits"] = [len(node.splits) for node in nodes]
    kept["node totals"] = [len(node.totals) for node in nodes]
    kept["total class"] = [str(name) for name, _ in totals]
    kept["total weight"] = [weight for _, weight in totals]
    return {"nodes": kept, "measure": trace.measure}


def _make_trace(values: dict[str, Any]) -> Any:
    from sixfold.explain.trees.trace import Trace, TracedNode, TracedSplit

    kept = values["nodes"]

    def rows(part: str, *names: str) -> Iterator[tuple[Any, ...]]:
        return zip(*(kept[f"{part} {name}"] for name in names), strict=True)

    splits = (TracedSplit(*one) for one in rows("split", *checks.TRACED["split"]))
    totals = rows("total", "class", "weight")
    nodes = [
        TracedNode(
            node, where, count, dict(islice(totals, classes)), impurity, tuple(islice(splits, tried)), end
        )
        for node, where, count, impurity, end, tried, classes in rows("node", *checks.TRACED["node"])
    ]
    return Trace(tuple(nodes), values["measure"])


def _keep_search(search: Any) -> dict[str, Any]:
    """Return what is kept of a search: of its history the objectives and gaps, but not when they were."""
    return vars(search) | {"history": [(one.objective, one.gap) for one in search.history]}


def _make_search(values: dict[str, Any]) -> Any:
    from sixfold.budget import Record
    from sixfold.solvers.trees.optimal import SearchRecord

    steps = enumerate(values["history"], start=1)
    history = tuple(Record(number, 0.0, *figures) for number, figures in steps)
    return SearchRecord(**values | {"history": history})


def _make_scorer(values: dict[str, Any]) -> Any:
    from sklearn.metrics import get_scorer

    return get_scorer(values["name"])


def keep_scorer(scorer: Any) -> dict[str, Any]:
    """Return the name that a scorer has in scikit-learn."""
    from sklearn.metrics import get_scorer, get_scorer_names

    for name in get_scorer_names():
        known = get_scorer(name)
        same = type(known) is type(scorer) and all(
            getattr(known, part) == getattr(scorer, part)
            for part in ("_score_func", "_sign", "_kwargs", "_response_method")
        )
        if same:
            return {"name": name}
    raise ModelFileError(
        f"The scorer {scorer!r} has no name in scikit-learn, and functions are code, which no model file "
        "holds. Name one of sklearn.metrics.get_scorer_names() as scoring, or use pickle."
    )


def _make_distribution(values: dict[str, Any]) -> Any:
    import scipy.stats

    known = getattr(scipy.stats, values["name"])  # one of those in the list below
    return known(*values["args"], **values["kwds"])


_SPLIT = "sklearn.model_selection"
_KERNELS = "sixfold.geometry.kernels.standard"
_FOLDS = ("n_splits", "shuffle", "random_state")
_SPLITS = ("n_splits", "test_size", "train_size", "random_state")

PARTS: dict[str, Part] = {
    "Certificate": Part(
        "sixfold.certificate",
        ("kind", "objective", "gap", "scale", "tolerance", "details", "claim", "notes", "rounding",
         "unrestricted_bound"),
        checks.check_certificate,
    ),
    "Subject": Part(
        "sixfold.certificate",
        ("learner", "parameters", "version", "rows", "columns", "fingerprint", "fingerprint_note",
         "relative_to"),
        checks.check_subject,
        made=lambda values: _class("Subject")(date="", **values),
    ),
    "FittedTree": Part(
        "sixfold.solvers.trees.fitted_tree",
        ("kinds", "column", "threshold", "first", "code", "child", "unknown", "reason", "rows", "totals",
         "criterion", "unit", "limits"),
        check_tree,
    ),
    "GrowthRules": Part(
        "sixfold.solvers.trees.growth",
        ("criterion", "binary", "unknown_best", "max_depth", "min_samples_split", "min_samples_leaf",
         "min_leaf_weight", "min_impurity_decrease", "max_columns", "seed"),
        checks.check_growth_rules,
    ),
    "FitRecord": Part(
        "sixfold.solvers.trees.growth",
        ("rules", "fraction", "left_out", "class_weight", "all_groupings", "rounded", "stopped", "method",
         "search"),
        checks.check_fit_record,
        made=lambda values: _class("FitRecord")(seconds=0.0, **values),
        later={"method": "greedy", "search": None},
    ),
    "SearchRecord": Part(
        "sixfold.solvers.trees.optimal",
        ("objective", "max_depth", "max_leaf_nodes", "leaf_penalty", "lower_bound", "unit",
         "weight_rounding", "weighted", "all_groupings", "frontier", "history"),
        checks.check_search_record,
        _keep_search,
        _make_search,
    ),
    "Frontier": Part(
        "sixfold.solvers.trees.optimal",
        ("column", "low", "high", "left_leaves", "unknown_leaves", "left", "right", "unknown"),
        checks.check_frontier,
    ),
    "Trace": Part(
        "sixfold.explain.trees.trace", ("nodes", "measure"), checks.check_trace, _keep_trace, _make_trace
    ),
    "ColumnKinds": Part("sixfold.data.mixed_table", ("categories", "by_values"), checks.check_column_kinds),
    "LabelColumns": Part("sixfold.data.labels", ("classes", "index", "single"), checks.check_label_columns),
    "Calibration": Part("sixfold.learners.svm.calibration", ("below", "above"), checks.check_calibration),
    "DirectSolution": Part(
        "sixfold.solvers.least_squares.direct",
        ("w", "b", "certificate", "solver", "n_iter", "dual", "rank", "last_move", "factor", "moments",
         "square"),
        checks.check_solution,
    ),
    "ColumnSpace": Part(
        "sixfold.risk.rank",
        ("scale", "kept", "R", "dependent", "combination", "exact", "lost"),
        checks.check_column_space,
    ),
    "Likelihood": Part(
        "sixfold.explain.logit_summary",
        ("information", "shortest", "rows", "fitted", "constant"),
        checks.check_likelihood,
    ),
    "Moments": Part(
        "sixfold.solvers.least_squares.moments",
        ("rows", "n_columns", "weight", "mean", "size", "rounding", "scatter"),
        checks.check_moments,
    ),
    "SGDState": Part(
        "sixfold.solvers.first_order.sgd_updates",
        ("w", "c", "mean_w", "mean_c", "center", "factor", "mistakes", "updates"),
        checks.check_sgd_state,
    ),
    "StepRule": Part(
        "sixfold.solvers.first_order.sgd_updates",
        ("schedule", "eta0", "rate", "batch_size", "average_from", "at_zero"),
        checks.check_step_rule,
    ),
    "Proof": Part(
        "sixfold.solvers.separation.separation", ("rows", "others", "weights", "residual"), checks.check_proof
    ),
    "StoredRows": Part(
        "sixfold.learners.neighbors.stored_rows",
        ("metric", "parameters", "algorithm", "leaf_size", "kinds", "weight", "rows", "stats"),
        checks.check_stored_rows,
        _keep_rows,
        _make_rows,
    ),
    "Learned": Part(
        "sixfold.geometry.distances.learned",
        ("transformer",),
        checks.check_learned,
    ),
    "Linear": Part(_KERNELS, (), checks.check_numbers()),
    "Quadratic": Part(_KERNELS, (), checks.check_numbers()),
    "Polynomial": Part(_KERNELS, ("degree", "gamma", "coef0"), checks.check_polynomial_kernel),
    "RBF": Part(
        _KERNELS,
        ("gamma", "sigma"),
        checks.check_numbers("gamma", "sigma"),
        # Of the two, gamma follows from sigma, and one is given.
        lambda kernel: {"gamma": None if kernel.sigma is not None else kernel.gamma, "sigma": kernel.sigma},
    ),
    "Sigmoid": Part(_KERNELS, ("gamma", "coef0"), checks.check_numbers("gamma", "coef0")),
    "Pairwise": Part(
        "sixfold.geometry.kernels.pairwise", ("function", "arguments"), checks.check_pairwise_kernel
    ),
    "Precomputed": Part("sixfold.geometry.kernels.custom", (), checks.check_numbers()),
    "Sum": Part("sixfold.geometry.kernels.base", ("first", "second"), checks.check_two_kernels),
    "Product": Part("sixfold.geometry.kernels.base", ("first", "second"), checks.check_two_kernels),
    "Scaled": Part("sixfold.geometry.kernels.base", ("factor", "kernel"), checks.check_scaled),
    "SearchCertificate": Part(
        "sixfold.selection.search_certificate",
        ("asked", "done", "largest_gap", "without_claim", "failed", "unfinished", "separate",
         "separate_because"),
        checks.check_search_certificate,
    ),
    "make_column_selector": Part(
        "sklearn.compose", ("pattern", "dtype_include", "dtype_exclude"), checks.check_column_selector
    ),
    "KFold": Part(_SPLIT, _FOLDS, checks.check_folds),
    "StratifiedKFold": Part(_SPLIT, _FOLDS, checks.check_folds),
    "GroupKFold": Part(_SPLIT, _FOLDS, checks.check_folds),
    "StratifiedGroupKFold": Part(_SPLIT, _FOLDS, checks.check_folds),
    "ShuffleSplit": Part(_SPLIT, _SPLITS, checks.check_random_splits),
    "StratifiedShuffleSplit": Part(_SPLIT, _SPLITS, checks.check_random_splits),
    "GroupShuffleSplit": Part(_SPLIT, _SPLITS, checks.check_random_splits),
    "TimeSeriesSplit": Part(
        _SPLIT, ("n_splits", "max_train_size", "test_size", "gap"), checks.check_time_series
    ),
    "LeaveOneOut": Part(_SPLIT, (), checks.check_numbers()),
    "LeaveOneGroupOut": Part(_SPLIT, (), checks.check_numbers()),
    "_CVIterableWrapper": Part("sklearn.model_selection._split", ("cv",), checks.check_given_splits),
    "_Scorer": Part("sklearn.metrics._scorer", ("name",), checks.check_scorer, keep_scorer, _make_scorer),
    "rv_continuous_frozen": Part(
        "scipy.stats._distn_infrastructure",
        ("name", "args", "kwds"),
        checks.check_distribution,
        lambda frozen: {"name": frozen.dist.name, "args": frozen.args, "kwds": frozen.kwds},
        _make_distribution,
    ),
    "rv_discrete_frozen": Part(
        "scipy.stats._distn_infrastructure",
        ("name", "args", "kwds"),
        checks.check_distribution,
        lambda frozen: {"name": frozen.dist.name, "args": frozen.args, "kwds": frozen.kwds},
        _make_distribution,
    ),
}  # fmt: skip


def _class(name: str) -> Any:
    return getattr(importlib.import_module(PARTS[name].home), name)


def _is(value: Any, name: str) -> bool:
    return type(value) is _class(name)


def describe_part(value: Any, where: str, encoder: Encoder) -> Any:
    """Return JSON for a part; None for what is none."""
    kind = type(value)
    part = PARTS.get(kind.__name__)
    if (
        part is None
        or not kind.__module__.startswith(part.home.split(".")[0])
        or not _is(value, kind.__name__)
    ):
        return None
    pairs = zip(part.fields, part.values(value), strict=True)
    return {"part": [kind.__name__, [encoder.node(one, f"{where}.{name}") for name, one in pairs]]}


def build_part(given: Any, where: str, decoder: Decoder) -> Any:
    """Return the part that JSON describes, after checking it."""
    if type(given) is not list or len(given) != 2 or type(given[0]) is not str or given[0] not in PARTS:
        refuse(where, "is no part of a model that this version knows")
    name, part = given[0], PARTS[given[0]]
    numbers = (len(part.fields), len(part.fields) - len(part.later))
    if type(given[1]) is not list or len(given[1]) not in numbers:
        refuse(where, f"has another number of fields than a {name}")
    pairs = zip(part.fields, given[1], strict=False)
    values = part.later | {key: decoder.value(one, f"{where}.{key}") for key, one in pairs}
    attributes = Attributes(values, where)
    part.check(attributes)
    attributes.rest()
    try:
        return part.made(values) if part.made is not None else _class(name)(**values)
    except (TypeError, ValueError, ArithmeticError) as error:
        refuse(where, f"cannot be: {error!s:.200}")


def without_date(subject: Any) -> Any:
    """Return what a certificate speaks of without the moment of the fit."""
    return None if subject is None else replace(subject, date="")
