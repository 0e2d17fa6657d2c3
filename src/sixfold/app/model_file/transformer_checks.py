"""What the fitted attributes of what stands before a learner have to be, and of scikit-learn's models."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import comb
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sixfold.app.model_file.attributes import Attributes

MOST_DEGREE = 100  # of products of columns: beyond, no memory would do


def check_pipeline(a: Attributes, model: Any) -> None:
    """Check that the steps of a pipeline are named, each once."""
    require_steps(a, model.steps, "steps", 2)
    a.require(model.memory is None, "memory", "is not None: a cache is not part of a model")
    steps = [step for _, step in model.steps if isinstance(step, BaseEstimator)]
    for step in (step for _, step in model.steps[:-1] if isinstance(step, BaseEstimator)):
        a.require(hasattr(step, "transform"), "steps", "has a step before the last that transforms nothing")
    for before, after in pairwise(steps):
        columns, wanted = _output_count(a, before), vars(after).get("n_features_in_")
        same = columns is None or wanted is None or columns == wanted
        a.require(same, "steps", f"has a step with {columns} columns before one that takes {wanted}")


def _output_count(a: Attributes, step: Any) -> int | None:
    """Return how many columns a fitted step makes; None where it does not say."""
    if not hasattr(step, "get_feature_names_out") or not any(name.endswith("_") for name in vars(step)):
        return None
    try:
        return len(step.get_feature_names_out())
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        a.require(False, "steps", f"has a step that cannot name its columns ({error!s:.100})")
        return None


def require_steps(a: Attributes, steps: Any, name: str, length: int) -> None:
    """Refuse the file unless these are named estimators."""
    a.require(type(steps) is list and len(steps) > 0, name, "is no list of steps")
    good = all(type(one) in (tuple, list) and len(one) == length and type(one[0]) is str for one in steps)
    a.require(good, name, "are no names with estimators")
    names = [one[0] for one in steps]
    a.require(len(set(names)) == len(names), name, "has a name twice")
    for one in steps:
        step = one[1]
        plain = step is None or (type(step) is str and step in ("passthrough", "drop"))
        a.require(plain or isinstance(step, BaseEstimator), name, "has a step that is no estimator")


def check_column_transformer(a: Attributes, model: Any) -> None:
    """Check which columns go to which transformer."""
    d = a.columns()
    require_steps(a, model.transformers, "transformers", 3)
    require_steps(a, a.take("transformers_", list), "transformers_", 3)
    for name, _, columns in a.values["transformers_"]:
        _require_columns(a, columns, d, f"transformers_[{name!r:.60}]")
    a.take("_columns", list)
    _, _, rest = a.take("_remainder", tuple)
    _require_columns(a, rest, d, "_remainder")
    a.whole("_n_features", d, d, optional=True)
    a.flag("sparse_output_")
    places, slices = a.take("_transformer_to_input_indices", dict), a.take("output_indices_", dict)
    for name, listed in places.items():
        _require_columns(a, listed, d, f"_transformer_to_input_indices[{name!r:.60}]")
    good = all(type(one) is slice and type(one.start) is int for one in slices.values())
    a.require(good, "output_indices_", "are no stretches of columns")
    names = {one[0] for one in a.values["transformers_"]}
    a.require(names <= slices.keys(), "output_indices_", "are not those of the transformers")
    a.take("_name_to_fitted_passthrough", dict, optional=True)


def _require_columns(a: Attributes, columns: Any, count: int, name: str) -> None:
    """Refuse the file unless these are several columns that there are: a slice, or a list of them."""
    if type(columns) in (slice, type(None)):
        return
    a.require(type(columns) in (list, tuple, np.ndarray), name, "are no columns")
    known = a.values.get("feature_names_in_", np.empty(0)).tolist()
    # A list as it is: NumPy would make one large array of lists in it that refer to each other.
    for one in columns.ravel().tolist() if type(columns) is np.ndarray else columns:
        there = one in known if type(one) is str else type(one) is int and -count <= one < count
        a.require(there or type(one) is bool, name, "has a column that there is not")


def _scaler(*arrays: str, counted: bool = True) -> Any:
    """Return the check of a scaler with these arrays, one number a column each, or None."""

    def check(a: Attributes, model: Any) -> None:
        d = a.columns()
        for name in arrays:
            value = a.array(name, "f", (d,), finite=False, nullable=True)
            if value is not None:  # of columns without any value it is NaN
                a.require(not np.isinf(value).any(), name, "is infinite")
        if counted:
            seen = a.take("n_samples_seen_", int, np.int64, np.float64, np.ndarray)
            a.require(
                not isinstance(seen, np.ndarray) or seen.shape == (d,), "n_samples_seen_", "is no count"
            )

    return check


check_standard_scaler = _scaler("scale_", "mean_", "var_")
check_min_max_scaler = _scaler("scale_", "min_", "data_min_", "data_max_", "data_range_")
check_max_abs_scaler = _scaler("scale_", "max_abs_")
check_robust_scaler = _scaler("scale_", "center_", counted=False)


def check_columns_only(a: Attributes, model: Any) -> None:
    """Check what learns nothing but how many columns there are."""
    if a.has("n_features_in_"):
        a.columns()


def check_function(a: Attributes, model: Any) -> None:
    """Check that there is no function: columns are passed on as they are."""
    check_columns_only(a, model)
    for name in ("func", "inverse_func"):
        a.require(getattr(model, name) is None, name, "is not None")
    for name in ("kw_args", "inv_kw_args"):
        value = getattr(model, name)
        a.require(value is None or type(value) is dict, name, "is no dictionary")


def check_polynomial(a: Attributes, model: Any) -> None:
    """Check how many products of columns there are, for which memory is asked."""
    d, degree = a.columns(), model.degree
    least, most = (0, int(degree)) if isinstance(degree, Integral) else map(int, degree)
    a.require(0 <= least <= most <= MOST_DEGREE, "degree", f"is not from 0 to {MOST_DEGREE}")
    a.whole("_min_degree", least, least)
    a.whole("_max_degree", most, most)
    alike = comb if model.interaction_only else (lambda d, k: comb(d + k - 1, k))
    counts = [alike(d, k) for k in range(most + 1)]
    full = sum(counts) - (not model.include_bias)
    less = sum(counts[1:least]) if least > 1 else 0
    a.whole("_n_out_full", full, full)
    a.whole("n_output_features_", full - less, full - less)


@cache
def _imputer_attributes() -> frozenset[str]:
    """Return what an imputer has after a fit, which changes from version to version."""
    from sklearn.impute import SimpleImputer

    return frozenset(vars(SimpleImputer().fit(np.zeros((1, 1)))))


def check_imputer(a: Attributes, model: Any) -> None:
    """Check what missing values become."""
    d = a.columns()
    known = a.array("statistics_", "fiubOU", (d,), finite=False)
    a.require(known.dtype.kind != "f" or not np.isinf(known).any(), "statistics_", "is infinite")
    for name in ("_fit_dtype", "_fill_dtype"):
        value = a.take(name, optional=name not in _imputer_attributes())
        a.require(value is None or isinstance(value, np.dtype), name, "is no type")
    indicator = a.take("indicator_")
    a.require(indicator is None or type(indicator).__name__ == "MissingIndicator", "indicator_", "is none")
    a.flag("_sklearn_no_feature", optional=True)


def check_indicator(a: Attributes, model: Any) -> None:
    """Check which columns have missing values."""
    d = a.columns() if a.has("n_features_in_") else 1 << 31
    a.whole("_n_features", optional=True)
    a.indices("features_", d)
    a.flag("_precomputed", optional=True)


CATEGORIES = (str, int, float, bool, type(None), np.str_, np.int64, np.float64, np.bool_)


def check_encoder(a: Attributes, model: Any) -> None:
    """Check the categories of each column, and which of them go together or are dropped."""
    d = a.columns()
    categories = a.take("categories_", list)
    good = all(isinstance(one, np.ndarray) and one.ndim == 1 for one in categories)
    a.require(good and len(categories) == d, "categories_", f"are not those of {d} columns")
    for one in categories:
        plain = one.dtype.kind in "biufU" or all(type(value) in CATEGORIES for value in one)
        a.require(plain, "categories_", "are neither text nor numbers")
    a.flag("_infrequent_enabled")
    one_hot = type(model).__name__ == "OneHotEncoder"
    sizes = [one.size for one in categories]
    outputs = _check_groups(a, sizes)
    for name in ("drop_idx_", "_drop_idx_after_grouping"):
        dropped = a.array(name, "iuO", (d,), optional=not one_hot, nullable=True)
        counts = sizes if name == "drop_idx_" else outputs
        for k, one in enumerate([] if dropped is None else dropped.tolist()):
            good = one is None or (type(one) is int and 0 <= one < counts[k])
            a.require(good, name, "drops a category that there is not")
            outputs[k] -= name == "_drop_idx_after_grouping" and one is not None
    counts = a.take("_n_features_outs", list, optional=not one_hot)
    # They are the widths of a sparse matrix whose entries nobody looks at again.
    a.require(counts is None or counts == outputs, "_n_features_outs", "are not those of the categories")
    missing = a.take("_missing_indices", dict, optional=one_hot)
    for k, one in (missing or {}).items():
        good = type(k) is int and 0 <= k < d and type(one) in (int, float)
        a.require(good, "_missing_indices", "are no places of missing values")


def _check_groups(a: Attributes, sizes: list[int]) -> list[int]:
    """Check which categories go together as rare ones; return how many outputs each column has."""
    needed, none = a.values["_infrequent_enabled"], [None] * len(sizes)
    grouped = a.take("_infrequent_indices", list, optional=not needed) or none
    mapped = a.take("_default_to_infrequent_mappings", list, optional=not needed) or none
    a.require(len(grouped) == len(mapped) == len(sizes), "_infrequent_indices", "are of other columns")
    outputs = list(sizes)
    for k, (rare, place) in enumerate(zip(grouped, mapped, strict=True)):
        a.require((rare is None) == (place is None), "_infrequent_indices", "are there without their places")
        if rare is None:
            continue
        for values in (rare, place):
            good = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind == "i"
            a.require(good and values.size, "_infrequent_indices", "are no numbers of categories")
        a.require_indices(rare, sizes[k], "_infrequent_indices")
        common = sizes[k] - rare.size
        fits = np.unique(rare).size == rare.size and place.size == sizes[k]
        wanted = np.full(sizes[k], common)
        wanted[np.setdiff1d(np.arange(sizes[k]), rare)] = np.arange(common) if fits else 0
        a.require(fits and np.array_equal(place, wanted), "_default_to_infrequent_mappings", "lead astray")
        outputs[k] = common + 1
    return outputs


COLUMN_KINDS = ("number", "boolean", "category", "date", "duration", "left out")


def keep_table_encoder(fitted: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a TableEncoder with its columns as arrays: a table may have thousands."""
    columns = fitted.get("columns_")
    if columns is None:
        return fitted
    return fitted | {
        "columns_": {
            "names": np.array([_plain_name(one.name) for one in columns], dtype=object),
            "kinds": [one.kind for one in columns],
            "counts": np.array([len(one.outputs) for one in columns], dtype=np.int64),
            "outputs": [output for one in columns for output in one.outputs],
            "numbers": np.array([[one.fill, one.center, one.scale] for one in columns], dtype=np.float64),
            "zones": [one.zone for one in columns],
        }
    }


def _plain_name(name: Any) -> Any:
    """Return the name of a column as Python has it: pandas has NumPy's whole numbers."""
    return int(name) if isinstance(name, np.integer) else name


def check_table_encoder(a: Attributes, model: Any) -> None:
    """Check what was learnt of each column, and make columns of it."""
    from sixfold.data.encoder.encoded_column import EncodedColumn

    d = a.columns(least=1)
    parts = Attributes(a.take("columns_", dict), f"{a.where}.columns_")
    names = parts.array("names", "O", (d,)).tolist()
    good = all(type(name) in (str, int) for name in names)
    parts.require(good and len(set(names)) == d, "names", "are no names of columns")
    counts = parts.indices("counts", 1 << 31, (d,)).tolist()
    numbers = parts.array("numbers", "f", (d, 3)).tolist()
    kinds, zones, outputs = (parts.take(name, list) for name in ("kinds", "zones", "outputs"))
    parts.require(len(kinds) == len(zones) == d, "kinds", "are of another number of columns")
    parts.require(all(kind in COLUMN_KINDS for kind in kinds), "kinds", "are no kinds of columns")
    parts.require(all(type(one) is str for one in (*zones, *outputs)), "outputs", "are not all text")
    parts.require(sum(counts) == len(outputs), "outputs", "are not as many as are counted")
    parts.rest()
    made, start = [], 0
    for j in range(d):
        own = tuple(outputs[start : start + counts[j]])
        start += counts[j]
        _require_outputs(parts, kinds[j], own, model.categories == "one-hot")
        fill, center, scale = numbers[j]
        made.append(EncodedColumn(names[j], kinds[j], own, fill, center, scale, zones[j]))
    a.values["columns_"] = tuple(made)
    sources = a.array("sources_", "i", (len(outputs),))
    a.require(np.array_equal(sources, np.repeat(np.arange(d), counts)), "sources_", "are not the columns'")
    a.text("dtype_", ("float32", "float64"))
    a.flag("named_")
    model._check_parameters()


def _require_outputs(a: Attributes, kind: str, outputs: tuple[str, ...], one_hot: bool) -> None:
    """Refuse the file unless a column of this kind can be written so: in this order, each part once."""
    from sixfold.data.encoder.date_parts import CYCLE
    from sixfold.data.encoder.encoded_column import DAYS, MISSING, OTHER

    a.require(len(set(outputs)) == len(outputs), "outputs", "have a part twice")
    a.require((kind == "left out") == (not outputs), "outputs", "are there of a column that is left out")
    if kind == "left out":
        return
    own = [one for one in outputs if one not in (MISSING, OTHER)]
    dated = kind in ("date", "duration")
    if kind == "category" and one_hot:
        good = all(one.startswith("=") for one in own)
    elif not dated:
        good = own == [""]
    elif one_hot:
        parts = [one[2 : -len(" (sin)")] for one in own[1::2]]
        waves = [f": {part} ({wave})" for part in parts for wave in ("sin", "cos")]
        good = own == [DAYS, *waves] and all(part in CYCLE for part in parts)
    else:
        good = own[:1] == [DAYS] and all(one.removeprefix(": ") in CYCLE for one in own[1:])
    ordered = outputs == (*own, *[one for one in (OTHER, MISSING) if one in outputs])
    a.require(good and ordered, "outputs", f"are none of a column of kind {kind}")


def check_label_encoder(a: Attributes, model: Any) -> None:
    """Check the labels."""
    a.classes()


def check_dummy_classifier(a: Attributes, model: Any) -> None:
    """Check the classes and their shares."""
    k = a.classes().size
    a.whole("n_classes_", k, k)
    a.whole("n_outputs_", 1, 1)
    a.array("class_prior_", "f", (k,))
    a.text("_strategy", ("most_frequent", "prior", "stratified", "uniform", "constant"))
    a.require(a.values["_strategy"] == model.strategy, "_strategy", "is not the strategy")
    a.flag("sparse_output_")
    check_columns_only(a, model)


def check_dummy_regressor(a: Attributes, model: Any) -> None:
    """Check the number that is predicted."""
    outputs = a.whole("n_outputs_", 1)
    a.array("constant_", "fiu", (1, outputs))
    check_columns_only(a, model)
