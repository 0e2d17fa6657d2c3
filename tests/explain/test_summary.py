"""Summaries in notebooks: a table in HTML, whatever the columns and classes are called."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from sixfold import LinearRegression, LogisticRegression

NAMES = ["<b>bold", "salt & pepper", 'say "x"']
TABLE = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=NAMES)
NOISE = np.random.default_rng(1).normal(size=60)


def parsed(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


def linear():
    return LinearRegression().fit(TABLE, TABLE.sum(axis=1) + NOISE).summary()


def logistic(*labels):
    score = TABLE.to_numpy().sum(axis=1) + 2.0 * NOISE
    y = np.array(labels)[np.digitize(score, np.linspace(-1.0, 1.0, len(labels))[:-1])]
    return LogisticRegression(C=np.inf).fit(TABLE, y).summary()


@pytest.mark.parametrize("summary", [linear(), logistic("<i>", "&amp;")], ids=["linear", "logistic"])
def test_the_html_has_the_numbers_of_the_text(summary):
    page = parsed(summary._repr_html_())
    assert [cell.text for cell in page.iterfind("table/tbody/tr/th")] == ["intercept", *NAMES]
    header = [cell.text for cell in page.iterfind("table/thead/tr/th")][1:]
    assert header == ["coefficient", "std error", summary.statistic, "p", "95% low", "95% high"]
    lines = str(summary).splitlines()
    for row in page.iterfind("table/tbody/tr"):
        name, *values = (cell.text for cell in row)
        line = next(line for line in lines if line.startswith(name))
        assert line.removeprefix(name).split() == values
    assert page.find("p").text in lines


def test_the_title_of_a_class_is_its_caption():
    summary = logistic("<i>", "&amp;")
    title = summary.title
    assert sorted(title.split(" against ")) == ["'&amp;'", "'<i>'"]
    assert parsed(summary._repr_html_()).find("table/caption").text == title
    assert str(summary).startswith(title)


def test_summaries_of_several_targets_print_one_below_the_other():
    y = TABLE.to_numpy() @ np.ones((3, 2)) + np.column_stack([NOISE, -NOISE])
    both = LinearRegression().fit(TABLE, y).summary()
    assert str(both) == f"{both[0]}\n\n{both[1]}"
    assert [line for line in str(both).splitlines() if line.startswith("target")] == ["target 0", "target 1"]
    assert [caption.text for caption in parsed(both._repr_html_()).iterfind("table/caption")] == [
        "target 0",
        "target 1",
    ]


def test_summaries_of_several_classes_are_against_the_first():
    found = logistic("a", "b", "c")
    assert [summary.title for summary in found] == ["'b' against 'a'", "'c' against 'a'"]
    assert len(parsed(found._repr_html_()).findall("table")) == 2
