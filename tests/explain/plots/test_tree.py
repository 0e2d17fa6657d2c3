import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as Other

from sixfold import DecisionTreeClassifier
from sixfold.data.examples import load_example
from sixfold.errors import InputError
from sixfold.plot import tree

IRIS = load_example("iris")


def headings(ax):
    return [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"]


def boxes(ax):
    return [patch for patch in ax.patches if str(patch.get_gid()).startswith("node ")]


def test_every_node_is_a_box_with_its_question_or_answer():
    model = DecisionTreeClassifier(max_depth=2).fit(IRIS.X, IRIS.y)
    ax = tree(model)
    assert len(boxes(ax)) == model.tree_.node_count
    assert headings(ax).count("setosa") == 1
    assert {text.get_text() for text in ax.texts} >= {"≤ 2.45", "> 2.45"}


def test_boxes_do_not_overlap():
    ax = tree(DecisionTreeClassifier().fit(IRIS.X, IRIS.y), max_depth=None)
    ends = [(b.get_x(), b.get_x() + b.get_width(), b.get_y(), b.get_y() + b.get_height()) for b in boxes(ax)]
    for i, (left, right, top, bottom) in enumerate(ends):
        for other in ends[:i]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top


def test_text_has_room_in_its_box():
    ax = tree(DecisionTreeClassifier(max_depth=2).fit(IRIS.X, IRIS.y))
    ax.figure.draw_without_rendering()
    for box in boxes(ax):
        frame = box.get_window_extent()
        for text in ax.texts:
            place = text.get_window_extent()
            if (
                frame.y0 < (place.y0 + place.y1) / 2 < frame.y1
                and frame.x0 < (place.x0 + place.x1) / 2 < frame.x1
            ):
                assert frame.x0 <= place.x0
                assert place.x1 <= frame.x1


def test_what_lies_deeper_is_counted():
    ax = tree(DecisionTreeClassifier().fit(IRIS.X, IRIS.y), max_depth=1)
    assert any("below" in text.get_text() for text in ax.texts)
    assert len(boxes(ax)) == 3


def test_a_tree_of_one_node_and_a_pipeline_are_drawn():
    assert headings(tree(DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "a"]))) == ["a"]
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=1)).fit(IRIS.X, IRIS.y)
    assert len(boxes(tree(model))) == 3


def test_letters_grow_with_the_axes_that_are_given():
    model = DecisionTreeClassifier(max_depth=1).fit(IRIS.X, IRIS.y)
    sizes = [tree(model, Figure(figsize=(w, w)).subplots()).texts[0].get_fontsize() for w in (1.5, 3.0)]
    assert sizes[1] == pytest.approx(2.0 * sizes[0], rel=1e-3)


def test_a_dollar_in_a_name_is_no_formula():
    X = np.array([["$a$"], ["$b$"], ["$a$"]], dtype=object)
    ax = tree(DecisionTreeClassifier().fit(X, ["$1$", "$2$", "$1$"]))
    ax.figure.draw_without_rendering()
    assert "$1$" in headings(ax)


@pytest.mark.parametrize("model", [Other(), None, "tree"])
def test_what_is_no_tree_of_ours_is_refused(model):
    with pytest.raises(InputError, match="DecisionTreeClassifier"):
        tree(model)


def test_a_depth_that_is_none_is_refused():
    with pytest.raises(InputError, match="max_depth"):
        tree(DecisionTreeClassifier().fit(IRIS.X, IRIS.y), max_depth=-1)
