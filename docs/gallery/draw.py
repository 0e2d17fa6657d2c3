"""Draws the gallery: ``python docs/gallery/draw.py`` writes every picture, light and dark, and README.md.

The figures are the functions in ``FIGURES`` of curves.py and geometry.py. The page shows what their docstring
says and their code, with the imports that it needs, so that it cannot say anything else than what was drawn.
Names as arguments draw these alone.
"""

from __future__ import annotations

import ast
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
Compute = Callable[[], Callable[[bool], Any]]
INTRODUCTION = """\
# Gallery

Every function of `sixfold.plot`, drawn from iris, breast cancer, wine, digits and diabetes. Each takes
`ax=None` and returns the Axes; colours suit people with any colour vision and follow the ground. Every block
runs by itself; `ax.figure.savefig("figure.png")` keeps what it draws, and a notebook shows it. Pictures are
light or dark as your browser prefers. `python docs/gallery/draw.py` draws them and writes this page. The
counterparts of textbook figures are in [figures.md](../figures.md).
"""


def entry(compute: Compute) -> str:
    """Return what the page says of a figure."""
    about = inspect.cleandoc(compute.__doc__ or "").removeprefix("Draw ")
    about = about[0].upper() + about[1:]
    name = compute.__name__.replace("_", "-")
    return (
        f"## {compute.__name__.replace('_', ' ').capitalize()}\n\n{about}\n\n"
        f"```python\n{code(compute)}\n```\n\n"
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{name}-dark.png">'
        f'<img alt="{about.splitlines()[0]}" src="{name}-light.png" width="800"></picture>\n'
    )


def code(compute: Compute) -> str:
    """Return the code of a figure, with the imports that it needs."""
    source = inspect.getsource(compute)
    body = textwrap.dedent(source[source.index('"""', source.index('"""') + 3) + 4 :]).strip()
    body = body.replace("return lambda dark: ", "ax = ").replace(", dark=dark", "").replace("dark=dark", "")
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    module = inspect.getmodule(compute)
    assert module is not None
    imports = []
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [one for one in node.names if (one.asname or one.name) in used]
            if node.names:
                imports.append(ast.unparse(node))
    return "\n".join(imports) + "\n\n" + body


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

    figures: list[Compute] = [*curves.FIGURES, *geometry.FIGURES]
    with mpl.rc_context(mpl.rcParamsDefault):
        mpl.use("agg")
        for compute in figures:
            if not names or compute.__name__ in names:
                draw = compute()
                for dark in (False, True):
                    path = HERE / f"{compute.__name__.replace('_', '-')}-{'dark' if dark else 'light'}.png"
                    write(draw(dark).figure, path)
    (HERE / "README.md").write_text("\n".join([INTRODUCTION, *map(entry, figures)]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
