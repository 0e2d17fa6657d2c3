"""What the fields of each part of a model have to be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from sixfold.app.model_file.attributes import Attributes
from sixfold.app.model_file.values import refuse

Check = Callable[[Attributes], None]

_NUMBERS = (int, float)
# The columns of a trace: of its nodes, of the splits they could have had, and of the totals of classes.
TRACED: dict[str, dict[str, tuple[type, ...]]] = {
    "node": {
        "node": (int,), "where": (str,), "rows": (int,), "impurity": _NUMBERS, "end": (str,),
        "splits": (int,), "totals": (int,),
    },
    "split": {
        "column": (str,), "split": (str,), "average": _NUMBERS, "gain": _NUMBERS, "chosen": (bool,),
        "ratio": (int, float, type(None)),
    },
    "total": {"class": (str,), "weight": _NUMBERS},
}  # fmt: skip

DISTRIBUTIONS = (
    "beta", "binom", "expon", "gamma", "geom", "loguniform", "lognorm", "norm", "poisson", "randint",
    "reciprocal", "uniform",
)  # fmt: skip


def part_of(a: Attributes, field: str, name: str, optional: bool = False) -> Any:
    """Return a field that is a part of this name."""
    value = a.take(field)
    if not (optional and value is None) and not _is(value, name):
        refuse(f"{a.where}.{field}", f"is no {name}")
    return value


def _is(value: Any, name: str) -> bool:
    """Return whether this is a part of that name: there are no other objects of it."""
    return type(value).__name__ == name


def check_certificate(a: Attributes) -> None:
    """Check a certificate."""
    for name in ("objective", "gap", "scale", "tolerance", "rounding"):
        a.number(name, finite=False)
    a.number("unrestricted_bound", finite=False, optional=True)
    a.text("kind")
    a.text("claim")
    notes, details = a.take("notes", tuple), a.take("details", dict)
    a.require(all(type(note) is str for note in notes), "notes", "are not all text")
    a.require(all(type(name) is str for name in details), "details", "have names that are no text")


def check_subject(a: Attributes) -> None:
    """Check what a certificate speaks of."""
    for name in ("learner", "version", "fingerprint_note", "relative_to"):
        a.text(name)
    a.text("fingerprint", optional=True)
    parameters = a.take("parameters", dict)
    a.require(all(type(name) is str for name in parameters), "parameters", "have names that are no text")
    a.whole("rows")
    a.whole("columns")


def check_growth_rules(a: Attributes) -> None:
    """Check how a tree was grown."""
    a.text("criterion", ("entropy", "gini", "gain_ratio", "homogeneous"))
    for name in ("binary", "unknown_best"):
        a.flag(name)
    for name in ("max_depth", "max_columns"):
        a.whole(name, optional=True)
    for name in ("min_samples_split", "min_samples_leaf", "seed"):
        a.whole(name, most=1 << 64)
    for name in ("min_leaf_weight", "min_impurity_decrease"):
        a.number(name, finite=False)


def check_fit_record(a: Attributes) -> None:
    """Check how and from what a tree was grown."""
    part_of(a, "rules", "GrowthRules")
    a.number("fraction")
    a.whole("left_out")
    a.take("class_weight", dict, str, optional=True)
    for name in ("all_groupings", "rounded", "stopped"):
        a.flag(name)
    method = a.text("method", ("greedy", "lookahead", "optimal"))
    search = part_of(a, "search", "SearchRecord", optional=True)
    a.require((search is None) == (method != "optimal"), "search", "does not fit how the tree was made")


def check_search_record(a: Attributes) -> None:
    """Check what is kept of a search for the best tree."""
    a.text("objective", ("error", "entropy"))
    a.whole("max_depth")
    a.whole("max_leaf_nodes", optional=True)
    for name in ("leaf_penalty", "lower_bound", "unit", "weight_rounding"):
        a.number(name)
    for name in ("weighted", "all_groupings"):
        a.flag(name)
    part_of(a, "frontier", "Frontier")
    good = all(
        type(one) is tuple and len(one) == 2 and all(type(figure) is float for figure in one)
        for one in a.take("history", list)
    )
    a.require(good, "history", "is no list of objectives and gaps")


def check_frontier(a: Attributes) -> None:
    """Check the questions of a frontier and their bounds: one entry each."""
    count = a.array("column", "i").size
    for name in ("column", "low", "high", "left_leaves", "unknown_leaves"):
        a.array(name, "i", (count,))
    for name in ("left", "right", "unknown"):
        a.array(name, "f", (count,))


def check_trace(a: Attributes) -> None:
    """Check the nodes of a trace, which are stored column by column."""
    a.text("measure")
    nodes = a.take("nodes", dict)
    table = Attributes(nodes, f"{a.where}.nodes")
    for part, kinds in TRACED.items():
        for name in kinds:
            table.take(f"{part} {name}", list)
    table.rest()
    for part, kinds in TRACED.items():
        count = len(nodes[f"{part} {next(iter(kinds))}"])
        for name, types in kinds.items():
            column = nodes[f"{part} {name}"]
            good = len(column) == count and all(type(one) in types for one in column)
            table.require(good, f"{part} {name}", "are of another number or type")
    for counts, part in (("node splits", "split"), ("node totals", "total")):
        there = len(nodes[f"{part} {next(iter(TRACED[part]))}"])
        good = all(0 <= one <= there for one in nodes[counts]) and sum(nodes[counts]) == there
        table.require(good, counts, "do not add up")


def check_column_kinds(a: Attributes) -> None:
    """Check the categories of each column."""
    columns, places = a.take("categories", tuple), a.take("by_values", tuple)
    good = (int, float, bool, str, type(None))
    for column in columns:
        a.require(column is None or type(column) is tuple, "categories", "are no lists of categories")
        a.require(
            all(type(one) in good for one in column or ()), "categories", "are neither text nor numbers"
        )
        a.require(_all_different(column or ()), "categories", "have one twice")
    a.require(
        all(type(place) is int and 0 <= place < len(columns) for place in places),
        "by_values",
        "are no columns",
    )


def _all_different(values: tuple[Any, ...]) -> bool:
    """Return whether no value is there twice; 1 and True are two."""
    if all(type(one) is str for one in values):  # sorting takes less memory than a set
        return all(one != other for one, other in pairwise(sorted(values)))
    return len({(type(one), one) for one in values}) == len(values)


def check_label_columns(a: Attributes) -> None:
    """Check the labels of rows, which votes are counted by."""
    classes, single = a.take("classes", list), a.flag("single")
    a.require(classes and (len(classes) == 1 or not single), "classes", "are of another number of columns")
    index = a.array("index", "i", (None, len(classes)))
    a.require(index.dtype == np.intp, "index", f"holds {index.dtype.name}")
    for column, labels in enumerate(classes):
        a.require_classes(labels, "classes")
        a.require_indices(index[:, column], len(labels), "index")


def check_calibration(a: Attributes) -> None:
    """Check the slopes of binary SVMs."""
    below = a.array("below", "f", (None,), finite=False)
    a.array("above", "f", below.shape, finite=False)


def check_solution(a: Attributes) -> None:
    """Check what standard errors are computed from."""
    w = a.array("w", "f", (None, None))
    a.array("b", "f", (w.shape[1],))
    a.array("square", "f", (w.shape[1],), finite=False)
    part_of(a, "certificate", "Certificate")
    a.text("solver")
    a.whole("n_iter")
    a.array("dual", "f", finite=False, optional=True)
    a.whole("rank", optional=True)
    a.number("last_move", finite=False)
    factor, moments = part_of(a, "factor", "ColumnSpace"), part_of(a, "moments", "Moments")
    a.require(factor.scale.size == w.shape[0], "factor", "is of another number of columns")
    fits = moments.n_columns == w.shape[0] and moments.mean.size == sum(w.shape)
    a.require(fits, "moments", "are of another number of columns or targets")


def check_column_space(a: Attributes) -> None:
    """Check the factor of a table."""
    columns = a.array("scale", "f", (None,)).size
    kept, dependent = a.indices("kept", columns), a.indices("dependent", columns)
    together = np.sort(np.concatenate([kept, dependent]))
    a.require(np.array_equal(together, np.arange(columns)), "kept", "are not each column once")
    a.array("R", "f", (kept.size, kept.size))
    a.array("combination", "f", (kept.size, dependent.size))
    a.array("exact", "b", (dependent.size,))
    a.number("lost", finite=False)


def check_moments(a: Attributes) -> None:
    """Check means and products of columns."""
    a.whole("rows")
    mean = a.array("mean", "f", (None,))
    a.whole("n_columns", 0, mean.size)
    a.number("weight")
    a.array("size", "f", mean.shape)
    a.array("scatter", "f", (mean.size, mean.size))
    a.number("rounding")


def check_sgd_state(a: Attributes) -> None:
    """Check the state between two updates, which native loops change in place."""
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


def check_likelihood(a: Attributes) -> None:
    """Check what the summary of a logistic regression is computed from."""
    a.array("information", "f", (None, None))
    a.array("shortest", "f", (None, None))
    for name in ("rows", "fitted", "constant"):
        a.number(name)


def check_step_rule(a: Attributes) -> None:
    """Check how large updates are."""
    a.text("schedule", ("constant", "decay", "invscaling"))
    a.text("at_zero", ("wrong", "positive", "negative"), optional=True)
    for name in ("eta0", "rate"):
        a.number(name)
    a.whole("batch_size", 1)
    a.whole("average_from", optional=True)


def check_proof(a: Attributes) -> None:
    """Check the rows and weights of a proof."""
    rows = a.array("rows", "i", (None,))
    a.require_indices(rows, 1 << 62, "rows")
    a.array("others", "i", rows.shape, optional=True)
    a.array("weights", "f", rows.shape)
    a.number("residual", finite=False)


def check_stored_rows(a: Attributes) -> None:
    """Check the rows that neighbours are looked for in, all that native loops read of them."""
    from sixfold.geometry.distances import DISTANCES, OTHERS, Learned, distance_kind
    from sixfold.solvers.neighbors.choose import ALGORITHMS

    learnt = isinstance(a.values.get("metric"), Learned)
    metric = a.take("metric", Learned) if learnt else a.text("metric", {*DISTANCES, *OTHERS})
    a.require(not learnt or metric.fitted, "metric", "is not learnt yet")
    parameters = a.take("parameters", dict)
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
    kinds = part_of(a, "kinds", "ColumnKinds", optional=True)
    if kinds is not None:
        a.require(len(kinds.categories) == rows.shape[1], "kinds", "are of another number of columns")
    a.require((kinds is not None) == kind.takes_categories, "kinds", "do not belong to this metric")
    stats = a.take("stats", tuple)
    good = len(stats) == 3 and all(type(one) is int and one >= 0 for one in stats)
    a.require(good, "stats", "are no three counts")


def check_learned(a: Attributes) -> None:
    """Check what a distance was, or is to be, learnt by: a matrix, or a model that files can hold."""
    if isinstance(a.values.get("transformer"), np.ndarray):
        a.array("transformer", "f", (None, None))
    else:
        a.require(hasattr(a.take("transformer"), "transform"), "transformer", "transforms nothing")


def _floats(a: Attributes) -> bool:
    rows = a.values.get("rows")
    return sp.issparse(rows) or getattr(rows, "dtype", np.dtype(float)).kind == "f"


def check_numbers(*names: str) -> Check:
    """Return a check that these are numbers; what else they have to be, their class checks."""

    def check(a: Attributes) -> None:
        for name in names:
            a.number(name, finite=False, optional=True)

    return check


def check_polynomial_kernel(a: Attributes) -> None:
    """Check a polynomial kernel, whose degree native loops take as 32 bits."""
    a.whole("degree", 0, (1 << 31) - 1)
    for name in ("gamma", "coef0"):
        a.number(name)


def check_two_kernels(a: Attributes) -> None:
    """Check a sum or product of kernels."""
    for name in ("first", "second"):
        _kernel(a, name)


def check_scaled(a: Attributes) -> None:
    """Check a multiple of a kernel."""
    a.number("factor")
    _kernel(a, "kernel")


def check_pairwise_kernel(a: Attributes) -> None:
    """Check a kernel of scikit-learn's by its name; a function cannot be in a file."""
    from sixfold.geometry.kernels.pairwise import PAIRWISE

    a.text("function", (*PAIRWISE, "poly", "polynomial", "rbf", "linear", "sigmoid"))
    for pair in a.take("arguments", tuple):
        good = type(pair) is tuple and len(pair) == 2 and pair[0] in ("gamma", "coef0", "degree")
        good = good and type(pair[1]) in (int, float, np.float64, np.int64)
        a.require(good, "arguments", "are no numbers by name")


def _kernel(a: Attributes, name: str) -> None:
    from sixfold.geometry.kernels import Kernel

    a.require(isinstance(a.take(name), Kernel), name, "is no kernel")


def check_column_selector(a: Attributes) -> None:
    """Check by what columns are selected: a pattern of their names, or their types."""
    a.text("pattern", optional=True)
    for name in ("dtype_include", "dtype_exclude"):
        value = a.take(name)
        for one in value if type(value) is list else [value]:
            a.require(one is None or isinstance(one, str | type | np.dtype), name, "is no type")


def check_search_certificate(a: Attributes) -> None:
    """Check what is known of the fits of a search."""
    for name in ("asked", "done", "without_claim", "failed", "unfinished", "separate"):
        a.whole(name)
    a.number("largest_gap", finite=False)
    a.text("separate_because", optional=True)


def check_folds(a: Attributes) -> None:
    """Check a splitter into folds."""
    a.whole("n_splits", 2)
    a.flag("shuffle")
    a.take("random_state", int, np.random.RandomState, optional=True)


def check_random_splits(a: Attributes) -> None:
    """Check a splitter at random."""
    a.whole("n_splits", 1)
    for name in ("test_size", "train_size"):
        a.number(name, optional=True)
    a.take("random_state", int, np.random.RandomState, optional=True)


def check_time_series(a: Attributes) -> None:
    """Check a splitter by time."""
    a.whole("n_splits", 1)
    for name in ("max_train_size", "test_size"):
        a.whole(name, optional=True)
    a.whole("gap")


def check_given_splits(a: Attributes) -> None:
    """Check splits that were given."""
    for pair in a.take("cv", list):
        good = type(pair) in (tuple, list) and len(pair) == 2
        good = good and all(isinstance(one, np.ndarray | list) for one in pair)
        a.require(good, "cv", "is no list of training and test rows")


def check_scorer(a: Attributes) -> None:
    """Check the name of a scorer."""
    from sklearn.metrics import get_scorer_names

    a.text("name", get_scorer_names())


def check_distribution(a: Attributes) -> None:
    """Check a distribution of parameters."""
    a.text("name", DISTRIBUTIONS)
    arguments, named = a.take("args", tuple), a.take("kwds", dict)
    for value in (*arguments, *named.values()):
        a.require(type(value) in (int, float, np.float64, np.int64), "args", "are no numbers")
    a.require(all(type(name) is str for name in named), "kwds", "have names that are no text")
