"""What the fitted attributes of what stands before a learner have to be, and of scikit-learn's models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sixfold.app.model_file.attributes import Attributes


def check_pipeline(a: Attributes, model: Any) -> None:
    """Check that the steps of a pipeline are named, each once."""
    require_steps(a, model.steps, "steps", 2)
    a.require(model.memory is None, "memory", "is not None: a cache is not part of a model")


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
    a.take("_remainder", tuple)
    a.whole("_n_features", d, d, optional=True)
    a.flag("sparse_output_")
    places, slices = a.take("_transformer_to_input_indices", dict), a.take("output_indices_", dict)
    for name, listed in places.items():
        _require_columns(a, listed, d, f"_transformer_to_input_indices[{name!r:.60}]")
    good = all(type(one) is slice and type(one.start) is int for one in slices.values())
    a.require(good, "output_indices_", "are no stretches of columns")
    a.take("_name_to_fitted_passthrough", dict, optional=True)


def _require_columns(a: Attributes, columns: Any, count: int, name: str) -> None:
    if type(columns) in (str, slice, type(None)):
        return
    listed = [columns] if type(columns) is int else columns
    a.require(type(listed) in (list, tuple, np.ndarray), name, "are no columns")
    for one in np.asarray(listed, dtype=object).ravel().tolist():
        good = isinstance(one, str | bool) or (type(one) is int and -count <= one < count)
        a.require(good, name, "has a column that there is not")


def _scaler(*arrays: str, counted: bool = True) -> Any:
    """Return the check of a scaler with these arrays, one number a column each, or None."""

    def check(a: Attributes, model: Any) -> None:
        d = a.columns()
        for name in arrays:
            a.array(name, "f", (d,), finite=False, optional=True)
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
    """Check a transformer that learns nothing but how many columns there are."""
    if a.has("n_features_in_"):
        a.columns()


def check_polynomial(a: Attributes, model: Any) -> None:
    """Check how many products of columns there are."""
    a.columns()
    for name in ("n_output_features_", "_n_out_full", "_max_degree", "_min_degree"):
        a.whole(name, optional=True)


def check_imputer(a: Attributes, model: Any) -> None:
    """Check what missing values become."""
    d = a.columns()
    a.array("statistics_", "fiubOU", (d,), finite=False)
    for name in ("_fit_dtype", "_fill_dtype"):
        value = a.take(name, optional=True)
        a.require(value is None or isinstance(value, np.dtype), name, "is no type")
    indicator = a.take("indicator_", optional=True)
    a.require(indicator is None or type(indicator).__name__ == "MissingIndicator", "indicator_", "is none")
    a.flag("_sklearn_no_feature", optional=True)


def check_indicator(a: Attributes, model: Any) -> None:
    """Check which columns have missing values."""
    d = a.columns() if a.has("n_features_in_") else 1 << 31
    a.whole("_n_features", optional=True)
    a.indices("features_", d)
    a.flag("_precomputed", optional=True)


def check_encoder(a: Attributes, model: Any) -> None:
    """Check the categories of each column, and which of them go together or are dropped."""
    d = a.columns()
    categories = a.take("categories_", list)
    good = all(isinstance(one, np.ndarray) and one.ndim == 1 for one in categories)
    a.require(good and len(categories) == d, "categories_", f"are not those of {d} columns")
    a.flag("_infrequent_enabled", optional=True)
    for name in ("drop_idx_", "_drop_idx_after_grouping"):
        dropped = a.array(name, "iuO", (d,), optional=True)
        for k, one in enumerate([] if dropped is None else dropped.tolist()):
            good = one is None or (type(one) is int and 0 <= one < categories[k].size)
            a.require(good, name, "drops a category that there is not")
    for name in ("_infrequent_indices", "_default_to_infrequent_mappings"):
        listed = a.take(name, list, optional=True)
        a.require(listed is None or len(listed) in (0, d), name, f"are not those of {d} columns")
        for k, one in enumerate(listed or []):
            if one is not None:
                good = isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind == "i"
                good = good and (name == "_infrequent_indices" or one.size == categories[k].size)
                a.require(good, name, "are no numbers of categories")
                a.require_indices(one, categories[k].size + 1, name)
    counts = a.take("_n_features_outs", list, optional=True)
    good = counts is None or (len(counts) == d and all(type(one) in (int, np.int64) for one in counts))
    a.require(good, "_n_features_outs", "are no counts")
    missing = a.take("_missing_indices", dict, optional=True)
    for k, one in (missing or {}).items():
        good = type(k) is int and 0 <= k < d and type(one) in (int, float)
        a.require(good, "_missing_indices", "are no places of missing values")


COLUMN_KINDS = ("number", "boolean", "category", "date", "duration", "left out")


def keep_table_encoder(fitted: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a TableEncoder with its columns as arrays: a table may have thousands."""
    columns = fitted.get("columns_")
    if columns is None:
        return fitted
    return fitted | {
        "columns_": {
            "names": np.array([one.name for one in columns], dtype=object),
            "kinds": [one.kind for one in columns],
            "counts": np.array([len(one.outputs) for one in columns], dtype=np.int64),
            "outputs": [output for one in columns for output in one.outputs],
            "numbers": np.array([[one.fill, one.center, one.scale] for one in columns], dtype=np.float64),
            "zones": [one.zone for one in columns],
        }
    }


def check_table_encoder(a: Attributes, model: Any) -> None:
    """Check what was learnt of each column, and make columns of it."""
    from sixfold.data.encoded_column import EncodedColumn

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
        made.append(EncodedColumn(names[j], kinds[j], own, *numbers[j], zones[j]))
    a.values["columns_"] = tuple(made)
    sources = a.array("sources_", "i", (len(outputs),))
    a.require(np.array_equal(sources, np.repeat(np.arange(d), counts)), "sources_", "are not the columns'")
    a.text("dtype_", ("float32", "float64"))
    a.flag("named_")
    model._check_parameters()


def _require_outputs(a: Attributes, kind: str, outputs: tuple[str, ...], one_hot: bool) -> None:
    """Refuse the file unless a column of this kind can be written so: in this order, each part once."""
    from sixfold.data.date_parts import CYCLE
    from sixfold.data.encoded_column import DAYS, MISSING, OTHER

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
