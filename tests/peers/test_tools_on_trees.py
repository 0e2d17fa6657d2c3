"""Tools that read scikit-learn's trees read ours under its name: the same pictures, texts and SHAP values."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier as Theirs
from sklearn.tree import export_graphviz, export_text, plot_tree

import sixfold
from sixfold.errors import InputError
from sixfold.patch.trees import DecisionTreeClassifier as Ours

X, y = load_iris(return_X_y=True)
X = X + 0.3 * np.random.default_rng(0).normal(
    size=X.shape
)  # no two splits of the first levels are equally good
NAMES, CLASSES = ["a", "b", "c", "d"], ["one", "two", "three"]


@pytest.fixture
def both():
    ours, theirs = (model(max_depth=3, random_state=0).fit(X, y) for model in (Ours, Theirs))
    assert ours._ours is not None
    return ours, theirs


def test_exports_are_the_same_text(both):
    ours, theirs = both
    for options in ({}, {"show_weights": True, "feature_names": NAMES, "decimals": 5}):
        assert export_text(ours, **options) == export_text(theirs, **options)
    for options in ({}, {"filled": True, "node_ids": True, "proportion": True, "class_names": CLASSES}):
        assert export_graphviz(ours, **options) == export_graphviz(theirs, **options)


def test_drawn_trees_say_the_same(both):
    canvas, figure = (
        pytest.importorskip(f"matplotlib.{name}") for name in ("backends.backend_agg", "figure")
    )
    drawn = []
    for model in both:
        axes = canvas.FigureCanvasAgg(figure.Figure()).figure.subplots()
        drawn.append([one.get_text() for one in plot_tree(model, ax=axes, filled=True)])
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) >= both[0].tree_.node_count


@pytest.mark.parametrize("rows", [None, X[:60]], ids=["by the tree", "by rows"])
def test_shap_values_are_the_same(both, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shap = pytest.importorskip("shap")
        ours, theirs = (shap.TreeExplainer(model, rows) for model in both)
        assert np.array_equal(ours.shap_values(X[:20]), theirs.shap_values(X[:20]))
        assert np.array_equal(ours.expected_value, theirs.expected_value)
        assert np.abs(ours.shap_values(X[:20])).max() > 0.1


def test_dtreeviz_reads_the_same_tree(both):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dtreeviz = pytest.importorskip("dtreeviz")
        ours, theirs = (
            dtreeviz.model(model, X, y, target_name="y", feature_names=NAMES, class_names=CLASSES)
            for model in both
        )
        assert ours.explain_prediction_path(X[70]) == theirs.explain_prediction_path(X[70])
        for name in ("thresholds", "features", "children_left", "children_right"):
            mine, known = (getattr(one.shadow_tree, f"get_{name}")() for one in (ours, theirs))
            assert np.array_equal(mine, known)
        for node in range(theirs.shadow_tree.nnodes()):
            mine, known = (one.shadow_tree.get_node_nsamples_by_class(node) for one in (ours, theirs))
            assert np.array_equal(mine, known)


def test_our_own_tree_has_the_arrays_and_methods_of_scikit_learn():
    X32 = X.astype(np.float32)
    theirs = Theirs(max_depth=3, random_state=0).fit(X, y).tree_
    ours = sixfold.DecisionTreeClassifier(criterion="gini", max_depth=3).fit(X32, y).tree_
    for name in (
        "node_count", "n_leaves", "max_depth", "n_features", "n_outputs", "max_n_classes", "n_classes",
        "children_left", "children_right", "feature", "threshold", "n_node_samples",
        "weighted_n_node_samples",
    ):  # fmt: skip
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("impurity", "value"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-15)
    assert np.array_equal(ours.apply(X32), theirs.apply(X32))
    assert np.array_equal(ours.predict(X32), theirs.predict(X32))
    assert (ours.decision_path(X32) != theirs.decision_path(X32)).nnz == 0


def test_a_tree_of_more_than_two_branches_says_that_it_has_no_left_and_right():
    tree = sixfold.DecisionTreeClassifier().fit([["a"], ["b"], ["c"]], [0, 1, 2]).tree_
    for name in ("children_left", "children_right"):
        with pytest.raises(InputError, match=r"other branches than left .* see tree_.children\(node\)"):
            getattr(tree, name)
    assert tree.predict(np.array([[1.0]])).tolist() == [[0.0, 1.0, 0.0]]
    assert tree.decision_path(np.array([[2.0]])).toarray().tolist() == [[1, 0, 0, 1]]
