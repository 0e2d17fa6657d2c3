"""The parts of models that are more than values: certificates, trees, kernels, stored rows, folds.

A part is stored as the list of its fields, in the order of the table :data:`PARTS`, which also says what is
checked. Durations and dates are left out: the same fit gives the same file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sixfold.app.model_file.attributes import Attributes
from sixfold.app.model_file.tree_checks import check_tree
from sixfold.app.model_file.values import Decoder, Encoder, refuse
from sixfold.errors import ModelFileError

Check = Callable[[Attributes], None]


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
    """

    home: str
    fields: tuple[str, ...]
    check: Check
    kept: Callable[[Any], dict[str, Any]] | None = None
    made: Callable[[dict[str, Any]], Any] | None = None

    def values(self, part: Any) -> list[Any]:
        """Return the fields of a part."""
        if self.kept is not None:
            found = self.kept(part)
            return [found[name] for name in self.fields]
        return [getattr(part, name) for name in self.fields]


# -- checks ------------------------------------------------------------------------------------------------


def _certificate(a: Attributes) -> None:
    for name in ("objective", "gap", "scale", "tolerance", "rounding"):
        a.number(name, finite=False)
    a.number("unrestricted_bound", finite=False, optional=True)
    a.text("kind")
    a.text("claim")
    notes, details = a.take("notes", tuple), a.take("details", dict)
    a.require(all(type(note) is str for note in notes), "notes", "are not all text")
    a.require(all(type(name) is str for name in details), "details", "have names that are no text")


def _subject(a: Attributes) -> None:
    for name in ("learner", "version", "fingerprint_note", "relative_to"):
        a.text(name)
    a.text("fingerprint", optional=True)
    parameters = a.take("parameters", dict)
    a.require(all(type(name) is str for name in parameters), "parameters", "have names that are no text")
    a.whole("rows")
    a.whole("columns")


def _growth_rules(a: Attributes) -> None:
    a.text("criterion", ("entropy", "gini", "gain_ratio", "homogeneous"))
    for name in ("binary", "unknown_best"):
        a.flag(name)
    for name in ("max_depth", "max_columns"):
        a.whole(name, optional=True)
    for name in ("min_samples_split", "min_samples_leaf", "seed"):
        a.whole(name, most=1 << 64)
    for name in ("min_leaf_weight", "min_impurity_decrease"):
        a.number(name, finite=False)


def _fit_record(a: Attributes) -> None:
    _of(a, "rules", "GrowthRules")
    a.number("fraction")
    a.whole("left_out")
    a.take("class_weight", dict, str, optional=True)
    for name in ("all_groupings", "rounded", "stopped"):
        a.flag(name)


def _traced_split(a: Attributes) -> None:
    for name in ("column", "split"):
        a.text(name)
    for name in ("average", "gain"):
        a.number(name, finite=False)
    a.flag("chosen")
    a.number("ratio", finite=False, optional=True)


def _traced_node(a: Attributes) -> None:
    for name in ("node", "rows"):
        a.whole(name)
    for name in ("where", "end"):
        a.text(name)
    a.take("totals", dict)
    a.number("impurity", finite=False)
    splits = a.take("splits", tuple)
    a.require(all(_is(one, "TracedSplit") for one in splits), "splits", "are no splits")


def _trace(a: Attributes) -> None:
    nodes = a.take("nodes", tuple)
    a.require(all(_is(one, "TracedNode") for one in nodes), "nodes", "are no nodes")
    a.text("measure")


def _column_kinds(a: Attributes) -> None:
    columns, places = a.take("categories", tuple), a.take("by_values", tuple)
    good = (int, float, bool, str, type(None))
    for column in columns:
        a.require(column is None or type(column) is tuple, "categories", "are no lists of categories")
        a.require(
            all(type(one) in good for one in column or ()), "categories", "are neither text nor numbers"
        )
        different = len({(type(one), one) for one in column or ()})
        a.require(different == len(column or ()), "categories", "have one twice")
    a.require(
        all(type(place) is int and 0 <= place < len(columns) for place in places),
        "by_values",
        "are no columns",
    )


def _label_columns(a: Attributes) -> None:
    classes, single = a.take("classes", list), a.flag("single")
    a.require(classes and (len(classes) == 1 or not single), "classes", "are of another number of columns")
    index = a.array("index", "i", (None, len(classes)))
    a.require(index.dtype == np.intp, "index", f"holds {index.dtype.name}")
    for column, labels in enumerate(classes):
        a.require_classes(labels, "classes")
        a.require_indices(index[:, column], len(labels), "index")


def _calibration(a: Attributes) -> None:
    below = a.array("below", "f", (None,), finite=False)
    a.array("above", "f", below.shape, finite=False)


def _solution(a: Attributes) -> None:
    w = a.array("w", "f", (None, None))
    a.array("b", "f", (w.shape[1],))
    a.array("square", "f", (w.shape[1],), finite=False)
    _of(a, "certificate", "Certificate")
    a.text("solver")
    a.whole("n_iter")
    a.array("dual", "f", finite=False, optional=True)
    a.whole("rank", optional=True)
    a.number("last_move", finite=False)
    factor, moments = _of(a, "factor", "ColumnSpace"), _of(a, "moments", "Moments")
    a.require(factor.scale.size == w.shape[0], "factor", "is of another number of columns")
    fits = moments.n_columns == w.shape[0] and moments.mean.size == sum(w.shape)
    a.require(fits, "moments", "are of another number of columns or targets")


def _column_space(a: Attributes) -> None:
    columns = a.array("scale", "f", (None,)).size
    kept, dependent = a.indices("kept", columns), a.indices("dependent", columns)
    together = np.sort(np.concatenate([kept, dependent]))
    a.require(np.array_equal(together, np.arange(columns)), "kept", "are not each column once")
    a.array("R", "f", (kept.size, kept.size))
    a.array("combination", "f", (kept.size, dependent.size))
    a.array("exact", "b", (dependent.size,))
    a.number("lost", finite=False)


def _moments(a: Attributes) -> None:
    a.whole("rows")
    mean = a.array("mean", "f", (None,))
    a.whole("n_columns", 0, mean.size)
    a.number("weight")
    a.array("size", "f", mean.shape)
    a.array("scatter", "f", (mean.size, mean.size))
    a.number("rounding")


def _sgd_state(a: Attributes) -> None:
    w = a.array("w", "f", (None, None))
    columns, scores = w.shape
    c = a.array("c", "f", (scores,))
    mean_w, mean_c = a.array("mean_w", "f"), a.array("mean_c", "f")
    a.require(mean_w.shape == w.shape or not mean_w.size, "mean_w", "has another shape than w")
    a.require(mean_c.shape == c.shape or not mean_c.size, "mean_c", "has another shape than c")
    a.require((mean_w.size > 0) == (mean_c.size > 0) or not w.size, "mean_c", "is there without the other")
    for name in ("center", "factor"):
        a.array(name, "f", (columns,), optional=True)
    mistakes = a.array("mistakes", "i", (scores,))
    same = all(part.dtype == np.float64 for part in (w, c, mean_w, mean_c)) and mistakes.dtype == np.int64
    a.require(same, "w", "is of a type that updates do not know")
    a.whole("updates")


def _step_rule(a: Attributes) -> None:
    a.text("schedule", ("constant", "decay", "invscaling"))
    a.text("at_zero", ("wrong", "positive", "negative"), optional=True)
    for name in ("eta0", "rate"):
        a.number(name)
    a.whole("batch_size", 1)
    a.whole("average_from", optional=True)


def _proof(a: Attributes) -> None:
    rows = a.array("rows", "i", (None,))
    a.require_indices(rows, 1 << 62, "rows")
    a.array("others", "i", rows.shape, optional=True)
    a.array("weights", "f", rows.shape)
    a.number("residual", finite=False)


def _stored_rows(a: Attributes) -> None:
    """Check the rows that neighbours are looked for in, all that native loops read of them."""
    from sixfold.geometry.distances import DISTANCES, OTHERS, distance_kind
    from sixfold.solvers.neighbors.choose import ALGORITHMS

    metric, parameters = a.text("metric", {*DISTANCES, *OTHERS}), a.take("parameters", dict)
    a.require(all(type(name) is str for name in parameters), "parameters", "have names that are no text")
    a.text("algorithm", ALGORITHMS)
    a.whole("leaf_size", 1, 1 << 30)
    kind = distance_kind(metric)
    rows = a.matrix("rows", (None, None), finite=False) if _floats(a) else a.array("rows", "u", (None, None))
    sparse = sp.issparse(rows)
    a.require(not sparse or type(rows) is sp.csr_array, "rows", "are sparse in another way than by rows")
    known = rows.dtype in (np.float64, np.float32) or (rows.dtype == np.uint8 and not sparse)
    a.require(
        known and (kind.takes_sparse or not sparse), "rows", "are of a type that the metric does not take"
    )
    stored = rows.data if sparse else rows
    allowed = kind.takes_missing
    good = (
        np.isfinite(stored) | np.isnan(stored)
        if allowed and stored.dtype.kind == "f"
        else np.isfinite(stored)
    )
    a.require(good.all(), "rows", "have numbers that are not finite")
    a.require(rows.shape[0] >= 1, "rows", "are none")
    weight = a.array("weight", "f", (rows.shape[0],), optional=True)
    if weight is not None:
        a.require((weight >= 0).all() and weight.any(), "weight", "has no positive number, or one below 0")
    kinds = a.take("kinds", type(None), _class("ColumnKinds"))
    if kinds is not None:
        a.require(len(kinds.categories) == rows.shape[1], "kinds", "are of another number of columns")
    a.require((kinds is not None) == kind.takes_categories, "kinds", "do not belong to this metric")
    stats = a.take("stats", tuple)
    good = len(stats) == 3 and all(type(one) is int and one >= 0 for one in stats)
    a.require(good, "stats", "are no three counts")


def _floats(a: Attributes) -> bool:
    rows = a.values.get("rows")
    return sp.issparse(rows) or getattr(rows, "dtype", np.dtype(float)).kind == "f"


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


def _numbers(*names: str) -> Check:
    """Return a check that these are numbers; what else they have to be, their class checks."""

    def check(a: Attributes) -> None:
        for name in names:
            a.number(name, finite=False, optional=True)

    return check


def _two_kernels(a: Attributes) -> None:
    for name in ("first", "second"):
        _kernel(a, name)


def _scaled(a: Attributes) -> None:
    a.number("factor")
    _kernel(a, "kernel")


def _kernel(a: Attributes, name: str) -> None:
    from sixfold.geometry.kernels import Kernel

    a.require(isinstance(a.take(name), Kernel), name, "is no kernel")


def _search_certificate(a: Attributes) -> None:
    for name in ("asked", "done", "without_claim", "failed", "unfinished", "separate"):
        a.whole(name)
    a.number("largest_gap", finite=False)
    a.text("separate_because", optional=True)


def _folds(a: Attributes) -> None:
    a.whole("n_splits", 2)
    a.flag("shuffle")
    a.take("random_state", int, np.random.RandomState, optional=True)


def _random_splits(a: Attributes) -> None:
    a.whole("n_splits", 1)
    for name in ("test_size", "train_size"):
        a.number(name, optional=True)
    a.take("random_state", int, np.random.RandomState, optional=True)


def _time_series(a: Attributes) -> None:
    a.whole("n_splits", 1)
    for name in ("max_train_size", "test_size"):
        a.whole(name, optional=True)
    a.whole("gap")


def _given_splits(a: Attributes) -> None:
    for pair in a.take("cv", list):
        good = type(pair) in (tuple, list) and len(pair) == 2
        good = good and all(isinstance(one, np.ndarray | list) for one in pair)
        a.require(good, "cv", "is no list of training and test rows")


def _scorer(a: Attributes) -> None:
    from sklearn.metrics import get_scorer_names

    a.text("name", get_scorer_names())


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


def _distribution(a: Attributes) -> None:
    a.text("name", DISTRIBUTIONS)
    arguments, named = a.take("args", tuple), a.take("kwds", dict)
    for value in (*arguments, *named.values()):
        a.require(type(value) in (int, float, np.float64, np.int64), "args", "are no numbers")
    a.require(all(type(name) is str for name in named), "kwds", "have names that are no text")


def _make_distribution(values: dict[str, Any]) -> Any:
    import scipy.stats

    known = getattr(scipy.stats, values["name"])  # one of those in the list below
    return known(*values["args"], **values["kwds"])


DISTRIBUTIONS = (
    "beta", "binom", "expon", "gamma", "geom", "loguniform", "lognorm", "norm", "poisson", "randint", "reciprocal",
    "uniform",
)  # fmt: skip

_SPLIT = "sklearn.model_selection"
_KERNELS = "sixfold.geometry.kernels.standard"
_FOLDS = ("n_splits", "shuffle", "random_state")
_SPLITS = ("n_splits", "test_size", "train_size", "random_state")

PARTS: dict[str, Part] = {
    "Certificate": Part(
        "sixfold.certificate",
        ("kind", "objective", "gap", "scale", "tolerance", "details", "claim", "notes", "rounding",
         "unrestricted_bound"),
        _certificate,
    ),
    "Subject": Part(
        "sixfold.certificate",
        ("learner", "parameters", "version", "rows", "columns", "fingerprint", "fingerprint_note",
         "relative_to"),
        _subject,
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
        _growth_rules,
    ),
    "FitRecord": Part(
        "sixfold.solvers.trees.growth",
        ("rules", "fraction", "left_out", "class_weight", "all_groupings", "rounded", "stopped"),
        _fit_record,
        made=lambda values: _class("FitRecord")(seconds=0.0, **values),
    ),
    "TracedSplit": Part(
        "sixfold.explain.trees.trace", ("column", "split", "average", "gain", "chosen", "ratio"), _traced_split
    ),
    "TracedNode": Part(
        "sixfold.explain.trees.trace",
        ("node", "where", "rows", "totals", "impurity", "splits", "end"),
        _traced_node,
    ),
    "Trace": Part("sixfold.explain.trees.trace", ("nodes", "measure"), _trace),
    "ColumnKinds": Part("sixfold.data.mixed_table", ("categories", "by_values"), _column_kinds),
    "LabelColumns": Part("sixfold.data.labels", ("classes", "index", "single"), _label_columns),
    "Calibration": Part("sixfold.learners.svm.calibration", ("below", "above"), _calibration),
    "DirectSolution": Part(
        "sixfold.solvers.least_squares.direct",
        ("w", "b", "certificate", "solver", "n_iter", "dual", "rank", "last_move", "factor", "moments",
         "square"),
        _solution,
    ),
    "ColumnSpace": Part(
        "sixfold.risk.rank",
        ("scale", "kept", "R", "dependent", "combination", "exact", "lost"),
        _column_space,
    ),
    "Moments": Part(
        "sixfold.solvers.least_squares.moments",
        ("rows", "n_columns", "weight", "mean", "size", "rounding", "scatter"),
        _moments,
    ),
    "SGDState": Part(
        "sixfold.solvers.first_order.sgd_updates",
        ("w", "c", "mean_w", "mean_c", "center", "factor", "mistakes", "updates"),
        _sgd_state,
    ),
    "StepRule": Part(
        "sixfold.solvers.first_order.sgd_updates",
        ("schedule", "eta0", "rate", "batch_size", "average_from", "at_zero"),
        _step_rule,
    ),
    "Proof": Part(
        "sixfold.solvers.separation.separation", ("rows", "others", "weights", "residual"), _proof
    ),
    "StoredRows": Part(
        "sixfold.learners.neighbors.stored_rows",
        ("metric", "parameters", "algorithm", "leaf_size", "kinds", "weight", "rows", "stats"),
        _stored_rows,
        _keep_rows,
        _make_rows,
    ),
    "Linear": Part(_KERNELS, (), _numbers()),
    "Quadratic": Part(_KERNELS, (), _numbers()),
    "Polynomial": Part(_KERNELS, ("degree", "gamma", "coef0"), _numbers("degree", "gamma", "coef0")),
    "RBF": Part(
        _KERNELS,
        ("gamma", "sigma"),
        _numbers("gamma", "sigma"),
        # Of the two, gamma follows from sigma, and one is given.
        lambda kernel: {"gamma": None if kernel.sigma is not None else kernel.gamma, "sigma": kernel.sigma},
    ),
    "Sigmoid": Part(_KERNELS, ("gamma", "coef0"), _numbers("gamma", "coef0")),
    "Precomputed": Part("sixfold.geometry.kernels.custom", (), _numbers()),
    "Sum": Part("sixfold.geometry.kernels.base", ("first", "second"), _two_kernels),
    "Product": Part("sixfold.geometry.kernels.base", ("first", "second"), _two_kernels),
    "Scaled": Part("sixfold.geometry.kernels.base", ("factor", "kernel"), _scaled),
    "SearchCertificate": Part(
        "sixfold.selection.search_certificate",
        ("asked", "done", "largest_gap", "without_claim", "failed", "unfinished", "separate",
         "separate_because"),
        _search_certificate,
    ),
    "KFold": Part(_SPLIT, _FOLDS, _folds),
    "StratifiedKFold": Part(_SPLIT, _FOLDS, _folds),
    "GroupKFold": Part(_SPLIT, _FOLDS, _folds),
    "StratifiedGroupKFold": Part(_SPLIT, _FOLDS, _folds),
    "ShuffleSplit": Part(_SPLIT, _SPLITS, _random_splits),
    "StratifiedShuffleSplit": Part(_SPLIT, _SPLITS, _random_splits),
    "GroupShuffleSplit": Part(_SPLIT, _SPLITS, _random_splits),
    "TimeSeriesSplit": Part(_SPLIT, ("n_splits", "max_train_size", "test_size", "gap"), _time_series),
    "LeaveOneOut": Part(_SPLIT, (), _numbers()),
    "LeaveOneGroupOut": Part(_SPLIT, (), _numbers()),
    "_CVIterableWrapper": Part("sklearn.model_selection._split", ("cv",), _given_splits),
    "_Scorer": Part("sklearn.metrics._scorer", ("name",), _scorer, keep_scorer, _make_scorer),
    "rv_continuous_frozen": Part(
        "scipy.stats._distn_infrastructure",
        ("name", "args", "kwds"),
        _distribution,
        lambda frozen: {"name": frozen.dist.name, "args": frozen.args, "kwds": frozen.kwds},
        _make_distribution,
    ),
    "rv_discrete_frozen": Part(
        "scipy.stats._distn_infrastructure",
        ("name", "args", "kwds"),
        _distribution,
        lambda frozen: {"name": frozen.dist.name, "args": frozen.args, "kwds": frozen.kwds},
        _make_distribution,
    ),
}  # fmt: skip


def _class(name: str) -> Any:
    return getattr(importlib.import_module(PARTS[name].home), name)


def _is(value: Any, name: str) -> bool:
    return type(value) is _class(name)


def _of(a: Attributes, field: str, name: str) -> Any:
    return a.take(field, _class(name))


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
    if type(given[1]) is not list or len(given[1]) != len(part.fields):
        refuse(where, f"has another number of fields than a {name}")
    pairs = zip(part.fields, given[1], strict=True)
    values = {field: decoder.value(one, f"{where}.{field}") for field, one in pairs}
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
