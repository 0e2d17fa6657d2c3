"""What all figures share: where they are drawn, their colours on light and dark grounds, and labels at lines.

Nothing here changes ``matplotlib.rcParams`` or pyplot's current figure. Colours follow the ground: what is
inside the axes is read against the face of the axes, titles and tick labels against that of the figure. Text
that has less contrast than 4.5 : 1 there (WCAG 2.1, 1.4.3) is drawn in another colour; what can be read is
left as the user's style has it.

The six colours of lines start from those of Okabe and Ito, "Color universal design" (2008), made darker or
lighter until each has 3 : 1 against its ground and no two are alike to people with protanopia, deuteranopia
or tritanopia (a distance of at least 18 in CIE Lab, simulated after Machado, Oliveira and Fernandes, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError, check_flag
from sixfold.explain.axes import axes_or_new
from sixfold.explain.text import text_width

Array = NDArray[Any]

WIDTH, HEIGHT = 8.0, 5.0  # inches: 800 x 500 pixels at matplotlib's 100 dots an inch
SMALL = 9.0  # points, of labels inside the axes: 12.5 pixels at that size
READABLE = 4.5  # least contrast of text
MARKERS = ("o", "s", "^", "D", "v", "P")  # one for each colour, so that colour is never alone
DECADES = 20.0  # the largest value over the smallest, from which a logarithmic axis is thought of


@dataclass(frozen=True)
class Theme:
    """The colours of a figure on a ground.

    Attributes
    ----------
    dark : bool
        Whether the ground is dark.
    surface, ink, muted, faint : str
        The ground of new figures, text and axes, what is of second rank, and grid lines.
    series : tuple of str
        Of lines, in this order.
    mark : str
        Of what is chosen.
    """

    dark: bool
    surface: str
    ink: str
    muted: str
    faint: str
    series: tuple[str, ...]
    mark: str

    @property
    def point_alpha(self) -> float:
        """How much of the ground points of second rank hide; light ones on black look dimmer."""
        return 0.65 if self.dark else 0.45


LIGHT = Theme(
    dark=False,
    surface="#ffffff",
    ink="#1f2328",
    muted="#59636e",
    faint="#d9dde2",
    series=("#0072b2", "#d55e00", "#00523f", "#cc79a7", "#5a4200", "#9680fb"),
    mark="#1f2328",
)
DARK = Theme(
    dark=True,
    surface="#14171c",
    ink="#e6e9ee",
    muted="#a3acb8",
    faint="#333a44",
    series=("#56b4e9", "#f0801a", "#a5f2d8", "#cf62a0", "#f0e442", "#7d7aff"),
    mark="#ffffff",
)


def canvas(
    ax: Any, dark: bool | None = None, width: float = WIDTH, height: float = HEIGHT
) -> tuple[Any, Theme]:
    """Return the axes to draw on, new ones for None, and the colours that suit them.

    Parameters
    ----------
    ax : matplotlib Axes or None
    dark : bool or None
        Whether the ground is dark; None looks at the face of the axes. New axes get that ground.
    width, height : float
        Of a new figure, in inches.
    """
    if dark is not None:
        check_flag("dark", dark)
    new = ax is None
    ax = axes_or_new(ax, width, height)
    if new and dark is not None:
        surface = (DARK if dark else LIGHT).surface
        ax.figure.figure.set_facecolor(surface)
        ax.set_facecolor(surface)
    return ax, theme_of(ax, dark)


def theme_of(ax: Any, dark: bool | None = None) -> Theme:
    """Return the colours for what is drawn inside the axes."""
    if dark is None:
        dark = luminance(ground_of(ax)) < 0.18  # half way between black and white to the eye
    return DARK if dark else LIGHT


def finish(
    ax: Any, theme: Theme, *, title: str = "", xlabel: str = "", ylabel: str = "", grid: str = ""
) -> Any:
    """Set title and labels, draw a faint grid ("x", "y" or "both"), make all text readable; return the axes.

    What the user has written on the axes before is left where nothing is said here.
    """
    for set_text, text in ((ax.set_title, title), (ax.set_xlabel, xlabel), (ax.set_ylabel, ylabel)):
        if text:
            set_text(plain(text))
    if grid:
        ax.grid(True, axis=grid, color=theme.faint, linewidth=0.7)
        ax.set_axisbelow(True)
    for side in ("top", "right"):
        if side in ax.spines:
            ax.spines[side].set_visible(False)
    make_readable(ax, theme)
    return ax


def theme_outside(ax: Any, theme: Theme) -> Theme:
    """Return the colours for what is beside the axes, on the figure; those inside where it is transparent."""
    ground = _figure_face(ax)
    return theme if ground is None else DARK if luminance(ground) < 0.18 else LIGHT


def make_readable(ax: Any, theme: Theme) -> None:
    """Give title, labels, ticks and spines another colour where they cannot be read on the figure."""
    outside = theme_outside(ax, theme)
    ink, face = outside.ink, _figure_face(ax)
    ground = _rgb(outside.surface) if face is None else face
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label, ax.xaxis.offsetText, ax.yaxis.offsetText):
        if contrast(_rgb(text.get_color()), ground) < READABLE:
            text.set_color(ink)
    for axis, name in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        labels = axis.get_ticklabels()
        if labels and contrast(_rgb(labels[0].get_color()), ground) < READABLE:
            ax.tick_params(axis=name, which="both", colors=ink)
    for spine in ax.spines.values():
        if contrast(_rgb(spine.get_edgecolor()), ground) < 3.0:
            spine.set_edgecolor(ink)


def legend(ax: Any, theme: Theme, below: bool = False, **options: Any) -> Any:
    """Draw a legend of all that has a label where it hides least, or below the axes if there is a layout."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import offset_copy

    named = list(zip(*ax.get_legend_handles_labels(), strict=True))
    if not named:
        return None
    # What has bars or points first: that is what the figure is about; other lines speak of it.
    named.sort(key=lambda pair: 2 if isinstance(pair[0], Line2D) else int(not hasattr(pair[0], "lines")))
    figure = ax.figure.figure
    if below and figure.get_layout_engine() is not None:
        under = 8.0 + 1.6 * ax.xaxis.label.get_fontsize() + _tick_room(ax)
        options |= {
            "loc": "upper center",
            "bbox_to_anchor": (0.5, 0.0),
            "bbox_transform": offset_copy(ax.transAxes, figure, 0.0, -under, units="points"),
            "ncols": _columns([label for _, label in named], 72.0 * figure.get_size_inches()[0]),
            "borderaxespad": 0.0,
        }
    made = ax.legend(
        [handle for handle, _ in named],
        [label for _, label in named],
        fontsize=SMALL,
        labelcolor=theme.ink,
        facecolor=ground_of(ax),
        edgecolor=theme.faint,
        framealpha=0.9,
        **options,
    )
    made.set_zorder(6)
    return made


def _tick_room(ax: Any) -> float:
    """Return how many points the labels of ticks take below the axes, roughly where they are turned."""
    labels = ax.get_xticklabels()
    if not labels:
        return 0.0
    size = float(labels[0].get_fontsize())
    if labels[0].get_rotation() == 0:
        return 1.4 * size
    return 0.75 * max(text_width(label.get_text(), size) for label in labels) + size


def _columns(labels: list[str], width: float) -> int:
    """Return into how many columns a legend fits, as few rows as there is room for."""
    for count in range(len(labels), 1, -1):
        rows = -(-len(labels) // count)
        widest = [
            max(text_width(label, SMALL) for label in labels[k : k + rows])
            for k in range(0, len(labels), rows)
        ]
        if sum(widest) + 4.5 * SMALL * len(widest) < 0.92 * width:
            return count
    return 1


# -- labels beside the ends of lines -------------------------------------------------------------------------


def label_ends(ax: Any, theme: Theme, ends: Sequence[tuple[float, float, str, Any]]) -> None:
    """Write names at the right of the axes, each joined to the end (x, y) of its line, none over another.

    ``ends`` are x, y, name and line. Limits and scales have to be set before. Where the figure has no layout
    that would make room for them, the lines are named in the legend, which is to be drawn after.
    """
    if not ends:
        return
    if ax.figure.figure.get_layout_engine() is None:
        for _, _, name, line in ends:
            (named,) = ax.plot([], [], label=plain(name))
            named.update_from(line)
            named.set_label(plain(name))
        return
    outside = theme_outside(ax, theme)
    to_axes = ax.transData + ax.transAxes.inverted()
    heights = np.array([to_axes.transform((x, y))[1] for x, y, _, _ in ends])
    figure = ax.figure.figure
    room = ax.get_position().height * figure.get_size_inches()[1] * 72.0
    places = spread(heights, 1.35 * SMALL / max(room, 1.0))
    for (x, y, name, line), place in zip(ends, places, strict=True):
        ax.annotate(
            plain(name),
            xy=(x, y),
            xytext=(1.025, place),
            textcoords="axes fraction",
            fontsize=SMALL,
            color=text_colour(line.get_color(), outside),
            verticalalignment="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linewidth": 0.7,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )


def spread(places: Array, gap: float, low: float = 0.0, high: float = 1.0) -> Array:
    """Return places at least ``gap`` apart, in the same order, as near to those given as can be.

    With z_i = u_i + i gap this is isotonic regression of u_i = y_i - i gap. Where all have no room between
    ``low`` and ``high``, they share it evenly.

    >>> spread(np.array([0.5, 0.5, 0.9]), 0.1)
    array([0.45, 0.55, 0.9 ])
    """
    from sklearn.isotonic import isotonic_regression

    count = places.size
    if (count - 1) * gap > high - low:
        gap = (high - low) / max(count - 1, 1)
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(count)
    found = isotonic_regression(places[order] - steps, y_min=low, y_max=high - steps[-1]) + steps
    spaced = np.empty(count)
    spaced[order] = found
    return spaced


# -- scales --------------------------------------------------------------------------------------------------


def on_log_scale(values: Iterable[Any]) -> bool:
    """Whether a logarithmic axis suits the values: all positive, and spread over decades.

    >>> on_log_scale([0.01, 0.1, 1, 10]), on_log_scale(range(1, 51)), on_log_scale([0, 1, 100])
    (True, False, False)
    """
    ordered = sorted(values)
    if len(ordered) < 2 or not ordered[0] > 0 or ordered[-1] < DECADES * ordered[0]:
        return False
    # The lower half of evenly spread values ends in the middle; that of decades, far below.
    return bool(ordered[(len(ordered) - 1) // 2] < (ordered[0] + ordered[-1]) / 4)


def slant_if_crowded(ax: Any) -> None:
    """Turn the labels below the axes where they would run into each other."""
    figure = ax.figure.figure
    room = 72.0 * figure.get_size_inches()[0] * 0.75 * ax.get_position().width / 0.775  # points, roughly
    texts = [label.get_text() for label in ax.get_xticklabels()]
    size = float(ax.get_xticklabels()[0].get_fontsize()) if texts else 0.0
    if sum(text_width(text, size) + size for text in texts) > room:
        ax.tick_params(axis="x", rotation=45)


def is_number(value: Any) -> bool:
    """Whether a value has a place on an axis of numbers."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and math.isfinite(value)


def number(value: float, digits: int = 4) -> str:
    """Return a number with so many digits, whole ones with all of theirs up to a million.

    >>> number(0.0015), number(3151.2, 3), number(1e-5), number(12), number(2e7)
    ('0.0015', '3151', '1e-05', '12', '2e+07')
    """
    if 10**digits <= abs(value) < 1e6 or (float(value).is_integer() and abs(value) < 1e6):
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def plain(text: Any) -> str:
    """Return a text that matplotlib draws as it stands: a formula is what is between two dollar signs."""
    return str(text).replace("$", r"\$")


# -- colours -------------------------------------------------------------------------------------------------


def series_colour(theme: Theme, index: int) -> str:
    """Return the colour of a line; beyond the sixth they come again."""
    return theme.series[index % len(theme.series)]


def text_colour(colour: str, theme: Theme) -> str:
    """Return a colour mixed with ink until it can be read as text on its ground."""
    ground, ink, own = (_rgb(part) for part in (theme.surface, theme.ink, colour))
    for share in np.linspace(0.0, 1.0, 11):
        mixed = (1 - share) * own + share * ink
        if contrast(mixed, ground) >= READABLE:
            break
    return "#" + bytes(round(255 * part) for part in mixed.tolist()).hex()


def luminance(colour: Any) -> float:
    """Return the relative luminance of a colour, from 0 for black to 1 for white (WCAG 2.1)."""
    parts = _rgb(colour)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(one: Any, other: Any) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.1)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _rgb(colour: Any) -> Array:
    from matplotlib.colors import to_rgb

    return np.array(to_rgb(colour if isinstance(colour, str) else tuple(np.asarray(colour)[:3])))


def ground_of(ax: Any) -> str:
    """Return the colour behind what is drawn inside the axes; white where there is none."""
    from matplotlib.colors import to_hex, to_rgba

    behind = _figure_face(ax)
    behind = np.ones(3) if behind is None else behind
    *own, alpha = to_rgba(ax.get_facecolor())
    return str(to_hex(alpha * np.array(own) + (1 - alpha) * behind))


def _figure_face(ax: Any) -> Array | None:
    """Return the colour of the figure, or of the part of it, that has one; None if all are transparent."""
    from matplotlib.colors import to_rgba

    for figure in (ax.figure, ax.figure.figure):  # a part of a figure, and the whole
        *own, alpha = to_rgba(figure.get_facecolor())
        if alpha >= 0.5:
            return np.array(own)
    return None


def require(condition: bool, message: str) -> None:
    """Raise an :class:`InputError` unless what is needed is there."""
    if not condition:
        raise InputError(message)
