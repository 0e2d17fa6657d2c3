"""Each caution is given where it is due, with the columns and figures, and not where it is not."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from sixfold.app.report.cautions import find_cautions
from sixfold.app.report.column_checks import Dependence
from sixfold.app.report.examination import Separation, examine
from sixfold.app.report.grid_edges import grid_edges
from sixfold.app.report.yardstick import Yardstick

from .conftest import fit_frame


def kinds(cautions):
    return {one.kind for one in cautions}


def of_kind(cautions, kind):
    found = [one for one in cautions if one.kind == kind]
    assert found, f"no caution of kind {kind!r} among {kinds(cautions)}"
    return found[0]


def test_plain_data_has_no_serious_caution(noise, tmp_path):
    cautions = find_cautions(fit_frame(noise, tmp_path, learners=("logistic regression",)))
    assert [one.kind for one in cautions if one.serious] in ([], ["a better model exists"])
    assert not kinds(cautions) & {"leakage suspect", "copies", "drift between the parts", "order of the rows"}


def test_a_column_that_gives_the_answer_away_is_a_leakage_suspect(noise, tmp_path):
    frame = noise.with_columns(refund=pl.when(pl.col("y") == "up").then(7.0).otherwise(3.0))
    caution = of_kind(find_cautions(fit_frame(frame, tmp_path)), "leakage suspect")
    assert caution.serious
    assert caution.columns == ("refund",)
    assert "'refund'" in caution.sentence
    assert "1.000" in caution.sentence


def test_a_category_that_gives_a_number_away_is_a_leakage_suspect(tmp_path):
    random = np.random.default_rng(1)
    band = random.integers(0, 12, 300)
    frame = pl.DataFrame(
        {
            "noise": random.normal(size=300),
            "band": [f"band {k}" for k in band],
            "y": band * 10 + random.normal(size=300),
        }
    )
    result = fit_frame(frame, tmp_path, learners=("ridge",))
    assert of_kind(find_cautions(result), "leakage suspect").columns == ("band",)


def test_copies_of_training_rows_are_counted_and_left_out_of_a_second_score(noise, tmp_path):
    twice = pl.concat([noise, noise])
    result = fit_frame(twice, tmp_path)
    caution = of_kind(find_cautions(result), "copies")
    assert caution.serious
    found = examine(result)
    same = int(found.copies.test_rows.sum())
    assert f"{same} of {result.test.size} test rows have" in caution.sentence
    others = np.flatnonzero(~found.copies.test_rows)
    right = found.answers.predict(others) == result.y[found.asked][others]
    assert found.without_copies == pytest.approx(right.mean())


def test_rows_with_two_answers_bound_the_accuracy(tmp_path):
    frame = pl.DataFrame(
        {"a": ["x", "x", "x", "y"] * 50, "b": ["p"] * 100 + ["q"] * 100, "y": ["1", "1", "2", "2"] * 50}
    )
    caution = of_kind(find_cautions(fit_frame(frame, tmp_path)), "contradictions")
    assert "75%" in caution.sentence  # of x, two of three are 1: 2 + 1 of 4


def test_drift_with_the_order_of_the_file_is_found_and_sorted_targets_are_not(noise, tmp_path):
    moving = noise.with_columns(price=pl.col("c") + np.linspace(0.0, 4.0, 400))
    cautions = find_cautions(fit_frame(moving, tmp_path))
    assert of_kind(cautions, "order of the rows").columns == ("price",)
    half_sorted = pl.concat([noise[:200].sort("y"), noise[200:]])
    for frame in (noise.sort("y"), half_sorted, noise.with_columns(y=pl.col("a")).sort("y")):
        learners = ("tree",) if frame["y"].dtype == pl.String else ("lasso",)
        assert "order of the rows" not in kinds(find_cautions(fit_frame(frame, tmp_path, learners=learners)))


def test_drift_between_the_parts_is_found(noise, tmp_path):
    result = fit_frame(noise, tmp_path)
    moved = noise["a"].to_numpy().copy()
    moved[result.test] += 3.0
    result = replace(result, X=result.X.with_columns(a=moved))
    assert of_kind(find_cautions(result), "drift between the parts").columns == ("a",)


def test_dependent_and_correlated_columns_are_named_with_their_equation(noise, tmp_path):
    frame = noise.with_columns(
        total=2.0 * pl.col("a") + pl.col("b"),
        nearly=pl.col("c") + 1e-3 * np.random.default_rng(5).normal(size=400),
        same=pl.col("y").str.to_uppercase(),
    ).with_columns(code=pl.when(pl.col("same") == "UP").then(pl.lit("k7")).otherwise(pl.lit("k9")))
    found = examine(fit_frame(frame, tmp_path))
    [(name, equation)] = found.dependence.equations.items()
    assert name in ("total", "a", "b")
    assert equation.endswith("+ a constant")
    assert {"c", "nearly"} == set(found.dependence.correlated[0][:2])
    assert found.dependence.copies == [["same", "code"]]


def test_a_plane_between_the_classes_is_found_with_its_columns(iris):
    caution = of_kind(find_cautions(iris), "separation")
    assert "class 'setosa' from the others" in caution.sentence


def test_all_classes_separated(noise, tmp_path):
    frame = noise.with_columns(
        y=pl.when(pl.col("a") + pl.col("b") > 0).then(pl.lit("up")).otherwise(pl.lit("down"))
    )
    frame = frame.filter((pl.col("a") + pl.col("b")).abs() > 0.1)
    caution = of_kind(find_cautions(fit_frame(frame, tmp_path, learners=("perceptron",))), "separation")
    assert "separates the classes" in caution.sentence
    assert {"a", "b"} <= set(caution.columns)


def test_gradient_boosting_beyond_the_spread_is_said_with_both_figures(iris):
    found = examine(iris)
    spread = iris.chosen.std
    ahead = replace(found, score=0.9, yardstick=Yardstick(0.9 + spread + 0.01, 120))
    caution = of_kind(find_cautions(iris, ahead), "a better model exists")
    assert f"{0.9 + spread + 0.01:.3f}" in caution.sentence
    assert "0.900" in caution.sentence
    within = replace(found, score=0.9, yardstick=Yardstick(0.9 + spread, 120))
    assert "a better model exists" not in kinds(find_cautions(iris, within))


def test_a_circle_is_better_seen_by_gradient_boosting_than_by_a_line(tmp_path):
    random = np.random.default_rng(3)
    a, b = random.normal(size=(2, 600))
    frame = pl.DataFrame({"a": a, "b": b, "y": np.where(a * a + b * b > 1.4, "out", "in")})
    cautions = find_cautions(fit_frame(frame, tmp_path, learners=("logistic regression",)))
    assert of_kind(cautions, "a better model exists").serious


def test_few_test_rows_have_an_interval(iris):
    caution = of_kind(find_cautions(iris), "few test rows")
    assert "0.886 to 1.000" in caution.sentence  # Wilson, 30 of 30


def test_no_test_rows_are_said_to_be_none(noise, tmp_path):
    result = fit_frame(noise, tmp_path, test_fraction=0.0)
    caution = of_kind(find_cautions(result), "no test rows")
    assert caution.serious


def test_scores_of_test_and_folds_far_apart(iris):
    chosen = replace(iris.chosen, test=0.7)
    found = replace(examine(iris), low=0.6, high=0.8)
    caution = of_kind(find_cautions(replace(iris, chosen=chosen), found), "test and folds differ")
    assert caution.serious
    assert "0.700" in caution.sentence


def test_imbalance_and_rare_classes(tmp_path):
    random = np.random.default_rng(0)
    y = np.array(["usual"] * 380 + ["rare"] * 14 + ["odd"] * 6)
    frame = pl.DataFrame({"a": random.normal(size=400), "y": random.permutation(y)})
    cautions = find_cautions(fit_frame(frame, tmp_path))
    assert "95%" in of_kind(cautions, "imbalance").sentence
    few = [one.sentence for one in cautions if one.kind == "few rows of a class"]
    assert any("'odd'" in one and "training" in one for one in few)
    assert any("'rare'" in one and "test part" in one for one in few)


def test_missing_values_are_named_from_a_fifth_on(noise, tmp_path):
    gaps = noise.with_columns(
        a=pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise(pl.col("a")),
        b=pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise(pl.col("b")),
    )
    caution = of_kind(find_cautions(fit_frame(gaps, tmp_path)), "missing values")
    assert caution.columns == ("a",)
    assert "25%" in caution.sentence


def test_columns_set_aside_and_work_cut_short_are_said(iris):
    aside = replace(iris.schema.columns[0], role="set aside", kind="text", reason="free text")
    counts = replace(aside, kind="identifier", name="number", reason="counts the rows")  # nothing to learn
    schema = replace(iris.schema, columns=(*iris.schema.columns, replace(aside, name="customer"), counts))
    stopped = replace(iris, schema=schema, stopped="Ctrl-C")
    cautions = find_cautions(stopped, examine(iris))
    assert of_kind(cautions, "set aside").columns == ("customer",)
    assert of_kind(cautions, "stopped early").serious
    assert cautions[0].serious


def test_unfinished_folds_and_learners_left_out_for_time(iris):
    first, second, *rest = iris.comparison.entries
    entries = [
        first,
        replace(second, scores=second.scores[:2]),
        *rest[:-1],
        replace(rest[-1], left_out="not tried"),
    ]
    result = replace(iris, comparison=replace(iris.comparison, entries=entries))
    cautions = find_cautions(result, examine(iris))
    assert second.name in of_kind(cautions, "unfinished").sentence
    assert rest[-1].name in of_kind(cautions, "not tried").sentence


def test_ctrl_c_is_not_a_lack_of_time(iris):
    *rest, one, two = iris.comparison.entries
    entries = [*rest, replace(one, left_out="interrupted"), replace(two, left_out="not tried")]
    result = replace(iris, comparison=replace(iris.comparison, entries=entries), stopped="Ctrl-C")
    cautions = find_cautions(result, examine(iris))
    assert "not tried" not in kinds(cautions)
    said = of_kind(cautions, "stopped early").sentence
    assert f"stopped by Ctrl-C before '{one.name}' and '{two.name}' were finished" in said


def test_one_mistake_in_the_test_rows_may_be_chance(iris):
    chosen = replace(iris.chosen, mean=1.0, std=0.0, scores=np.ones(5), test=29 / 30)
    found = replace(examine(iris), low=0.83, high=0.994)
    assert "test and folds differ" not in kinds(find_cautions(replace(iris, chosen=chosen), found))


def test_a_narrow_interval_is_not_said_to_be_anything(iris):
    found = replace(examine(iris), low=0.981, high=0.998)
    sentence = of_kind(find_cautions(replace(iris, scoring="r2"), found), "few test rows").sentence
    assert sentence == "The test score is that of 30 rows only."


def test_worse_than_the_baseline_on_the_test_rows_is_serious(iris):
    result = replace(iris, chosen=replace(iris.chosen, test=0.2))
    caution = of_kind(find_cautions(result, examine(iris)), "no better than the baseline")
    assert caution.serious
    assert "0.200" in caution.sentence
    assert "no better than the baseline" not in kinds(find_cautions(iris))


def test_the_baseline_is_not_blamed_for_having_no_certificate(iris):
    baseline = next(one for one in iris.comparison.entries if one.name == "baseline")
    cautions = find_cautions(replace(iris, chosen=baseline), examine(iris))
    assert not kinds(cautions) & {"no certificate", "no better than the baseline"}


def test_few_columns_are_said_to_count_most(iris):
    for columns, said in (
        (["a"], "('a' counts most)"),
        ([f"c{k}" for k in range(300)], "('c0', 'c1', 'c2', 'c3' and 'c4' count most)"),
    ):
        found = replace(examine(iris), separation=Separation(["x"], columns, True))
        assert said in of_kind(find_cautions(iris, found), "separation").sentence


def test_one_pair_of_correlated_columns_is_named_once(iris):
    found = replace(examine(iris), dependence=Dependence({}, [], [("a", "b", 0.9987)]))
    sentence = of_kind(find_cautions(iris, found), "correlated columns").sentence
    assert sentence.startswith("'a' and 'b' say nearly the same (correlation 0.998): ")


def test_a_fit_short_of_its_tolerance_is_serious(iris):
    model = SimpleNamespace(certificate_=SimpleNamespace(converged=False))
    chosen = replace(iris.chosen, search=SimpleNamespace(best_estimator_=model))
    assert of_kind(find_cautions(replace(iris, chosen=chosen), examine(iris)), "not proven optimal").serious


def search(values, means, chosen, name="learner__C"):
    params = [{name: value} for value in values]
    return SimpleNamespace(
        cv_results_={"params": params, "mean_test_score": means}, best_index_=values.index(chosen)
    )


def test_the_edge_of_a_grid_counts_where_the_score_still_rises():
    assert grid_edges(search([1.0, 10.0, 100.0], [0.5, 0.6, 0.7], 100.0)) == [("C", 100.0, "largest")]
    assert grid_edges(search([1.0, 10.0, 100.0], [0.7, 0.6, 0.5], 1.0)) == [("C", 1.0, "smallest")]
    assert grid_edges(search([1.0, 10.0, 100.0], [0.5, 0.7, 0.7], 100.0)) == []
    assert grid_edges(search([1, 2, 3], [0.7, 0.6, 0.5], 1, "learner__n_neighbors")) == []
    assert grid_edges(search([1.0, 10.0], [0.5, 0.6], 10.0)) == []
    assert grid_edges(SimpleNamespace()) == []


def test_cautions_are_the_same_twice(noise, tmp_path):
    result = fit_frame(noise, tmp_path)
    other = replace(result)
    assert find_cautions(result) == find_cautions(other)
    assert all(
        math.isfinite(len(one.sentence)) and one.sentence.endswith(".") for one in find_cautions(result)
    )
