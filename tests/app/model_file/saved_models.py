"""Fitted models of every class that a model file can hold, each with rows to predict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from scipy.stats import loguniform, randint
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    ElasticNet,
    ElasticNetCV,
    ERMClassifier,
    ERMRegressor,
    ExemplarSVC,
    GridSearchCV,
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    LargeMarginNearestNeighbor,
    Lasso,
    LassoCV,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    NearestNeighbors,
    NeighborhoodComponentsAnalysis,
    Nystroem,
    Perceptron,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
    RadiusNeighborsTransformer,
    RandomizedSearchCV,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TableEncoder,
    kernels,
)

ROWS, COLUMNS = 60, 4
QUESTIONS = ("predict", "predict_proba", "decision_function", "transform", "kneighbors", "apply")


def numbers(dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(dtype)


def classes(count: int = 3) -> np.ndarray:
    scores = numbers() @ np.random.default_rng(1).normal(size=(COLUMNS, count))
    scores += 0.7 * np.random.default_rng(2).normal(size=scores.shape)
    return scores.argmax(axis=1)


def words(count: int = 3) -> np.ndarray:
    return np.array(["ä", "longer name", "z"])[classes(count)]


def targets() -> np.ndarray:
    return numbers() @ [1.0, -2.0, 0.0, 0.5] + np.random.default_rng(3).normal(size=ROWS)


def several_targets() -> np.ndarray:
    return np.column_stack([targets(), targets()[::-1], numbers()[:, 0]])


def table() -> pd.DataFrame:
    """Return numbers and categories, some of them missing, in rows with names."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "Größe": numbers()[:, 0],
            "weight": rng.integers(1, 9, ROWS).astype(float),
            "colour": rng.choice(["rot", "blau", "grün"], ROWS),
            "yes or no": rng.choice([True, False], ROWS),
        },
        index=[f"row {i}" for i in range(ROWS)],
    )
    frame.loc["row 3", "weight"] = np.nan
    frame["colour"] = frame["colour"].where(np.arange(ROWS) != 5, None)
    return frame


def encoded() -> ColumnTransformer:
    numeric = Pipeline([("fill", SimpleImputer(add_indicator=True)), ("scale", StandardScaler())])
    rare = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    steps = [("numbers", numeric, ["Größe", "weight"]), ("words", rare, ["colour"])]
    return ColumnTransformer(steps, remainder="passthrough")


def dated() -> pd.DataFrame:
    """Return the table with dates in another column, one of them missing."""
    days = pd.date_range("2023-01-30 13:45", periods=ROWS, freq="35h").to_series(index=table().index)
    return table().assign(when=days.where(np.arange(ROWS) != 7))


def as_csr(X: np.ndarray) -> sp.csr_array:
    return sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))


def fitted(model: Any, X: Any, y: Any, *rest: Any) -> tuple[Any, Any, Any]:
    return model.fit(X, y, *rest), X, y


def in_batches(model: Any, X: Any, y: Any, **first: Any) -> tuple[Any, Any, Any]:
    return model.partial_fit(X[:30], y[:30], **first).partial_fit(X[30:], y[30:]), X, y


def linear() -> dict[str, Callable[[], Any]]:
    X, y, three, two = numbers(), targets(), words(), classes(2)
    weight = np.linspace(0.1, 2.0, ROWS)
    wide = np.random.default_rng(5).normal(size=(12, 30))
    return {
        "least squares": lambda: fitted(LinearRegression(), X, y),
        "least squares, float32": lambda: fitted(LinearRegression(), X.astype(np.float32), y),
        "least squares, several targets": lambda: fitted(LinearRegression(), X, several_targets()),
        "least squares, weights": lambda: fitted(LinearRegression(fit_intercept=False), X, y, weight),
        "least squares, wide": lambda: fitted(LinearRegression(penalty="l2"), wide, wide[:, 0]),
        "least squares in batches": lambda: in_batches(LinearRegression(), X, y),
        "least squares, sparse": lambda: fitted(LinearRegression(), as_csr(X), y),
        "lasso": lambda: fitted(LinearRegression(penalty="l1", alpha=0.1), X, y),
        "positive": lambda: fitted(LinearRegression(positive=True), X, y),
        "frame": lambda: fitted(LinearRegression(), pd.DataFrame(X, columns=list("abcd")), y),
        "logistic": lambda: fitted(LogisticRegression(), X, three),
        "logistic, two classes": lambda: fitted(LogisticRegression(C=np.inf), X, two),
        "logistic, booleans": lambda: fitted(LogisticRegression(penalty="l1"), X, two > 0),
        "logistic, sparse coefficients": lambda: fitted(LogisticRegression(), X, three),
        "logistic, objects": lambda: fitted(
            LogisticRegression(class_weight="balanced"), X, three.astype(object)
        ),
        "logistic, class weights": lambda: fitted(LogisticRegression(class_weight={0: 1.0, 1: 2.5}), X, two),
        "perceptron": lambda: fitted(Perceptron(), X, three),
        "perceptron in batches": lambda: in_batches(Perceptron(average=True), X, two, classes=[0, 1]),
        "linear svm": lambda: fitted(LinearSVC(), X, three),
        "linear svm, hinge": lambda: fitted(LinearSVC(loss="hinge", C=0.3), X, two),
        "sgd": lambda: fitted(SGDClassifier("log_loss"), X, three),
        "sgd in batches": lambda: in_batches(SGDClassifier(average=True), X, two, classes=[0, 1]),
        "sgd regressor": lambda: fitted(SGDRegressor(eta0=1e-3), X, y),
        "erm": lambda: fitted(ERMClassifier(), X, three),
        "erm, softmax of two": lambda: fitted(ERMClassifier("softmax"), X, two),
        "erm in batches": lambda: in_batches(ERMClassifier("hinge"), X, two, classes=[0, 1]),
        "erm regressor": lambda: fitted(ERMRegressor("absolute"), X, y),
        "erm regressor, penalty": lambda: fitted(ERMRegressor(penalty="elasticnet", alpha=0.1), X, y),
        "ridge regression": lambda: fitted(Ridge(2.0, fit_intercept=False), X, y),
        "ridge regression, several penalties": lambda: fitted(
            Ridge(np.array([1.0, 5.0])), X, several_targets()[:, :2]
        ),
        "ridge classifier": lambda: fitted(RidgeClassifier(class_weight="balanced"), X, three),
        "ridge classifier, two classes": lambda: fitted(RidgeClassifier(positive=True), X, two),
        "plain lasso": lambda: fitted(Lasso(0.1), X, y),
        "plain lasso, several targets": lambda: fitted(Lasso(0.1), X, several_targets()),
        "elastic net": lambda: fitted(ElasticNet(0.1, warm_start=True), as_csr(X), y),
        "ridge": lambda: fitted(RidgeCV(store_cv_results=True), X, y),
        "ridge, a penalty a target": lambda: fitted(RidgeCV(alpha_per_target=True), X, several_targets()),
        "ridge, folds": lambda: fitted(RidgeCV(cv=KFold(3)), X, y),
        "lasso path": lambda: fitted(LassoCV(alphas=10, cv=3), X, y),
        "elastic net path": lambda: fitted(ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=5, cv=3), X, y),
        "logistic path": lambda: fitted(LogisticRegressionCV(Cs=3, cv=3), X, three),
        "logistic path, means": lambda: fitted(
            LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, refit=False), X, two
        ),
    }


def svms() -> dict[str, Callable[[], Any]]:
    X, three, two = numbers(), words(), classes(2)
    mixed = 0.5 * kernels.linear + kernels.RBF(sigma=2.0) * kernels.Polynomial(2, 1.0, 1.0)
    gram = X @ X.T
    return {
        "svm": lambda: fitted(SVC(), X, three),
        "svm, two classes": lambda: fitted(SVC(kernel="linear", C=10), X, two),
        "svm, probabilities": lambda: fitted(SVC(probability=True), X, three),
        "svm, polynomial": lambda: fitted(SVC(kernel="poly", coef0=1.0), X, three),
        "svm, sigmoid": lambda: fitted(SVC(kernel="sigmoid", gamma=0.05), X, two),
        "svm, quadratic": lambda: fitted(SVC(kernel="quadratic"), X, two),
        "svm, sum and product": lambda: fitted(SVC(kernel=mixed), X, three),
        "svm, landmarks": lambda: fitted(SVC(rank=20), X, three),
        "svm, landmarks, sparse, float32": lambda: fitted(
            SVC(rank=10, probability=True), as_csr(X).astype(np.float32), two
        ),
        "landmarks": lambda: fitted(Nystroem(n_components=7), X, three),
        "landmarks, sparse": lambda: fitted(Nystroem("laplacian", n_components=7), as_csr(X), three),
        "landmarks, precomputed": lambda: (Nystroem("precomputed", n_components=7).fit(gram), gram, three),
        "svm, precomputed": lambda: (SVC(kernel="precomputed").fit(gram, three), gram, three),
        "svm, against the rest": lambda: fitted(SVC(multi_class="ovr", sigma=1.5), X, three),
        "svm, pairs": lambda: fitted(SVC(decision_function_shape="ovo"), X.astype(np.float32), three),
        "svm, sparse": lambda: fitted(SVC(), as_csr(X), three),
        "exemplars": lambda: fitted(ExemplarSVC(), X, three),
        "exemplars, one class": lambda: fitted(ExemplarSVC(positive=1, calibration=None), X, two),
        "exemplars, kernel": lambda: fitted(ExemplarSVC(kernel="rbf"), X, three),
        "exemplars, sparse": lambda: fitted(ExemplarSVC(kernel="rbf"), as_csr(X), two),
        "svm, frame": lambda: fitted(SVC(), table()[["Größe", "weight"]].fillna(0.0), three),
    }


def trees() -> dict[str, Callable[[], Any]]:
    X, three = numbers(), words()
    return {
        "tree": lambda: fitted(DecisionTreeClassifier(), X, three),
        "tree, pruned": lambda: fitted(
            DecisionTreeClassifier(prune="reduced_error", random_state=0), X, three
        ),
        "tree, cost": lambda: fitted(DecisionTreeClassifier(ccp_alpha=0.02, criterion="gini"), X, three),
        "tree, sparse": lambda: fitted(DecisionTreeClassifier(max_leaf_nodes=6), as_csr(X), three),
        "tree, categories": lambda: fitted(DecisionTreeClassifier(trace=True), table(), three),
        "tree, groups": lambda: fitted(
            DecisionTreeClassifier(categories="binary", unknown="best"), table(), three
        ),
        "tree, drawn columns": lambda: fitted(
            DecisionTreeClassifier(max_features=2, random_state=1), X, three
        ),
        "tree, bytes": lambda: fitted(DecisionTreeClassifier(), (X * 20 + 99).astype(np.uint8), three),
        "tree, best": lambda: fitted(DecisionTreeClassifier(search="optimal"), X, three),
        "tree, best of table": lambda: fitted(
            DecisionTreeClassifier(
                search="optimal", objective="error", leaf_penalty=0.01, max_depth=2, max_leaf_nodes=3
            ),
            table(),
            three,
        ),
        "tree, looking ahead": lambda: fitted(DecisionTreeClassifier(search="lookahead"), X, three),
        "tree, one node": lambda: fitted(DecisionTreeClassifier(), X, np.zeros(ROWS, dtype=int)),
    }


def neighbors() -> dict[str, Callable[[], Any]]:
    X, three, y = numbers(), words(), targets()
    weight = np.where(np.arange(ROWS) % 7 == 0, 0.0, 1.5)
    apart = np.abs(X[:, :1] - X[:, :1].T)
    gaps = np.where(X > 2.0, np.nan, X)
    labels = np.column_stack([three, three[::-1]])
    return {
        "neighbours": lambda: fitted(KNeighborsClassifier(), X, three),
        "neighbours, weights": lambda: fitted(KNeighborsClassifier(3, weights="distance"), X, three, weight),
        "neighbours, tree": lambda: fitted(KNeighborsClassifier(algorithm="kd_tree", leaf_size=3), X, three),
        "neighbours, sparse": lambda: fitted(KNeighborsClassifier(metric="cosine"), as_csr(X), three),
        "neighbours, bytes": lambda: fitted(
            KNeighborsClassifier(metric="manhattan"), (X * 20 + 99).astype(np.uint8), three
        ),
        "neighbours, gower": lambda: fitted(KNeighborsClassifier(metric="gower"), table(), three),
        "neighbours, gaps": lambda: fitted(KNeighborsClassifier(metric="nan_euclidean"), gaps, three),
        "neighbours, given": lambda: (
            KNeighborsClassifier(metric="precomputed").fit(apart, three),
            apart,
            three,
        ),
        "neighbours, mahalanobis": lambda: fitted(KNeighborsClassifier(metric="mahalanobis"), X, three),
        "neighbours, power": lambda: fitted(
            KNeighborsClassifier(p=3, metric_params={"w": np.ones(COLUMNS)}), X, three
        ),
        "neighbours, canberra": lambda: fitted(KNeighborsClassifier(metric="canberra"), X, three),
        "neighbours, columns of labels": lambda: fitted(KNeighborsClassifier(), X, labels),
        "neighbours in batches": lambda: in_batches(KNeighborsClassifier(class_weight="balanced"), X, three),
        "radius, weights": lambda: fitted(
            RadiusNeighborsClassifier(1.5, outlier_label="far"), X, three, weight
        ),
        "radius, columns of labels": lambda: fitted(
            RadiusNeighborsClassifier(2.0, outlier_label="most_frequent", weights="distance"), X, labels
        ),
        "radius, averages": lambda: fitted(RadiusNeighborsRegressor(1.5), X, y),
        "nearest": lambda: fitted(NearestNeighbors(n_neighbors=3), X, None),
        "nearest, graph": lambda: fitted(KNeighborsTransformer(mode="connectivity"), X, None),
        "nearest, graph within a radius": lambda: fitted(RadiusNeighborsTransformer(radius=1.5), X, None),
        "averages": lambda: fitted(KNeighborsRegressor(), X, y),
        "components": lambda: fitted(NeighborhoodComponentsAnalysis(2), X, classes()),
        "components, single precision": lambda: fitted(
            NeighborhoodComponentsAnalysis(init=np.eye(COLUMNS)), numbers(np.float32), words()
        ),
        "large margin": lambda: fitted(LargeMarginNearestNeighbor(2), X, words()),
        "large margin, low rank": lambda: fitted(
            LargeMarginNearestNeighbor(2, n_components=2), numbers(np.float32), classes()
        ),
        "averages, several": lambda: fitted(KNeighborsRegressor(weights="distance"), X, several_targets()),
    }


def composed() -> dict[str, Callable[[], Any]]:
    X, three, y = numbers(), words(), targets()
    folds = StratifiedKFold(3, shuffle=True, random_state=np.random.RandomState(7))
    drawn = {"C": loguniform(0.1, 10), "gamma": [0.1, "scale"]}
    return {
        "pipeline": lambda: fitted(make_pipeline(StandardScaler(), LogisticRegression()), X, three),
        "pipeline, table": lambda: fitted(
            Pipeline([("columns", encoded()), ("learner", SVC())]), table(), three
        ),
        "pipeline, neighbours": lambda: fitted(
            make_pipeline(encoded(), KNeighborsClassifier()), table(), three
        ),
        "pipeline, other scalers": lambda: fitted(
            make_pipeline(
                RobustScaler(), MinMaxScaler(), MaxAbsScaler(), Normalizer(), PolynomialFeatures(2), RidgeCV()
            ),
            X,
            y,
        ),
        "pipeline, codes": lambda: fitted(
            make_pipeline(
                SimpleImputer(strategy="most_frequent"),
                OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                DecisionTreeClassifier(),
            ),
            table().astype(object).where(table().notna(), None).fillna(np.nan),
            three,
        ),
        "encoder": lambda: fitted(make_pipeline(TableEncoder(), LogisticRegression()), dated(), three),
        "encoder, tree": lambda: fitted(
            make_pipeline(TableEncoder(categories="keep"), DecisionTreeClassifier()), dated(), three
        ),
        "encoder, neighbours": lambda: fitted(
            make_pipeline(TableEncoder(categories="keep"), KNeighborsClassifier(metric="gower")),
            dated(),
            three,
        ),
        "encoder, sparse": lambda: fitted(make_pipeline(TableEncoder(), LinearSVC()), as_csr(X), three),
        "encoder, polars": lambda: fitted(
            make_pipeline(TableEncoder(leave_out=["weight"], max_categories=2), KNeighborsRegressor()),
            pl.from_pandas(dated()),
            y,
        ),
        "encoder, thousand columns": lambda: fitted(
            make_pipeline(TableEncoder(), RidgeCV()), np.random.default_rng(6).normal(size=(20, 1000)), y[:20]
        ),
        "grid": lambda: fitted(GridSearchCV(KNeighborsClassifier(), {"n_neighbors": range(1, 5)}), X, three),
        "grid, pipeline": lambda: fitted(
            GridSearchCV(
                Pipeline([("columns", encoded()), ("learner", LogisticRegression())]),
                {"learner__C": [0.1, 1.0]},
                cv=folds,
                scoring="balanced_accuracy",
                rule="1se",
            ),
            table(),
            three,
        ),
        "grid, several metrics": lambda: fitted(
            GridSearchCV(
                DecisionTreeClassifier(),
                [{"max_depth": [1, 2]}, {"criterion": ["gini"]}],
                cv=3,
                scoring=["accuracy", "neg_log_loss"],
                refit="accuracy",
                return_train_score=True,
            ),
            X,
            three,
        ),
        "grid, regression": lambda: fitted(
            GridSearchCV(LinearRegression(penalty="l2"), {"alpha": np.logspace(-3, 1, 4)}, nested=3), X, y
        ),
        "random": lambda: fitted(RandomizedSearchCV(SVC(), drawn, n_iter=4, random_state=0, cv=3), X, three),
        "random, depths": lambda: fitted(
            RandomizedSearchCV(
                DecisionTreeClassifier(), {"max_depth": randint(1, 9)}, n_iter=3, random_state=0, cv=3
            ),
            X,
            three,
        ),
        "pipeline, selected columns": lambda: fitted(
            make_pipeline(
                ColumnTransformer(
                    [
                        ("numbers", StandardScaler(), make_column_selector(dtype_include="number")),
                        ("words", OneHotEncoder(drop="first"), ["yes or no"]),
                    ]
                ),
                "passthrough",
                LinearSVC(),
            ),
            table().dropna(),
            three[table().notna().all(axis=1)],
        ),
        "labels": lambda: (LabelEncoder().fit(three), three, three),
        "dummy": lambda: fitted(DummyClassifier(), X, three),
        "dummy regressor": lambda: fitted(DummyRegressor(strategy="median"), X, y),
    }


@cache
def cases() -> dict[str, Callable[[], Any]]:
    return {**linear(), **svms(), **trees(), **neighbors(), **composed()}


NAMES = list(cases())


@cache
def case(name: str) -> tuple[Any, Any, Any]:
    """Return a fitted model with the table and targets that it was fitted to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, X, y = cases()[name]()
    if name == "logistic, sparse coefficients":
        model.sparsify()
    return model, X, y


def answers(model: Any, X: Any) -> dict[str, Any]:
    """Return everything that the model says about the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: getattr(model, name)(X) for name in QUESTIONS if hasattr(model, name)}


def same(left: Any, right: Any) -> bool:
    """Return whether two answers are the same to the last bit, types included."""
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if sp.issparse(left):
        return same(left.toarray(), right.toarray())
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return bool((left == right).all()) if left.dtype == object else left.tobytes() == right.tobytes()
