"""A drawing is measured: nothing overlaps, everything is inside, and the bars are as long as the shares."""

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.trees.random_trees import trees
from learners.trees.small_trees import (
    COLOURS,
    IRIS,
    VAMPIRES,
    build,
    colours,
    iris,
    leaf,
    one_leaf,
    split,
    vampires,
)
from sixfold import DecisionTreeClassifier
from sixfold.errors import InputError
from sixfold.explain.palette import COLOURS as PALETTE
from sixfold.explain.palette import OTHERS, class_colours
from sixfold.explain.text import fit_text, short_names, text_width
from sixfold.explain.trees.drawing import BODY, HEADING, MOST_TEXT, PADDING, lay_out
from sixfold.explain.trees.layout import COUSIN_GAP, GAP, tidy_centres
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.svg import export_svg
from sixfold.solvers.trees.fitted_tree import Reason

SVG = "{http://www.w3.org/2000/svg}"
HAIR = 1e-6  # of rounding


def parse(svg):
    return ET.fromstring(svg)


def texts(svg):
    return [element.text for element in parse(svg).iter(f"{SVG}text")]


def titles(svg):
    return [element.text for element in parse(svg).iter(f"{SVG}title")]


def overlap(a, b):
    across = min(a.right, b.right) - max(a.left, b.left)
    down = min(a.bottom, b.bottom) - max(a.top, b.top)
    return across > HAIR and down > HAIR


def families(depth, branches, classes=2):
    """A tree in which every node has so many children."""
    if depth == 0:
        return leaf(*range(1, classes + 1))
    return split(0, {code: families(depth - 1, branches, classes) for code in range(branches)})


# -- places ------------------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(drawn=trees(), max_depth=st.none() | st.integers(0, 6))
def test_nothing_overlaps_and_everything_is_inside(drawn, max_depth):
    tree, names = drawn
    drawing = lay_out(tree, names, max_depth=max_depth)
    boxes = [node.box for node in drawing.nodes.values()]
    labels = [edge.box for edge in drawing.edges]
    legend = [entry.box for entry in drawing.legend]
    everything = boxes + labels + legend
    assert not any(overlap(a, b) for a, b in itertools.combinations(everything, 2))
    for box in everything:
        assert box.left >= 0
        assert box.top >= 0
        assert box.right <= drawing.width + HAIR
        assert box.bottom <= drawing.height + HAIR


@settings(max_examples=80, deadline=None)
@given(drawn=trees())
def test_text_fits_into_its_box(drawn):
    tree, names = drawn
    drawing = lay_out(tree, names)
    for node in drawing.nodes.values():
        room = node.box.width - 2 * PADDING + HAIR
        assert text_width(node.heading, HEADING, bold=True) <= room
        assert all(text_width(line, BODY) <= room for line in node.lines)
    for edge in drawing.edges:
        assert text_width(edge.text, BODY) <= edge.box.width


@settings(max_examples=80, deadline=None)
@given(drawn=trees())
def test_lines_cross_no_box_no_label_and_no_other_line(drawn):
    tree, names = drawn
    drawing = lay_out(tree, names, max_depth=None)
    root = parse(export_svg(tree, names, max_depth=None))
    boxes = [node.box for node in drawing.nodes.values()] + [edge.box for edge in drawing.edges]
    spans = {}  # the ends of the lines across, by their height and the parent they start from
    for path in root.iter(f"{SVG}path"):
        for start, lines in strokes(path.get("d")):
            for a, b in lines:
                assert not any(through(box, a, b) for box in boxes)
                if a[1] == b[1]:
                    spans.setdefault(a[1], {}).setdefault(start[0], []).extend([a[0], b[0]])
    for by_parent in spans.values():
        ranges = sorted((min(ends), max(ends)) for ends in by_parent.values())
        assert all(left[1] < right[0] for left, right in itertools.pairwise(ranges))


def strokes(way):
    """Yield the start and the straight lines of each part of a path; a bend is taken as its two legs."""
    for part in way.split("M")[1:]:
        x, y = start = tuple(map(float, re.match(r"([-\d.]+) ([-\d.]+)", part).groups()))
        lines = []
        for kind, numbers in re.findall(r"([VHq])([-\d. ]+)", part):
            steps = list(map(float, numbers.split()))
            before = (x, y)
            if kind == "q":
                corner = (x + steps[0], y + steps[1])
                x, y = x + steps[2], y + steps[3]
                lines += [(before, corner), (corner, (x, y))]
            else:
                x, y = (x, steps[0]) if kind == "V" else (steps[0], y)
                lines.append((before, (x, y)))
        yield start, lines


def through(box, a, b):
    """Whether a line across or down touches the inside of a box, less the hundredth SVG is rounded to."""
    across = min(box.right - 0.02, max(a[0], b[0])) - max(box.left + 0.02, min(a[0], b[0]))
    down = min(box.bottom - 0.02, max(a[1], b[1])) - max(box.top + 0.02, min(a[1], b[1]))
    return across >= 0 and down >= 0


@settings(max_examples=80, deadline=None)
@given(drawn=trees())
def test_a_parent_is_midway_over_its_children_in_order(drawn):
    tree, names = drawn
    nodes = lay_out(tree, names, max_depth=None).nodes
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        centres = [nodes[child].box.centre for child in tree.children(node)]
        assert centres == sorted(centres)
        assert nodes[node].box.centre == pytest.approx((centres[0] + centres[-1]) / 2)
        assert len({nodes[child].box.top for child in tree.children(node)}) == 1
        assert all(nodes[child].box.top > nodes[node].box.bottom for child in tree.children(node))


def test_places_worked_out_by_hand():
    # Two children of width 10 are a gap apart, and the parent midway.
    assert tidy_centres([[1, 2], [], []], [4, 10, 10]) == pytest.approx([5 + (10 + GAP) / 2, 5, 15 + GAP])
    # A parent wider than its children reaches beyond them.
    assert tidy_centres([[1], []], [30, 10]) == [15, 15]


def test_a_small_child_stands_midway_between_great_ones():
    children = [[1, 4, 5], [2, 3], [], [], [], [6, 7], [], []]
    centres = tidy_centres(children, [10.0] * 8)
    assert centres[4] == pytest.approx((centres[1] + centres[5]) / 2)
    assert centres[6] - centres[3] == pytest.approx(10 + COUSIN_GAP)


def test_a_mirrored_tree_has_a_mirrored_drawing():
    children = [[1, 2], [3, 4, 5], [], [], [6, 7], [], [], []]
    mirrored = [some[::-1] for some in children]
    widths = [20.0, 30.0, 12.0, 8.0, 10.0, 40.0, 25.0, 6.0]
    ours, theirs = tidy_centres(children, widths), tidy_centres(mirrored, widths)
    assert np.array(ours) - ours[0] == pytest.approx(theirs[0] - np.array(theirs))


def test_sixteen_leaves_and_many_branches_are_drawn():
    tree = build(families(4, 2), [1])
    names = TreeNames(("x",), (tuple("abcdefghi"),), ("no", "yes"))
    assert len(lay_out(tree, names).nodes) == 31
    wide = lay_out(build(families(2, 9), [1]), names)
    assert len(wide.edges) == 90


def test_a_tree_may_be_deeper_than_python_can_recurse():
    root = leaf(0, 1)
    for step in range(1200, 0, -1):
        root = split(0, (root, leaf(1, 0)), threshold=float(step))
    drawing = lay_out(build(root, [0]), TreeNames(("x",), (None,), ("a", "b")), max_depth=None)
    assert len(drawing.nodes) == 2401


# -- what it says ------------------------------------------------------------------------------------------


def test_the_worked_example_in_words():
    svg = export_svg(vampires(), VAMPIRES)
    assert texts(svg) == [
        *("no", "yes"),  # the legend
        *("no", "yes", "unknown", "no", "yes"),  # the lines
        *("shadow", "8 rows, entropy 0.954", "yes", "100%, 1 row", "no", "100%, 3 rows"),
        *("garlic", "4 rows, entropy 1", "yes", "100%, 2 rows", "no", "100%, 2 rows"),
    ]
    assert "node 0: shadow\n8 rows, entropy 0.954\n62% no: 5\n38% yes: 3" in titles(svg)
    assert "shadow unknown" in titles(svg)


def test_thresholds_and_groups_are_on_the_lines():
    labels = [edge.text for edge in lay_out(iris(), IRIS).edges]
    assert labels == ["≤ 0.8", "> 0.8", "≤ 1.75", "> 1.75", "≤ 1.35", "> 1.35", "≤ 4.85", "> 4.85"]
    labels = [edge.text for edge in lay_out(colours(), COLOURS).edges]
    assert labels == [
        *("red, blue, white or unknown", "green, black", "red", "blue, white", "known", "unknown")
    ]


def test_of_many_categories_the_first_are_shown_and_the_others_counted():
    words = ("almond", "anise", "creosote", "fishy", "foul", "musty")
    names = TreeNames(("odour",), (words,), ("no", "yes"))
    many = leaf(3, 1)
    tree = build(split(0, dict.fromkeys(range(5), many) | {5: leaf(0, 2)}, unknown=many), [1])
    first, second = lay_out(tree, names).edges
    assert (first.text, second.text) == ("almond, anise, ... 3 more or unknown", "musty")
    assert first.whole == "odour in {almond, anise, creosote, fishy, foul} or unknown"


def test_bars_are_as_long_as_the_shares():
    fills = {colour: label for label, colour in enumerate(PALETTE)}
    tree = iris()
    groups = [g for g in parse(export_svg(tree, IRIS)).iter(f"{SVG}g") if g.find(f"{SVG}title") is not None]
    nodes = [g for g in groups if g.find(f"{SVG}title").text.startswith("node ")]
    assert len(nodes) == tree.node_count
    for node, group in enumerate(nodes):
        bars = [r for r in group.iter(f"{SVG}rect") if r.get("fill") in fills and r.get("stroke") is None]
        widths = np.zeros(3)
        for bar in bars:
            widths[fills[bar.get("fill")]] = float(bar.get("width"))
        assert widths / widths.sum() == pytest.approx(tree.totals[node] / tree.totals[node].sum(), abs=1e-3)


def test_depth_is_cut_and_what_is_below_counted():
    svg = export_svg(iris(), IRIS, max_depth=1)
    assert "… 6 nodes below" in texts(svg)
    assert len(lay_out(iris(), IRIS, max_depth=1).nodes) == 3
    assert "below" not in export_svg(iris(), IRIS, max_depth=3)
    with pytest.raises(InputError, match="max_depth=-2 is out of range"):
        export_svg(iris(), IRIS, max_depth=-2)


def test_a_stopped_node_says_so():
    tree = build(split(0, (leaf(1, 0), leaf(3, 3, reason=Reason.STOPPED)), threshold=2.0), [0])
    assert "growth was stopped" in texts(export_svg(tree, TreeNames(("x",), (None,), ("a", "b"))))


def test_one_leaf_is_a_drawing():
    assert texts(export_svg(one_leaf(), VAMPIRES)) == ["no", "yes", "no", "62%, 8 rows"]


def test_long_names_are_shortened_and_given_in_full():
    long = "a name that no box could hold " * 4
    names = TreeNames((long, "size"), ((long, *"bcde"), None), (long, "dear"))
    svg = export_svg(colours(), names)
    assert long not in texts(svg)
    assert all(len(text) < 50 for text in texts(svg))
    assert long in titles(svg)
    assert f"{long} in {{{long}, c, d}} or unknown" in titles(svg)
    assert texts(svg).count(fit_text(long, MOST_TEXT, HEADING, bold=True)) == 3  # two splits and a leaf


@settings(max_examples=60, deadline=None)
@given(drawn=trees(names=st.text(max_size=60) | st.sampled_from(["<&>", '"', "]]>", "\x00", "\ud800", "\n"])))
def test_any_names_make_well_formed_xml_that_utf_8_can_hold(drawn):
    tree, names = drawn
    svg = export_svg(tree, names)
    root = parse(svg.encode())
    width, height = float(root.get("width")), float(root.get("height"))
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    for rect in root.iter(f"{SVG}rect"):
        left, top = float(rect.get("x", 0)), float(rect.get("y", 0))
        assert min(left, top) >= 0
        assert left + float(rect.get("width")) <= width + 0.02
        assert top + float(rect.get("height")) <= height + 0.02


def test_the_file_is_written_whole(tmp_path):
    path = tmp_path / "tree.svg"
    path.write_text("old")
    svg = export_svg(iris(), IRIS, path=path)
    assert path.read_text(encoding="utf-8") == svg
    assert [file.name for file in tmp_path.iterdir()] == ["tree.svg"]


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "tree.svg").mkdir()
    with pytest.raises(OSError, match=r"tree\.svg"):
        export_svg(iris(), IRIS, path=tmp_path / "tree.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["tree.svg"]


# -- colours and widths ------------------------------------------------------------------------------------


def test_more_classes_than_colours_have_textures_and_then_share_one():
    assert class_colours(np.ones(24)) == {label: label for label in range(24)}
    totals = np.arange(30.0)
    given_colours = class_colours(totals)
    assert [label for label in range(30) if given_colours[label] == OTHERS] == list(range(6))  # the rarest
    assert len({given_colours[label] for label in range(6, 30)}) == 24
    tree = build(leaf(*range(1, 31)), [0])
    svg = export_svg(tree, TreeNames(("x",), (None,), tuple(f"class {i}" for i in range(30))))
    assert "6 other classes" in texts(svg)
    used = set(re.findall(r"url\(#([^)]*)\)", svg))
    assert used == set(re.findall(r'<pattern id="([^"]*)"', svg))
    assert len(used) == 16


def test_widths_of_text():
    assert text_width("il", 10) < text_width("mw", 10) < text_width("mw", 10, bold=True)
    assert text_width("é", 10) == text_width("e\u0301", 10) == text_width("e", 10)
    assert text_width("日本", 10) == 20.0
    assert text_width("", 10) == 0.0


@given(st.text(max_size=50), st.floats(20, 200))
def test_shortened_text_fits_and_has_both_ends(text, width):
    shown = fit_text(text, width, 10.0)
    assert text_width(shown, 10.0) <= width
    head, cut, tail = shown.partition("…")
    assert shown == text or (cut and text.startswith(head) and text.endswith(tail))


def test_long_names_of_columns_differ_in_the_boxes():
    columns = [f"average measured temperature of the outer sensor number {k} in degrees" for k in range(4)]
    short = short_names(columns, lambda part: text_width(part, HEADING, bold=True) <= MOST_TEXT)
    assert len(set(short)) == 4
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = (X > 0) @ [1, 2, 4, 8] % 5
    model = DecisionTreeClassifier(max_depth=3).fit(pd.DataFrame(X, columns=columns), y)
    headings = {text for text in texts(model.export_svg()) if "…" in text}
    assert len(headings) == np.unique(model.tree_.column[model.tree_.column >= 0]).size


def test_widths_are_not_below_those_of_the_font():
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.textpath import TextPath

    for text in ("petal width (cm)", "worst concave points", "12,345 rows, entropy 0.954", "≤ 105.95", "äÖé"):
        font = FontProperties(fname=findfont(f"{matplotlib.rcParamsDefault['font.sans-serif'][0]}"))
        drawn = TextPath((0, 0), text, size=100, prop=font).get_extents().width / 100
        assert drawn <= text_width(text, 1.0) <= 1.35 * drawn


# -- many branches -----------------------------------------------------------------------------------------


def towns(branches=300):
    """One branch a town, the first and the last with the most rows; the last is split once more."""
    sizes = [branches, *range(1, branches - 1)]
    leaves = {code: leaf(size, 1) for code, size in enumerate(sizes)}
    inner = split(1, (leaf(2 * branches, 1), leaf(1, 9)), threshold=0.5)
    names = TreeNames(("town", "x"), (tuple(f"t{i}" for i in range(branches)), None), ("a", "b"))
    return build(split(0, leaves | {branches - 1: inner}), [1, 0]), names


def test_of_many_branches_those_with_the_most_rows_are_drawn():
    tree, names = towns()
    drawing = lay_out(tree, names, max_branches=3)
    assert [edge.text for edge in drawing.edges if edge.parent == 0] == ["t0", "t298", "t299", "others"]
    rest = drawing.nodes[-1]
    rows = sum(range(1, 298)) + 297
    assert (rest.heading, rest.lines) == ("… 297 more branches", (f"{rows:,} rows",))
    assert (rest.totals == [sum(range(1, 298)), 297]).all()
    for a, b in itertools.combinations([box.box for box in drawing.nodes.values()], 2):
        assert not overlap(a, b)
    places = [drawing.nodes[child].box.left for child in (1, 299, 300, -1)]
    assert places == sorted(places)
    svg = export_svg(tree, names)
    assert "… 288 more branches" in texts(svg)
    assert len(lay_out(tree, names, max_branches=None).nodes) == tree.node_count


def test_weights_and_classes_that_are_numbers_are_said():
    tree = build(split(0, (leaf(1.5, 0.5, rows=7), leaf(0, 2)), threshold=2.0), [0])
    said = texts(export_svg(tree, TreeNames(("x",), (None,), (0, 1))))
    assert said[:2] == ["class 0", "class 1"]  # the legend
    assert said.count("class 0") == said.count("class 1") == 2
    assert "75% by weight, 7 rows" in said
