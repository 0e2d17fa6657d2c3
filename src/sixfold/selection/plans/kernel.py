"""Kernel SVMs: one Gram matrix a kernel for all C, each fit from the one before, all answers in one product.

    settings    grouped by the kernel that they state (gamma, sigma, degree, coef0)
    a kernel    K of the rows to learn from, once; the dual for each C in ascending order, from the solution
                of the C before (:func:`sixfold.solvers.kernel.one_vs_one.fit_svm_paths`)
    answers     K of the held-out rows with the support vectors of any C, once, times all dual coefficients:
                F = K(Z, SV) [a y of C_1, a y of C_2, ...] + b

An optimum has one intercept if a support vector is free. Where all are at their bounds, or the kernel is
indefinite (a sigmoid, a function, a matrix), what a fit ends with depends on its path: there each C starts
at 0, as a fit of its own does.

Source: DeCoste and Wagstaff (2000), Alpha seeding for support vector machines.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.data.labels import LabelledData
from sixfold.errors import InputError
from sixfold.geometry.kernels import Linear, Precomputed
from sixfold.learners.base import describe
from sixfold.learners.svm.support_vectors import CERTAIN_ERRORS, FEW_PRODUCTS, SupportVectors
from sixfold.learners.svm.svc import SVC, KernelSolution, wants_probabilities
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan
from sixfold.solvers.kernel.decomposition import DOUBLE_ROWS
from sixfold.solvers.kernel.kernel_rows import KernelRows, densify_if_small
from sixfold.solvers.kernel.one_vs_one import (
    MOST_SVMS_AT_ONCE,
    BinarySVM,
    SupportLayout,
    certify_all,
    fit_svm_paths,
)
from sixfold.solvers.kernel.stored_products import CrossProducts

Array = NDArray[Any]

KERNEL_PARAMETERS = ("gamma", "sigma", "degree", "coef0")
WITH_PARAMETERS = ("rbf", "poly", "polynomial", "sigmoid")  # the kernels that have some of them
# Columns: with fewer, a Gram matrix of 2,000 rows is computed anew in less than 7 ms, and 5 ms are needed to
# make it of products.
WIDE = 100


@dataclass
class Candidate:
    """One setting: its model, which is not fitted yet, and what was found for it."""

    setting: int
    model: SVC
    upper: Array
    svms: list[BinarySVM]


class KernelPlan(Plan):
    """Solve for all C with one Gram matrix a kernel."""

    parameters: ClassVar = ("C", *KERNEL_PARAMETERS)
    simpler: ClassVar = {"C": -1, "gamma": -1, "sigma": 1, "degree": -1}

    @classmethod
    def objection(cls, model: Any) -> str | None:
        """Return why models have to be fitted one by one: limits, cross-validation inside, or progress."""
        if wants_probabilities(model):
            return "probability=True has a cross-validation of its own in every fit"
        if model.rank is not None:
            return "rank has landmarks of its own in every fit"
        if model.time_limit is not None or model.max_iter not in (-1, None):
            return "time_limit and max_iter end each fit where it is by then"
        if model.callbacks or model.verbose or hasattr(model, "_skl_callbacks"):
            return "callbacks and verbose tell of the rounds of each fit"
        return None

    def parts(self) -> list[tuple[list[int], Plan]]:
        """Return a plan for each kernel, unless kernels of wide tables share the products of rows."""
        shape = np.shape(self.table.X)
        if len(shape) != 2 or shape[1] >= WIDE or self.model.kernel not in WITH_PARAMETERS:
            return super().parts()
        kernels: dict[Any, list[int]] = {}
        for number, setting in enumerate(self.settings):
            stated = repr({name: setting[name] for name in KERNEL_PARAMETERS if name in setting})
            kernels.setdefault(stated, []).append(number)
        return [
            (numbers, KernelPlan(self.model, [self.settings[number] for number in numbers], self.table))
            for numbers in kernels.values()
        ]

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield a model for every setting that makes sense and converges."""
        model = copy.copy(self.model)  # a clone takes as long as a small fit
        data = model._check(fold.X_train, fold.y_train, fold.sample_weight)
        model.classes_, model._pairwise = data.classes, model._is_pairwise(data.classes.size)
        groups = self._by_kernel(model, data)
        with model._threads(data):
            crossed = _share_products(model, [rows for rows, _ in groups], data, fold)
        for rows, candidates in groups:
            with model._threads(data):
                yield from _fit_all(rows, candidates, data, fold, crossed)

    def _by_kernel(self, model: SVC, data: LabelledData) -> list[tuple[KernelRows, list[Candidate]]]:
        """Return the settings that share a kernel, for each kernel."""
        groups: list[tuple[KernelRows, list[Candidate]]] = []
        known: dict[str, list[Candidate]] = {}
        for number, setting in enumerate(self.settings):
            own = copy.copy(model)
            own.__dict__.update(setting)
            stated = repr([getattr(own, name) for name in KERNEL_PARAMETERS])
            try:
                own._check_parameters()
                upper = own._upper(data)
                if stated not in known:
                    rows = own._make_kernel_rows(data.X)
                    same = [others for seen, others in groups if seen.kernel == rows.kernel]
                    known[stated] = same[0] if same else []
                    if not same:
                        groups.append((rows, known[stated]))
            except InputError:  # a fit of its own says so
                continue
            known[stated].append(Candidate(number, own, upper, []))
        return groups


def _share_products(
    model: SVC, kernels: list[KernelRows], data: LabelledData, fold: Fold
) -> CrossProducts | None:
    """Let several kernels of a wide table use the same products; return those of the held-out rows."""
    n, columns = data.X.shape
    m = len(fold.test)
    if len(kernels) < 2 or columns < WIDE or 8 * n * (n + m) > (1 << 20) * model.cache_size:
        return None
    counts = np.sort(np.bincount(data.index))
    largest = int(counts[-2:].sum()) if model._pairwise else n
    dtype = np.float32 if largest > DOUBLE_ROWS else np.float64
    # A binary SVM has the rows of class 1 first.
    order = np.argsort(-data.index if data.classes.size == 2 else data.index, kind="stable")
    model.kernel_ = kernels[0].kernel
    Z, budget = densify_if_small(model._rows(fold.X_test)), Budget()
    products = kernels[0].store_products(order, dtype, budget)
    if products is None:
        return None
    for rows in kernels:
        rows.use_products(products)
    return kernels[0].cross_products(Z, budget)


def _fit_all(
    rows: KernelRows,
    candidates: list[Candidate],
    data: LabelledData,
    fold: Fold,
    crossed: CrossProducts | None,
) -> Iterator[Fitted]:
    """Yield a model for every C of a kernel."""
    first = candidates[0].model
    for candidate in candidates:
        candidate.model.kernel_ = rows.kernel
    candidates.sort(key=lambda one: float(one.model.C))
    with Budget() as budget:  # hears of Ctrl-C, and of the end of the time of a search
        paths = fit_svm_paths(
            rows,
            data.index,
            data.classes.size,
            [one.upper for one in candidates],
            first.multi_class == "ovo",
            float(first.tol),
            float(first.cache_size),
            budget.flag,
        )
    if budget.interrupted:
        raise KeyboardInterrupt
    done = []
    for candidate, svms in zip(candidates, paths, strict=True):
        candidate.svms = svms
        certificate = certify_all(svms, float(first.tol))
        if certificate.converged:  # a fit of its own says what is wrong, such as a hard margin of an overlap
            done.append((candidate, certificate))
    answers = JointAnswers([candidate for candidate, _ in done], data, fold.X_test, crossed)
    known = {"classes_": data.classes, "n_features_in_": first.n_features_in_}
    for number, (candidate, certificate) in enumerate(done):
        make = partial(_made, candidate, data, fold)
        gap = certificate.relative_gap if certificate.kind == "duality gap" else math.nan
        given: dict[str, Any] = answers.of(number)
        solved = int(any(svm.solution.iterations for svm in candidate.svms))
        model = Answered(make, fold.X_test, given, known, unfitted=candidate.model)
        yield Fitted(candidate.setting, model, gap, solved)


def _made(candidate: Candidate, data: LabelledData, fold: Fold) -> SVC:
    """Return the learner, as a fit leaves it."""
    model, svms = candidate.model, candidate.svms
    budget = Budget()
    for svm in svms:
        budget.record(svm.certificate.objective, svm.certificate.gap, svm.certificate.scale)
    model._set_fitted(KernelSolution(svms, svms[0].problem.rows, None, True), data, budget)
    model._fit_parameters = model.get_params(deep=False)
    model._subject = describe(model, fold.X_train, fold.y_train, fold.sample_weight)
    return model


class JointAnswers:
    """What models of one kernel answer for the held-out rows: K is computed once for all of them.

    Parameters
    ----------
    candidates : list of Candidate
    data : LabelledData
        What they have learnt from.
    X : table
        The held-out rows.
    crossed : CrossProducts or None
        Their products with all rows that were learnt from, where these are known.
    """

    def __init__(
        self, candidates: list[Candidate], data: LabelledData, X: Any, crossed: CrossProducts | None
    ) -> None:
        self.candidates, self.data, self.X, self.crossed = candidates, data, X, crossed
        self._winners: list[Array] | None = None
        self._decisions: list[Array] | None = None
        self._prepared = False

    def of(self, number: int) -> dict[str, Callable[[], Array]]:
        """Return what computes the answers of one of the models when they are asked for."""
        return {"predict": partial(self.labels, number), "decision_function": partial(self.shaped, number)}

    def labels(self, number: int) -> Array:
        """Return the class of each row."""
        model = self.candidates[number].model
        breaks_ties = model._breaks_ties()
        index = model._tie_winners(self.decisions[number]) if breaks_ties else self.winners[number]
        labels: Array = self.data.classes[index]
        return labels

    def shaped(self, number: int) -> Array:
        """Return the decisions in the shape that is asked for."""
        return self.candidates[number].model._shape_decisions(self.decisions[number])

    @property
    def decisions(self) -> list[Array]:
        """F of every SVM of each model, of shape (rows, SVMs)."""
        if self._decisions is None:
            self._prepare()
            self._decisions = self._compute(self._rows, np.float64)
        return self._decisions

    @property
    def winners(self) -> list[Array]:
        """The class number of each row for each model, which is that of decisions in float64."""
        if self._winners is None:
            self._prepare()
            some = self._single() if self._decisions is None and self._fine_in_single() else self.decisions
            self._winners = [one.winners(each) for one, each in zip(self._models, some, strict=True)]
        return self._winners

    def _prepare(self) -> None:
        """Lay out the support vectors of all models, and read the held-out rows."""
        if self._prepared:
            return
        first, data = self.candidates[0], self.data
        self._kernel = first.svms[0].problem.rows.kernel
        self._rows = first.model._rows(self.X)
        layouts = [one.model._lay_out(one.svms, one.svms[0].problem.rows, data) for one in self.candidates]
        # Scores of many SVMs are better added up class by class; those of linear ones are products of w.
        many = layouts[0].intercept.size > MOST_SVMS_AT_ONCE
        self._joint = not (many or isinstance(self._kernel, Linear | Precomputed))
        vectors = [None if self._joint else data.X[one.support] for one in layouts]
        self._models = [
            SupportVectors(one, self._kernel, some) for one, some in zip(layouts, vectors, strict=True)
        ]
        if self._joint:
            used = np.unique(np.concatenate([one.support for one in layouts]))
            used = np.arange(data.X.shape[0]) if self.crossed is not None else used
            self._factors = np.hstack([_factors(one, used) for one in layouts])
            self._used, self._trained = used, first.svms[0].problem.rows
            self._rows = self._rows if self._kernel.form is None else densify_if_small(self._rows)
        self._prepared = True

    def _compute(self, Z: Any, dtype: Any) -> list[Array]:
        """Return the decisions of all models for some rows, from kernel values of that type."""
        if not self._joint:
            return [one.decisions(Z, Budget()) for one in self._models]
        form = self._kernel.form
        if self.crossed is not None and form is not None:
            scores = self.crossed.scores(form, self._factors)
        elif self._factors.size:
            scores = self._trained.against(Z).scores(self._used, self._factors, dtype, Budget())
        else:  # one class has all the weight
            scores = np.zeros((Z.shape[0], self._factors.shape[1]))
        parts = np.split(scores, len(self._models), axis=1)
        return [part + one.layout.intercept for part, one in zip(parts, self._models, strict=True)]

    def _fine_in_single(self) -> bool:
        """Return whether values in float32 save time, and it is known how far they are off."""
        form = self._kernel.form
        if not self._joint or self.crossed is not None or form is None or form.kind != "rbf":
            return False
        if sp.issparse(self._rows) or sp.issparse(self._trained.table):
            return False
        return self._factors.shape[0] * self._rows.shape[0] * self._rows.shape[1] >= FEW_PRODUCTS

    def _single(self) -> list[Array]:
        """Return decisions in float32, and in float64 where those may be on the wrong side."""
        decisions = self._compute(self._rows, np.float32)
        entry = CERTAIN_ERRORS * self._trained.entry_error(np.float32)
        doubtful = np.zeros(self._rows.shape[0], dtype=bool)
        for one, each in zip(self._models, decisions, strict=True):
            doubtful |= ~one.certain(each, entry * one.layout.coefficient_lengths())
        again = np.flatnonzero(doubtful)
        if again.size:
            exact = self._compute(self._rows[again], np.float64)
            for each, better in zip(decisions, exact, strict=True):
                each[again] = better
        return decisions


def _factors(layout: SupportLayout, used: Array) -> Array:
    """Return y a of these rows in each SVM of a model, of shape (rows, SVMs)."""
    factors = np.zeros((used.size, layout.intercept.size))
    place = np.searchsorted(used, layout.support)
    for vectors, svms in layout.blocks():
        factors[place[vectors][:, None], svms] = layout.dual_coef[:, vectors].T
    return factors
