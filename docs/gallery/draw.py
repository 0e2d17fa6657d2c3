"""Draws the gallery: ``python docs/gallery/draw.py`` writes every picture, light and dark, and README.md.

The figures are the functions in ``FIGURES`` of curves.py and geometry.py. The page shows what the first line
of their docstring says and their code, so that it cannot say anything else than what was drawn. Names as
arguments draw these alone.
"""

from __future__ import annotations

import inspect
import io
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

HERE = Path(__file__).parent
Draw = Callable[[bool], Any]
INTRODUCTION = """\
# Gallery

Every function of `sixfold.plot`, drawn from iris, breast cancer, wine, digits and diabetes. Each takes
`ax=None` and returns the Axes; colours suit people with any colour vision and follow the ground. Pictures are
light or dark as your browser prefers. `python docs/gallery/draw.py` draws them and writes this page; the data
come from the helpers in [curves.py](curves.py) and [geometry.py](geometry.py). The counterparts of textbook
figures are in [figures.md](../figures.md).
"""


def entry(draw: Draw) -> str:
    """Return what the page says of a figure."""
    about = (inspect.getdoc(draw) or "").splitlines()[0].removeprefix("Draw ")
    source = inspect.getsource(draw)
    body = textwrap.dedent(source[source.index('"""', source.index('"""') + 3) + 4 :]).strip()
    code = body.replace(", dark=dark", "").replace("dark=dark", "").replace("return ", "ax = ")
    name = draw.__name__.replace("_", "-")
    return (
        f"## {draw.__name__.replace('_', ' ').capitalize()}\n\n{about[0].upper()}{about[1:]}\n\n"
        f"```python\n{code}\n```\n\n"
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{name}-dark.png">'
        f'<img alt="{about}" src="{name}-light.png" width="800"></picture>\n'
    )


def write(figure: Figure, path: Path) -> None:
    """Write a figure 800 pixels wide, or as wide as it is, with a palette; the same bytes every time."""
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="png", dpi=100, facecolor=figure.get_facecolor(), metadata={"Software": None}
    )
    image = Image.open(buffer).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def main(names: list[str]) -> None:
    """Draw all figures, or those with these names."""
    sys.path.insert(0, str(HERE))
    import curves

    import geometry

    figures: list[Draw] = [*curves.FIGURES, *geometry.FIGURES]
    with mpl.rc_context(mpl.rcParamsDefault):
        mpl.use("agg")
        for draw in figures:
            if not names or draw.__name__ in names:
                for dark in (False, True):
                    path = HERE / f"{draw.__name__.replace('_', '-')}-{'dark' if dark else 'light'}.png"
                    write(draw(dark).figure, path)
    (HERE / "README.md").write_text("\n".join([INTRODUCTION, *map(entry, figures)]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
