"""How wide a text is drawn, without a font at hand.

The widths are those of DejaVu Sans and Verdana, for each character the greater one; they are the widest of
the common sans-serif fonts, so that what fits here fits in a substitute too.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import takewhile

FONT_FAMILY = "Verdana, DejaVu Sans, Geneva, sans-serif"
ELLIPSIS = "…"
ALPHANUMERIC = string.ascii_letters + string.digits

# Thousandths of the font size for the characters from the blank to the tilde.
_ASCII = (
    *(352, 401, 460, 838, 636, 1076, 780, 275, 454, 454, 636, 838, 364, 454, 364, 454),
    *(636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 454, 454, 838, 838, 838, 545),
    *(1000, 684, 686, 698, 771, 632, 575, 776, 752, 421, 455, 693, 557, 863, 748, 788),
    *(603, 788, 696, 684, 616, 732, 684, 989, 685, 615, 685, 454, 454, 454, 838, 636),
    *(636, 613, 635, 550, 635, 615, 352, 635, 634, 278, 344, 592, 278, 974, 634, 612),
    *(635, 635, 427, 521, 394, 634, 592, 818, 592, 592, 525, 636, 454, 636, 838),
)
_BOLD = 1.2  # times the regular width; 1.05 to 1.24 letter by letter


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a line of text in a font of a size, rather too much than too little."""
    return size * (_BOLD if bold else 1.0) * sum(map(_character_width, text))


@lru_cache(maxsize=4096)
def _character_width(character: str) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):  # drawn over the one before
        return 0.0
    base = unicodedata.normalize("NFD", character)[0]
    if " " <= base <= "~":
        return _ASCII[ord(base) - ord(" ")] / 1000
    # Ideographs fill a square; emoji are up to 1.3 wide.
    return 1.3 if ord(character) >= 0x1F000 else 1.0


def fit_text(text: str, width: float, size: float, bold: bool = False) -> str:
    """Return as much of a text as has room in a width, cut in the middle if that is not all."""
    return cut_middle(text, lambda part: text_width(part, size, bold) <= width)


def cut_middle(text: str, fits: Callable[[str], bool]) -> str:
    """Return the text if it fits, else its beginning and its end: what tells names apart may be either.

    >>> cut_middle("average_temperature_2020", lambda part: len(part) <= 13)
    'averag…e_2020'
    """
    if fits(text):
        return text
    kept = max((n for n in range(len(text)) if fits(_ends(text, n))), default=0)
    return _ends(text, kept)


def _ends(text: str, kept: int) -> str:
    """Return so many letters of a text, from both its ends."""
    head, tail = text[: (kept + 1) // 2].rstrip("\u200d "), text[len(text) - kept // 2 :]
    while tail and unicodedata.category(tail[0]) in ("Mn", "Me", "Cf"):  # belongs to one that is gone
        tail = tail[1:]
    return f"{head}{ELLIPSIS}{tail.lstrip()}"


def short_names(names: Sequence[str], fits: Callable[[str], bool]) -> list[str]:
    """Return names that fit, no two alike: cut in the middle, or up to where they differ.

    >>> long = ["sensor_01_of_the_engine", "sensor_02_of_the_engine", "speed"]
    >>> short_names(long, lambda part: len(part) <= 10)
    ['…01_o…gine', '…02_o…gine', 'speed']
    """
    short = {name: cut_middle(name, fits) for name in names}
    alike: dict[str, list[str]] = {}
    for name, one in short.items():
        alike.setdefault(one, []).append(name)
    for group in alike.values():
        common = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*group, strict=False)))
        words = len(group[0][:common].rstrip(ALPHANUMERIC))  # a number is not cut in two
        common = words or common
        if len(group) > 1 and common:
            rest = short_names([name[common:] for name in group], lambda part: fits(ELLIPSIS + part))
            short |= {
                name: ELLIPSIS + one.removeprefix(ELLIPSIS) for name, one in zip(group, rest, strict=True)
            }
    return [short[name] for name in names]
