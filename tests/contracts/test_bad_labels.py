"""Labels that cannot be learnt are refused by every classifier with a sentence that says which and why."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from contracts.certified import learnt
from sixfold import ERMClassifier, LogisticRegression
from sixfold.errors import InputError
from sixfold.learners.registry import LEARNERS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.where(X @ [1.0, -1.0] + RNG.logistic(size=30) > 0, "yes", "no")
WHOLE = (Y == "yes").astype(int)

linear_classifiers = [one for one in LEARNERS if one.task == "classification" and one.hypothesis == "linear"]
every_linear_classifier = pytest.mark.parametrize(
    "learner", linear_classifiers, ids=lambda learner: learner.name
)
every_classifier = pytest.mark.parametrize(
    "learner", [one for one in LEARNERS if one.task == "classification"], ids=lambda learner: learner.name
)


def refuses(sentence):
    return pytest.raises(InputError, match=re.escape(sentence))


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


# -- labels that are none -------------------------------------------------------------------------------


@every_classifier
@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (X[:, 0], f"Unknown label type: continuous. Row 0 of y, counted from 0, is {X[0, 0]}"),
        (X[:, 0], "which is a quantity and no class. Use a regressor such as LinearRegression"),
        (changed(WHOLE.astype(object), 4, 0.5), "Row 4 of y, counted from 0, is 0.5"),
        (changed(WHOLE.astype(float), 5, np.inf), "Input y contains infinity in row 5, counted from 0."),
        (changed(Y.astype(object), 3, 7), "y mixes text and numbers: row 0 is "),
        ([*Y[:29].tolist(), 7], "row 29, counted from 0, is 7. Labels must be all of one kind"),
        (WHOLE + 0j, "Complex data not supported: y holds complex numbers."),
        (WHOLE[:, None, None], "got an array of shape (30, 1, 1) instead"),
        ([[1], [1, 2]] * 15, "The rows of y are not all of one length. Pass one label a row."),
        (1, "y is 1, of type int. Pass one label a row."),
        ("yes", "y is 'yes', of type str. Pass one label a row."),
        (sp.csr_array(WHOLE[:, None]), "y is sparse, but labels are kept dense."),
        (Y[:7], "X has 30 rows, y has 7. Pass one target a row."),
        (np.full(30, np.datetime64("2024-02-29")), "Unknown label type: datetime64[D]."),
        (pd.Series(pd.date_range("2024", periods=30)), "Unknown label type: datetime64["),
        (WHOLE.astype("m8[s]"), "Unknown label type: timedelta64[s]."),
        ([datetime.date(2024, 2, 29)] * 30, "row 0 of y, counted from 0, holds datetime.date(2024, 2, 29)"),
        (np.array([frozenset([k]) for k in WHOLE], dtype=object), "of type frozenset. Labels are text"),
        (np.zeros(30, dtype=[("label", int)]), "Unknown label type: [('label', '<i8')]."),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_is_no_column_of_labels_is_refused(learner, labels, sentence):
    with refuses(sentence):
        learner.make().fit(X, labels)


# Neighbours are of one class, or of several columns of classes, without any trouble.
@every_linear_classifier
@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (
            np.full(30, "yes"),
            "y has 1 class: every row is 'yes', but a classifier needs rows of at least two",
        ),
        (np.zeros(30), "y has 1 class: every row is 0.0"),
        (np.column_stack([WHOLE, WHOLE]), "got an array of shape (30, 2) instead"),
    ],
    ids=["text", "numbers", "two columns"],
)
def test_what_no_plane_can_tell_apart_is_refused(learner, labels, sentence):
    with refuses(sentence):
        learner.make().fit(X, labels)


@every_classifier
def test_more_than_ten_thousand_classes_are_refused(learner):
    many = np.arange(10_001)
    with refuses("y has 10001 different classes, more than the 10000 that are sensible"):
        learner.make().fit(many[:, None], many)


TEXT_WITH_GAP = changed(Y.astype(object), 12, None)
WHOLE_WITH_GAP = changed(WHOLE.astype(object), 12, None)


@every_classifier
@pytest.mark.parametrize(
    "labels",
    [
        changed(WHOLE.astype(float), 12, np.nan),
        changed(WHOLE.astype(float), 12, np.nan).tolist(),
        TEXT_WITH_GAP,
        TEXT_WITH_GAP.tolist(),
        changed(Y.astype(object), 12, np.nan),
        changed(Y.astype(object), 12, np.nan).tolist(),
        changed(Y.astype(object), 12, np.float32("nan")),
        changed(Y.astype(object), 12, pd.NA),
        changed(Y.astype(object), 12, pd.NaT),
        np.ma.masked_array(WHOLE, np.arange(30) == 12),
        pd.Series(TEXT_WITH_GAP),
        pd.Series(TEXT_WITH_GAP, dtype="string"),
        pd.Series(TEXT_WITH_GAP, dtype="category"),
        pd.Series(WHOLE_WITH_GAP, dtype="Int64"),
        pd.Series(WHOLE_WITH_GAP, dtype="boolean"),
        pd.Series(WHOLE_WITH_GAP, dtype="category"),
        pl.Series(TEXT_WITH_GAP.tolist()),
        pl.Series(TEXT_WITH_GAP.tolist(), dtype=pl.Categorical),
        pl.Series(WHOLE_WITH_GAP.tolist()),
        pa.array(TEXT_WITH_GAP),
        pa.array(TEXT_WITH_GAP).dictionary_encode(),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_the_row_of_a_missing_label_is_named(learner, labels):
    with refuses("Input y contains NaN: the label of row 12, counted from 0, is missing. Drop such rows, or"):
        learner.make().fit(X, labels)


@every_classifier
@pytest.mark.parametrize("kind", [lambda y: y[:, None], pd.DataFrame, lambda y: pl.DataFrame({"y": y})])
def test_labels_with_a_second_axis_are_used_with_a_warning_that_points_here(learner, kind):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        model = learner.make().fit(X, kind(WHOLE))
    assert [warning.filename for warning in caught] == [__file__]
    for here, there in zip(learnt(model, X), learnt(learner.make().fit(X, WHOLE), X), strict=True):
        np.testing.assert_array_equal(here, there)


def test_the_warning_of_the_likelihood_points_here_too():
    model = LogisticRegression().fit(X, WHOLE)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        model.log_likelihood(X, WHOLE[:, None])
    assert [warning.filename for warning in caught] == [__file__]


# -- labels that are odd but fine ---------------------------------------------------------------------------


@every_classifier
@pytest.mark.parametrize(
    "labels",
    [
        Y,
        WHOLE == 1,
        WHOLE.astype(np.uint8),
        WHOLE * 2 - 1,
        WHOLE.astype(np.float32) * 1e6,
        np.where(WHOLE, "", "x"),
        pd.Series(Y, dtype="category"),
        pl.Series(Y.tolist(), dtype=pl.Categorical),
        pa.array(Y),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_predictions_are_labels_as_they_were_given(learner, labels):
    model = learner.make().fit(X, labels)
    predicted = model.predict(X)
    given = np.array(labels.to_pylist() if isinstance(labels, pa.Array) else labels)
    assert set(predicted.tolist()) <= set(given.tolist())
    assert model.classes_.tolist() == sorted(set(given.tolist()))
    if learner.name != "Perceptron":  # where no plane separates, its last one is as good as any
        assert np.mean(predicted == given) > 0.5
    assert model.score(X, given) == np.mean(predicted == given)


@every_linear_classifier
def test_a_class_with_one_row_is_learnt(learner):
    labels = np.full(30, "common")
    labels[4] = "rare"
    far = changed(X, 4, [20.0, 20.0])
    assert learner.make().fit(far, labels).predict(far).tolist() == labels.tolist()


@every_classifier
def test_an_unknown_label_is_refused_when_a_fit_is_verified(learner):
    model = learner.make().fit(X, Y)
    for labels in (changed(Y, 9, "na"), changed(Y.astype(object), 9, "perhaps")):
        label = str(labels[9])
        with refuses(f"y has the label {label!r} (row 9, counted from 0), which is none of the classes 'no'"):
            model.certificate_.verify(X, labels)
    model.certificate_.verify(X, Y)
    model.certificate_.verify(X, Y.tolist())


def test_an_unknown_label_has_no_likelihood():
    model = LogisticRegression().fit(X, WHOLE)
    with refuses("y has the label 2 (row 3, counted from 0), which is none of the classes 0, 1."):
        model.log_likelihood(X, changed(WHOLE, 3, 2))
    assert model.log_likelihood(X[:2], WHOLE[:2]) < 0  # not all classes need be there


# -- weights ---------------------------------------------------------------------------------------------


@every_classifier
@pytest.mark.parametrize(
    ("class_weight", "sentence"),
    [
        ("blanced", "class_weight='blanced' is neither None, 'balanced' nor a dictionary"),
        ([1, 2], "class_weight=[1, 2] is neither None, 'balanced' nor a dictionary"),
        ({"maybe": 1.0}, "class_weight has a weight for 'maybe', which is none of the classes 'no', 'yes'."),
        ({"no": -1.0}, "class_weight gives 'no' the weight -1.0: a number from 0 up is needed."),
        ({"no": "much"}, "class_weight gives 'no' the weight 'much': a number from 0 up is needed."),
        ({"no": np.nan}, "class_weight gives 'no' the weight nan: a number from 0 up is needed."),
        ({"no": np.inf}, "class_weight gives 'no' the weight inf: a number from 0 up is needed."),
    ],
    ids=str,
)
def test_class_weights_that_make_no_sense_are_refused(learner, class_weight, sentence):
    if "class_weight" not in learner.make().get_params():
        return
    with refuses(sentence):
        learner.make(class_weight=class_weight).fit(X, Y)


@pytest.mark.parametrize(
    "learner",
    # A tree gives such a class the share 0, so that bagging may leave one out.
    [one for one in LEARNERS if one.task == "classification" and one.hypothesis != "tree"],
    ids=lambda learner: learner.name,
)
def test_a_class_whose_rows_all_have_weight_0_is_refused(learner):
    with refuses("All rows of class 'yes' have weight 0, so nothing can be learnt about it."):
        learner.make().fit(X, Y, sample_weight=np.where(Y == "yes", 0.0, 1.0))
    if "class_weight" in learner.make().get_params():
        with refuses("All rows of class 'no' have weight 0, so nothing can be learnt about it."):
            learner.make(class_weight={"no": 0}).fit(X, Y)


THREE = np.where(X[:, 0] + RNG.logistic(size=30) > 0.7, "perhaps", Y)


@every_linear_classifier
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_balanced_weights_are_the_explicit_ones(learner, labels):
    classes, counts = np.unique(labels, return_counts=True)
    explicit = {str(c): 30 / (classes.size * k) for c, k in zip(classes, counts, strict=True)}
    balanced = learner.make(class_weight="balanced", tol=1e-10).fit(X, labels)
    named = learner.make(class_weight=explicit, tol=1e-10).fit(X, labels)
    plain = learner.make(tol=1e-10).fit(X, labels)
    np.testing.assert_allclose(balanced.coef_, named.coef_, rtol=1e-9)
    assert not np.allclose(balanced.coef_, plain.coef_, rtol=1e-3)


# A stochastic update that is twice as long is not two updates.
@pytest.mark.parametrize(
    "learner",
    [one for one in linear_classifiers if one.name not in ("Perceptron", "SGDClassifier")],
    ids=lambda learner: learner.name,
)
@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_weights_of_classes_and_rows_are_repetitions(learner, labels):
    times = RNG.integers(0, 4, size=30)
    each = times * np.where(labels == "yes", 2, 1)
    weighted = learner.make(class_weight={"yes": 2}, tol=1e-11).fit(X, labels, times)
    repeated = learner.make(tol=1e-11).fit(np.repeat(X, each, axis=0), np.repeat(labels, each))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-4, atol=1e-6)


def test_a_weight_of_the_recipe_that_is_a_number_of_numpy_counts():
    by_numpy = ERMClassifier(class_weight={"yes": np.float32(2.0)}).fit(X, Y)
    np.testing.assert_array_equal(by_numpy.coef_, ERMClassifier(class_weight={"yes": 2}).fit(X, Y).coef_)
