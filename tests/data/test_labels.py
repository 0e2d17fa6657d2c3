"""Labels of any kind become classes in order and a class number a row; class weights multiply."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from sixfold import ERMClassifier
from sixfold.data.labels import MOST_CLASSES, check_classes, check_labelled, signs
from sixfold.errors import InputError

TEXT = ["b", "a", "a", "c", "b", "a"]
WHOLE = [3, -1, -1, 70, 3, -1]
INDEX = [1, 0, 0, 2, 1, 0]


def labelled(y, weight=None, **options):
    return check_labelled(ERMClassifier(), np.zeros((len(y), 1)), y, weight, **options)


KINDS = {
    "list": TEXT,
    "tuple": tuple(TEXT),
    "array": np.array(TEXT),
    "bytes": np.array(TEXT, dtype="S"),
    "objects": np.array(TEXT, dtype=object),
    "string objects": np.array(TEXT, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series(TEXT),
    "pandas strings": pd.Series(TEXT, dtype="string"),
    "pandas index": pd.Index(TEXT),
    "pandas category": pd.Series(TEXT, dtype="category"),
    "pandas category, other order": pd.Series(pd.Categorical(TEXT, ["c", "b", "a"], ordered=True)),
    "pandas category, unused": pd.Categorical(TEXT, ["a", "b", "c", "d"]),
    "polars": pl.Series(TEXT),
    "polars category": pl.Series(TEXT, dtype=pl.Categorical),
    "polars enum": pl.Series(TEXT, dtype=pl.Enum(["c", "b", "a", "d"])),
    "arrow": pa.array(TEXT),
    "arrow chunks": pa.chunked_array([TEXT[:2], TEXT[2:]]),
    "arrow dictionary": pa.array(TEXT).dictionary_encode(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_every_kind_is_put_in_order(kind):
    data = labelled(KINDS[kind])
    expected = [label.encode() for label in "abc"] if kind == "bytes" else ["a", "b", "c"]
    assert data.classes.tolist() == expected
    assert data.index.tolist() == INDEX


@pytest.mark.parametrize(
    "y",
    [
        WHOLE,
        np.array(WHOLE, dtype=np.int8),
        np.array(WHOLE, dtype=np.float32),
        np.array(WHOLE, dtype=np.float16),
        np.array(WHOLE, dtype=object),
        np.array(WHOLE, dtype=np.int64)[::-1][::-1],
        pd.Series(WHOLE, dtype="Int64"),
        pd.Series(WHOLE, dtype="category"),
        pl.Series(WHOLE),
        pa.array(WHOLE),
    ],
    ids=lambda y: f"{type(y).__name__} {getattr(y, 'dtype', '')}",
)
def test_whole_numbers_of_every_kind_are_put_in_order(y):
    data = labelled(y)
    assert data.classes.tolist() == [-1, 3, 70]
    assert data.index.tolist() == INDEX


@pytest.mark.parametrize("kind", [np.array, list, pd.Series, pl.Series, pa.array])
def test_false_comes_before_true(kind):
    data = labelled(kind([True, False, True]))
    assert data.classes.tolist() == [False, True]
    assert data.classes.dtype == bool
    assert data.index.tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.uint64])
def test_classes_keep_the_type_of_the_labels(dtype):
    assert labelled(np.array([1, 0], dtype=dtype)).classes.dtype == dtype


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5), min_size=2, max_size=30).filter(
        lambda y: len(set(y)) > 1
    )
)
def test_numbers_far_apart_and_close_by_are_encoded_as_numpy_does(y):
    data = labelled(np.array(y))
    classes, index = np.unique(np.array(y), return_inverse=True)
    np.testing.assert_array_equal(data.classes, classes)
    np.testing.assert_array_equal(data.index, index)


def test_signs_are_one_column_for_two_classes_and_one_a_class_for_more():
    index = np.array([2, 0, 1])
    np.testing.assert_array_equal(signs(index, 3, float), [[-1, -1, 1], [1, -1, -1], [-1, 1, -1]])
    np.testing.assert_array_equal(signs(np.array([1, 0]), 2, np.float32), [[1], [-1]])
    data = labelled(TEXT)
    assert data.encoded("class").y[:, 0].tolist() == INDEX
    np.testing.assert_array_equal(data.encoded("sign").y, signs(data.index, 3, float))


def test_known_classes_need_not_all_be_there():
    data = labelled(["c", "a", "c"], classes=np.array(["a", "b", "c"]))
    assert data.index.tolist() == [2, 0, 2]
    assert labelled([1, 1], classes=np.array([False, True])).index.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(["a", "d"], ["a", "b"]), ([0, 1], ["a", "b"]), (["a", "b"], [0, 1]), ([0, 2], [0, 1])],
)
def test_a_label_that_is_not_known_is_named_with_its_row(labels, classes):
    row = 1 if labels[0] in classes else 0
    with pytest.raises(InputError) as caught:
        labelled(labels, classes=np.array(classes))
    assert str(caught.value).startswith(
        f"y has the label {labels[row]!r} (row {row}, counted from 0), which is none of the classes "
        f"{classes[0]!r}, {classes[1]!r}."
    )


def test_ten_thousand_classes_are_allowed_and_no_more():
    assert labelled(np.arange(MOST_CLASSES)).classes.size == 10_000
    with pytest.raises(InputError, match="y has 10001 different classes, more than the 10000"):
        labelled(np.arange(MOST_CLASSES + 1))


# -- class weights -----------------------------------------------------------------------------------


def test_weights_of_classes_multiply_weights_of_rows():
    data = labelled(TEXT, [1.0, 2.0, 0.0, 1.0, 3.0, 1.0], class_weight={"a": 2.0, "c": 0.5})
    assert data.weight.tolist() == [1.0, 4.0, 0.0, 0.5, 3.0, 2.0]
    assert labelled(TEXT, class_weight={"b": 4}).weight.tolist() == [4.0, 1.0, 1.0, 1.0, 4.0, 1.0]
    assert labelled(TEXT, class_weight=None).weight is None


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.0, 1.0, 3.0, 1.0]])
def test_balanced_weights_are_those_of_scikit_learn_and_give_each_class_the_same_total(weight):
    found = labelled(TEXT, weight, class_weight="balanced").weight
    rows = np.ones(6) if weight is None else np.array(weight)
    each = compute_class_weight("balanced", classes=np.array(["a", "b", "c"]), y=TEXT, sample_weight=weight)
    np.testing.assert_allclose(found, each[INDEX] * rows)
    np.testing.assert_allclose(np.bincount(INDEX, weights=found), rows.sum() / 3)


def test_weights_may_name_classes_that_these_rows_lack_if_all_others_are_named():
    assert labelled([0, 1], class_weight={0: 2.0, 1: 3.0, 2: 9.0}).weight.tolist() == [2.0, 3.0]
    with pytest.raises(
        InputError, match="class_weight has a weight for 2, which is none of the classes 0, 1"
    ):
        labelled([0, 1], class_weight={0: 2.0, 2: 9.0})


# -- partial_fit ------------------------------------------------------------------------------------


def test_classes_told_beforehand_are_put_in_order():
    assert check_classes(["b", "a", "b"]).tolist() == ["a", "b"]
    with pytest.raises(InputError, match="classes must be passed on the first call to partial_fit"):
        check_classes(None)
    with pytest.raises(InputError, match=r"classes=\['a'\] has 1 class, but two or more are needed"):
        check_classes(["a"])
