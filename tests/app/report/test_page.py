"""The page and its facts: valid, escaped, complete, written whole or not at all."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from sixfold.app.report import make_report, write_report
from sixfold.app.report.facts import command_line
from sixfold.app.report.svg import draw_svg, theme_variables
from sixfold.explain.plots.style import DARK, LIGHT

from .conftest import fit_frame, fitted_example

HOSTILE = [
    "<script>alert(1)</script>",
    "a\"b' & c",
    "{{ 7 * 7 }}",
    "$x_1$ ünï ✓",
    "</style></svg>",
    "\u202eabc",
]
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Checker(HTMLParser):
    """Reads a page: whether elements close in order, which ids there are, whether anything is loaded."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.ids, self.loaded, self.scripts, self.text = [], [], [], 0, []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.scripts += tag == "script"
        self.loaded += [
            value
            for key in ("src", "href", "xlink:href")
            if (value := found.get(key)) and not value.startswith(("#", "data:"))
        ]
        self.scripts += any(key.startswith("on") for key in found)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def check(report):
    """Raise unless the report is sound in every way that does not depend on the data."""
    page = Checker(report.html)
    assert len(page.ids) == len(set(page.ids))
    assert page.loaded == []
    assert page.scripts == 0
    assert report.facts["not_drawn"] == {}
    assert len(report.html) < 1_500_000
    for url in re.findall(r"url\(([^)]*)\)", report.html):
        assert url.startswith("#")
        assert url[1:] in page.ids
    for name in re.findall(r"var\(--([\w-]+)\)", report.html):
        assert f"--{name}:" in report.html, name
    json.dumps(report.facts, allow_nan=False)
    text = " ".join(page.text)
    assert "None" not in re.sub(r"parameters.*", "", text, flags=re.S).replace("=None", "")
    return text


@pytest.mark.parametrize("name", ["iris", "breast_cancer", "diabetes"])
def test_pages_are_sound(name, request):
    report = make_report(request.getfixturevalue(name))
    text = check(report)
    for one in report.cautions:
        assert one.sentence in text


@pytest.mark.parametrize(
    ("learner", "kind"),
    [
        ("tree", "tree"),
        ("nearest neighbours", "neighbours"),
        ("SVM (rbf)", "support vectors"),
        ("linear SVM", "linear"),
        ("perceptron", "linear"),
        ("baseline", "other"),
    ],
)
def test_every_learner_has_its_section(iris, learner, kind):
    result = replace(iris, chosen=iris.comparison[learner])
    report = make_report(result)
    check(report)
    assert report.facts["model"]["kind"] == kind


def test_an_example_names_rows_of_the_file(iris):
    result = replace(iris, chosen=iris.comparison["nearest neighbours"])
    example = make_report(result).facts["model"]["example"]
    assert example["row"] == int(iris.test[0]) + 1
    for one in example["neighbours"]:
        row = one["row"] - 1
        assert row in iris.train
        assert one["target"] == iris.y[row]
        assert one["values"] == [iris.X[name][row] for name in example["columns"]]


def test_facts_are_those_of_the_fit(breast_cancer):
    facts = make_report(breast_cancer).facts
    counts = np.array(facts["answers"]["confusion"]["counts"])
    assert counts.sum() == breast_cancer.test.size
    assert np.trace(counts) / counts.sum() == pytest.approx(breast_cancer.chosen.test)
    assert facts["split"]["train_rows"] == breast_cancer.train.size
    assert facts["headline"]["score"].startswith(f"It is right about {np.trace(counts)} of 114 rows")
    assert [one["learner"] for one in facts["leaderboard"]] == [
        one.name for one in breast_cancer.comparison.entries
    ]
    assert facts["reproduce"]["command"].startswith("sixfold fit example:breast_cancer --learner")


def test_nothing_from_the_data_breaks_the_page(tmp_path):
    random = np.random.default_rng(0)
    columns = {name: random.normal(size=90) for name in HOSTILE[:3]}
    columns |= {name: random.choice(HOSTILE, 90) for name in HOSTILE[3:]}
    frame = pl.DataFrame({**columns, "<b>target</b>": random.choice(HOSTILE[:3], 90)})
    for learner in ("tree", "logistic regression", "nearest neighbours"):
        result = fit_frame(frame, tmp_path, "<b>target</b>", learners=(learner,))
        chosen = next(one for one in result.comparison.entries if learner in one.name)
        report = make_report(replace(result, chosen=chosen))
        check(report)
        assert "<script" not in report.html
        assert "<b>target" not in report.html
        assert "49" not in report.html.split("<h1>")[1].split("</h1>")[0]


def test_awkward_tables_have_a_page(tmp_path):
    random = np.random.default_rng(0)
    gaps = [None if k % 3 else float(k) for k in range(60)]
    tables = {
        "numbers far away": {"a": random.normal(size=60) * 1e200, "b": random.normal(size=60) * 1e-200},
        "gaps and few values": {"a": gaps, "b": ["x", "y", None] * 20},
        "dates": {"a": [f"2020-{k % 12 + 1:02d}-{k % 28 + 1:02d}" for k in range(60)], "b": gaps},
    }
    for columns in tables.values():
        for y in (random.choice(["p", "q"], 60), random.normal(size=60), random.choice(["p", "q", "r"], 60)):
            learners = ("lasso", "knn") if y.dtype.kind == "f" else ("logistic regression", "tree")
            result = fit_frame(pl.DataFrame({**columns, "y": y}), tmp_path, learners=learners)
            check(make_report(result))


def test_a_fit_without_test_rows_has_a_page(noise, tmp_path):
    report = make_report(fit_frame(noise, tmp_path, test_fraction=0.0))
    check(report)
    assert report.facts["answers"] is None
    assert "No rows were held out" in report.facts["headline"]["score"]


def test_a_page_without_importances_says_so(iris, monkeypatch):
    from sixfold.app.report import importance

    monkeypatch.setattr(importance, "rows_for", lambda *given: 0)
    text = check(make_report(replace(iris)))
    assert "was not measured" in text


def test_other_metrics_are_shown_as_they_are_meant():
    result = fitted_example("diabetes", ("lasso",), metric="neg_mean_absolute_error")
    report = make_report(result)
    text = check(report)
    assert report.facts["metric"] == {
        "name": "mean absolute error",
        "scoring": "neg_mean_absolute_error",
        "less_is_better": True,
    }
    assert f"{-result.chosen.test:.3f}" in text
    result = fitted_example("breast_cancer", ("tree",), metric="roc_auc")
    check(make_report(result))


def test_files_are_written_under_their_names_and_nothing_else_is_left(iris, tmp_path):
    page, facts = write_report(iris, tmp_path)
    assert (page.name, facts.name) == ("iris.report.html", "iris.report.json")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["iris.report.html", "iris.report.json"]
    assert json.loads(facts.read_text(encoding="utf-8"))["format"] == "sixfold report"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_same_result_has_the_same_page(iris):
    assert make_report(iris).html == make_report(replace(iris)).html


def test_the_command_that_is_shown_is_one_that_the_command_line_takes(noise, tmp_path):
    result = fit_frame(noise, tmp_path, learners=("tree", "knn"), seed=7, folds=3, test_fraction=0.25)
    said = command_line(result.options)
    assert said.endswith("--target y --folds 3 --seed 7 --test-fraction 0.25 --learner tree --learner knn")


def test_colours_of_a_picture_follow_the_page():
    def draw(ax):
        ax.plot([1, 2], [3, 4], color=LIGHT.series[1], label="#0072b2 <b>&")
        ax.legend()
        ax.set_xscale("log")

    svg = draw_svg(draw, "one", "a <title> & more", width=3.0, height=2.0)
    root = ElementTree.fromstring(svg)
    assert "var(--line1)" in svg
    assert LIGHT.series[1] not in svg
    assert "#0072b2 <b>&" in [
        "".join(one.itertext()).strip() for one in root.iter() if one.tag.endswith("text")
    ]
    assert root.get("aria-label") == "a <title> & more"
    assert set(theme_variables(LIGHT)) == set(theme_variables(DARK))


def test_a_legend_stays_inside_its_picture():
    def draw(ax):
        for name in (
            "precision",
            "recall",
            "F1",
            "accuracy",
            "highest F1: 0.671 at 0.608",
            "predict uses 0.5",
        ):
            ax.plot([0, 1], [0, 1], label=name)
        ax.legend()
        figures.append(ax.figure)

    figures = []
    draw_svg(draw, "one", "legend", width=4.9, height=3.2)
    box = figures[0].legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figures[0].bbox.width
