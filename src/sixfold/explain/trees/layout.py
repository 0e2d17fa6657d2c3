"""Where the boxes of a drawn tree go: rows of nodes by depth, a parent midway over its children.

After Reingold and Tilford, "Tidier drawings of trees", IEEE Transactions on Software Engineering 7 (1981):
subtrees are laid out first and pushed together until their contours, the outermost ends in each row, are a
gap apart. Children are packed once to the left and once to the right, and stand midway between the two: each
packing keeps every gap, so the mean of both does, and a small child between two great ones stands in the
middle. A slot is as wide as the node's box or the label above it, whichever is wider, so neither can overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 14.0  # between the slots of siblings
COUSIN_GAP = 28.0  # between those of other nodes in a row, so that families can be told apart


@dataclass(frozen=True)
class Rectangle:
    """A rectangle, measured from the upper left corner of the drawing."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Return where it ends."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Return its lower edge."""
        return self.top + self.height

    @property
    def centre(self) -> float:
        """Return where its middle is, from the left."""
        return self.left + self.width / 2


@dataclass
class _Contour:
    """The outermost ends of a subtree in each row, from its root down, measured from the root's middle."""

    left: list[float]
    right: list[float]

    def mirrored(self) -> _Contour:
        return _Contour([-x for x in self.right], [-x for x in self.left])


def tidy_centres(children: Sequence[Sequence[int]], widths: Sequence[float]) -> list[float]:
    """Return the middle of each node's slot, the leftmost slot beginning at 0.

    Parameters
    ----------
    children : sequence of sequences of int
        The children of each node, from left to right; they have greater numbers than their parent.
    widths : sequence of float
        The width of each node's slot.
    """
    contours: dict[int, _Contour] = {}
    offsets = [0.0] * len(children)  # from the parent's middle
    for node in reversed(range(len(children))):
        below = [contours.pop(child) for child in children[node]]
        places = _places(below)
        middle = (places[0] + places[-1]) / 2 if places else 0.0
        for child, place in zip(children[node], places, strict=True):
            offsets[child] = place - middle
        joined = _join(below, [place - middle for place in places])
        half = widths[node] / 2
        contours[node] = _Contour([-half, *joined.left], [half, *joined.right])
    centres = [0.0] * len(children)
    centres[0] = -min(contours[0].left)
    for node, some in enumerate(children):
        for child in some:
            centres[child] = centres[node] + offsets[child]
    return centres


def _places(contours: list[_Contour]) -> list[float]:
    """Return where siblings stand, the first at 0: midway between packed to the left and to the right."""
    leftmost = _pack(contours)
    mirrored = _pack([contour.mirrored() for contour in reversed(contours)])
    return [
        (left + leftmost[-1] - right) / 2 for left, right in zip(leftmost, reversed(mirrored), strict=True)
    ]


def _pack(contours: list[_Contour]) -> list[float]:
    """Return the least places from left to right at which no two contours are less than a gap apart."""
    places: list[float] = []
    reached: list[float] = []  # how far right each row is taken
    for contour in contours:
        gaps = [GAP] + [COUSIN_GAP] * len(reached)
        pushed = [end + gap - left for end, gap, left in zip(reached, gaps, contour.left, strict=False)]
        place = max(pushed, default=0.0)
        places.append(place)
        reached[: len(contour.right)] = [place + right for right in contour.right]
    return places


def _join(contours: list[_Contour], places: list[float]) -> _Contour:
    """Return the contour around siblings that stand in their places."""
    joined = _Contour([], [])
    for contour, place in zip(contours, places, strict=True):
        deep = len(joined.left)
        joined.left += [place + left for left in contour.left[deep:]]
        joined.right[: len(contour.right)] = [place + right for right in contour.right]
    return joined
