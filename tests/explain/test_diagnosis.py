"""Sentences name the columns that separate and the rows that overlap."""

import numpy as np
import scipy.sparse as sp

from sixfold.budget import Budget
from sixfold.explain.diagnosis import describe_overlap, describe_separation
from sixfold.solvers.separation.separating_columns import separating_columns
from sixfold.solvers.separation.separation import Proof, separate
from solvers.problems import blocks, problem


def sentences(X, y, names, classes, loss="logistic", weight=None):
    stated, data = problem(loss), blocks(X, np.asarray(y, dtype=float), weight)
    found = separate(stated, data, Budget())
    return describe_separation(found, separating_columns(stated, data), names, classes, kept=True)


def test_a_column_that_separates_alone_is_named_with_its_threshold():
    X = np.array([[2.0, 5.0], [3.0, 1.0], [1.0, 2.0], [4.0, 3.0]])
    expected = (
        "Column 'x3' alone separates: every row above 2.5 is 'yes', every row below is 'no'. The model can be"
    )
    assert sentences(X, [-1, 1, -1, 1], ["x3", "x4"], ["no", "yes"]).startswith(expected)
    assert sentences(sp.csr_array(X), [-1, 1, -1, 1], ["x3", "x4"], ["no", "yes"]).startswith(expected)
    downhill = sentences(-X, [-1, 1, -1, 1], ["x3", "x4"], ["no", "yes"])
    assert downhill.startswith(
        "Column 'x3' alone separates: every row above -2.5 is 'no', every row below is 'yes'."
    )


def test_a_column_that_separates_but_for_ties_says_so():
    X = np.array([[0.0], [0.0], [1.0], [0.0]])
    text = sentences(X, [-1, 1, 1, -1], ["cured"], ["no", "yes"])
    assert "every row above 0 is 'yes', every row below is 'no', and rows equal to 0 are either." in text
    assert "But for 3 rows on the boundary the model" in text


def test_a_class_among_several_is_named():
    X = np.array([[0.0], [5.0], [5.5], [6.0], [5.2], [5.4], [5.1]])
    text = sentences(X, [0, 1, 2, 1, 2, 1, 2], ["length"], ["a", "b", "c"], "softmax")
    assert (
        "column 'length' alone separates: every row above 2.5 is not 'a', every row below is 'a'"
        in text.lower()
    )


def test_columns_that_separate_together_are_named():
    X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
    text = sentences(X, [1, 1, 1, -1, -1, -1], ["a", "b"], ["no", "yes"])
    assert text.startswith("The columns 'a' and 'b' together separate the classes. The model")


def test_rows_of_weight_zero_are_not_looked_at():
    X = np.array([[0.0], [1.0], [0.5]])
    data = blocks(X, np.array([-1.0, 1.0, -1.0]), np.array([1.0, 1.0, 0.0]))
    (found,) = separating_columns(problem("logistic"), data)
    assert found.threshold == 0.5


def test_a_constant_column_separates_nothing():
    assert separating_columns(problem("logistic"), blocks(np.ones((3, 1)), np.array([1.0, -1.0, 1.0]))) == []


def test_an_overlap_names_the_rows_that_mix():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    found = separate(problem("logistic"), blocks(X, y), Budget())
    assert describe_overlap(found.proof, y, ["even", "odd"]) == (
        "No plane separates 'even' from 'odd': 2 rows (0.5 of row 0, 0.5 of row 1) of 'even' mix to the "
        "same point as 2 rows (0.5 of row 2, 0.5 of row 3) of 'odd'."
    )


def test_an_overlap_in_another_space_says_where():
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    space = "in the space of the kernel"
    equal = Proof(np.array([0, 2]), None, np.array([0.5, 0.5]), 0.0)
    assert describe_overlap(equal, y, ["even", "odd"], space) == (
        "No plane in the space of the kernel separates 'even' from 'odd': row 0 of 'even' and row 2 of 'odd' "
        "are the same point."
    )
    inside = Proof(np.array([1, 2, 3]), None, np.array([0.5, 0.125, 0.375]), 0.0)
    assert describe_overlap(inside, y, ["even", "odd"], space) == (
        "No plane in the space of the kernel separates 'even' from 'odd': 1 row (1 of row 1) of 'even' mixes "
        "to the same point as 2 rows (0.75 of row 3, 0.25 of row 2) of 'odd'."
    )
