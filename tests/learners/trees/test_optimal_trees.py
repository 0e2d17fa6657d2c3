"""Trees that are searched for: the best of a depth, or looking two levels ahead."""

import copy
import pickle
import signal
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification

from sixfold import DecisionTreeClassifier, GridSearchCV
from sixfold.certificate import Certificate
from sixfold.errors import CertificateError, InputError, SixfoldWarning, StoppedEarly
from solvers.trees.searched_tables import best_tree

LN2 = np.log(2.0)


def best(**options):
    return DecisionTreeClassifier(search="optimal", **options)


def xor(times=5, levels=2):
    """Return rows whose class no single question tells anything about."""
    X = np.array(np.meshgrid(*[[0.0, 1.0]] * levels)).reshape(levels, -1).T.repeat(times, axis=0)
    return X, (X.sum(axis=1) % 2).astype(int)


def noise(rows=60, columns=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, (2 * X[:, 0] + rng.normal(size=rows) > 0).astype(int) + (rng.random(rows) < 0.2) * (classes > 2)


@pytest.fixture(scope="module")
def hard():
    """Rows whose best tree of depth five takes long to find."""
    return make_classification(3000, 12, n_informative=8, flip_y=0.2, random_state=0)


# -- the best tree -------------------------------------------------------------------------------------------


@st.composite
def tables(draw):
    """Draw a table of numbers and text, with unknown values, and labels and weights."""
    n = draw(st.integers(1, 9))
    rows = {"min_size": n, "max_size": n}
    columns = {}
    for k in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            columns[f"n{k}"] = np.array(
                draw(st.lists(st.sampled_from([-1.5, 0.0, 1.0, 2.0, 1e30, np.nan]), **rows)), dtype=float
            )
        else:
            some = draw(st.lists(st.sampled_from(["a", "b", "c", "d", None]), **rows))
            columns[f"t{k}"] = np.array(some, dtype=object)
    labels = draw(st.lists(st.sampled_from(["x", "y", "z"]), **rows))
    weight = draw(st.none() | st.lists(st.sampled_from([0.25, 1.0, 3.0]), **rows))
    return pd.DataFrame(columns), labels, weight


@settings(max_examples=300, deadline=None)
@given(
    tables(),
    st.sampled_from(["error", "entropy"]),
    st.integers(0, 3),
    st.sampled_from([None, None, 2, 4]),
    st.sampled_from([0.0, 0.05]),
    st.sampled_from(["multiway", "binary"]),
    st.sampled_from(["branch", "best"]),
    st.sampled_from([None, "balanced"]),
)
def test_no_tree_of_brute_force_is_better(
    table, objective, depth, leaves, penalty, categories, unknown, class_weight
):
    X, y, weight = table
    model = best(
        objective=objective,
        max_depth=depth,
        max_leaf_nodes=leaves,
        leaf_penalty=penalty,
        categories=categories,
        unknown=unknown,
        class_weight=class_weight,
        base="e",
    ).fit(X, y, weight)
    rows = model._check(X, y, weight, reset=False)
    rules = categories == "binary", unknown == "best", objective, depth, leaves or 0
    cost = best_tree(rows, *rules, penalty * rows.weight_sum)[2]
    certificate = model.certificate_
    assert certificate.objective == pytest.approx(cost / rows.weight_sum, abs=1e-12)
    assert certificate.gap == 0
    assert certificate.converged
    assert model.get_depth() <= depth
    assert model.get_n_leaves() <= (leaves or np.inf)
    certificate.verify(X, y, weight)
    shares = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    held = np.ones(len(y)) if rows.weight is None else rows.weight
    assert model.log_likelihood_ == pytest.approx(np.average(np.log(shares), weights=held), abs=1e-12)
    if objective == "error":
        wrong = np.average(model.predict(X) != np.array(y), weights=held)
        assert certificate.objective == pytest.approx(wrong + penalty * model.get_n_leaves(), abs=1e-12)


def test_what_a_greedy_tree_cannot_find():
    X, y = xor(levels=3)
    assert best().fit(X, y).score(X, y) == 1.0
    assert best(objective="error").fit(X, y).score(X, y) == 1.0
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(len(y), 2))])
    assert DecisionTreeClassifier(max_depth=3).fit(X, y).score(X, y) < 1.0
    assert best().fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("objective", ["error", "entropy"])
def test_no_greedy_tree_is_better(depth, objective):
    X, y = load_breast_cancer(return_X_y=True)
    greedy = DecisionTreeClassifier(max_depth=depth).fit(X, y)
    ours = best(max_depth=depth, objective=objective).fit(X, y)
    if objective == "error":
        assert ours.score(X, y) >= greedy.score(X, y)
        assert ours.certificate_.objective == pytest.approx(1 - ours.score(X, y))
    else:
        assert ours.log_likelihood_ >= greedy.log_likelihood_ - 1e-12
        assert ours.log_likelihood_ == pytest.approx(-ours.certificate_.objective)


def test_no_depth_stands_for_three():
    X, y = noise()
    assert best().fit(X, y).certificate_.claim == best(max_depth=3).fit(X, y).certificate_.claim
    assert best().fit(X, y).tree_.limits["max_depth"] == 3


def test_the_same_rows_in_other_forms():
    X, y = noise()
    X = np.round(X.clip(0), 1).astype(np.float32)
    model = best().fit(X, y)
    for other in (sp.csr_array(X), X.astype(np.float64), pd.DataFrame(X, columns=list("abcd"))):
        again = best().fit(other, y)
        np.testing.assert_array_equal(again.tree_.column, model.tree_.column)
        np.testing.assert_array_equal(again.predict(other), model.predict(X))
        assert again.certificate_.objective == model.certificate_.objective
        again.certificate_.verify(other, y)


def test_one_class_and_one_row():
    for X, y in (([[1.0], [2.0]], ["a", "a"]), ([[1.0]], ["a"]), ([[1.0], [1.0]], ["a", "b"])):
        for search in ("optimal", "lookahead"):
            for objective in ("error", "entropy"):
                model = DecisionTreeClassifier(search=search, objective=objective).fit(X, y)
                assert model.get_n_leaves() == 1
                assert model.certificate_.gap == 0
                model.certificate_.verify(X, y)
                assert model.feature_importances_.tolist() == [0.0]


def test_a_penalty_is_in_the_unit_of_base():
    X, y = noise()
    bits, nats = best(leaf_penalty=0.2).fit(X, y), best(leaf_penalty=0.2 * LN2, base="e").fit(X, y)
    assert bits.certificate_.objective == pytest.approx(nats.certificate_.objective, rel=1e-14)
    assert bits.get_n_leaves() == nats.get_n_leaves() < best().fit(X, y).get_n_leaves()
    assert bits.certificate_.claim.endswith("leaves counted")
    share = best(objective="error", leaf_penalty=0.05)
    assert share.fit(X, y).certificate_.objective == pytest.approx(
        share.set_params(base="e").fit(X, y).certificate_.objective
    )


def test_a_large_penalty_leaves_the_constant_model():
    X, y = noise()
    for objective in ("error", "entropy"):
        model = best(objective=objective, leaf_penalty=5.0).fit(X, y)
        assert model.get_n_leaves() == 1
        model.certificate_.verify(X, y)


@pytest.mark.parametrize("objective", ["error", "entropy"])
def test_weights_that_the_search_has_to_round(objective):
    X, y = make_classification(
        6000, 4, n_classes=3, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0
    )
    weight = np.random.default_rng(0).random(y.size) ** 9 + 1e-9
    model = best(objective=objective, max_depth=2)
    for options, weights in (({"class_weight": "balanced"}, None), ({"class_weight": None}, weight)):
        model.set_params(**options).fit(X, y, weights)
        assert model.certificate_.claim.startswith("the best tree of depth 2: no other")
        assert model.certificate_.gap == 0
        assert 0 < model.certificate_.rounding < 1e-8
        model.certificate_.verify(X, y, weights)


def test_the_criterion_is_what_impurities_are_of():
    X, y = noise()
    trees = {name: best(criterion=name).fit(X, y) for name in ("entropy", "gini", "homogeneous")}
    for name, model in trees.items():
        np.testing.assert_array_equal(model.tree_.column, trees["entropy"].tree_.column)
        assert model.tree_.criterion == name
    shares = np.bincount(y) / y.size
    assert trees["gini"].tree_.impurity[0] == pytest.approx(1 - shares @ shares)


def test_many_threads_find_the_same_tree():
    X, y = noise(200)
    one, two = (best(n_jobs=jobs, objective="error").fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.tree_.threshold, two.tree_.threshold)
    np.testing.assert_array_equal(one._grown.search.frontier.left, two._grown.search.frontier.left)


# -- words ---------------------------------------------------------------------------------------------------


def test_what_is_claimed():
    X, y = xor()
    weight = np.arange(1.0, 21.0)
    assert str(best(objective="error", max_depth=2).fit(X, y).certificate_) == (
        "optimal tree: the best tree of depth 2: no other has fewer errors (0.0% of the rows)"
    )
    assert str(best(objective="error", max_depth=1).fit(X, y, weight).certificate_).startswith(
        "optimal tree: the best tree of depth 1: no other has fewer errors ("
    )
    assert "of the weight)" in best(objective="error").fit(X, y, weight).certificate_.claim
    assert str(best(max_depth=2, max_leaf_nodes=4).fit(X, y).certificate_) == (
        "optimal tree: the best tree of depth 2 with at most 4 leaves: no other takes more of the "
        "uncertainty about the class (100.0%)"
    )
    many = pd.DataFrame({"c": list("abcdefghijkl") * 2})
    model = best(categories="binary").fit(many, [0, 1, 2] * 8)
    assert "of depth 3 among the groupings tried: no other" in model.certificate_.claim
    model.certificate_.verify(many, [0, 1, 2] * 8)


def test_a_tree_that_was_cut_is_compared_with_what_was_searched_for():
    X, y = noise()
    model = best(objective="error").fit(X, y)
    smaller = model.pruned(max_depth=1)
    certificate = smaller.certificate_
    assert smaller.get_depth() == 1
    assert certificate.objective == pytest.approx(1 - smaller.score(X, y))
    assert certificate.lower_bound == pytest.approx(model.certificate_.objective)
    most = np.ceil(1000 * certificate.gap / certificate.lower_bound - 1e-6) / 10
    assert certificate.claim == f"within {most:g}% of the best tree of depth 3"
    assert certificate.converged
    certificate.verify(X, y)
    with pytest.raises(InputError, match="asks for a larger tree"):
        model.pruned(max_depth=4)


@pytest.mark.parametrize("prune", ["reduced_error", "cost_complexity"])
@pytest.mark.parametrize("search", ["optimal", "lookahead"])
def test_rows_may_be_held_out_for_pruning(search, prune):
    X, y = noise(100)
    model = DecisionTreeClassifier(search=search, prune=prune, random_state=0).fit(X, y)
    assert model.get_n_leaves() <= 8 or search == "lookahead"
    model.certificate_.verify(X, y)


def test_a_cost_of_leaves_cuts_the_best_tree():
    X, y = noise()
    whole, cut = best().fit(X, y), best(ccp_alpha=0.1).fit(X, y)
    assert cut.get_n_leaves() < whole.get_n_leaves()
    np.testing.assert_array_equal(cut.tree_.column, whole.pruned(ccp_alpha=0.1).tree_.column)
    assert "pruned" in str(cut.certificate_)
    cut.certificate_.verify(X, y)


def test_everything_that_a_tree_says():
    X, y = load_iris(return_X_y=True, as_frame=True)
    for model in (
        best(objective="error", trace=True),
        DecisionTreeClassifier(search="lookahead", trace=True),
    ):
        model.fit(X, y)
        assert "petal" in model.export_text()
        assert "petal" in model.export_rules()
        assert "petal" in model.export_svg()
        assert "petal" in model.export_graphviz()
        assert "petal" in model._repr_html_()
        assert "petal" in str(model.explain(X.iloc[0]))
        assert "petal" in str(model.trace_)
        assert model.to_dict()["root"]
        assert model.feature_importances_.sum() == pytest.approx(1.0)
        assert model.predict_proba(X).shape == (150, 3)
        assert model.apply(X).shape == (150,)
        assert model.decision_path(X).shape == (150, model.tree_.node_count)
        assert len(list(model.staged_predict(X))) == model.get_depth() + 1
        assert len(model.ccp_path_.ccp_alphas) == len(list(model.staged_predict(X, by="ccp_alpha")))
        assert model.depth_path_.objectives[-1] == pytest.approx(-model.log_likelihood_)
        assert model.cost_complexity_pruning_path(X, y).ccp_alphas[0] == 0
        assert clone(model).fit(X, y).certificate_ == model.certificate_


def test_why_a_leaf_is_one():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1]
    text = best(objective="error", leaf_penalty=0.3).fit(X, y).trace
    assert text is False
    traced = best(objective="error", leaf_penalty=0.3, trace=True).fit(X, y).trace_
    assert traced.nodes[0].end == "no split makes fewer errors by leaf_penalty=0.3"
    X, y = noise()
    ends = {node.end for node in best(max_depth=1, trace=True).fit(X, y).trace_.nodes}
    assert "max_depth=1 was reached" in ends


def test_history_and_progress(capsys):
    X, y = noise(200)
    records = []
    model = best(verbose=1, callbacks=[records.append]).fit(X, y)
    assert records == model.history_
    assert records[-1].objective == pytest.approx(model.certificate_.objective, abs=1e-12)
    assert records[-1].gap == pytest.approx(0.0, abs=1e-12)
    objectives, gaps = (np.array([getattr(one, name) for one in records]) for name in ("objective", "gap"))
    assert (np.diff(objectives) <= 0).all()
    assert (np.diff(objectives - gaps) >= -1e-12).all()  # the bound rises
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(records)
    assert lines[0].startswith("DecisionTreeClassifier: step 1, ")


def test_the_same_fit_twice_is_the_same_pickle():
    X, y = noise()
    one, two = (pickle.dumps(best().fit(X, y)) for _ in range(2))
    assert one == two
    model = pickle.loads(one)
    model.certificate_.verify(X, y)
    assert [record.seconds for record in model.history_] == [0.0] * len(model.history_)


def test_a_copy_with_other_parameters_still_speaks_of_its_fit():
    X, y = noise()
    model = copy.copy(best(objective="error").fit(X, y)).set_params(search="greedy", objective="entropy")
    assert model.certificate_.kind == "optimal tree"
    model.certificate_.verify(X, y)
    text = model.certificate_.to_json()
    Certificate.from_json(text).bind(model).verify(X, y)


# -- looking ahead -------------------------------------------------------------------------------------------


def test_lookahead():
    X, y = xor()
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(len(y), 2))])
    model = DecisionTreeClassifier(search="lookahead").fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.get_n_leaves() == 4
    assert str(model.certificate_) == (
        "lookahead tree: every split begins the best tree of two levels at its node; no tree fits these rows "
        "better"
    )
    X, y = noise(150)
    for options in ({"max_depth": 4}, {"objective": "error", "leaf_penalty": 0.01}, {"max_leaf_nodes": 5}):
        model = DecisionTreeClassifier(search="lookahead", **options).fit(X, y)
        assert model.get_depth() <= options.get("max_depth", 99)
        assert model.get_n_leaves() <= options.get("max_leaf_nodes", 999)
        assert model.certificate_.objective == pytest.approx(-model.log_likelihood_)
        model.certificate_.verify(X, y)
        assert len(model.history_) == model.get_depth() + 1
        with pytest.raises(CertificateError):
            replace(model.certificate_, objective=model.certificate_.objective / 2).verify(X, y)
        with pytest.raises(CertificateError):
            replace(model.certificate_, gap=model.certificate_.gap / 2).verify(X, y)
        with pytest.raises(CertificateError):
            replace(model.certificate_, kind="greedy tree").verify(X, y)


# -- limits --------------------------------------------------------------------------------------------------


def test_a_time_limit_keeps_the_best_tree_so_far(hard):
    X, y = hard[0][:600, :6], hard[1][:600]
    model = best(max_depth=4, objective="error", time_limit=0.5)
    start = time.perf_counter()
    with pytest.warns(StoppedEarly, match=r"Stopped by time_limit=0\.5 s .* Allow more time"):
        model.fit(X, y)
    assert time.perf_counter() - start < 1.5
    certificate = model.certificate_
    assert not certificate.converged
    assert 0 < certificate.gap < certificate.objective
    assert certificate.claim.startswith("within ")
    assert certificate.notes == ("the search was stopped",)
    assert model.score(X, y) >= DecisionTreeClassifier(max_depth=3).fit(X, y).score(X, y)


def test_no_time_at_all(hard):
    X, y = hard
    for search, depth in (("optimal", 4), ("optimal", 2), ("lookahead", None)):
        model = DecisionTreeClassifier(search=search, max_depth=depth, time_limit=1e-9)
        with pytest.warns(StoppedEarly):
            model.fit(X, y)
        assert model.predict(X).shape == y.shape
        model.certificate_.verify(X, y)


def test_a_stopped_search_is_checked():
    X, y = make_classification(250, 5, n_informative=4, n_redundant=0, flip_y=0.3, random_state=1)
    model = best(max_depth=4, objective="error", time_limit=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoppedEarly)
        model.fit(X, y)
    model.certificate_.verify(X, y)


def test_a_search_that_was_stopped_early_keeps_no_bounds_that_are_none():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(["a", "b", "c", "d", "e", None], 300) for name in "pqrs"})
    y = rng.integers(0, 3, 300)
    for seconds in (1e-4, 1e-3, 3e-3, 1e-2):
        model = best(max_depth=4, max_leaf_nodes=8, categories="binary", time_limit=seconds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoppedEarly)
            model.fit(X, y)
        if model.certificate_.lower_bound == 0:
            assert model._grown.search.frontier.column.size == 0
            assert model.certificate_.verify(X, y).notes[-1] == "the lower bound holds for every tree"


def test_ctrl_c_leaves_it_fitted(hard):
    X, y = hard
    model = best(max_depth=6)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    timer.join()
    assert model.certificate_.gap > 0
    assert model.score(X, y) > 0.5


def test_a_deep_search_is_warned_of_before_it_starts():
    X, y = noise(40, 2)
    with pytest.warns(SixfoldWarning, match=r"best tree of depth 7 may take .*\. Set time_limit") as caught:
        model = best(max_depth=7).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    model.certificate_.verify(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best(max_depth=7, time_limit=100.0).fit(X, y)
        best(max_depth=6).fit(X, y)
        best(max_depth=7).fit(X[:5], y[:5])  # which no tree is deep enough for
        best(max_depth=7).fit(X, np.zeros(40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SixfoldWarning):
            best(max_depth=7).fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search": "best"}, "search='best' is not an option"),
        ({"search": "optimal", "objective": "gini"}, "objective='gini' is not an option"),
        ({"search": "optimal", "leaf_penalty": -1.0}, "leaf_penalty=-1.0"),
        ({"search": "optimal", "leaf_penalty": np.nan}, "leaf_penalty=nan"),
        ({"objective": "error"}, "search='greedy' takes the best split by criterion"),
        ({"leaf_penalty": 0.1}, "Set ccp_alpha"),
        ({"search": "optimal", "min_samples_leaf": 5}, "min_samples_leaf=5 limits how single splits"),
        ({"search": "lookahead", "min_samples_split": 0.1}, "min_samples_split=0.1 limits how"),
        ({"search": "optimal", "min_weight_fraction_leaf": 0.1}, "min_weight_fraction_leaf=0.1 limits"),
        ({"search": "optimal", "min_impurity_decrease": 0.1}, "min_impurity_decrease=0.1 limits"),
        ({"search": "optimal", "max_features": "sqrt"}, "max_features='sqrt' limits"),
        ({"search": "optimal", "max_depth": 1000}, "max_depth=1000 is out of range"),
        ({"search": "optimal", "max_depth": -1}, "max_depth=-1"),
        ({"search": "optimal", "max_leaf_nodes": 1}, "max_leaf_nodes=1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    with pytest.raises(InputError) as caught:
        DecisionTreeClassifier(**options).fit([[0.0], [1.0]], [0, 1])
    assert words in str(caught.value)


# -- verify --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["error", "entropy"])
def fitted(request):
    X, y = noise(120)
    return best(objective=request.param).fit(X, y), X, y


@pytest.mark.parametrize("depth", [2, 3])
def test_verify_catches_what_was_changed(fitted, depth):
    model, X, y = fitted
    model = clone(model).set_params(max_depth=depth).fit(X, y)
    certificate = model.certificate_
    certificate.verify(X, y)
    tree = model.tree_
    leaf = int(np.flatnonzero(tree.is_leaf)[0])

    def changed(**arrays):
        other = copy.copy(model)
        other.tree_ = replace(tree, **arrays)
        return other

    totals = tree.totals.copy()
    totals[leaf] = totals[leaf][::-1] + 1.0
    threshold = tree.threshold + np.where(tree.is_leaf, 0.0, 0.5)
    for other in (changed(totals=totals), changed(threshold=threshold)):
        with pytest.raises(CertificateError):
            certificate.bind(other).verify(X, y)
        with pytest.raises(CertificateError):
            other.certificate_.verify(X, y)
    with pytest.raises(CertificateError, match="objective"):
        replace(certificate, objective=certificate.objective * 0.9).verify(X, y)
    smaller = model.pruned(max_depth=1)
    with pytest.raises(CertificateError):  # it is not the best
        replace(smaller.certificate_, gap=0.0).verify(X, y)
    with pytest.raises(CertificateError):
        replace(smaller.certificate_, claim=certificate.claim).verify(X, y)
    with pytest.raises(CertificateError):
        certificate.verify(X, 2 - y)


def test_verify_catches_a_bound_that_is_none(fitted):
    model, X, y = fitted
    smaller = model.pruned(max_depth=1)
    frontier = model._grown.search.frontier
    # The cut tree is said to be the best, and the frontier is made to say so.
    more = smaller.certificate_.gap
    search = replace(
        model._grown.search,
        lower_bound=smaller.certificate_.objective,
        frontier=replace(frontier, left=frontier.left + more),
    )
    smaller._grown = replace(model._grown, search=search)
    assert smaller.certificate_.gap == 0
    with pytest.raises(CertificateError):
        smaller.certificate_.verify(X, y)


def test_verify_catches_a_unit_that_would_allow_for_anything(fitted):
    model, X, y = fitted
    other = model.pruned(max_depth=1)
    search = replace(model._grown.search, lower_bound=other.certificate_.objective, unit=0.01)
    other._grown = replace(model._grown, search=search)
    with pytest.raises(CertificateError, match="whole numbers of"):
        other.certificate_.verify(X, y)


def test_verify_catches_a_question_that_is_in_no_item(fitted):
    model, X, y = fitted
    frontier = model._grown.search.frontier
    kept = slice(0, frontier.column.size // 2)
    less = replace(frontier, **{name: getattr(frontier, name)[kept] for name in vars(frontier)})
    other = copy.copy(model)
    other._grown = replace(model._grown, search=replace(model._grown.search, frontier=less))
    with pytest.raises(CertificateError, match="questions about column"):
        other.certificate_.verify(X, y)


# -- choosing ------------------------------------------------------------------------------------------------


def test_a_grid_fits_each_tree_by_itself():
    X, y = noise(90)
    grid = {"max_depth": [1, 2, 3], "search": ["greedy", "optimal"], "leaf_penalty": [0.0]}
    search = GridSearchCV(DecisionTreeClassifier(), grid, cv=3).fit(X, y)
    folds = list(search.cv_results_["params"])
    for number, setting in enumerate(folds):
        scores = [search.cv_results_[f"split{k}_test_score"][number] for k in range(3)]
        assert np.isfinite(scores).all(), setting
    whole = GridSearchCV(best(), {"max_depth": [1, 2, 3]}, cv=3).fit(X, y)
    chosen = [k for k, one in enumerate(folds) if one["search"] == "optimal"]
    np.testing.assert_allclose(
        whole.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"][chosen]
    )
    assert whole.certificate_.done == 9


@pytest.mark.parametrize("penalty", [0.003, 1e15])
@pytest.mark.parametrize("objective", ["error", "entropy"])
def test_a_share_between_two_that_are_shown_is_confirmed(objective, penalty):
    x = np.arange(80)[:, None] % 2
    y = x.ravel().copy()
    y[0] = 1 - y[0]  # 1.25% are errors
    model = DecisionTreeClassifier(search="optimal", objective=objective, max_depth=1, leaf_penalty=penalty)
    assert model.fit(x, y).certificate_.verify(x, y).converged
