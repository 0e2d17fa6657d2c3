"""Values come back as they were: type by type, bit by bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sixfold.app.model_file.classes import BUILDERS, describe
from sixfold.app.model_file.container import canonical
from sixfold.app.model_file.decode import Decoder
from sixfold.app.model_file.encode import Encoder
from sixfold.errors import ModelFileError


def there_and_back(value: Any) -> Any:
    encoder = Encoder(describe)
    node = encoder.node(value, "value")
    decoder = Decoder(encoder.arrays, BUILDERS)
    result = decoder.value(json.loads(canonical(node)), "value")
    assert decoder.used == encoder.arrays.keys()
    return result


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are of one type and the same, NaN included."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return equal(list(left.items()), list(right.items()))
    if isinstance(left, np.ndarray) and left.dtype == object:
        return left.shape == getattr(right, "shape", ()) and equal(
            left.ravel().tolist(), right.ravel().tolist()
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, float | np.floating | np.ndarray):
        left, right = np.asarray(left), np.asarray(right)
        both = left.dtype == right.dtype and left.shape == right.shape
        return both and (
            left.tobytes() == right.tobytes() or bool(np.isnan(left).all() and np.isnan(right).all())
        )
    return bool(left == right)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**50), 10**50)
    | st.floats()
    | st.text()
    | hnp.array_shapes().flatmap(lambda _: st.floats(width=32)).map(np.float32)
    | st.integers(0, 255).map(np.uint8)
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.booleans().map(np.bool_)
    | st.text().map(np.str_)
)
numeric = st.sampled_from(
    ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]
)
arrays = numeric.flatmap(lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=0, min_side=0, max_side=4)))
texts = hnp.arrays(object, hnp.array_shapes(min_side=0, max_side=4), elements=st.text())
mixed = hnp.arrays(
    object, hnp.array_shapes(max_side=3), elements=st.none() | st.text() | st.integers() | st.floats()
)
keys = st.text() | st.integers() | st.booleans() | st.tuples(st.text(), st.integers())
values = st.recursive(
    scalars | arrays | texts | mixed,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=120, deadline=None)
@given(values)
def test_values_come_back(value: Any) -> None:
    assert equal(there_and_back(value), value)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(), min_size=16, max_size=40) | st.lists(st.floats(), min_size=16, max_size=40)
       | st.lists(st.integers(-(2**65), 2**65), min_size=16, max_size=40))  # fmt: skip
def test_long_lists_come_back(value: Any) -> None:
    assert equal(there_and_back(value), value)
    assert equal(there_and_back(tuple(value)), tuple(value))


@pytest.mark.parametrize(
    "value",
    [
        range(1, 31),
        slice(None, 3),
        {1, 2, 3},
        np.float64,
        float,
        np.dtype("float32"),
        np.array(["a", "bb", "é\U0001f600"]),
        np.array([["x", ""], ["\ud800", "yy"]]),
        np.array(["2024-01-02", "NaT"], dtype="datetime64[ns]"),
        np.timedelta64(5, "D"),
        np.datetime64("2024-01-02T03:04:05", "ms"),
    ],
    ids=repr,
)
def test_other_values_come_back(value: Any) -> None:
    again = there_and_back(value)
    assert type(again) is type(value)
    assert np.array_equal(again, value) if isinstance(value, np.ndarray) and value.dtype.kind == "U" else True
    if isinstance(value, np.ndarray):
        assert (again.dtype, again.tobytes()) == (value.dtype, value.tobytes())
    else:
        assert again == value


def test_layouts_are_kept() -> None:
    rows, columns = np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for value in (rows, columns, rows.T, rows[:, ::2]):
        again = there_and_back(value)
        assert np.array_equal(again, value)
        assert again.flags.writeable
        assert again.flags.f_contiguous == (value.flags.f_contiguous or value.size < 2)


def test_an_index_of_pandas_becomes_an_array() -> None:
    assert there_and_back(pd.Index(["a", "b"])).tolist() == ["a", "b"]


def test_every_array_belongs_to_one_value() -> None:
    """Were it otherwise, a file of a thousand values that share one array would ask for a thousand of it."""
    one = np.arange(5)
    encoder = Encoder(describe)
    assert len(encoder.node([one, {"again": one}], "value")) == 2
    assert len(encoder.arrays) == 2
    first = {"array": ["a", "C", "float64"]}
    for again in (first, {"list": first}, {"tuple": first}):
        with pytest.raises(ModelFileError, match="belongs to another value"):
            Decoder({"a": np.arange(3.0)}, BUILDERS).value([first, again], "value")


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix])
def test_sparse_matrices_come_back(kind: Any) -> None:
    value = kind(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, -0.0]]))
    again = there_and_back(value)
    assert type(again) is kind
    assert np.array_equal(again.toarray(), value.toarray())


def test_masked_arrays_and_generators_come_back() -> None:
    masked = np.ma.MaskedArray([1.5, 2.5], mask=[True, False], fill_value=7.0)
    again = there_and_back(masked)
    assert again.fill_value == 7.0
    assert again.mask.tolist() == [True, False]
    assert np.array_equal(there_and_back(np.random.RandomState(3)).rand(5), np.random.RandomState(3).rand(5))
    drawn = [there_and_back(np.random.default_rng(3)).random(5), np.random.default_rng(3).random(5)]
    assert np.array_equal(*drawn)


@pytest.mark.parametrize("value", [abs, lambda x: x, 1j, b"bytes", np.longdouble(1), object(), Ellipsis])
def test_what_cannot_be_saved_is_named(value: Any) -> None:
    with pytest.raises(ModelFileError, match=r"metric is .* a model file cannot hold\. .*pickle"):
        Encoder(describe).node(value, "metric")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ({"float": "1e5"}, "is no number"),
        ({"nonsense": 1}, "is of no kind"),
        ({"a": 1, "b": 2}, "is of no kind"),
        ({"dict": [["a", 1], ["a", 2]]}, "has a key twice"),
        ({"dict": [[[], 1]]}, "as a key"),
        ({"range": [0, 1, 0]}, "is no range"),
        ({"scalar": ["int8", 300]}, "is no int8"),
        ({"scalar": ["complex128", 1]}, "is of no type"),
        ({"type": "os.system"}, "is of no type"),
        ({"array": ["b", "C", "float64"]}, "does not have"),
        ({"array": ["a", "C", "float32"]}, "is stored as float64"),
        ({"array": ["a", "C", "text"]}, "is no array of text"),
        ({"objects": [[2, 2], [1]]}, "another number of entries"),
        ({"objects": [[0, 2**40], []]}, "is no array of objects"),
        ({"words": [[3], "a", "a"]}, "belongs to another value"),
        ({"sparse": ["csr_array", [1, 3], {"array": ["a", "C", "float64"]}, [], []]}, "is no sparse matrix"),
        ({"sparse": ["bsr_array", [1, 3], 0, 0, 0]}, "is of no type"),
        ({"model": ["os.system", {}, {}]}, "cannot load"),
        ({"part": ["os.system", []]}, "is no part of a model"),
        ({"part": ["RBF", [None, None]]}, "cannot be"),
        ({"part": ["Polynomial", ["3", 1.0, 0.0]]}, "is of type str"),
        ([[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],
         "is nested too deeply"),
    ],
)  # fmt: skip
def test_what_a_file_may_not_hold(node: Any, reason: str) -> None:
    with pytest.raises(ModelFileError, match=reason):
        Decoder({"a": np.arange(3.0)}, BUILDERS).value(node, "value")


@pytest.mark.parametrize(
    ("data", "indices", "starts", "shape"),
    [
        ([1.0], [3], [0, 1], [1, 3]),  # beyond the columns
        ([1.0], [-1], [0, 1], [1, 3]),
        ([1.0], [0], [0, 2], [1, 3]),  # beyond the values
        ([1.0, 2.0], [0, 1], [0, 2, 1, 2], [3, 3]),  # backwards
        ([1.0], [0], [1, 1], [1, 3]),
        ([1.0], [0], [0, 1], [2, 3]),
        ([1.0], [0], [0, 1], [1, 2**40]),
    ],
)
def test_sparse_matrices_stay_inside(data: Any, indices: Any, starts: Any, shape: Any) -> None:
    parts = {"d": np.array(data), "i": np.array(indices, np.int32), "s": np.array(starts, np.int32)}
    node = {"sparse": ["csr_array", shape, *({"array": [n, "C", p.dtype.name]} for n, p in parts.items())]}
    with pytest.raises(ModelFileError, match="sparse matrix"):
        Decoder(parts, BUILDERS).value(node, "value")


def test_truth_values_are_0_or_1() -> None:
    stored = np.array([0, 1, 2], dtype=np.uint8).view(bool)
    with pytest.raises(ModelFileError, match="neither 0 nor 1"):
        Decoder({"a": stored}, BUILDERS).value({"array": ["a", "C", "bool"]}, "value")
