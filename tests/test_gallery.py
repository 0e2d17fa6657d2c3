"""The pictures of the documentation are there, small, and show every plot; their code runs by itself."""

import ast
import builtins
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

from sixfold import plot

DOCS = Path(__file__).parents[1] / "docs"
GALLERY, FIGURES = DOCS / "gallery", DOCS / "figures"
MOST_BYTES = 60_000
PICTURES = sorted(GALLERY.glob("*.png"))


def load(name):
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", GALLERY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def figures():
    return [*load("curves").FIGURES, *load("geometry").FIGURES]


def test_every_plot_is_in_the_gallery(figures):
    used = "".join(inspect.getsource(draw) for draw in figures)
    others = {"plot_model", "plot_search"} | {draw.__name__ for draw in figures}  # by the method plot()
    assert not [name for name in plot.__all__ if f"plot.{name}(" not in used and name not in others]


def test_the_page_says_what_is_drawn(figures):
    page, draw = (GALLERY / "README.md").read_text(encoding="utf-8"), load("draw")
    assert page == "\n".join([draw.INTRODUCTION, *map(draw.entry, figures)])


def test_every_block_has_all_names_that_it_uses():
    blocks = re.findall(r"```python\n(.*?)```", (GALLERY / "README.md").read_text("utf-8"), flags=re.DOTALL)
    for block in blocks:
        nodes = list(ast.walk(ast.parse(block)))
        imported = {
            one.asname or one.name
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for one in node.names
        }
        names = [node for node in nodes if isinstance(node, ast.Name)]
        made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        assert used <= imported | made | set(dir(builtins)), block
        assert imported <= used, block
        assert "ax" in made


QUICK = ("lasso_path", "coefficients", "history", "perceptron_history", "residuals", "calibration",
         "threshold", "widest_margin", "chosen_columns", "tree", "losses", "overfitting")  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_a_block_runs_by_itself(name, figures):
    (compute,) = [one for one in figures if one.__name__ == name]
    names = {}
    exec(compile(load("draw").code(compute), name, "exec"), names)
    assert hasattr(names["ax"], "get_title")


def test_every_figure_is_there_light_and_dark_and_no_other(figures):
    names = {draw.__name__.replace("_", "-") for draw in figures}
    assert {path.name for path in PICTURES} == {
        f"{name}-{ground}.png" for name in names for ground in ("light", "dark")
    }


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small_and_has_its_ground(path):
    assert path.stat().st_size < MOST_BYTES
    with Image.open(path) as image:
        assert image.width <= 1000
        corner = image.convert("L").getpixel((0, 0))
    assert corner < 60 if path.stem.endswith("dark") else corner > 240


def test_the_page_of_figures_shows_every_picture_once():
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(figures/([\w-]+\.png)\)", page)
    assert sorted(shown) == sorted(path.name for path in FIGURES.glob("*.png"))


def test_every_figure_of_the_page_has_code_and_words_before_it():
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    for part in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        title, caption, rest = part.split("\n\n", 2)
        assert len(caption) > 20, title
        assert re.match(r"```python\n.*?```\n\n!\[", rest, flags=re.DOTALL), title
