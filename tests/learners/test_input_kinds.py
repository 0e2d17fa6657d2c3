"""One fit, whatever the table comes as: frames, lists, any number type, any memory order, dense or sparse."""

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from contracts.certified import answers, fits, learnt
from sixfold.errors import StoppedEarly
from sixfold.learners.registry import LEARNERS
from sixfold.solvers.registry import all_solvers

NAMES = ["age", "height", "weight", "pulse"]
RNG = np.random.default_rng(0)
# Quarters, which every number type here but the integers holds exactly.
X = RNG.integers(-12, 13, size=(40, 4)) / 4.0
Y = RNG.integers(-20, 21, size=40) / 4.0
WHOLE = RNG.integers(0, 2, size=(40, 4))

LABELS = (Y + X[:, 0] > 0).astype(float)

every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
PREDICTORS = [learner for learner in LEARNERS if learner.task != "search"]


def target(learner):
    """Return what the learner predicts: numbers, or classes that are numbers too."""
    return Y if learner.task == "regression" else LABELS


def non_contiguous(values):
    wide = np.full((2 * values.shape[0], 3 * values.shape[1]), np.nan)
    wide[::2, ::3] = values
    return wide[::2, ::3]


def negative_strides(values):
    return np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1]


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def long_indices(values):
    matrix = sp.csr_array(values)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def unsorted(values):
    """Return a CSR array whose rows list their columns backwards, with each value split in two."""
    columns = np.repeat(np.arange(values.shape[1])[::-1], 2)
    data = np.repeat(values[:, ::-1] / 2, 2, axis=1)
    starts = np.arange(values.shape[0] + 1) * columns.size
    return sp.csr_array((data.ravel(), np.tile(columns, values.shape[0]), starts), shape=values.shape)


def mixed_frame(values):
    """Return a frame whose columns differ in type though not in value."""
    frame = pd.DataFrame(values, columns=NAMES)
    return frame.astype({"age": np.float32, "height": "Float64", "weight": "float64[pyarrow]"})


ARRAYS = {
    "lists": np.ndarray.tolist,
    "tuples": lambda values: tuple(map(tuple, values.tolist())),
    "objects": lambda values: values.astype(object),
    "text": lambda values: values.astype(str),
    "fortran": np.asfortranarray,
    "non-contiguous": non_contiguous,
    "negative strides": negative_strides,
    "read-only": read_only,
    "float16": lambda values: values.astype(np.float16),
    "longdouble": lambda values: values.astype(np.longdouble),
    "big-endian": lambda values: values.astype(">f8"),
    "csr matrix": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "csc array": sp.csc_array,
    "coo matrix": sp.coo_matrix,
    "coo array": sp.coo_array,
    "lil array": sp.lil_array,
    "csr array, int64 indices": long_indices,
    "csr array, unsorted": unsorted,
}
FRAMES = {
    "pandas": lambda values: pd.DataFrame(values, columns=NAMES),
    "pandas, odd index": lambda values: pd.DataFrame(
        values, columns=NAMES, index=np.arange(len(values))[::-1]
    ),
    "pandas, mixed types": mixed_frame,
    "polars": lambda values: pl.DataFrame(values, schema=NAMES),
    "polars, lazy": lambda values: pl.LazyFrame(values, schema=NAMES),
    "arrow": lambda values: pa.table(dict(zip(NAMES, values.T, strict=True))),
    "arrow, chunked": lambda values: pa.concat_tables(
        [pa.table(dict(zip(NAMES, part.T, strict=True))) for part in (values[:7], values[7:])]
    ),
}


@every_learner
@pytest.mark.parametrize("kind", [*ARRAYS.items(), *FRAMES.items()], ids=lambda kind: kind[0])
def test_every_kind_of_table_gives_the_fit_of_the_plain_array(learner, kind):
    name, make = kind
    if name == "text" and learner.hypothesis == "tree":
        return  # for which text is categories
    plain = learner.make().fit(X, target(learner))
    model = learner.make().fit(make(X), target(learner))
    for here, there in zip(learnt(model, make(X)), learnt(plain, X), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(answers(model, make(X)), answers(plain, X), rtol=1e-7, atol=1e-9)
    assert learnt(model, make(X))[0].dtype == np.float64
    model.certificate_.verify(make(X), target(learner))
    if name in FRAMES:
        assert model.feature_names_in_.tolist() == NAMES
        assert model.n_features_in_ == 4
    else:
        assert not hasattr(model, "feature_names_in_")


@every_learner
@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.int32, np.int64, np.uint64], ids=lambda dtype: np.dtype(dtype).name
)
@pytest.mark.parametrize(
    "kind", [np.asarray, FRAMES["pandas"], FRAMES["polars"], FRAMES["arrow"], sp.csr_array]
)
def test_whole_numbers_and_booleans_become_float64(learner, dtype, kind):
    table = kind(WHOLE.astype(dtype))
    model = learner.make().fit(table, target(learner))
    plain = learner.make().fit(WHOLE.astype(float), target(learner))
    for here, there in zip(learnt(model, table), learnt(plain, WHOLE.astype(float)), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-7, atol=1e-12)
    assert learnt(model, table)[0].dtype == np.float64


@pytest.mark.parametrize("learner", PREDICTORS, ids=lambda learner: learner.name)
@pytest.mark.parametrize(
    "make",
    [
        list,
        np.float32,
        pd.Series,
        pl.Series,
        pa.array,
        lambda y: pa.chunked_array([y[:7], y[7:]]),
        lambda y: y.astype(object),
        lambda y: np.repeat(y, 3)[::3],
        read_only,
    ],
)
def test_every_kind_of_target_and_weight_gives_the_same_fit(learner, make):
    weight = np.arange(40) / 4.0
    plain = learner.make().fit(X, target(learner), sample_weight=weight)
    model = learner.make().fit(X, make(target(learner)), sample_weight=make(weight))
    for here, there in zip(learnt(model, X), learnt(plain, X), strict=True):
        np.testing.assert_array_equal(here, there)
    assert model.predict(X).shape == (40,)


def settings():
    """Go through the solvers, each with every learner that has a loss and a penalty for it."""
    for learner in PREDICTORS:
        losses = {"regression": ("squared", "absolute"), "classification": ("squared", "hinge", "softmax")}
        names = losses[learner.task] if "loss" in learner.make().get_params() else (None,)
        if not {"alpha", "solver"} <= learner.make().get_params().keys():
            continue  # the named classifiers are the recipe with other names
        for solver in all_solvers():
            for loss, penalty in itertools.product(names, ("l2", "l1", None)):
                parameters = {"penalty": penalty, "alpha": 0.01, "solver": solver.name, "max_iter": 20}
                parameters |= {"loss": loss} if loss else {}
                if fits(solver, learner.make(**parameters)._problem(1.0)):
                    yield pytest.param(
                        learner, parameters, id=f"{learner.name}-{solver.name}-{loss}-{penalty}"
                    )
                    break


@pytest.mark.parametrize(("learner", "parameters"), list(settings()))
@pytest.mark.parametrize(
    "kind", [np.asarray, np.asfortranarray, sp.csr_array, FRAMES["pandas"], FRAMES["polars"]]
)
def test_single_precision_stays_single_precision(learner, kind, parameters):
    table, y = kind(X.astype(np.float32)), target(learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model = learner.make(**parameters).fit(table, y)
        double = learner.make(**parameters).fit(kind(X), y)
    assert model.coef_.dtype == np.float32
    assert np.asarray(model.intercept_).dtype == np.float32
    if learner.task == "regression":
        assert model.predict(table).dtype == np.float32
    else:
        assert model.decision_function(table).dtype == np.float32
    model.certificate_.verify(table, y)
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-3, atol=1e-3)


def contents(table):
    """Return the arrays behind a table."""
    if sp.issparse(table):
        return [table.data, *(getattr(table, name) for name in ("indices", "indptr") if hasattr(table, name))]
    return [table]


@pytest.mark.parametrize(
    "kind", [np.asarray, np.asfortranarray, non_contiguous, sp.csr_array, sp.csc_array, unsorted]
)
@pytest.mark.parametrize(
    ("learner", "parameters"),
    [
        pytest.param(learner, parameters, id=f"{learner.name}-{parameters}")
        for learner in PREDICTORS
        for parameters in ({}, {"penalty": "l2"}, {"fit_intercept": False}, {"metric": "cosine"})
        if parameters.keys() <= learner.make().get_params().keys()
    ],
)
def test_what_was_passed_is_never_written_to(learner, kind, parameters):
    table, y, weight = kind(X), target(learner).copy(), np.arange(1.0, 41.0)
    before = [part.copy() for part in (*contents(table), y, weight)]
    model = learner.make(**parameters)
    if "copy_X" in model.get_params():
        model.set_params(copy_X=False)  # scikit-learn's leave to overwrite X is not made use of
    model.fit(table, y, sample_weight=weight).predict(table)
    for was, now in zip(before, (*contents(table), y, weight), strict=True):
        np.testing.assert_array_equal(was, now)
