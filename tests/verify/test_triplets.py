"""The checker of large margin nearest neighbours confirms honest fits and finds every fault put into one."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from sixfold import LargeMarginNearestNeighbor
from sixfold.errors import CertificateError
from sixfold.solvers.metric_learning import lmnn


def data(seed=0, n=60, columns=4, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)) * np.geomspace(1.0, 30.0, columns)
    y = (X[:, 0] + X[:, 1] / 3.0 + 0.3 * rng.normal(size=n) > 0).astype(int) + (X[:, 2] > 9.0)
    return spread * X, y


def fitted(**parameters):
    X, y = data()
    return LargeMarginNearestNeighbor(**{"n_neighbors": 2, **parameters}).fit(X, y), X, y


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e120, 1e-120])
def test_an_honest_fit_is_confirmed(seed, weighted, scale):
    X, y = data(seed, spread=scale)
    weight = np.random.default_rng(seed).integers(0, 4, y.size).astype(float) if weighted else None
    model = LargeMarginNearestNeighbor(regularization=0.3).fit(X, y, weight)
    claimed, found = model.certificate_, model.certificate_.verify(X, y, weight)
    assert found.objective == pytest.approx(claimed.objective, rel=1e-11)
    assert found.gap <= claimed.gap + 1e-10 * claimed.objective
    assert claimed.converged


@pytest.mark.parametrize(
    "parameters",
    [{"n_components": 2}, {"tol": 1e-6}, {"trace_penalty": 1e-9}, {"max_iter": 2}, {"n_neighbors": 30}],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sixfold.errors.StoppedEarly")
def test_a_fit_with_other_parameters_is_confirmed(parameters):
    model, X, y = fitted(**parameters)
    model.certificate_.verify(X, y)


def test_dependent_and_constant_columns_are_confirmed():
    X, y = data()
    X = np.column_stack([X, X[:, 0] - X[:, 1], np.full(len(X), 0.1)])
    model = LargeMarginNearestNeighbor().fit(X, y)
    assert model.certificate_.verify(X, y).relative_gap < 1.1e-4


def raise_multiplier(model):
    model.dual_[model.dual_.argmax()] *= 1.01


def lower_multiplier_below_0(model):
    model.dual_[0] = -1e-12


def raise_all_multipliers(model):
    most = 0.5 / (model.targets_ >= 0).sum()
    model.dual_ = np.minimum(model.dual_ * 1.05, most)


def change_the_map(model):
    model.components_[0, 0] *= 1.001


def shrink_the_map(model):
    model.components_ *= 0.999


def leave_out_triplets(model):
    kept = np.arange(model.dual_.size) != model.dual_.argmax()
    model.triplets_, model.dual_ = model.triplets_[kept], model.dual_[kept]


def count_a_triplet_twice(model):
    model.triplets_ = np.vstack([model.triplets_, model.triplets_[:1]])
    model.dual_ = np.append(model.dual_, model.dual_[0])


def take_a_row_of_the_class_for_an_impostor(model):
    model.triplets_[0, 2] = model.triplets_[0, 1]


def take_another_row_for_a_target(model):
    row = model.triplets_[0, 0]
    model.targets_[row] = np.flatnonzero(model.targets_[:, 0] != row)[-2:]


def take_a_farther_target(model):
    model.targets_[0, 0] = model.targets_[model.targets_[0, 0], 1]


def name_a_row_that_is_not_there(model):
    model.triplets_[0, 2] = 1000


def point_at_no_target(model):
    model.triplets_[0, 1] = model.triplets_[0, 2]


def name_rows_by_fractions(model):
    model.triplets_ = model.triplets_ + 0.5


def flatten_the_map(model):
    model.components_ = model.components_[0]


def forget_a_target(model):
    model.targets_[3, 1] = -1


def take_a_target_twice(model):
    model.targets_[3, 1] = model.targets_[3, 0]


def lose_a_multiplier(model):
    model.dual_ = model.dual_[1:]


FAULTS = [value for name, value in list(globals().items()) if getattr(value, "__code__", None)
          and value.__code__.co_varnames[:1] == ("model",)]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_changed_model_is_found_out(fault):
    model, X, y = fitted()
    model.certificate_.verify(X, y)
    changed = copy.deepcopy(model)
    fault(changed)
    with pytest.raises(CertificateError):
        changed.certificate_.verify(X, y)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: {"gap": 0.9 * c.gap},
        lambda c: {"gap": 0.0},
        lambda c: {"objective": c.objective * (1 - 1e-9)},
        lambda c: {"scale": 2.0 * c.scale},
        lambda c: {"kind": "kkt"},
    ],
)
def test_a_wrong_claim_is_found_out(wrong):
    model, X, y = fitted()
    claimed = model.certificate_
    with pytest.raises(CertificateError):
        replace(claimed, **wrong(claimed)).verify(X, y)


def test_other_data_and_other_weights_are_found_out():
    model, X, y = fitted()
    for rows, labels, weight in (
        (X[:-1], y[:-1], None),
        (X + 0.01 * np.eye(*X.shape), y, None),
        (X, np.where(np.arange(y.size) == 7, 1 - np.minimum(y, 1), y), None),
        (X, y, np.linspace(0.5, 1.0, y.size)),
        (X, y, (np.arange(y.size) > 2).astype(float)),
    ):
        with pytest.raises(CertificateError):
            model.certificate_.verify(rows, labels, weight)


def test_a_solver_that_misses_impostors_is_found_out(monkeypatch):
    search = lmnn.ActiveTriplets.search

    def lame(self, Z, smoothing, slack, budget):
        search(self, Z, smoothing, slack, budget)
        self.of_impostors = self.of_impostors[:-1]
        ends = np.minimum(self._pairs.ends, self._pairs.rows.size - 1)
        gone = self._pairs.rows.size - 1
        back = self._pairs.back_pairs != gone
        self._pairs = self._pairs._replace(
            ends=ends,
            rows=self._pairs.rows[:-1],
            back_ends=np.concatenate([[0], np.cumsum(back)])[self._pairs.back_ends],
            back_rows=self._pairs.back_rows[back],
            back_pairs=self._pairs.back_pairs[back],
        )

    monkeypatch.setattr(lmnn.ActiveTriplets, "search", lame)
    X, y = data()
    X[-1] = X[0] + 1e-3  # near a row of another class, whose impostor it is
    y[-1] = y.max()
    y[0] = 0
    model = LargeMarginNearestNeighbor(n_neighbors=2).fit(X, y)
    with pytest.raises(CertificateError):
        model.certificate_.verify(X, y)


def test_a_solver_that_does_not_look_at_s_is_found_out(monkeypatch):
    monkeypatch.setattr(lmnn.Descent, "feasible_share", lambda self: 1.0)
    X, y = data()
    model = LargeMarginNearestNeighbor(n_neighbors=2, max_iter=10).fit(X, y)
    with pytest.raises(CertificateError, match="bound only supports"):
        model.certificate_.verify(X, y)
