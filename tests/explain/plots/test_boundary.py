import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn import svm
from sklearn.linear_model import LogisticRegression as OtherLogistic
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    KNeighborsClassifier,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Perceptron,
)
from sixfold.data.examples import load_example
from sixfold.errors import InputError
from sixfold.plot import decision_boundary

IRIS = load_example("iris")
PETALS = IRIS.X[:, 2:]
TWO = IRIS.y != "setosa"


def draw(model, X, y, **options):
    return decision_boundary(model, X, y, resolution=40, **options)


def said(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def marked(ax, start):
    return next(part for part in ax.collections if str(part.get_label()).startswith(start))


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        SVC(),
        DecisionTreeClassifier(),
        KNeighborsClassifier(),
        LinearSVC(),
        OtherLogistic(),
        svm.SVC(),
        make_pipeline(StandardScaler(), SVC()),
        GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]}, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_image_shows_what_the_model_predicts(model):
    model.fit(PETALS, IRIS.y)
    ax = draw(model, PETALS, IRIS.y)
    (image,) = ax.images
    across, up = np.linspace(*ax.get_xlim(), 40), np.linspace(*ax.get_ylim(), 40)
    wanted = model.predict(np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)).reshape(40, 40)
    shown = image.get_array()
    for label in np.unique(wanted):
        assert len(np.unique(shown[wanted == label], axis=0)) == 1
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) == len(np.unique(wanted))
    assert said(ax)[:3] == ["setosa", "versicolor", "virginica"]


def test_wrong_rows_are_counted_and_crossed():
    model = DecisionTreeClassifier(max_depth=1).fit(PETALS, IRIS.y)
    wrong = model.predict(PETALS) != IRIS.y
    ax = draw(model, PETALS, IRIS.y)
    assert f"wrong ({wrong.sum()})" in said(ax)
    np.testing.assert_array_equal(marked(ax, "wrong").get_offsets(), PETALS[wrong])
    assert ax.get_title() == f"DecisionTreeClassifier: {150 - wrong.sum()} of 150 rows right"


@pytest.mark.parametrize(
    "model", [SVC(), LinearSVC(loss="hinge"), svm.SVC(), make_pipeline(StandardScaler(), SVC())]
)
def test_support_vectors_have_rings_and_two_classes_margins(model):
    X, y = PETALS[TWO], IRIS.y[TWO]
    model.fit(X, y)
    ax = draw(model, X, y)
    last = model[-1] if hasattr(model, "steps") else model
    np.testing.assert_array_equal(marked(ax, "support").get_offsets(), X[np.sort(last.support_)])
    assert said(ax)[-2:] == ["decision = 0", "margin: -1 and +1"]


def test_the_margin_is_where_the_decision_is_one():
    X, y = PETALS[TWO], IRIS.y[TWO]
    model = LinearSVC(loss="hinge").fit(X, y)
    ax = decision_boundary(model, X, y)
    lines = [part for part in ax.collections if hasattr(part, "levels")]
    (drawn,) = lines
    for level, path in zip(drawn.levels, drawn.get_paths(), strict=True):
        np.testing.assert_allclose(model.decision_function(path.vertices), level, atol=1e-6)


def test_rings_are_left_out_for_other_rows_than_those_of_the_fit():
    model = SVC().fit(PETALS[TWO], IRIS.y[TWO])
    ax = draw(model, PETALS[TWO][::-1], IRIS.y[TWO][::-1])
    assert not any("support" in text for text in said(ax))


def test_a_model_that_is_no_machine_has_no_margin():
    ax = draw(LogisticRegression().fit(PETALS[TWO], IRIS.y[TWO]), PETALS[TWO], IRIS.y[TWO])
    assert not any("margin" in text or "support" in text for text in said(ax))


def test_many_columns_are_drawn_along_principal_directions():
    cancer = load_example("breast cancer")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(cancer.X, cancer.y)
    ax = draw(model, cancer.X, cancer.y)
    # 44.27% and 18.97% are the well-known shares of the standardised table.
    assert ax.get_xlabel() == "first principal direction of 30 columns (44% of variance)"
    assert ax.get_ylabel() == "second principal direction of 30 columns (19% of variance)"


def test_points_of_the_plane_are_mapped_back():
    """Rows in a plane of three columns: what is drawn at a row is what the model says of the row itself."""
    random = np.random.default_rng(0)
    flat = random.normal(size=(60, 2))
    X = flat @ random.normal(size=(2, 3)) + [5.0, -1.0, 100.0]
    y = (flat[:, 0] * flat[:, 1] > 0).astype(int)
    model = KNeighborsClassifier(1).fit(X, y)
    ax = decision_boundary(model, X, y)
    image = ax.images[0].get_array()
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    shades = {}
    for label in (0, 1):
        places = ax.collections[-2 + label].get_offsets()
        cells = np.rint((places - low) / (high - low) * 239).astype(int)
        shades[label] = {tuple(np.round(image[j, i], 6)) for i, j in cells}
    assert len(shades[0]) == len(shades[1]) == 1
    assert shades[0] != shades[1]


@pytest.mark.parametrize("columns", [(2, 3), ("petal length (cm)", "petal width (cm)"), (-2, -1)])
def test_chosen_columns_leave_the_others_at_their_medians(columns):
    X = pd.DataFrame(IRIS.X, columns=IRIS.columns)
    model = DecisionTreeClassifier().fit(X, IRIS.y)
    ax = draw(model, X, IRIS.y, columns=columns)
    assert ax.get_xlabel() == "petal length (cm)\n(regions: the other columns at their medians)"
    assert ax.get_ylabel() == "petal width (cm)"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_are_asked_as_frames_and_text_is_held_at_its_most_frequent(make):
    X = make({"a": [1.0, 2.0, 3.0, 4.0], "b": ["u", "v", "u", "u"], "c": [0.0, 1.0, 0.0, 1.0]})
    model = DecisionTreeClassifier(categorical_features=["b"]).fit(X, ["p", "p", "q", "q"])
    ax = draw(model, X, ["p", "p", "q", "q"], columns=["a", "c"])
    assert ax.get_title().endswith("4 of 4 rows right")
    with pytest.raises(InputError, match="Column 'b' is not numeric"):
        draw(model, X, ["p", "p", "q", "q"])
    with pytest.raises(InputError, match="Column 'b' is not numeric"):
        draw(model, X, ["p", "p", "q", "q"], columns=["a", "b"])


def test_sparse_rows_unknown_values_and_constant_columns():
    X = sp.csr_matrix(IRIS.X)
    draw(LogisticRegression().fit(X, IRIS.y), X, IRIS.y)
    holes = np.column_stack([IRIS.X, np.ones(150)])
    holes[::7, 0] = np.nan
    draw(DecisionTreeClassifier().fit(holes, IRIS.y), holes, IRIS.y)
    draw(DecisionTreeClassifier().fit(holes, IRIS.y), holes, IRIS.y, columns=(0, 4))


def test_whole_numbers_booleans_and_objects_are_asked_between_their_values():
    random = np.random.default_rng(0)
    X = random.integers(0, 3, size=(60, 3))
    for table in (X, X.astype(np.uint8), X > 0, X.astype(object)):
        model = KNeighborsClassifier(3).fit(np.asarray(table, dtype=float), X[:, 0] > 0)
        ax = draw(model, table, X[:, 0] > 0)
        assert ax.get_title().startswith("KNeighborsClassifier")
        assert "3 columns" in ax.get_xlabel()


def test_directions_of_huge_and_tiny_columns():
    X = IRIS.X * [1e200, 1e-200, 1.0, 1e150]
    ax = draw(DecisionTreeClassifier().fit(X, IRIS.y), X, IRIS.y)
    assert ax.get_xlabel() == draw(DecisionTreeClassifier().fit(IRIS.X, IRIS.y), IRIS.X, IRIS.y).get_xlabel()


def test_one_row_one_class_and_numbers_of_any_scale():
    draw(KNeighborsClassifier(1).fit([[1.0, 2.0]], ["a"]), [[1.0, 2.0]], ["a"])
    for scale in (1e-200, 1e150):
        X = PETALS * scale
        draw(DecisionTreeClassifier().fit(X, IRIS.y), X, IRIS.y)


def test_more_classes_than_colours_have_stripes_and_a_shorter_legend():
    random = np.random.default_rng(0)
    y = np.arange(120) % 20
    X = np.column_stack([y % 5, y // 5]) + 0.1 * random.normal(size=(120, 2))
    ax = draw(KNeighborsClassifier(1).fit(X, y), X, y)
    assert "… 8 more classes" in said(ax)
    hatches = [part.hatches[0] for part in ax.collections if getattr(part, "filled", False)]
    assert sorted(hatches) == [".."] * 4 + ["///"] * 8


def test_of_many_rows_some_are_drawn_and_all_are_counted():
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 2))
    y = (X[:, 0] > 0).astype(int)
    ax = draw(LogisticRegression().fit(X, y), X, 1 - y)
    assert "wrong (5,000)" in said(ax) or any("wrong (4,9" in text for text in said(ax))
    assert len(marked(ax, "wrong").get_offsets()) <= 2000


def test_the_arrow_stands_upright_on_the_border():
    X, y = PETALS[TWO], IRIS.y[TWO]
    model = LinearSVC(loss="hinge").fit(X, y)
    ax = draw(model, X, y, normal=True)
    assert ax.get_aspect() == 1.0
    arrow = next(text for text in ax.texts if getattr(text, "arrow_patch", None) is not None)
    along = np.array(arrow.xy) - np.array(arrow.xyann)
    w = model.coef_[0]
    assert along @ w == pytest.approx(np.linalg.norm(along) * np.linalg.norm(w), rel=1e-6)
    with pytest.raises(InputError, match="two classes"):
        draw(DecisionTreeClassifier().fit(PETALS, IRIS.y), PETALS, IRIS.y, normal=True)


def test_axes_that_are_given_are_used_and_returned():
    figure = Figure()
    ax = figure.subplots()
    model = Perceptron().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    assert draw(model, [[0.0, 0.0], [1.0, 1.0]], [0, 1], ax=ax) is ax
    assert figure.axes == [ax]


def test_dark_ground_has_light_ink():
    model = SVC().fit(PETALS[TWO], IRIS.y[TWO])
    light, dark = (draw(model, PETALS[TWO], IRIS.y[TWO], dark=dark) for dark in (False, True))
    assert light.images[0].get_array().mean() > 0.7
    assert dark.images[0].get_array().mean() < 0.4


class Constant:
    """Predicts one class, and has nothing but predict."""

    def predict(self, X):
        return np.full(len(X), "b")


def test_whatever_predicts_can_be_drawn():
    ax = draw(Constant(), PETALS[:4], ["a", "b", "a", "b"])
    assert ax.get_title() == "Constant: 2 of 4 rows right"


@pytest.mark.parametrize(
    ("model", "X", "y", "options", "words"),
    [
        (object(), PETALS, IRIS.y, {}, "no predict"),
        (LinearRegression(), PETALS, IRIS.y, {}, "predicts numbers"),
        (Constant(), PETALS, IRIS.y[:3], {}, "one class a row"),
        (Constant(), PETALS[:, :1], IRIS.y, {}, "a plane needs two"),
        (Constant(), PETALS[0], IRIS.y, {}, "Pass a table"),
        (Constant(), PETALS[:0], IRIS.y[:0], {}, "no rows"),
        (Constant(), IRIS.X, IRIS.y, {"columns": "x0"}, "name two columns"),
        (Constant(), IRIS.X, IRIS.y, {"columns": (0, 9)}, "4 columns"),
        (Constant(), IRIS.X, IRIS.y, {"columns": (1, 1)}, "one column twice"),
        (Constant(), IRIS.X, IRIS.y, {"columns": ("x0", "x7")}, "did you mean"),
        (Constant(), np.ones((5, 3)), ["a"] * 5, {}, "no two directions"),
        (Constant(), PETALS, np.arange(150), {}, "pass y as in fit"),
    ],
)
def test_what_cannot_be_drawn_is_said(model, X, y, options, words):
    with pytest.raises(InputError, match=words):
        draw(model, X, y, **options)


def test_a_grid_of_one_point_is_refused():
    with pytest.raises(InputError, match="resolution"):
        decision_boundary(Constant(), PETALS, IRIS.y, resolution=1)
