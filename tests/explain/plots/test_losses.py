import numpy as np
import pytest

from sixfold.errors import InputError
from sixfold.plot import losses


def test_every_loss_of_the_margin_is_a_line():
    ax = losses()
    names = [line.get_label().split(":")[0] for line in ax.lines if ":" in line.get_label()]
    assert names == ["zero one", "perceptron", "hinge", "squared hinge", "logistic", "squared"]
    assert "margin" in ax.get_xlabel()
    assert ax.get_ylabel() == "loss"


@pytest.mark.parametrize(
    ("name", "margin", "cost"),
    [
        ("zero_one", -1.0, 1.0),
        ("perceptron", -2.0, 2.0),
        ("hinge", 0.0, 1.0),
        ("squared_hinge", -1.0, 2.0),
        ("logistic", 0.0, np.log(2.0)),
        ("squared", 3.0, 2.0),
    ],
)
def test_a_curve_has_the_values_worked_out_by_hand(name, margin, cost):
    line = losses(names=[name]).lines[0]
    assert np.interp(margin, *line.get_data()) == pytest.approx(cost, abs=1e-9)


def test_absolute_and_cubed_put_the_residual_on_the_axis():
    ax = losses(names=["absolute", "squared", "cubed"])
    assert "residual" in ax.get_xlabel()
    assert np.interp(-2.0, *ax.lines[2].get_data()) == pytest.approx(8.0 / 3.0, rel=1e-3)


def test_no_two_curves_look_alike():
    looks = {(line.get_color(), line.get_linestyle()) for line in losses().lines}
    assert len(looks) == len(losses().lines)


def test_a_name_alone_is_a_list_of_one():
    assert len(losses(names="hinge").lines) == len(losses(names=["hinge"]).lines)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"names": ["hinje"]}, "did you mean 'hinge'"),
        ({"names": []}, "names is empty"),
        ({"names": ["hinge", "cubed"]}, "'hinge' is no function of the residual"),
        ({"of": "margins"}, "did you mean 'margin'"),
    ],
)
def test_what_cannot_be_drawn_is_said(options, words):
    with pytest.raises(InputError, match=words):
        losses(**options)


def test_dark_and_light_differ_in_ink():
    light, dark = losses(dark=False), losses(dark=True)
    assert light.lines[0].get_color() != dark.lines[0].get_color()
    assert light.get_facecolor() != dark.get_facecolor()
