"""What is written, what is refused, and what older versions have written."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV as TheirGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sixfold import (
    SVC,
    DecisionTreeClassifier,
    GridSearchCV,
    KNeighborsClassifier,
    LinearRegression,
    LogisticRegression,
    load,
    save,
)
from sixfold.app.model_file import FORMAT, read_header, read_model
from sixfold.app.model_file.classes import CLASSES
from sixfold.errors import ModelFileError, SixfoldError
from tests.app.model_file.saved_models import case, classes, numbers, words
from tests.fuzz.model_file_mutations import closed, opened

OLD = Path(__file__).parent / "format_1.sixfold"
OLD_TREE = Path(__file__).parent / "tree_before_searches.sixfold"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    facts = {"target": "y", "scores": {"test": 0.875}, "columns": ["ä", None, True]}
    return save(case("logistic")[0], tmp_path / "model.sixfold", facts=facts)


# -- what is written ---------------------------------------------------------------------------------------


def test_facts_and_header_come_back(saved: Path) -> None:
    read, told = read_model(saved), read_header(saved)
    assert (
        read.facts == told.facts == {"target": "y", "scores": {"test": 0.875}, "columns": ["ä", None, True]}
    )
    assert read.header == told.header
    assert (read.header["class"], read.header["format"]) == ("LogisticRegression", FORMAT)
    assert read.header["bytes"] == saved.stat().st_size
    assert told.model is None


def test_readers_of_safetensors_read_the_arrays(saved: Path) -> None:
    safe_open = pytest.importorskip("safetensors").safe_open
    with safe_open(saved, "numpy") as file:
        assert set(file.metadata()) == {"format", "sha256", "sixfold"}
        assert np.array_equal(file.get_tensor("coef_"), case("logistic")[0].coef_)


def test_the_same_fit_gives_the_same_bytes(tmp_path: Path) -> None:
    for model in (
        LogisticRegression(),
        DecisionTreeClassifier(trace=True),
        KNeighborsClassifier(),
        SVC(probability=True),
        GridSearchCV(
            DecisionTreeClassifier(), {"max_depth": [1, 2, 3]}, scoring=["f1_macro"], refit="f1_macro"
        ),
    ):
        files = []
        for name in ("one", "two"):
            fitted = model.__class__(**model.get_params(deep=False)).fit(numbers(), words())
            files.append(save(fitted, tmp_path / name).read_bytes())
        assert files[0] == files[1]


def test_a_file_is_replaced_as_a_whole_or_not_at_all(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(ModelFileError):
        save(KNeighborsClassifier(weights=lambda d: d + 1).fit(numbers(), words()), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["model.sixfold"]


def test_callbacks_are_left_out(tmp_path: Path) -> None:
    model = LogisticRegression(callbacks=[lambda record: None]).fit(numbers(), words())
    again = load(save(model, tmp_path / "model"))
    assert again.callbacks is None
    again.certificate_.verify(numbers(), words())


def test_names_of_rows_that_are_no_text_become_text(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=60)
    frame = pd.DataFrame(numbers(), index=days, columns=list("abcd"))
    model = KNeighborsClassifier(3).fit(frame, words())
    again = load(save(model, tmp_path / "model"))
    assert again._row_index[0] == "2024-01-01 00:00:00"
    assert "2024" in str(again.explain(frame.iloc[[0]]))


# -- what is refused ---------------------------------------------------------------------------------------


def test_folders_that_cannot_be_written_to(tmp_path: Path) -> None:
    model = case("tree")[0]
    with pytest.raises(ModelFileError, match=r"cannot be written to .* there is no folder"):
        save(model, tmp_path / "nowhere" / "model.sixfold")
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError, match=r"is no folder"):
        save(model, tmp_path / "file" / "model.sixfold")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelFileError, match=r"there is a folder of that name"):
        save(model, tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (LogisticRegression, "is not fitted"),
        (lambda: "a model", "is of type str"),
        (
            lambda: RandomForestClassifier(2).fit(numbers(), classes()),
            "RandomForestClassifier, which a model file",
        ),
        (
            lambda: make_pipeline(KMeans(2, n_init=1), SVC()).fit(numbers(), classes()),
            r"steps\[0\]\[1\] is a",
        ),
        (
            lambda: KNeighborsClassifier(weights=np.exp).fit(numbers(), classes()),
            "weights is .* Functions are code",
        ),
        (
            lambda: SVC(kernel=lambda X, Z: X @ Z.T).fit(numbers(), classes()),
            "kernel is .* Functions are code",
        ),
        (
            lambda: TheirGridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(numbers(), classes()),
            "^The model is a .* Fit sixfold.GridSearchCV in its place",
        ),
        (lambda: make_pipeline(FunctionTransformer(np.abs), SVC()).fit(numbers(), classes()), "func is"),
        (
            lambda: GridSearchCV(
                LinearRegression(), {"tol": [1e-3]}, scoring=make_scorer(mean_squared_error, x=1)
            ),
            "is not fitted",
        ),
    ],
)
def test_models_that_cannot_be_saved(model: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=reason):
        save(model(), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_scorer_without_a_name_is_named(tmp_path: Path) -> None:
    search = GridSearchCV(LinearRegression(), {"tol": [1e-3]}, scoring=make_scorer(lambda y, p: 0.0))
    with pytest.raises(ModelFileError, match="has no name in scikit-learn"):
        save(search.fit(numbers(), classes()), tmp_path / "model")


def test_attributes_that_nobody_knows_are_not_saved(tmp_path: Path) -> None:
    model = LogisticRegression().fit(numbers(), words())
    model.note = "mine"
    with pytest.raises(ModelFileError, match=r"cannot be saved.*LogisticRegression\.note"):
        save(model, tmp_path / "model")


def test_facts_are_json(tmp_path: Path) -> None:
    for facts in ({"x": np.arange(3)}, {"x": float("nan")}, {"x": {1, 2}}):
        with pytest.raises(ModelFileError, match="facts cannot be written as JSON"):
            save(case("tree")[0], tmp_path / "model", facts=facts)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it has 0 bytes"),
        (b"PK\x03\x04 a zip file", "is not a sixfold model file: it begins with b'PK"),
        (b"\x80\x04\x95 a pickle, which is never read", "is not a sixfold model file"),
        ((2**40).to_bytes(8, "little") + b"{}", "is not a sixfold model file"),
        ((9999).to_bytes(8, "little") + b"{}", "is cut off"),
        ((2).to_bytes(8, "little") + b"{}", "digests"),
        ((2).to_bytes(8, "little") + b"{,", "0 digests"),
    ],
)
def test_other_files_are_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.sixfold"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=reason):
        load(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for read in (load, read_header):
        with pytest.raises(ModelFileError, match="there is no such file"):
            read(tmp_path / "nothing.sixfold")
        with pytest.raises(ModelFileError, match="it is a folder"):
            read(tmp_path)
    assert issubclass(ModelFileError, SixfoldError)


def test_every_bit_counts(saved: Path) -> None:
    data = saved.read_bytes()
    for place in range(0, len(data), 37):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        saved.write_bytes(bytes(changed))
        for read in (load, read_header):
            with pytest.raises(ModelFileError):
                read(saved)


def edited(path: Path, edit: Any) -> Path:
    """Change the description in a file and seal it again."""
    header, tree, arrays = opened(path.read_bytes())
    edit(header, tree)
    path.write_bytes(closed(header, tree, arrays))
    return path


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            lambda header, tree: header["__metadata__"].update(format="7"),
            "written in format 7.*reads up to 2: upgrade",
        ),
        (lambda header, tree: header["__metadata__"].update(format="x"), "its format version is 'x'"),
        (lambda header, tree: header["__metadata__"].update(more="x"), "no sixfold model"),
        (lambda header, tree: header["coef_"].update(dtype="BF16"), "is no type, shape and place"),
        (lambda header, tree: header["coef_"].update(shape=[4, 4]), "does not fill its"),
        (lambda header, tree: header["coef_"].update(shape=[0, 2**62]), "is no type, shape and place"),
        (lambda header, tree: header.pop("coef_"), "begins at byte|follow the last array"),
        (
            lambda header, tree: header.update(more={"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}),
            "belongs to",
        ),
        (lambda header, tree: tree.update({"class": "SVC"}), "said to be a SVC"),
        (lambda header, tree: tree.update(more=1), "is not made of"),
        (lambda header, tree: tree["model"]["model"].__setitem__(0, "Unheard"), "Upgrade sixfold"),
        (lambda header, tree: tree["model"]["model"][1].update(weird=1), "has a parameter 'weird'"),
        (lambda header, tree: tree["model"]["model"][1].update(callbacks=[1]), "callbacks is not None"),
        (lambda header, tree: tree["model"]["model"][1].update(n_jobs=10**9), "no number of threads"),
        (lambda header, tree: tree["model"]["model"][2].update(predict="x"), "predict is an attribute"),
        (lambda header, tree: tree["model"]["model"][2].update(n_features_in_=5), "has shape"),
        (lambda header, tree: tree["model"]["model"][2].pop("classes_"), "classes_ is missing"),
    ],
)
def test_what_is_wrong_is_said(edit: Any, reason: str, saved: Path) -> None:
    with pytest.raises(ModelFileError, match=reason):
        load(edited(saved, edit))


def test_keys_that_are_there_twice_are_refused(saved: Path) -> None:
    header, tree, arrays = opened(saved.read_bytes())
    import json

    text = json.dumps(tree).replace('"class"', '"class": "SVC", "class"', 1)
    saved.write_bytes(closed(header, text, arrays))
    with pytest.raises(ModelFileError, match="the key 'class' is there twice"):
        load(saved)


def tree_with(tmp_path: Path, name: str, place: int, value: Any) -> Path:
    """Save a tree of which one number of one array is another."""
    path = save(case("tree, categories")[0], tmp_path / "tree.sixfold")
    header, tree, arrays = opened(path.read_bytes())
    start, stop = header[name]["data_offsets"]
    dtypes = {"I32": np.int32, "I64": np.int64, "F64": np.float64, "U8": np.uint8}
    values = np.frombuffer(arrays[start:stop], dtypes[header[name]["dtype"]]).copy()
    values[place] = value
    path.write_bytes(closed(header, tree, arrays[:start] + values.tobytes() + arrays[stop:]))
    return path


@pytest.mark.parametrize(
    ("name", "place", "value", "reason"),
    [
        ("child", 0, 0, "not from 1"),
        ("child", 0, 10**6, "not from 1"),
        ("child", 1, 1, "two parents|not come after|without a parent"),
        ("child", 0, 2, "parent|depth first"),
        ("column", 0, 99, "not from -1 to 3"),
        ("column", 0, -1, "gives leaves branches"),
        ("unknown", 0, 10**6, "not from -1"),
        ("first", 1, -5, "not from 0"),
        ("first", -1, 10**6, "in no order"),
        ("code", 0, 10**6, "ascending order|that there are not|two branches"),
        ("kinds", 0, 7, "not from 0 to 1"),
        ("kinds", 0, 1, "are not those of the tree|no number where|that there are not"),
        ("reason", 0, 77, "not from 0 to 5"),
        ("totals", 0, np.nan, "not finite"),
        ("totals", 0, -1.0, "no weights of classes"),
    ],
)
def test_trees_are_checked(name: str, place: int, value: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=reason):
        load(tree_with(tmp_path, f"tree_.{name}", place, value))


def test_thresholds_of_numbers_are_numbers(tmp_path: Path) -> None:
    tree = case("tree, categories")[0].tree_
    numeric = int(np.flatnonzero((tree.column >= 0) & (tree.kinds[tree.column] == 0))[0])
    with pytest.raises(ModelFileError, match="is no number where numbers are split"):
        load(tree_with(tmp_path, "tree_.threshold", numeric, np.nan))


# -- older versions ----------------------------------------------------------------------------------------


def test_a_file_of_version_1_keeps_loading() -> None:
    frame = pd.DataFrame(
        {
            "Größe": [0.5, 1.25, -0.75, 2.0, None, 0.0, 1.0, -2.0],
            "colour": ["rot", "blau", "grün", "rot", None, "blau", "rot", "grün"],
        }
    )
    read = read_model(OLD)
    assert read.header["format"] == read_header(OLD).header["format"] == 1
    assert read.facts == {"target": "antwort", "scores": {"test": 0.875}}
    decisions = [
        -1.176508632542035, -1.0445897212210926, 1.6363309195103775, -3.0531482877319647, 2.116701330709964,
        0.5192766581038485, -1.8020551842720116, 3.2001972988353184,
    ]  # fmt: skip
    assert read.model.decision_function(frame) == pytest.approx(decisions, rel=1e-14)
    assert read.model.predict(frame).tolist() == ["ja", "ja", "nein", "ja", "nein", "nein", "ja", "nein"]
    assert str(read.model[-1].certificate_).startswith("duality gap: optimal to machine precision")


def test_a_loaded_file_of_version_1_is_saved_in_the_newest(tmp_path: Path) -> None:
    path = save(load(OLD), tmp_path / "new.sixfold")
    assert read_header(path).header["format"] == FORMAT
    assert re.search(rb'\\"text\\":\[', OLD.read_bytes())
    assert not re.search(rb'\\"text\\":\[', path.read_bytes())


def test_a_tree_that_was_saved_before_trees_were_searched_for_is_a_greedy_one() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = load(OLD_TREE)
    assert (model.search, model.solver_) == ("greedy", "ID3")
    assert str(model.certificate_).startswith("greedy tree: every split is the best of its node")
    assert model.certificate_.verify(X, (X[:, 0] > 0).astype(int)).gap == 0


def test_the_public_classes_can_all_be_saved() -> None:
    import sixfold

    learners = {
        name for name in sixfold.__all__ if name[0].isupper() and hasattr(getattr(sixfold, name), "fit")
    }
    assert learners <= CLASSES.keys()
