"""A certificate is plain data, speaks plainly, and does not let a changed model pass."""

import dataclasses
import json
import math

import numpy as np
import pytest

from sixfold.certificate import Certificate
from sixfold.errors import CertificateError
from sixfold.verify.recomputed import Recomputed


def certificate(**changes):
    given = {"kind": "duality gap", "objective": 3.0, "gap": 0.5, "scale": 10.0, "tolerance": 0.1}
    return Certificate(**(given | changes))


class Model:
    """A model whose recomputed certificate is given, with what may be off about the claim of 3.0 and 0.5."""

    def __init__(self, objective_allowance=0.0, gap_allowance=0.5, **changes):
        self.found = Recomputed(certificate(**changes), objective_allowance, gap_allowance)
        self.asked = None

    def _verify(self, claimed, X, y, sample_weight):
        self.asked = (X, y, sample_weight)
        return self.found.compare(claimed)


def test_the_bound_and_relative_gap_follow_from_the_gap():
    # 3 - 0.5, 0.5 / 10 <= 0.1
    assert certificate().lower_bound == 2.5
    assert certificate().relative_gap == 0.05
    assert certificate().converged
    assert not certificate(tolerance=0.04).converged


@pytest.mark.parametrize(("gap", "converged"), [(0.0, True), (1e-300, False)])
def test_without_a_scale_only_a_gap_of_zero_will_do(gap, converged):
    assert certificate(gap=gap, scale=0.0).converged == converged


@pytest.mark.parametrize("gap", [math.inf, math.nan])
def test_no_bound_never_converges(gap):
    assert not certificate(gap=gap).converged


def test_json_holds_every_field_and_what_follows_from_them():
    details = {"rank": np.int64(3), "condition": np.float64(2.5), "singular": np.array([1.0, 2.0])}
    given = certificate(details=details, notes=("rank 2 of 3",), model=object())
    read = json.loads(given.to_json())
    assert read == {
        "kind": "duality gap",
        "objective": 3.0,
        "gap": 0.5,
        "scale": 10.0,
        "tolerance": 0.1,
        "details": {"rank": 3, "condition": 2.5, "singular": [1.0, 2.0]},
        "claim": "",
        "notes": ["rank 2 of 3"],
        "rounding": 0.0,
        "lower_bound": 2.5,
        "relative_gap": 0.05,
        "converged": True,
    }
    fields = {f.name for f in dataclasses.fields(Certificate)} - {"model"}
    assert Certificate(**{name: read[name] for name in fields}) == certificate(
        details=read["details"], notes=["rank 2 of 3"]
    )


def test_json_has_null_where_there_is_no_bound():
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = certificate(gap=math.inf, details={"deep": [math.nan, np.array([math.inf])]}).to_json()
    read = json.loads(text, parse_constant=refuse)
    assert read["gap"] is read["lower_bound"] is read["relative_gap"] is None
    assert read["details"] == {"deep": [None, [None]]}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "duality gap: within 0.05 of the optimum"),
        ({"gap": 0.0}, "duality gap: optimal to machine precision"),
        ({"gap": 1e-14}, "duality gap: optimal to machine precision"),
        ({"gap": 2.0}, "duality gap: within 0.2 of the optimum, short of the 0.1 asked for"),
        ({"gap": math.inf}, "duality gap: no bound known, short of the 0.1 asked for"),
        ({"gap": math.nan}, "duality gap: no bound known, short of the 0.1 asked for"),
        (
            {"scale": 0.0, "tolerance": 1e-6},
            "duality gap: at most 0.5 above the optimum, short of the 1e-06 asked for",
        ),
        (
            {"notes": ("rank 2 of 3", "stopped")},
            "duality gap: within 0.05 of the optimum; rank 2 of 3; stopped",
        ),
    ],
)
def test_it_says_in_plain_words_what_is_certified(changes, text):
    assert str(certificate(**changes)) == text


def test_verify_passes_on_and_returns_what_was_recomputed():
    model = Model()
    assert certificate().bind(model).verify("X", "y", "weight") is model.found.certificate
    assert model.asked == ("X", "y", "weight")


def test_verify_needs_a_model():
    with pytest.raises(CertificateError, match="not attached to a model"):
        certificate().verify("X", "y")


@pytest.mark.parametrize("objective", [3.001, 2.999, math.nan])
def test_verify_refuses_another_objective(objective):
    with pytest.raises(CertificateError, match=r"the objective is 3\.0, but on these data"):
        certificate().bind(Model(objective=objective)).verify("X", "y")


@pytest.mark.parametrize("gap", [1.1, math.inf, math.nan])
def test_verify_refuses_a_larger_gap(gap):
    with pytest.raises(CertificateError, match=r"a gap of at most 0\.5, but the recomputed"):
        certificate().bind(Model(gap=gap)).verify("X", "y")


def test_verify_forgives_what_rounding_can_do_and_no_more():
    def model(**changes):
        return Model(objective_allowance=1e-12, gap_allowance=1.0 + 1e-9, **changes)

    certificate().bind(model(objective=3.0 + 0.9e-12, gap=1.0 + 0.9e-9)).verify("X", "y")
    for changes in ({"objective": 3.0 + 1.2e-12}, {"gap": 1.0 + 1.1e-9}):
        with pytest.raises(CertificateError):
            certificate().bind(model(**changes)).verify("X", "y")


def test_binding_changes_neither_equality_nor_the_original():
    free = certificate()
    bound = free.bind("model")
    assert bound == free
    assert bound.model == "model"
    assert free.model is None
