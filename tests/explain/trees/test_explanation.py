"""An explanation is checked against rows routed by the definition, and against sentences written by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learners.trees.random_trees import random_rows, trees
from learners.trees.small_trees import (
    COLOURS,
    IRIS,
    VAMPIRES,
    build,
    colours,
    iris,
    leaf,
    one_leaf,
    route,
    split,
    vampires,
)
from sixfold.explain.trees.explanation import TreeChange, explain_row
from sixfold.explain.trees.names import TreeNames
from sixfold.solvers.trees.fitted_tree import Reason


def explain(tree, names, values):
    """Explain a row of values, with the codes that its categories have."""
    row = np.array(
        [
            math.nan if value is None
            else value if names.categories[column] is None
            else names.categories[column].index(value) if value in names.categories[column]
            else -1
            for column, value in enumerate(values)
        ],
        dtype=float,
    )  # fmt: skip
    return explain_row(tree, names, row, values)


# -- the way -----------------------------------------------------------------------------------------------


def test_the_way_of_a_row_with_an_unknown_value():
    found = explain(vampires(), VAMPIRES, [None, "no", "pale", "odd"])
    assert found.answer == "yes"
    assert found.shares == {"no": 0.0, "yes": 1.0}
    assert (found.node, found.rows, found.impurity) == (4, 2, 0.0)
    first, second = found.path
    assert (first.node, first.column, first.value, first.test) == (0, "shadow", None, "shadow unknown")
    assert (first.rows, first.shares) == (8, [0.625, 0.375])
    assert first.impurity == pytest.approx(0.9544340029)
    assert (second.column, second.value, second.test, second.impurity) == ("garlic", "no", "garlic = no", 1.0)
    assert found.reason == "all rows are of one class"
    assert found.changes == [
        TreeChange("shadow", None, "shadow = yes", None, "no"),
        TreeChange("garlic", "no", "garlic = yes", None, "no"),
    ]
    assert str(found).splitlines()[-1] == "with garlic = yes the answer would be no"


def test_it_reads_as_a_few_lines():
    tree = replace(iris(), unit=math.log(2.0), limits={"max_depth": 3})
    assert str(explain(tree, IRIS, [4.0, 1.5])).splitlines() == [
        "answer: virginica (67%, 3 rows)",
        "  150 rows, entropy 1.099 nats: width = 1.5, so width > 0.8",
        "  100 rows, entropy 0.693 nats: width = 1.5, so width <= 1.75",
        "  51 rows, entropy 0.224 nats: width = 1.5, so width > 1.35",
        "  3 rows, entropy 0.637 nats: max_depth=3 was reached",
        "  33%: versicolor",
        "  67%: virginica",
        "with 0.8 < width <= 1.35 (width is 1.5) the answer would be versicolor",
    ]


def test_a_category_never_seen_stops_where_it_is_asked_for():
    found = explain(vampires(), VAMPIRES, ["faint", "no", "pale", "odd"])
    assert (found.answer, found.node, found.path) == ("no", 0, [])
    assert found.reason == "shadow = 'faint' was never seen here: the 8 rows of this node answer"


def test_an_unknown_value_never_seen_stops_where_it_is_asked_for():
    found = explain(vampires(), VAMPIRES, [None, None, "pale", "odd"])
    assert (found.answer, found.node, len(found.path)) == ("no", 3, 1)
    assert found.reason == "garlic unknown was never seen here: the 4 rows of this node answer"
    assert found.reason in str(found)


def test_a_category_seen_elsewhere_stops_too():
    tree = build(split(0, {0: leaf(4, 1), 3: leaf(0, 2)}), [1, 0])
    found = explain(tree, COLOURS, ["blue", 1.0])
    assert found.reason == "colour = 'blue' was never seen here: the 7 rows of this node answer"


def test_groups_and_known_values():
    found = explain(colours(), COLOURS, ["green", 3.0])
    assert [step.test for step in found.path] == ["colour in {green, black}", "size known"]
    assert "colour = green, so colour in {green, black}" in str(found)
    joined = explain(colours(), COLOURS, [None, 3.0])
    assert joined.path[0].test == "colour in {red, blue, white} or unknown"
    assert "colour unknown was never seen here: the 9 rows" in joined.reason


def test_one_leaf_and_a_stopped_leaf():
    tree = replace(one_leaf(), criterion="gini", limits={"min_samples_leaf": 5})
    found = explain(tree, VAMPIRES, ["no"] * 4)
    assert str(found).splitlines()[:2] == [
        "answer: no (62%, 8 rows)",
        "  8 rows, gini 0.469: min_samples_leaf=5 allows no split",
    ]
    tree = build(split(0, (leaf(1, 0), leaf(3, 3, reason=Reason.STOPPED)), threshold=2.0), [0])
    names = TreeNames(("x",), (None,), ("a", "b"))
    assert explain(tree, names, [5.0]).reason == "growth was stopped"


def test_plain_data_goes_into_json():
    names = TreeNames(("x",), (None,), (np.int64(3), np.int64(5)))
    tree = build(split(0, (leaf(1, 0), leaf(0, 3)), threshold=2.0), [0])
    found = explain_row(tree, names, np.array([1.0]), [np.float32(1.0)])
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (data["answer"], data["path"][0]["value"]) == (3, 1.0)
    assert data["changes"] == [{"column": "x", "value": 1.0, "test": "x > 2", "threshold": 2.0, "answer": 5}]


@settings(max_examples=150, deadline=None)
@given(drawn=trees(), seed=st.integers(0, 99))
def test_a_row_ends_where_the_definition_sends_it(drawn, seed):
    tree, names = drawn
    for row in random_rows(tree, 5, seed):
        found = explain_row(tree, names, row, row.tolist())
        end = route(tree, row)
        assert found.node == end
        assert [step.node for step in found.path] == tree.path_to(end)[:-1]
        assert list(found.shares.values()) == pytest.approx(tree.totals[end] / tree.totals[end].sum())
        assert found.answer == names.classes[tree.totals[end].argmax()]
        assert ("was never seen here" in found.reason) == (not tree.is_leaf[end])
        assert len(str(found).splitlines()) > len(found.path)


# -- what would change the answer --------------------------------------------------------------------------


def test_the_nearest_change_of_each_number():
    found = explain(iris(), IRIS, [4.0, 1.3])
    assert found.answer == "versicolor"
    assert found.changes == [TreeChange("width", 1.3, "1.35 < width <= 1.75", 1.35, "virginica")]


def test_a_change_may_lie_behind_a_test_that_is_not_on_the_way():
    beyond = split(0, (leaf(3, 0), leaf(0, 3)), threshold=7.0)
    tree = build(split(0, (leaf(2, 0), beyond), threshold=5.0), [0])
    names = TreeNames(("x",), (None,), ("a", "b"))
    assert explain(tree, names, [1.0]).changes == [TreeChange("x", 1.0, "x > 7", 7.0, "b")]


def test_of_categories_those_with_the_most_rows():
    found = explain(colours(), COLOURS, ["red", 1.0])
    # alone: green and black lead to 6 rows by their size, blue and white to 4
    assert found.changes == [TreeChange("colour", "red", "colour in {green, black}", None, "dear")]
    assert str(found).splitlines()[-1] == "with colour in {green, black} the answer would be dear"
    never_seen = explain(vampires(), VAMPIRES, ["faint", "no", "pale", "odd"])
    assert never_seen.changes == [TreeChange("shadow", "faint", "shadow = no", None, "yes")]


@settings(max_examples=150, deadline=None)
@given(drawn=trees(), seed=st.integers(0, 99))
def test_a_category_that_is_named_changes_the_answer_and_none_leads_to_more_rows(drawn, seed):
    tree, names = drawn
    names = replace(names, columns=tuple(f"column {i}" for i in range(len(names.columns))))
    for row in random_rows(tree, 3, seed):
        found = explain_row(tree, names, row, row.tolist())
        way = tree.path_to(found.node)
        for column in set(tree.column[way].tolist()) & set(np.flatnonzero(tree.kinds).tolist()):
            reached = {}
            for code in set(tree.code[: tree.first[-1]].tolist()):
                other = row.copy()
                other[column] = code
                end = route(tree, other)
                stops_here = tree.column[end] == column  # a category that was not seen there
                if not stops_here and names.classes[tree.totals[end].argmax()] != found.answer:
                    reached[end] = tree.rows[end]
            named = [c for c in found.changes if c.column == names.columns[column]]
            assert len(named) == bool(reached)
            if named:
                answers = {
                    names.classes[tree.totals[end].argmax()]
                    for end, rows in reached.items()
                    if rows == max(reached.values())
                }
                assert named[0].answer in answers


@settings(max_examples=150, deadline=None)
@given(drawn=trees(), seed=st.integers(0, 99))
def test_changes_are_the_nearest_there_are(drawn, seed):
    tree, names = drawn

    def answer(row):
        return names.classes[tree.totals[route(tree, row)].argmax()]

    for row in random_rows(tree, 3, seed):
        found = explain_row(tree, names, row, row.tolist())
        assert found.answer == answer(row)
        for column in np.flatnonzero(tree.kinds == 0):
            if np.isnan(row[column]):
                continue
            ends = tree.threshold[(tree.column == column) & np.isfinite(tree.threshold)]
            others = []
            for value in [*ends, *np.nextafter(ends, np.inf)]:
                other = row.copy()
                other[column] = value
                if answer(other) != found.answer:
                    others.append(abs(value - row[column]))
            named = [
                c
                for c in found.changes
                if c.threshold is not None and c.value == row[column] and c.column == names.columns[column]
            ]
            assert bool(named) == bool(others)
            for change in named:
                assert abs(change.threshold - row[column]) == pytest.approx(min(others), abs=1e-12)
                other = row.copy()
                below = change.threshold < row[column]
                other[column] = change.threshold if below else np.nextafter(change.threshold, np.inf)
                assert answer(other) == change.answer


# -- plots -------------------------------------------------------------------------------------------------


def test_the_plot_has_a_bar_for_each_node_on_the_way():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = explain(iris(), IRIS, [4.0, 1.5])
    axes = found.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "all: 150 rows",
        "width > 0.8: 100 rows",
        "width <= 1.75: 51 rows",
        "width > 1.35: 3 rows",
    ]
    widths = np.array([bar.get_width() for bar in axes.patches]).reshape(3, 4).T  # by class, then by bar
    assert widths == pytest.approx(np.array([*(s.shares for s in found.path), list(found.shares.values())]))
    assert found.plot(axes) is axes
    pyplot.close("all")


def test_dollars_and_underscores_have_no_meaning_in_a_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = TreeNames(("a$_$b$^",), (None,), ("_$", "$$x_"))
    tree = build(split(0, (leaf(1, 0), leaf(0, 3)), threshold=2.0), [0])
    axes = explain(tree, names, [1.0]).plot()
    axes.figure.canvas.draw()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [r"_\$", r"\$\$x_"]
    pyplot.close("all")


def test_numbers_are_shown_as_they_were_written_and_thresholds_apart():
    names = TreeNames(("x",), (None,), ("a", "b"))
    inner = split(0, (leaf(0, 1), leaf(1, 0)), threshold=48.12345)
    tree = build(split(0, (leaf(2, 0), inner), threshold=48.12342), [0])
    found = explain(tree, names, [48.1 + 0.02343])
    assert [step.test for step in found.path] == ["x > 48.12342", "x <= 48.12345"]
    assert "x = 48.12343, so x > 48.12342" in str(found)
    assert "(x is 48.12343) the answer would be a" in str(found)
    tiny = build(split(0, (leaf(2, 0), leaf(0, 1)), threshold=1e-6), [0])
    assert "x = 1.2345e-06, so x > 1e-06" in str(explain(tiny, names, [1.2344999999999998e-06]))
    assert "x = 1700000000, so" in str(explain(tiny, names, [1.7e9]))


def test_weights_and_classes_that_are_numbers_are_said():
    tree = build(split(0, (leaf(1.5, 0.5, rows=7), leaf(0, 2)), threshold=2.0), [0])
    found = explain(tree, TreeNames(("x",), (None,), (0, 1)), [1.0])
    assert (found.answer, found.weighted) == (0, True)
    lines = str(found).splitlines()
    assert lines[0] == "answer: class 0 (75% by weight, 7 rows)"
    assert lines[-2:] == ["  25%: class 1", "with x > 2 (x is 1) the answer would be class 1"]
