"""Explanations of support vector machines add up to the decision they explain."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sixfold import SVC
from sixfold.errors import InputError

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def adds_up(model, x, found):
    rounding = 1e-13 * (1.0 + np.abs(found.contributions).sum())
    assert found.decision == pytest.approx(found.intercept + sum(found.contributions), abs=rounding)
    assert sum(found.shares) == pytest.approx(1.0)
    assert found.answer == model.predict([x])[0]
    sizes = np.abs(found.contributions)
    assert np.all(np.diff(sizes) <= 0)
    np.testing.assert_allclose(found.shares, sizes / sizes.sum())


@pytest.mark.parametrize("kernel", ["rbf", "linear", "quadratic"])
def test_two_classes_are_explained_by_every_support_vector(kernel):
    rows = Y < 2
    some = X[rows] + np.random.default_rng(0).normal(size=(100, 4))
    model = SVC(kernel=kernel).fit(some, NAMES[rows])
    for x in some[::20]:
        found = model.explain(x)
        adds_up(model, x, found)
        sign = 1.0 if found.answer == "versicolor" else -1.0
        assert found.decision == pytest.approx(sign * model.decision_function([x])[0])
        assert sorted(found.rows) == sorted(model.support_)
        by_row = dict(zip(model.support_, sign * model.dual_coef_[0], strict=True))
        np.testing.assert_allclose(
            found.contributions, [by_row[row] * k for row, k in zip(found.rows, found.kernel, strict=True)]
        )
        assert found.labels == NAMES[rows][found.rows].tolist()
        assert found.votes == {}


def test_of_several_classes_the_answer_is_compared_with_the_runner_up():
    model = SVC(decision_function_shape="ovo").fit(X, NAMES)
    pairs = [("setosa", "versicolor"), ("setosa", "virginica"), ("versicolor", "virginica")]
    for x in X[::15]:
        found = model.explain(x)
        adds_up(model, x, found)
        names = (found.answer, found.runner_up)
        sign = 1.0 if names in pairs else -1.0
        number = pairs.index(names if sign > 0 else names[::-1])
        assert found.decision == pytest.approx(sign * model.decision_function([x])[0, number])
        assert set(found.labels) == set(names)
        assert sum(found.votes.values()) == 3
        assert max(found.votes, key=found.votes.get) == found.answer


def test_one_against_the_rest_is_explained_by_the_difference_of_scores():
    model = SVC(multi_class="ovr").fit(X, NAMES)
    for x in X[::30]:
        found = model.explain(x)
        adds_up(model, x, found)
        scores = dict(zip(model.classes_, model.decision_function([x])[0], strict=True))
        assert found.decision == pytest.approx(scores[found.answer] - scores[found.runner_up])
        assert sorted(scores, key=scores.get)[-2] == found.runner_up


def noise(rows, seed):
    """Return rows whose classes cannot be told: votes are often equal, or against the pair's own decision."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 3)), rng.integers(0, 5, size=rows)


def test_explanations_break_ties_as_predictions_do():
    model = SVC().fit(*noise(300, 0))
    Z, _ = noise(200, 1)
    plain = model.predict(Z)
    model.break_ties = True
    answers = model.predict(Z)
    assert np.any(answers != plain)
    assert [model.explain(z).answer for z in Z] == answers.tolist()
    model.decision_function_shape = "ovo"
    with pytest.raises(InputError, match="break_ties must be False when"):
        model.explain(Z[0])


def test_an_answer_that_wins_by_votes_alone_is_not_said_to_be_ahead_in_its_pair():
    model = SVC().fit(*noise(300, 0))
    found = [model.explain(z) for z in noise(200, 1)[0]]
    behind = [one for one in found if one.decision < 0]
    assert behind
    for one in behind:
        first = str(one).splitlines()[0]
        assert first == (
            f"answer: {one.answer}, ahead of {one.runner_up} by votes, behind in their own comparison by "
            f"{-one.decision:.4g}"
        )
        assert one.votes[one.answer] >= one.votes[one.runner_up]


def test_objects_that_only_a_function_compares_are_explained_as_they_are_predicted():
    def overlap(A, B):
        return np.array([[len(set(a) & set(b)) / len(set(a) | set(b)) for b in B] for a in A])

    texts = ["apple", "apply", "ape", "zebra", "zoo", "zero"]
    model = SVC(kernel=overlap).fit(texts, ["a", "a", "a", "z", "z", "z"])
    for given in ("apples", ["apples"], ("apples",), np.array(["apples"]), np.array("apples")):
        found = model.explain(given)
        assert found.answer == model.predict(["apples"])[0] == "a"
        assert found.decision == pytest.approx(-model.decision_function(["apples"])[0])
        expected = [overlap(["apples"], [texts[row]])[0, 0] for row in found.rows]
        np.testing.assert_allclose(found.kernel, expected)
    with pytest.raises(InputError, match="explain takes one row, and x has 2"):
        model.explain(["apples", "zeros"])


def test_a_row_may_be_given_in_any_way():
    table = pd.DataFrame(X, columns=list("abcd"))
    model = SVC().fit(table, NAMES)
    by_row = model.explain(table.iloc[70])
    by_name = SVC().fit(X, NAMES).explain({f"x{j}": X[70, j] for j in (3, 1, 0, 2)})
    assert by_name.decision == pytest.approx(by_row.decision)
    sparse = SVC().fit(sp.csr_array(X), NAMES)
    assert sparse.explain(X[70]).decision == pytest.approx(by_row.decision)
    given = SVC(kernel="precomputed").fit(X @ X.T, NAMES)
    linear = SVC(kernel="linear").fit(X, NAMES)
    assert given.explain(X[70] @ X.T).decision == pytest.approx(linear.explain(X[70]).decision, abs=1e-2)
    with pytest.raises(InputError, match="explain takes one row, and x has 3"):
        model.explain(table[:3])


def test_an_explanation_is_data_and_text():
    model = SVC().fit(X, NAMES)
    found = model.explain(X[100])
    assert json.loads(json.dumps(found.to_dict()))["answer"] == "virginica"
    text = str(found)
    assert text.startswith("answer: virginica, ahead of versicolor by ")
    assert f"row {found.rows[0]} " in text
    assert f"{len(found.rows) - 10} more support vectors add" in text
    assert text.endswith("votes: 2 for class virginica, 1 for class versicolor")


def test_an_explanation_is_a_drawing():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    found = SVC().fit(X, NAMES).explain(X[100])
    axes = found.plot()
    assert [bar.get_width() for bar in axes.patches][:10] == found.contributions[:10]
    assert axes.get_yticklabels()[-1].get_text() == "intercept"
    assert found.plot(axes) is axes
    plt.close("all")
