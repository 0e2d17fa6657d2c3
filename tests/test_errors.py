"""Errors are sentences that name what was given, what was expected and what to do."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sixfold import errors
from sixfold.errors import InputError, StoppedEarly, check_number, check_option


@pytest.mark.parametrize("value", [None, "l1", np.str_("l2")])
def test_an_option_passes(value):
    check_option("penalty", value, [None, "l1", "l2"])


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("ll2", "; did you mean 'l2'?"),
        ("L1", "; did you mean 'l1'?"),
        ("quadratic", "."),
        ("lasso", "."),
        (7, "."),
    ],
)
def test_another_value_is_refused_with_the_nearest_option(value, hint):
    with pytest.raises(InputError) as caught:
        check_option("penalty", value, [None, "l1", "l2"])
    assert str(caught.value) == (
        f"penalty={value!r} is not an option{hint} The options are None, 'l1', 'l2'."
    )


def test_a_word_that_is_far_from_all_options_is_no_slip():
    with pytest.raises(InputError, match=r"'mean' is not an option\. The options are 'branch', 'best'\.$"):
        check_option("unknown", "mean", ["branch", "best"])


def test_what_else_may_be_passed_is_said():
    with pytest.raises(InputError, match=r"The options are 'sqrt', None, or a share\.$"):
        check_option("max_features", "auto", ["sqrt", None], also="or a share")


def test_one_is_not_true():
    check_option("shuffle", True, [True, False])
    with pytest.raises(InputError, match=r"shuffle=1 is not an option\. The options are True, Fal"):
        check_option("shuffle", 1, [True, False])


def test_an_array_is_refused_as_an_option():
    with pytest.raises(InputError, match="is not an option"):
        check_option("penalty", np.array(["l1", "l2"]), ["l1", "l2"])


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        (0.0, {"at_least": 0}),
        (1, {"above": 0}),
        (None, {"optional": True}),
        (np.int64(3), {"whole": True}),
    ],
)
def test_a_number_in_range_passes(value, limits):
    check_number("alpha", value, **limits)


@pytest.mark.parametrize(
    ("value", "limits", "sentence"),
    [
        (-1, {"at_least": 0}, "alpha=-1 is out of range: a number that is at least 0 is needed."),
        (0.0, {"above": 0}, "alpha=0.0 is out of range: a number above 0 is needed."),
        (float("nan"), {}, "alpha=nan is out of range: a number is needed."),
        ("1", {}, "alpha='1' is of type str: a number is needed."),
        (True, {}, "alpha=True is of type bool: a number is needed."),
        (None, {}, "alpha=None is of type NoneType: a number is needed."),
        (1.5, {"whole": True}, "alpha=1.5 is of type float: a whole number is needed."),
        ("a", {"optional": True}, "alpha='a' is of type str: a number or None is needed."),
    ],
)
def test_another_number_is_refused_with_its_reason(value, limits, sentence):
    with pytest.raises(InputError) as caught:
        check_number("alpha", value, **limits)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("InputError", (errors.SixfoldError, ValueError)),
        ("IncompatibleError", (errors.InputError,)),
        ("PerfectSeparation", (errors.InputError, ValueError)),
        ("NotSeparable", (errors.InputError, ValueError)),
        ("CertificateError", (errors.SixfoldError,)),
        ("MissingExtraError", (errors.SixfoldError, ImportError)),
        ("RankWarning", (errors.SixfoldWarning, UserWarning)),
        ("StoppedEarly", (errors.SixfoldWarning, ConvergenceWarning)),
    ],
)
def test_the_tree_is_as_drawn(name, bases):
    assert all(issubclass(getattr(errors, name), base) for base in bases)
    assert name in errors.__doc__


def test_stopped_early_travels_between_processes():
    warning = pickle.loads(pickle.dumps(StoppedEarly("Stopped.", {"gap": 1.0})))
    assert str(warning) == "Stopped."
    assert warning.certificate == {"gap": 1.0}


def test_proofs_travel_between_processes():
    found = pickle.loads(
        pickle.dumps(errors.NotSeparable("No plane.", np.array([0, 2]), np.array([0.5, 0.5])))
    )
    assert str(found) == "No plane."
    assert found.rows.tolist() == [0, 2]
    assert found.weights.tolist() == [0.5, 0.5]
    direction = np.ones((1, 1)), np.zeros(1)
    found = pickle.loads(
        pickle.dumps(errors.PerfectSeparation("Separated.", direction, ["x"], "quasi-complete"))
    )
    assert str(found) == "Separated."
    assert (found.columns, found.kind, found.direction) == (("x",), "quasi-complete", direction)
