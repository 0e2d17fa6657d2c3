"""A tree in words is compared with lines written by hand, and its rules with where rows really go."""

import json
import math
import re
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
from sixfold.errors import InputError
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.text import export_graphviz, export_rules, export_text, to_dict
from sixfold.explain.trees.words import leaf_conditions, number, path_conditions, percent, word
from sixfold.solvers.trees.fitted_tree import Reason

ODD = [
    "<b>&amp;",
    'say "hi"',
    "two\nlines",
    "🧛‍♂️",
    "x" * 300,
    "",
    "back\\slash",
    "\u202eodd\u2028",
    "]]>",
    "\ud800",
]
ODD_NAMES = TreeNames(tuple(ODD), (tuple(ODD),) * len(ODD), tuple(ODD))


def odd_tree():
    """Every odd name is a category of the first column, and a class."""
    leaves = {code: leaf(*np.eye(len(ODD))[code]) for code in range(len(ODD))}
    return build(split(0, leaves), [1] * len(ODD))


def chain(depth):
    """A tree that takes one row away at each step."""
    root = leaf(0, 1)
    for step in range(depth, 0, -1):
        root = split(0, (root, leaf(1, 0)), threshold=float(step))
    return build(root, [0])


CHAIN = TreeNames(("x",), (None,), ("a", "b"))


# -- lines -------------------------------------------------------------------------------------------------


def test_branches_by_category_with_unknown():
    assert export_text(vampires(), VAMPIRES).splitlines() == [
        "8 rows, entropy 0.954",
        "├─ shadow = no → yes 100%, 1 row",
        "├─ shadow = yes → no 100%, 3 rows",
        "└─ shadow unknown: 4 rows, entropy 1",
        "   ├─ garlic = no → yes 100%, 2 rows",
        "   └─ garlic = yes → no 100%, 2 rows",
    ]


def test_numbers_with_mixed_leaves():
    assert export_text(iris(), IRIS, decimals=1).splitlines() == [
        "150 rows, entropy 1.6",
        "├─ width <= 0.8 → setosa 100%, 50 rows",
        "└─ width > 0.8: 100 rows, entropy 1",
        "   ├─ width <= 1.8: 51 rows, entropy 0.32",
        "   │  ├─ width <= 1.4 → versicolor 98%, 48 rows, entropy 0.15",
        "   │  └─ width > 1.4 → virginica 67%, 3 rows, entropy 0.92",
        "   └─ width > 1.8: 49 rows, entropy 0.25",
        "      ├─ length <= 4.8 → virginica 67%, 6 rows, entropy 0.92",
        "      └─ length > 4.8 → virginica 100%, 43 rows",
    ]


def test_groups_unknown_with_a_side_and_known_against_unknown():
    assert export_text(colours(), COLOURS, max_categories=2).splitlines() == [
        "18 rows, entropy 0.918",
        "├─ colour in {red, blue, ... 1 more} or unknown: 9 rows, entropy 0.991",
        "│  ├─ colour = red → cheap 80%, 5 rows, entropy 0.722",
        "│  └─ colour in {blue, white} → dear 75%, 4 rows, entropy 0.811",
        "└─ colour in {green, black}: 9 rows, entropy 0.503",
        "   ├─ size known → dear 100%, 6 rows",
        "   └─ size unknown → dear 67%, 3 rows, entropy 0.918",
    ]


def test_unknown_rows_as_the_right_child_of_an_infinite_threshold():
    tree = build(split(0, (leaf(2, 1), unknown := leaf(0, 4)), unknown=unknown, threshold=math.inf), [0])
    assert export_rules(tree, CHAIN).splitlines() == [
        "if x known then a 67% (3 rows, entropy 0.918)",
        "if x unknown then b 100% (4 rows)",
    ]


def test_one_leaf():
    assert export_text(one_leaf(), VAMPIRES) == "no 62%, 8 rows, entropy 0.954"
    assert export_rules(one_leaf(), VAMPIRES) == "always no 62% (8 rows, entropy 0.954)"


def test_depth_is_cut_and_what_is_below_counted():
    assert export_text(iris(), IRIS, max_depth=1).splitlines() == [
        "150 rows, entropy 1.585",
        "├─ width <= 0.8 → setosa 100%, 50 rows",
        "└─ width > 0.8 → versicolor 50%, 100 rows, entropy 1, ... 6 nodes below",
    ]
    assert export_text(iris(), IRIS, max_depth=0) == "setosa 33%, 150 rows, entropy 1.585, ... 8 nodes below"
    assert export_text(iris(), IRIS, max_depth=3) == export_text(iris(), IRIS)
    assert export_text(iris(), IRIS, max_depth=2).count("2 nodes below") == 2


def test_a_stopped_node_says_so():
    tree = build(split(0, (leaf(1, 0), leaf(3, 3, reason=Reason.STOPPED)), threshold=2.0), [0])
    assert export_text(tree, CHAIN).endswith("x > 2 → a 50%, 6 rows, entropy 1, growth was stopped")
    assert "growth was stopped" in export_graphviz(tree, CHAIN)


@pytest.mark.parametrize(
    ("criterion", "unit", "words"),
    [
        ("entropy", "bits", "entropy 0.954"),
        ("entropy", "nats", "entropy 0.662"),
        ("gain_ratio", "nats", "entropy 0.662"),
        ("gini", "gini", "gini 0.469"),
        ("homogeneous", "homogeneous", "mixed 1"),
    ],
)
def test_impurity_in_its_unit(criterion, unit, words):
    tree = replace(one_leaf(), criterion=criterion, unit=math.log(2.0) if unit == "nats" else 1.0)
    assert export_text(tree, VAMPIRES).endswith(words)
    data = to_dict(tree, VAMPIRES)
    assert words.endswith(f"{data['root']['impurity']:.3g}")
    assert data["unit"] == unit


def test_shares_are_of_the_weight_and_rows_are_counted():
    tree = build(split(0, (leaf(0.5, 1.5, rows=7), leaf(1, 0, rows=2)), threshold=2.0), [0])
    assert "x <= 2 → b 75% by weight, 7 rows" in export_text(tree, CHAIN)
    assert "then b 75% by weight (7 rows" in export_rules(tree, CHAIN)
    assert export_text(tree, CHAIN).startswith("9 rows")


def test_odd_names_stay_on_their_line():
    text = export_text(odd_tree(), ODD_NAMES)
    assert len(text.splitlines()) == 1 + len(ODD)
    assert len(export_rules(odd_tree(), ODD_NAMES).splitlines()) == len(ODD)
    assert "<b>&amp; = two\\nlines → two\\nlines 100%" in text
    assert "<b>&amp; = '' → '' 100%" in text
    assert "🧛‍♂️" in text
    assert "\\u202eodd\\u2028" in text
    text.encode()  # no half of a surrogate pair is left


def test_a_tree_may_be_deeper_than_python_can_recurse():
    tree = chain(3000)
    assert len(export_text(tree, CHAIN).splitlines()) == 6001
    assert export_graphviz(tree, CHAIN).count("->") == 6000
    data = to_dict(tree, CHAIN)["root"]
    for _ in range(3000):
        data = data["branches"][0]["child"]
    assert data["answer"] == "b"


def test_wrong_options_are_refused():
    with pytest.raises(InputError, match="max_depth=-1 is out of range"):
        export_text(iris(), IRIS, max_depth=-1)


# -- rules -------------------------------------------------------------------------------------------------


def test_conditions_on_one_column_are_one():
    assert export_rules(iris(), IRIS).splitlines() == [
        "if width <= 0.8 then setosa 100% (50 rows)",
        "if 0.8 < width <= 1.35 then versicolor 98% (48 rows, entropy 0.146)",
        "if 1.35 < width <= 1.75 then virginica 67% (3 rows, entropy 0.918)",
        "if width > 1.75 and length <= 4.85 then virginica 67% (6 rows, entropy 0.918)",
        "if width > 1.75 and length > 4.85 then virginica 100% (43 rows)",
    ]
    assert export_rules(colours(), COLOURS).splitlines()[:2] == [
        "if colour = red then cheap 80% (5 rows, entropy 0.722)",
        "if colour in {blue, white} then dear 75% (4 rows, entropy 0.811)",
    ]


def test_a_side_with_unknown_values_is_in_parentheses():
    tree = build(split(0, (left := leaf(3, 0), leaf(0, 2)), unknown=left, threshold=4.0), [0])
    assert export_rules(tree, CHAIN).splitlines() == [
        "if (x <= 4 or unknown) then a 100% (3 rows)",
        "if x > 4 then b 100% (2 rows)",
    ]


def test_ends_of_an_interval_look_different():
    inner = split(0, (leaf(0, 1), leaf(1, 0)), threshold=1.00002)
    tree = build(split(0, (leaf(1, 0), inner), threshold=1.00001), [0])
    assert "if 1.00001 < x <= 1.00002 then b" in export_rules(tree, CHAIN)


@settings(max_examples=150, deadline=None)
@given(drawn=trees(), seed=st.integers(0, 99))
def test_a_row_meets_the_conditions_of_the_leaf_it_reaches_and_of_no_other(drawn, seed):
    tree, _ = drawn
    rules = list(leaf_conditions(tree))
    assert rules == [(node, path_conditions(tree, node)) for node in np.flatnonzero(tree.is_leaf)]
    for row in random_rows(tree, 5, seed):
        met = [node for node, conditions in rules if all(meets(one, row) for one in conditions)]
        end = route(tree, row)
        assert met == ([end] if tree.is_leaf[end] else [])


def meets(condition, row):
    value = row[condition.column]
    if np.isnan(value):
        return condition.unknown
    if condition.codes is not None:
        return int(value) in condition.codes
    return condition.known and condition.low < value <= condition.high


# -- plain data --------------------------------------------------------------------------------------------


def test_plain_data_of_a_split_and_a_leaf():
    data = to_dict(iris(), IRIS)
    assert data["columns"] == ["length", "width"]
    assert data["classes"] == ["setosa", "versicolor", "virginica"]
    root = data["root"]
    assert (root["column"], root["test"], root["threshold"]) == ("width", "width <= 0.8", 0.8)
    assert root["counts"] == [50.0, 50.0, 50.0]
    assert root["impurity"] == pytest.approx(math.log2(3))
    assert [branch["test"] for branch in root["branches"]] == ["width <= 0.8", "width > 0.8"]
    assert root["branches"][0]["child"] == {
        "node": 1,
        "rows": 50,
        "counts": [50.0, 0.0, 0.0],
        "impurity": 0.0,
        "answer": "setosa",
        "reason": "all rows are of one class",
        "column": None,
        "test": None,
        "threshold": None,
        "branches": [],
    }


def test_plain_data_of_categories():
    first, second = to_dict(colours(), COLOURS)["root"]["branches"]
    assert (first["values"], first["unknown"]) == (["red", "blue", "white"], True)
    assert (second["values"], second["unknown"]) == (["green", "black"], False)
    assert second["child"]["threshold"] is None  # infinite: known against unknown
    assert [branch["unknown"] for branch in second["child"]["branches"]] == [False, True]


def test_json_holds_odd_categories_and_classes():
    values = (np.float32(0.5), np.int64(3), np.bool_(True), math.nan, np.datetime64("2020-01-02"))
    names = TreeNames(("x",), (values,), (np.int64(7), np.str_("b")))
    tree = build(split(0, {code: leaf(1, code) for code in range(5)}), [1])
    data = to_dict(tree, names)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert [branch["values"][0] for branch in data["root"]["branches"]] == [0.5, 3, True, None, "2020-01-02"]
    assert data["classes"] == [7, "b"]


@settings(max_examples=100, deadline=None)
@given(trees())
def test_rows_of_the_branches_add_up_in_plain_data(drawn):
    tree, names = drawn
    data = json.loads(json.dumps(to_dict(tree, names), allow_nan=False))
    seen, waiting = [], [data["root"]]
    while waiting:
        node = waiting.pop(0)
        seen.append(node["node"])
        children = [branch["child"] for branch in node["branches"]]
        assert not children or node["rows"] == sum(child["rows"] for child in children)
        waiting = children + waiting
    assert seen == list(range(tree.node_count))


# -- Graphviz ----------------------------------------------------------------------------------------------


def test_graphviz_of_the_worked_example():
    lines = export_graphviz(vampires(), VAMPIRES).splitlines()
    assert lines[0] == "digraph tree {"
    assert lines[-1] == "}"
    assert r'  0 [label="shadow\n8 rows, entropy 0.954\nno 62%"];' in lines
    assert '  0 -> 3 [label="unknown"];' in lines
    assert r'  5 [label="no 100%\n2 rows"];' in lines


def test_graphviz_strings_are_escaped():
    text = export_graphviz(odd_tree(), ODD_NAMES)
    assert r'"say \"hi\""' in text
    assert r'"back\\slash"' in text
    assert r'"two\\nlines"' in text  # the letters of the escape, not a new line
    assert '"<b>&amp;amp;"' in text
    for line in text.splitlines()[4:-1]:
        assert re.fullmatch(r'  \d+( -> \d+)? \[label="([^"\\]|\\.)*"\];', line)


def test_graphviz_is_cut_at_a_depth():
    text = export_graphviz(iris(), IRIS, max_depth=1)
    assert text.count("->") == 2
    assert "... 6 nodes below" in text


# -- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (2.5, 3, "2.5"),
        (2.0, 3, "2"),
        (100.0, 0, "100"),
        (1 / 3, 3, "0.333"),
        (1.23456e-7, 3, "1.235e-07"),
        (0.0, 3, "0"),
        (-12.3456, 2, "-12.35"),
        (1.5e300, 3, "1.5e+300"),
        (0.1 + 0.2, None, "0.30000000000000004"),
        (3.0, None, "3"),
    ],
)
def test_numbers(value, decimals, text):
    assert number(value, decimals) == text


def test_only_everything_is_100_percent():
    assert [percent(share) for share in (1.0, 0.9999, 0.99, 0.0001, 0.0)] == [
        "100%",
        ">99%",
        "99%",
        "<1%",
        "0%",
    ]


def test_words_of_values():
    assert [word(value) for value in (True, 3, 2.50, np.float64(2), None, "a b", "  ", b"x")] == [
        "True", "3", "2.5", "2", "None", "a b", "'  '", "b'x'",
    ]  # fmt: skip


# -- thresholds that look different ------------------------------------------------------------------------


def close_thresholds(first, second, third):
    inner = split(0, (leaf(0, 1), split(0, (leaf(1, 0), leaf(0, 1)), threshold=third)), threshold=second)
    return build(split(0, (leaf(1, 0), inner), threshold=first), [0])


@pytest.mark.parametrize(
    ("thresholds", "shown"),
    [
        ((48.123421, 48.123457, 48.123484), ["48.12342", "48.12346", "48.12348"]),
        ((1.7e9, 1.7e9 + 1, 1.7e9 + 2.5), ["1700000000", "1700000001", "1700000002.5"]),
        ((1.2344e-6, 1.23445e-6, 1.2345e-6), ["1.2344e-06", "1.23445e-06", "1.2345e-06"]),
        ((1.0, np.nextafter(1.0, 2.0), 2.0), ["1", "1.0000000000000002", "2"]),
    ],
)
def test_thresholds_of_a_column_look_different(thresholds, shown):
    tree = close_thresholds(*thresholds)
    text = export_text(tree, CHAIN)
    assert re.findall("x <= (.*) →", text) == shown
    assert f"if {shown[0]} < x <= {shown[1]} then b" in export_rules(tree, CHAIN)
    assert re.findall('"≤ (.*)"', export_graphviz(tree, CHAIN)) == shown


def test_no_exponent_in_whole_numbers():
    assert [number(x) for x in (123456789.0, 999999999999999.0, -2e9)] == [
        "123456789",
        "999999999999999",
        "-2000000000",
    ]


# -- many branches -----------------------------------------------------------------------------------------


def test_of_many_branches_those_with_the_most_rows_are_shown():
    inner = split(0, {code: leaf(code + 1, 0) for code in range(5)})
    tree = build(split(1, {0: leaf(1, 0), 1: leaf(0, 1), 2: leaf(4, 0), 3: inner}), [1, 1])
    names = TreeNames(("x", "y"), (tuple("abcde"), tuple("pqrs")), ("no", "yes"))
    assert export_text(tree, names, max_branches=2).splitlines() == [
        "21 rows, entropy 0.276",
        "├─ y = r → no 100%, 4 rows",
        "├─ y = s: 15 rows",
        "│  ├─ x = d → no 100%, 4 rows",
        "│  ├─ x = e → no 100%, 5 rows",
        "│  └─ ... 3 more branches, 6 rows",
        "└─ ... 2 more branches, 2 rows",
    ]
    assert export_text(tree, names, max_branches=4).splitlines()[-1] == "   └─ ... 1 more branch, 1 row"
    assert export_text(tree, names, max_branches=None).count("→") == 8
    dot = export_graphviz(tree, names, max_branches=2)
    assert dot.count("->") == 6
    assert 'rest0 [label="... 2 more branches, 2 rows"' in dot
    assert len(export_rules(tree, names).splitlines()) == 8


def test_weights_that_add_up_to_the_rows_are_weights():
    tree = build(split(0, (leaf(1.5, 0.5, rows=2), leaf(2, 0, rows=2)), threshold=2.0), [0])
    assert "x <= 2 → a 75% by weight, 2 rows" in export_text(tree, CHAIN)


@pytest.mark.parametrize("labels", [(0, 1), (np.int64(0), np.int64(1)), (0.0, 1.0), ("0", "1")])
def test_classes_that_are_numbers_are_called_classes(labels):
    tree = build(split(0, (leaf(3, 1), leaf(0, 2)), threshold=2.0), [0])
    names = TreeNames(("x",), (None,), labels)
    assert "x <= 2 → class 0 75%, 4 rows" in export_text(tree, names)
    assert "if x > 2 then class 1 100% (2 rows)" in export_rules(tree, names)
    assert r'"class 1 100%\n2 rows"' in export_graphviz(tree, names)
    assert to_dict(tree, names)["classes"] == list(labels)
