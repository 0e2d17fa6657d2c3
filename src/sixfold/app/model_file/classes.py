"""The classes that a model file can hold, and how their objects are taken apart and put together again.

A model is stored as the name of its class, its parameters and its fitted attributes. The names lead to
classes by the table :data:`CLASSES` and by nothing else. To put a model together nothing of it is run: the
class is called with its parameters, which every estimator only keeps, and the attributes are set after the
check of the class has taken each of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sixfold.app.model_file import landmark_checks as landmarks
from sixfold.app.model_file import learner_checks as learners
from sixfold.app.model_file import search_checks as searches
from sixfold.app.model_file import transformer_checks as transformers
from sixfold.app.model_file.attributes import Attributes
from sixfold.app.model_file.decode import Decoder
from sixfold.app.model_file.encode import Encoder
from sixfold.app.model_file.parts import build_part, describe_part, without_date
from sixfold.app.model_file.values import refuse
from sixfold.errors import ModelFileError

FORGOTTEN = {"callback", "callbacks"}  # parameters that speak of the fit alone
DROPPED = {"_skl_callbacks"}
MOST_JOBS = 1024
OUTPUTS = ("default", "pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Loadable:
    """A class that a model file can hold.

    Attributes
    ----------
    home : str
        Its module.
    check : callable
        Takes the fitted attributes, each after a check.
    keep : callable
        Returns the attributes as they are stored.
    """

    home: str
    check: Callable[[Attributes, Any], Any]
    keep: Callable[[dict[str, Any]], dict[str, Any]] = dict


CLASSES: dict[str, Loadable] = {
    "DecisionTreeClassifier": Loadable("sixfold.learners.trees.decision_tree", learners.check_decision_tree),
    "ERMClassifier": Loadable("sixfold.learners.linear.erm", learners.check_erm_classifier),
    "ERMRegressor": Loadable("sixfold.learners.linear.erm", learners.check_regressor),
    "ElasticNet": Loadable("sixfold.learners.linear.lasso", learners.check_lasso),
    "ElasticNetCV": Loadable("sixfold.selection.lasso_cv", learners.check_lasso_cv),
    "ExemplarSVC": Loadable("sixfold.learners.svm.exemplar_svc", learners.check_exemplar_svc),
    "GridSearchCV": Loadable("sixfold.selection.grid_search", searches.check_search, searches.keep_search),
    "KNeighborsClassifier": Loadable(
        "sixfold.learners.neighbors.k_neighbors", learners.check_neighbors_classifier
    ),
    "KNeighborsRegressor": Loadable(
        "sixfold.learners.neighbors.k_neighbors", learners.check_neighbors_regressor
    ),
    "LargeMarginNearestNeighbor": Loadable(
        "sixfold.learners.metric_learning.lmnn", learners.check_large_margin
    ),
    "Lasso": Loadable("sixfold.learners.linear.lasso", learners.check_lasso),
    "KNeighborsTransformer": Loadable("sixfold.learners.neighbors.transformers", learners.check_neighbors),
    "LassoCV": Loadable("sixfold.selection.lasso_cv", learners.check_lasso_cv),
    "LinearRegression": Loadable("sixfold.learners.linear.linear_regression", learners.check_regressor),
    "LinearSVC": Loadable("sixfold.learners.svm.linear_svc", learners.check_linear_svc),
    "LogisticRegression": Loadable("sixfold.learners.linear.logistic_regression", learners.check_logistic),
    "LogisticRegressionCV": Loadable("sixfold.selection.logistic_cv", learners.check_logistic_cv),
    "NearestNeighbors": Loadable("sixfold.learners.neighbors.nearest_neighbors", learners.check_neighbors),
    "NeighborhoodComponentsAnalysis": Loadable(
        "sixfold.learners.metric_learning.nca", learners.check_learned_map
    ),
    "Nystroem": Loadable("sixfold.learners.svm.nystroem", landmarks.check_nystroem),
    "Perceptron": Loadable("sixfold.learners.linear.perceptron", learners.check_perceptron),
    "RadiusNeighborsClassifier": Loadable(
        "sixfold.learners.neighbors.radius_neighbors", learners.check_radius_classifier
    ),
    "RadiusNeighborsRegressor": Loadable(
        "sixfold.learners.neighbors.radius_neighbors", learners.check_neighbors_regressor
    ),
    "RadiusNeighborsTransformer": Loadable(
        "sixfold.learners.neighbors.transformers", learners.check_neighbors
    ),
    "RandomizedSearchCV": Loadable(
        "sixfold.selection.grid_search", searches.check_search, searches.keep_search
    ),
    "Ridge": Loadable("sixfold.learners.linear.ridge", learners.check_regressor),
    "RidgeCV": Loadable("sixfold.selection.ridge_cv", learners.check_ridge_cv),
    "RidgeClassifier": Loadable("sixfold.learners.linear.ridge", learners.check_classifier),
    "SGDClassifier": Loadable("sixfold.learners.linear.sgd", learners.check_sgd_classifier),
    "SGDRegressor": Loadable("sixfold.learners.linear.sgd", learners.check_sgd_regressor),
    "SVC": Loadable("sixfold.learners.svm.svc", landmarks.check_svc_with_rank),
    "ColumnTransformer": Loadable("sklearn.compose", transformers.check_column_transformer),
    "DummyClassifier": Loadable("sklearn.dummy", transformers.check_dummy_classifier),
    "DummyRegressor": Loadable("sklearn.dummy", transformers.check_dummy_regressor),
    "FunctionTransformer": Loadable("sklearn.preprocessing", transformers.check_function),
    "LabelEncoder": Loadable("sklearn.preprocessing", transformers.check_label_encoder),
    "MaxAbsScaler": Loadable("sklearn.preprocessing", transformers.check_max_abs_scaler),
    "MinMaxScaler": Loadable("sklearn.preprocessing", transformers.check_min_max_scaler),
    "MissingIndicator": Loadable("sklearn.impute", transformers.check_indicator),
    "Normalizer": Loadable("sklearn.preprocessing", transformers.check_columns_only),
    "OneHotEncoder": Loadable("sklearn.preprocessing", transformers.check_encoder),
    "OrdinalEncoder": Loadable("sklearn.preprocessing", transformers.check_encoder),
    "Pipeline": Loadable("sklearn.pipeline", transformers.check_pipeline),
    "PolynomialFeatures": Loadable("sklearn.preprocessing", transformers.check_polynomial),
    "RobustScaler": Loadable("sklearn.preprocessing", transformers.check_robust_scaler),
    "SimpleImputer": Loadable("sklearn.impute", transformers.check_imputer),
    "StandardScaler": Loadable("sklearn.preprocessing", transformers.check_standard_scaler),
    "TableEncoder": Loadable(
        "sixfold.data.encoder.table_encoder",
        transformers.check_table_encoder,
        transformers.keep_table_encoder,
    ),
}


def class_of(name: str) -> Any:
    """Return the class of a name in the table."""
    return getattr(importlib.import_module(CLASSES[name].home), name)


# -- taking apart ------------------------------------------------------------------------------------------


def describe(value: Any, where: str, encoder: Encoder) -> Any:
    """Return JSON for a model or a part of one; None for what is neither."""
    kind = type(value)
    name = kind.__name__
    if name not in CLASSES or kind is not class_of(name):
        if isinstance(value, BaseEstimator):
            known = name in CLASSES and CLASSES[name].home.startswith("sixfold.")
            ours = f" Fit sixfold.{name} in its place." if known else ""
            raise ModelFileError(
                f"{where or 'The model'} is a {kind.__module__}.{name}, which a model file cannot hold: it "
                f"is none of {', '.join(sorted(CLASSES))}.{ours} Or use pickle, which whoever loads it has "
                "to trust."
            )
        return describe_part(value, where, encoder)
    parameters = value.get_params(deep=False)
    fitted = {
        name: one for name, one in vars(value).items() if name not in parameters | dict.fromkeys(DROPPED)
    }
    parameters |= dict.fromkeys(FORGOTTEN & parameters.keys())
    kept = CLASSES[name].keep(_plain_attributes(value, fitted))
    prefix = f"{where}." if where else ""
    return {
        "model": [
            name,
            {key: encoder.node(one, f"{prefix}{key}") for key, one in sorted(parameters.items())},
            {key: encoder.node(one, f"{prefix}{key}") for key, one in sorted(kept.items())},
        ]
    }


def _plain_attributes(model: Any, fitted: dict[str, Any]) -> dict[str, Any]:
    """Return fitted attributes without dates, durations and functions; names of rows are text or numbers."""
    kept = dict(fitted)
    if "_fitted_to" in kept:
        kept["_fitted_to"] = without_date(model._subject)
    if "_fit_parameters" in kept:
        known = kept["_fit_parameters"]
        kept["_fit_parameters"] = known | dict.fromkeys(FORGOTTEN & known.keys())
    if type(kept.get("history_")) is list:
        # iteration, objective, gap: what took how long is not kept
        rows = [(one.iteration, one.objective, one.gap) for one in kept["history_"]]
        kept["history_"] = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    index = kept.get("_row_index")
    if isinstance(index, np.ndarray):
        plain = (str, int, float, bool)
        kept["_row_index"] = np.array(
            [one if type(one) in plain else str(one) for one in index], dtype=object
        )
    return kept


# -- putting together --------------------------------------------------------------------------------------


def build_model(given: Any, where: str, decoder: Decoder) -> Any:
    """Return the model that JSON describes, after checking it."""
    if type(given) is not list or len(given) != 3 or type(given[0]) is not str:
        refuse(where or "the model", "is no class with its parameters and attributes")
    name, parameters, fitted = given
    if name not in CLASSES:
        raise ModelFileError(
            f"The model file holds a {name[:80]!r}, which this version of sixfold cannot load: it is none of "
            f"{', '.join(sorted(CLASSES))}. Upgrade sixfold if a newer one has written the file."
        )
    place = where or name
    if type(parameters) is not dict or type(fitted) is not dict:
        refuse(place, "has no parameters and attributes")
    model = _unfitted(
        name, {key: decoder.value(one, f"{place}.{key}") for key, one in parameters.items()}, place
    )
    values = {key: decoder.value(one, f"{place}.{key}") for key, one in fitted.items()}
    if not values and name != "Pipeline":
        return model
    attributes = Attributes(values, place)
    _check_output(attributes)
    try:
        if hasattr(model, "_parameter_constraints"):  # of scikit-learn
            model._validate_params()
        CLASSES[name].check(attributes, model)
    except ModelFileError:
        raise
    except ValueError as error:  # ours or scikit-learn's
        refuse(place, f"has a parameter that it cannot have: {error!s:.300}")
    attributes.rest()
    _records(values)
    model.__dict__.update(values)
    return model


def _unfitted(name: str, parameters: dict[str, Any], where: str) -> Any:
    """Return a model with these parameters; those that are not there have their defaults."""
    kind = class_of(name)
    unknown = parameters.keys() - set(kind._get_param_names())
    if unknown:
        refuse(where, f"has a parameter {min(unknown)[:60]!r}, which this version does not know")
    for key in FORGOTTEN & parameters.keys():
        if parameters[key] is not None:
            refuse(f"{where}.{key}", "is not None")
    jobs = parameters.get("n_jobs")
    if jobs is not None and (type(jobs) not in (int, np.int64) or not -MOST_JOBS <= jobs <= MOST_JOBS):
        refuse(f"{where}.n_jobs", f"is {jobs!r:.40}, which is no number of threads")
    try:
        return kind(**parameters)
    except (TypeError, ValueError) as error:
        refuse(where, f"cannot be made with these parameters: {error!s:.200}")


def _check_output(a: Attributes) -> None:
    """Check what kind of table transformers return."""
    config = a.take("_sklearn_output_config", dict, optional=True)
    good = config is None or (set(config) == {"transform"} and config["transform"] in OUTPUTS)
    a.require(good, "_sklearn_output_config", "is no kind of table")


def _records(values: dict[str, Any]) -> None:
    """Make records of the numbers of each iteration."""
    history = values.get("history_")
    if isinstance(history, np.ndarray):
        from sixfold.budget import Record

        values["history_"] = [Record(int(one[0]), 0.0, float(one[1]), float(one[2])) for one in history]


BUILDERS: dict[str, Callable[[Any, str, Decoder], Any]] = {"model": build_model, "part": build_part}
