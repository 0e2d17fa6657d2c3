"""Grounds, colours, labels at lines, and where figures are made."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold.errors import InputError
from sixfold.explain import axes as axes_module
from sixfold.explain.plots.style import (
    DARK,
    LIGHT,
    MARKERS,
    canvas,
    contrast,
    finish,
    label_ends,
    legend,
    number,
    on_log_scale,
    plain,
    spread,
    text_colour,
    theme_of,
)

# Severity 1 of Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision
# deficiency", 2009, for linear RGB.
VISION = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(colour, vision):
    red_green_blue = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(
        red_green_blue <= 0.04045, red_green_blue / 12.92, ((red_green_blue + 0.055) / 1.055) ** 2.4
    )
    seen = np.clip(np.asarray(VISION[vision]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ seen / (0.9505, 1.0, 1.089)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("vision", VISION)
def test_no_two_colours_of_lines_look_alike_to_anyone(theme, vision):
    distances = [
        np.linalg.norm(lab(one, vision) - lab(other, vision))
        for one, other in itertools.combinations(theme.series, 2)
    ]
    assert min(distances) >= 18


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_contrast_to_their_ground(theme):
    assert all(contrast(colour, theme.surface) >= 3.0 for colour in theme.series)
    assert contrast(theme.ink, theme.surface) >= 7.0
    assert contrast(theme.muted, theme.surface) >= 4.5
    assert all(contrast(text_colour(colour, theme), theme.surface) >= 4.5 for colour in theme.series)
    assert len(MARKERS) == len(theme.series)


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # a well-known pair


def test_colours_follow_the_face_of_the_axes(new_axes):
    assert theme_of(new_axes("white")) is LIGHT
    assert theme_of(new_axes("#111111")) is DARK
    assert theme_of(new_axes("#111111"), dark=False) is LIGHT
    see_through = new_axes("#111111")
    see_through.set_facecolor("none")
    assert theme_of(see_through) is DARK
    see_through.figure.set_facecolor("none")
    assert theme_of(see_through) is LIGHT


def test_a_new_figure_gets_the_ground_that_is_asked_for():
    for dark, theme in ((True, DARK), (False, LIGHT)):
        ax, found = canvas(None, dark)
        assert found is theme
        assert contrast(ax.get_facecolor(), theme.surface) == 1.0
        assert contrast(ax.figure.get_facecolor(), theme.surface) == 1.0


def test_the_ground_of_axes_that_are_given_stays(new_axes):
    ax = new_axes("#203040")
    assert canvas(ax, dark=True)[0] is ax
    assert contrast(ax.get_facecolor(), "#203040") == 1.0


def test_text_that_cannot_be_read_changes_colour_and_other_text_keeps_it(new_axes):
    ax = new_axes("#111111")
    ax.yaxis.label.set_color("#ffee00")
    finish(ax, theme_of(ax), title="t", xlabel="x", ylabel="y")
    assert ax.title.get_color() == DARK.ink
    assert ax.xaxis.label.get_color() == DARK.ink
    assert ax.yaxis.label.get_color() == "#ffee00"
    assert contrast(ax.get_xticklabels()[0].get_color(), "#111111") > 4.5
    assert contrast(ax.spines["left"].get_edgecolor(), "#111111") > 3


def test_dark_axes_on_a_light_figure_have_dark_labels(new_axes):
    ax = new_axes("white")
    ax.set_facecolor("black")
    assert theme_of(ax) is DARK
    finish(ax, theme_of(ax), title="t")
    assert contrast(ax.title.get_color(), "white") > 4.5


def test_parts_of_figures_have_their_own_ground():
    from matplotlib.figure import Figure

    figure = Figure(facecolor="white")
    part, _ = figure.subfigures(1, 2)
    part.set_facecolor("black")
    ax = part.subplots()
    ax.set_facecolor("none")
    assert theme_of(ax) is DARK


@given(
    st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=30),
    st.floats(0.0, 0.3),
)
def test_spread_places_keep_order_and_distance(places, gap):
    places = np.array(places)
    found = spread(places, gap)
    order = np.argsort(places, kind="stable")
    room = min(gap, 1.0 / max(places.size - 1, 1))
    assert (np.diff(found[order]) >= room - 1e-9).all()
    assert (found >= -1e-9).all()
    assert (found <= 1 + 1e-9).all()


def test_places_that_are_far_apart_stay():
    np.testing.assert_allclose(spread(np.array([0.9, 0.1, 0.5]), 0.1), [0.9, 0.1, 0.5])


def test_names_at_line_ends_do_not_overlap(drawn):
    from matplotlib.text import Text

    ax, theme = canvas(None)
    lines = [ax.plot([0, 1], [0, 0.5 + 0.001 * k])[0] for k in range(8)]
    label_ends(ax, theme, [(1, 0.5 + 0.001 * k, f"line {k}", line) for k, line in enumerate(lines)])
    drawn(ax)
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without the lines that join them
    assert len(boxes) == 8
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    whole = ax.figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 for box in boxes)


def test_without_a_layout_names_are_in_the_legend(new_axes):
    ax = new_axes()
    (line,) = ax.plot([0, 1], [0, 1], color="#0072b2", linestyle="--")
    label_ends(ax, LIGHT, [(1, 1, "a $name", line)])
    made = legend(ax, LIGHT)
    assert [text.get_text() for text in made.get_texts()] == [r"a \$name"]
    assert ax.texts[:] == []
    assert made.get_lines()[0].get_linestyle() == "--"


def test_a_legend_of_nothing_is_none(new_axes):
    assert legend(new_axes(), LIGHT) is None


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        ([1e-3, 1e-2, 1e-1, 1, 10], True),
        ([0.01, 1], True),
        ([1, 2, 5, 10, 20, 50], True),
        (range(1, 101), False),
        ([1, 2, 3], False),
        ([0, 1e-3, 1], False),
        ([-1, 1, 1000], False),
        ([5], False),
        ([], False),
    ],
)
def test_decades_have_a_logarithmic_axis(values, logarithmic):
    assert on_log_scale(values) is logarithmic


def test_numbers_are_short():
    assert [number(value) for value in (0.1 + 0.2, 1e-7, 123456, 1.5e9)] == [
        "0.3",
        "1e-07",
        "123456",
        "1.5e+09",
    ]


def test_dollars_are_no_formula():
    assert plain("from $5 to $10") == r"from \$5 to \$10"


@pytest.mark.parametrize("wrong", [3, "ax", np.array([None, None])])
def test_what_is_no_axes_is_refused_with_a_hint(wrong):
    with pytest.raises(InputError, match="matplotlib Axes are needed"):
        canvas(wrong)


def test_several_axes_are_refused_with_what_to_pass():
    with pytest.raises(InputError, match=r"pass one of them, for instance ax\[0\]"):
        canvas(np.array([None, None]))


def test_dark_is_a_flag():
    with pytest.raises(InputError, match="dark='yes' is of type str"):
        canvas(None, dark="yes")


def test_figures_that_are_shown_are_those_of_pyplot(monkeypatch):
    import matplotlib
    from matplotlib import pyplot

    monkeypatch.setattr(matplotlib, "get_backend", lambda: "QtAgg")
    ax = axes_module.axes_or_new(None, 4, 3)
    assert pyplot.get_fignums() == [ax.figure.number]
    pyplot.close("all")


def test_without_pyplot_it_is_not_imported_except_in_notebooks():
    program = (
        "import os, sys\n"
        "from sixfold.explain.axes import _figures_are_shown, axes_or_new\n"
        "assert 'matplotlib' not in sys.modules\n"
        "for backend in ('', 'Agg'):\n"
        "    os.environ['MPLBACKEND'] = backend\n"
        "    axes_or_new(None, 4, 3)\n"
        "    assert 'matplotlib.pyplot' not in sys.modules\n"
        "import matplotlib\n"
        "os.environ['MPLBACKEND'] = 'module://matplotlib_inline.backend_inline'\n"
        "print(_figures_are_shown(matplotlib))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "True", found.stderr


def test_a_missing_matplotlib_says_what_to_install(monkeypatch):
    from sixfold.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        canvas(None)
