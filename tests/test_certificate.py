"""A certificate is plain data, speaks plainly, and does not let a changed model pass."""

import dataclasses
import datetime
import json
import math
import pickle

import numpy as np
import pytest

from sixfold import (
    SVC,
    ERMClassifier,
    KNeighborsRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    Perceptron,
)
from sixfold.budget import Budget
from sixfold.certificate import Certificate, Subject, plain_parameter
from sixfold.data.fingerprint import fingerprint
from sixfold.errors import CertificateError
from sixfold.learners.registry import LEARNERS, TRANSFORMERS
from sixfold.verify.recomputed import Recomputed


def certificate(**changes):
    given = {"kind": "duality gap", "objective": 3.0, "gap": 0.5, "scale": 10.0, "tolerance": 0.1}
    return Certificate(**(given | changes))


class Model:
    """A model whose recomputed certificate is given, with what may be off about the claim of 3.0 and 0.5."""

    def __init__(self, objective_allowance=0.0, gap_allowance=0.5, **changes):
        kinds = ("duality gap",)
        self.found = Recomputed(certificate(**changes), objective_allowance, gap_allowance, kinds)
        self.asked = None

    def _verify(self, claimed, X, y, sample_weight):
        self.asked = (X, y, sample_weight)
        return self.found.compare(claimed)


def test_the_bound_and_relative_gap_follow_from_the_gap():
    # 3 - 0.5, 0.5 / 10 <= 0.1
    assert certificate().lower_bound == 2.5
    assert certificate().relative_gap == 0.05
    assert certificate().converged
    assert not certificate(tolerance=0.04).converged


@pytest.mark.parametrize(("gap", "converged"), [(0.0, True), (1e-300, False)])
def test_without_a_scale_only_a_gap_of_zero_will_do(gap, converged):
    assert certificate(gap=gap, scale=0.0).converged == converged


@pytest.mark.parametrize("gap", [math.inf, math.nan])
def test_no_bound_never_converges(gap):
    assert not certificate(gap=gap).converged


def test_json_holds_every_field_and_what_follows_from_them():
    details = {"rank": np.int64(3), "condition": np.float64(2.5), "singular": np.array([1.0, 2.0])}
    given = certificate(details=details, notes=("rank 2 of 3",), model=object())
    read = json.loads(given.to_json())
    assert read == {
        "kind": "duality gap",
        "objective": 3.0,
        "gap": 0.5,
        "scale": 10.0,
        "tolerance": 0.1,
        "details": {"rank": 3, "condition": 2.5, "singular": [1.0, 2.0]},
        "claim": "",
        "notes": ["rank 2 of 3"],
        "rounding": 0.0,
        "unrestricted_bound": None,
        "subject": None,
        "lower_bound": 2.5,
        "relative_gap": 0.05,
        "converged": True,
        "legend": given.legend,
    }
    fields = {f.name for f in dataclasses.fields(Certificate)} - {"model"}
    assert Certificate(**{name: read[name] for name in fields}) == certificate(
        details=read["details"], notes=["rank 2 of 3"]
    )


def test_json_has_null_where_there_is_no_bound():
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = certificate(gap=math.inf, details={"deep": [math.nan, np.array([math.inf])]}).to_json()
    read = json.loads(text, parse_constant=refuse)
    assert read["gap"] is read["lower_bound"] is read["relative_gap"] is None
    assert read["details"] == {"deep": [None, [None]]}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "duality gap: within 0.05 of the optimum"),
        ({"gap": 0.0}, "duality gap: optimal to machine precision"),
        ({"gap": 1e-14}, "duality gap: optimal to machine precision"),
        ({"gap": 2.0}, "duality gap: within 0.2 of the optimum, short of the 0.1 asked for"),
        ({"gap": math.inf}, "duality gap: no bound known, short of the 0.1 asked for"),
        ({"gap": math.nan}, "duality gap: no bound known, short of the 0.1 asked for"),
        (
            {"scale": 0.0, "tolerance": 1e-6},
            "duality gap: at most 0.5 above the optimum, short of the 1e-06 asked for",
        ),
        (
            {"notes": ("rank 2 of 3", "stopped")},
            "duality gap: within 0.05 of the optimum; rank 2 of 3; stopped",
        ),
    ],
)
def test_it_says_in_plain_words_what_is_certified(changes, text):
    assert str(certificate(**changes)) == text


def test_verify_passes_on_and_returns_what_was_recomputed():
    model = Model()
    assert certificate().bind(model).verify("X", "y", "weight") is model.found.certificate
    assert model.asked == ("X", "y", "weight")


def test_verify_needs_a_model():
    with pytest.raises(CertificateError, match="not attached to a model"):
        certificate().verify("X", "y")


@pytest.mark.parametrize("objective", [3.001, 2.999, math.nan])
def test_verify_refuses_another_objective(objective):
    with pytest.raises(CertificateError, match=r"the objective is 3\.0, but on these data"):
        certificate().bind(Model(objective=objective)).verify("X", "y")


@pytest.mark.parametrize("gap", [1.1, math.inf, math.nan])
def test_verify_refuses_a_larger_gap(gap):
    with pytest.raises(CertificateError, match=r"a gap of at most 0\.5, but the recomputed"):
        certificate().bind(Model(gap=gap)).verify("X", "y")


def test_verify_forgives_what_rounding_can_do_and_no_more():
    def model(**changes):
        return Model(objective_allowance=1e-12, gap_allowance=1.0 + 1e-9, **changes)

    certificate().bind(model(objective=3.0 + 0.9e-12, gap=1.0 + 0.9e-9)).verify("X", "y")
    for changes in ({"objective": 3.0 + 1.2e-12}, {"gap": 1.0 + 1.1e-9}):
        with pytest.raises(CertificateError):
            certificate().bind(model(**changes)).verify("X", "y")


def test_binding_changes_neither_equality_nor_the_original():
    free = certificate()
    bound = free.bind("model")
    assert bound == free
    assert bound.model == "model"
    assert free.model is None


# -- handed on ---------------------------------------------------------------------------------------------


SUBJECT = Subject("LinearRegression", {"alpha": 0.1}, "0.1.0", "2026-01-31T12:00:00+00:00", 3, 2, "00ff")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gap": math.inf, "objective": math.inf},
        {"notes": ("rank 2 of 3", "stopped"), "claim": "exact", "details": {"rank": 3, "deep": [1.5, None]}},
        {"subject": SUBJECT, "rounding": 1e-12},
        {"subject": dataclasses.replace(SUBJECT, fingerprint=None, fingerprint_note="too large")},
    ],
)
def test_json_there_and_back(changes):
    given = certificate(**changes, model=object())
    read = Certificate.from_json(given.to_json())
    assert read == given
    assert read.subject == given.subject
    assert read.model is None
    assert read.to_json() == given.to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "duality gap"}', "null"])
def test_what_is_no_certificate_is_refused(text):
    with pytest.raises(CertificateError, match="This is no certificate"):
        Certificate.from_json(text)


def test_parameters_are_plain():
    given = {
        "C": math.inf,
        "gamma": np.float64(0.5),
        "depth": np.int64(3),
        "weights": {np.str_("a"): np.nan, 1: [True, None]},
        "metric": math.hypot,
        "seed": Model,
        "table": np.eye(2),
        "other": complex(1, 2),
    }
    plain = plain_parameter(given)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain == {
        "C": "inf",
        "gamma": 0.5,
        "depth": 3,
        "weights": {"a": "nan", "1": [True, None]},
        "metric": "hypot",
        "seed": "Model",
        "table": [[1.0, 0.0], [0.0, 1.0]],
        "other": "(1+2j)",
    }


def test_the_legend_says_relative_to_what_and_of_what_it_speaks():
    text = certificate().legend
    assert "divided by the objective of the model that predicts a constant" in text
    assert text.endswith("it speaks of the fit to these rows, not of the accuracy on new ones.")
    assert text.count(".") == 1
    assert "in the units of the objective" in certificate(scale=0.0).legend
    X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), [0, 0, 1, 1]
    hard = LinearSVC(C=math.inf, loss="hinge").fit(X, y).certificate_
    assert "divided by the objective itself" in hard.legend


@pytest.mark.parametrize("learner", [LogisticRegression, LinearSVC, ERMClassifier])
def test_the_gap_of_a_linear_classifier_is_relative_to_scores_of_zero(learner):
    X, y = np.array([[0.0], [1.0], [3.0], [4.0], [2.0]]), [0, 0, 1, 1, 1]
    found = learner().fit(X, y).certificate_
    assert "divided by the objective of the model whose scores are all zero;" in found.legend
    assert found.scale == pytest.approx(math.log(2) if learner is LogisticRegression else found.scale)


def test_an_exact_search_is_relative_to_distances():
    X, y, _ = table()
    certificate = KNeighborsRegressor().fit(X, y).certificate_
    assert "in the units of the objective" in certificate.legend
    assert "divided by the average distance of the nearest rows" in certificate.verify(X, y).legend


def test_where_only_conditions_hold_no_bound_is_claimed():
    given = certificate(kind="kkt", claim="stationary within 0.05")
    assert given.lower_bound == -math.inf
    assert json.loads(given.to_json())["lower_bound"] is None
    assert ">none claimed<" in given._repr_html_()
    assert "0 where all conditions of optimality hold, and bounds nothing" in given.legend
    assert ">2.5<" in certificate()._repr_html_()


@pytest.mark.parametrize("learner", LEARNERS + TRANSFORMERS, ids=lambda learner: learner.name)
def test_another_kind_of_certificate_is_refused(learner):
    X, y, _ = table(110)
    y = y if learner.task == "regression" else (y > 0).astype(int)
    found = learner.make().fit(X, y).certificate_
    found.verify(X, y)
    other = "not separable" if found.kind == "separating plane" else "separating plane"
    for kind in ("the best of all models", other):
        with pytest.raises(CertificateError, match=f"is of kind '{kind}', but that of such a model is of"):
            dataclasses.replace(found, kind=kind).verify(X, y)


def test_least_squares_is_no_kind_of_other_losses():
    X, y, _ = table()
    for model in (LogisticRegression().fit(X, y > 0), LinearRegression(positive=True).fit(X, y)):
        targets = y > 0 if isinstance(model, LogisticRegression) else y
        with pytest.raises(CertificateError, match="is of kind 'least squares'"):
            dataclasses.replace(model.certificate_, kind="least squares").verify(X, targets)


# -- subjects ----------------------------------------------------------------------------------------------


def table(rows=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    return X, X @ [1.0, 2.0, 3.0] + rng.normal(size=rows), rng.uniform(size=rows)


def test_a_fit_says_what_it_was():
    X, y, weight = table()
    subject = LinearRegression(penalty="l2", alpha=0.5).fit(X, y, weight).certificate_.subject
    assert (subject.learner, subject.rows, subject.columns) == ("LinearRegression", 30, 3)
    assert subject.parameters["alpha"] == 0.5
    assert subject.parameters["penalty"] == "l2"
    assert subject.version
    when = datetime.datetime.fromisoformat(subject.date)
    assert when.utcoffset() == datetime.timedelta(0)
    assert abs((datetime.datetime.now(datetime.UTC) - when).total_seconds()) < 600
    assert len(subject.fingerprint) == 16
    assert not subject.fingerprint_note


def test_a_certificate_that_was_read_is_checked_with_a_model():
    X, y, weight = table()
    model = LinearRegression().fit(X, y, weight)
    read = Certificate.from_json(model.certificate_.to_json())
    with pytest.raises(CertificateError, match=r"needs the fitted model: `certificate\.bind\(model\)"):
        read.verify(X, y, weight)
    assert read.bind(model).verify(X, y, weight).subject == read.subject
    changed = model.fit(X, y, weight)
    changed.coef_ = changed.coef_ * 1.001
    with pytest.raises(CertificateError, match="on these data the model has"):
        read.bind(changed).verify(X, y, weight)


def test_other_data_are_told_by_their_fingerprint():
    X, y, weight = table()
    model = LogisticRegression().fit(X, y > 0, weight)
    read = Certificate.from_json(model.certificate_.to_json()).bind(model)
    read.verify(X[::-1], (y > 0)[::-1], weight[::-1])  # the order of the rows does not count
    rounded = X.copy()
    rounded[3, 1] = np.nextafter(X[3, 1], 9.0)  # too little for the objective to tell
    for data in ((rounded, y > 0, weight), (X, y > 0, np.ones(30)), (X[1:], y[1:] > 0, weight[1:])):
        with pytest.raises(CertificateError, match=r"fingerprint .* the data are not those of the fit"):
            read.verify(*data)
    with pytest.raises(CertificateError, match=r"fingerprint .* the objective is"):
        model.certificate_.verify(X, y > 0, np.ones(30))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"learner": "LinearSVC"}, "learner is 'LinearSVC' there and 'SVC' here"),
        ({"rows": 7}, "rows is 7 there and 30 here"),
        ({"columns": 9}, "columns is 9 there and 3 here"),
        ({"parameters": {"C": 1000.0}}, "C is 1000.0 there and 1.0 here"),
        ({"parameters": {"depth": 2}}, "depth is 2 there and None here"),
    ],
)
def test_a_certificate_that_speaks_of_another_model_says_so(changes, sentence):
    X, y, _ = table()
    model = SVC().fit(X, y > 0)
    read = Certificate.from_json(model.certificate_.to_json())
    read.bind(model).verify(X, y > 0)
    changes = {"parameters": read.subject.parameters | changes.pop("parameters", {})} | changes
    other = dataclasses.replace(read, subject=dataclasses.replace(read.subject, **changes))
    with pytest.raises(CertificateError, match=f"speaks of another model: {sentence}. Bind it to"):
        other.bind(model).verify(X, y > 0)


def test_a_certificate_is_compared_with_the_shape_of_the_data():
    X, y, _ = table()
    model = LinearRegression().fit(X, y)
    read = Certificate.from_json(model.certificate_.to_json())
    subject = dataclasses.replace(read.subject, fingerprint=None, rows=7)
    del model._fitted_to
    with pytest.raises(CertificateError, match="speaks of 7 rows and 3 columns, but X has 30 and 3"):
        dataclasses.replace(read, subject=subject).bind(model).verify(X, y)


def test_the_model_itself_may_be_checked_on_rows_that_were_made_anew():
    X, y, _ = table()
    certificate = LinearRegression().fit(X, y).certificate_
    found = certificate.verify(X * (1.0 + 2e-16), y).subject
    assert found.fingerprint != certificate.subject.fingerprint
    assert found.fingerprint_note.endswith(f"those of the fit have {certificate.subject.fingerprint}")


def test_a_large_table_has_its_fingerprint_from_verify(monkeypatch):
    monkeypatch.setattr("sixfold.learners.base.FINGERPRINT_BYTES", 100)
    X, y, _ = table()
    certificate = LinearRegression().fit(X, y).certificate_
    assert certificate.subject.fingerprint is None
    assert "verify(X, y) takes it" in json.loads(certificate.to_json())["subject"]["fingerprint_note"]
    verified = certificate.verify(X, y)
    assert len(verified.subject.fingerprint) == 16
    assert not verified.subject.fingerprint_note
    monkeypatch.undo()
    assert LinearRegression().fit(X, y).certificate_.subject.fingerprint == verified.subject.fingerprint


@pytest.mark.parametrize("learner", [LinearRegression, KNeighborsRegressor])
def test_rows_of_batches_add_up(learner):
    X, y, weight = table()
    model = learner().partial_fit(X[:10], y[:10], sample_weight=weight[:10])
    model.partial_fit(X[10:], y[10:], sample_weight=weight[10:])
    whole = learner().fit(X, y, sample_weight=weight).certificate_.subject
    found = model.certificate_.subject
    assert (found.rows, found.fingerprint) == (30, whole.fingerprint)
    model.certificate_.verify(X, y, weight)


def test_a_batch_whose_certificate_speaks_of_it_alone_is_its_subject():
    X, y, _ = table()
    model = Perceptron().fit(X, y > 0)
    model.partial_fit(X[:10], y[:10] > 0)
    assert model.certificate_.subject.rows == 10
    model.certificate_.verify(X[:10], y[:10] > 0)


@pytest.mark.parametrize("learner", LEARNERS + TRANSFORMERS, ids=lambda learner: learner.name)
def test_every_learner_hands_its_certificate_on(learner):
    X, y, _ = table(110)
    model = learner.make().fit(X, y if learner.task == "regression" else (y > 0).astype(int))
    certificate = model.certificate_
    read = Certificate.from_json(certificate.to_json())
    assert read == certificate
    assert read.subject == certificate.subject
    assert read.subject.learner == type(model).__name__
    assert "<table" in certificate._repr_html_()


# -- the card ----------------------------------------------------------------------------------------------


def test_the_card_shows_every_figure_and_escapes_text():
    given = certificate(kind="a < b", claim="<script>", notes=("x & y", "<b>"), gap=math.inf)
    html = given._repr_html_()
    for text in ("a &lt; b", "&lt;script&gt;", "x &amp; y", "&lt;b&gt;", "not of the accuracy on new ones"):
        assert text in html
    for name in ("objective", "lower bound", "gap", "relative gap", "tolerance", "converged"):
        assert f">{name}</td>" in html
    assert "<script>" not in html
    assert html.count("<div") == html.count("</div>")


def test_parameters_of_any_kind_are_written_without_addresses():
    parameters = {"longdouble": np.longdouble(0.5), "object": object(), "state": np.random.RandomState(0)}
    read = json.loads(json.dumps({name: plain_parameter(value) for name, value in parameters.items()}))
    assert read["longdouble"] == 0.5
    assert "0x" not in read["object"] + read["state"]


def test_an_interrupted_batch_leaves_the_subject_of_all_rows(monkeypatch):
    model, X, y = LinearRegression(), np.arange(40.0).reshape(20, 2) ** 2, np.arange(20.0)
    model.partial_fit(X, y)
    monkeypatch.setattr(Budget, "interrupted", property(lambda budget: True))
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    assert model.certificate_.subject.rows == 40


def test_the_subject_is_that_of_the_fit_whenever_it_is_asked_for():
    X, y = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0)
    model = LinearRegression().fit(X, y)
    expected = fingerprint(X, y)
    before = pickle.loads(pickle.dumps(model))
    X[0, 0] = 99.0  # after the fit, before anyone has asked
    model.set_params(fit_intercept=False)
    for one in (model, before):
        assert one.certificate_.subject.fingerprint == expected
        assert one.certificate_.subject.parameters["fit_intercept"] is True
    assert not any(callable(value) for value in before.__dict__.values())
