"""What people ask to be shown of a tree, refused where it makes no sense, and what notebooks show."""

import xml.etree.ElementTree

import numpy as np
import pandas as pd
import pytest
import sklearn

from sixfold import DecisionTreeClassifier
from sixfold.errors import InputError
from sixfold.explain.trees import text

MODEL = DecisionTreeClassifier().fit([[1.0], [2.0], [3.0]], [0, 1, 0])
ALL = ("export_text", "export_rules", "export_graphviz", "export_svg")


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("decimals", [-1, 1.5, "two"])
def test_decimals_that_are_none_are_refused(method, decimals):
    with pytest.raises(InputError, match=f"decimals={decimals!r} is "):
        getattr(MODEL, method)(decimals=decimals)


@pytest.mark.parametrize("method", ["export_text", "export_graphviz", "export_svg"])
@pytest.mark.parametrize("depth", [-1, 1.5])
def test_depths_that_are_none_are_refused(method, depth):
    with pytest.raises(
        InputError, match=f"max_depth={depth!r} is .*: a whole number that is at least 0 or None"
    ):
        getattr(MODEL, method)(max_depth=depth)


@pytest.mark.parametrize("method", ["export_text", "export_rules", "export_graphviz"])
def test_no_categories_at_all_are_refused(method):
    with pytest.raises(InputError, match="max_categories=0 is out of range"):
        getattr(MODEL, method)(max_categories=0)


@pytest.mark.parametrize("method", ["export_text", "export_graphviz", "export_svg"])
@pytest.mark.parametrize("branches", [0, 1.5])
def test_no_branches_at_all_are_refused(method, branches):
    with pytest.raises(InputError, match=f"max_branches={branches!r} is "):
        getattr(MODEL, method)(max_branches=branches)


def test_a_drawing_is_not_written_to_a_folder_that_is_not_there(tmp_path):
    missing = tmp_path / "figures" / "tree.svg"
    with pytest.raises(
        InputError, match=r"There is no folder '.*figures' to write 'tree.svg' to\. Make it first"
    ):
        MODEL.export_svg(missing)
    missing.parent.mkdir()
    missing.write_text("old")
    assert MODEL.export_svg(missing) == missing.read_text()


@pytest.mark.parametrize("name", ["tree.png", "tree", "tree.svgz"])
def test_a_drawing_is_written_as_svg_alone(tmp_path, name):
    with pytest.raises(InputError, match=rf"path='.*{name}' does not end in \.svg"):
        MODEL.export_svg(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert MODEL.export_svg(str(tmp_path / "TREE.SVG")) == (tmp_path / "TREE.SVG").read_text()


def test_a_notebook_shows_the_picture():
    drawing = MODEL.export_svg()
    assert isinstance(drawing, str)
    assert drawing._repr_svg_() == drawing
    assert type(drawing._repr_svg_()) is str


def test_the_text_of_many_branches_takes_time_in_proportion(monkeypatch):
    sizes = []
    codes = np.arange(300.0)[:, None]
    model = DecisionTreeClassifier(categorical_features=[0]).fit(
        np.repeat(codes, 5, axis=0), [0, 1, 1, 1, 1] * 300
    )
    monkeypatch.setattr(text, "max", lambda many: sizes.append(len(many)) or max(many), raising=False)
    assert model.export_text().count("└─ ") == (model.tree_.node_count > 1)
    assert sum(sizes) <= 300


# -- in a notebook -------------------------------------------------------------------------------------


def shown_in_notebooks(model):
    """Return what a notebook shows, by whichever of the two ways it asks."""
    page = model._repr_mimebundle_()["text/html"]
    assert model._repr_html_() == page
    return page


def test_a_notebook_shows_a_fitted_tree_as_its_picture():
    assert shown_in_notebooks(MODEL).count("<svg") == 1
    assert MODEL.export_svg(max_depth=None) in shown_in_notebooks(MODEL)
    assert "are shown" not in shown_in_notebooks(MODEL)  # nothing is left out


def test_before_it_is_fitted_scikit_learns_page_is_shown():
    page = DecisionTreeClassifier(max_depth=3)._repr_mimebundle_()["text/html"]
    assert "sk-estimator" in page
    assert "max_depth" in page
    assert "Decision tree:" not in page


def test_of_a_large_tree_a_notebook_shows_the_first_levels_and_says_how_to_see_the_others():
    rng = np.random.default_rng(0)
    model = DecisionTreeClassifier().fit(rng.normal(size=(500, 3)), rng.integers(0, 2, 500))
    page = shown_in_notebooks(model)
    assert float(page.partition('width="')[2].partition('"')[0]) <= 1200
    nodes = model.tree_.node_count
    assert f"<p>15 of {nodes} nodes are shown. For all of them use <code>export_svg(max_depth=None" in page


def test_names_are_no_html():
    table = pd.DataFrame({"<script>alert(1)</script>": ["<b>", "a & b", "<b>", "a & b"]})
    page = shown_in_notebooks(DecisionTreeClassifier().fit(table, ["<i>", "no", "<i>", "no"]))
    xml.etree.ElementTree.fromstring(page)
    assert not any(given in page for given in ("<script", "<b>", "<i>", "a & b"))
    assert "&lt;script&gt;" in page


def test_who_asks_scikit_learn_for_text_gets_no_picture():
    with sklearn.config_context(display="text"):
        assert not hasattr(MODEL, "_repr_html_")
        assert list(MODEL._repr_mimebundle_()) == ["text/plain"]
