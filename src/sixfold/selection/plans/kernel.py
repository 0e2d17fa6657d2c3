"""Kernel SVMs: one Gram matrix a kernel for all C, each fit from the one before, all answers in one product.

    settings    grouped by the kernel that they state (gamma, sigma, degree, coef0)
    a kernel    K of the rows to learn from, once; the dual for each C in ascending order, from the solution
                of the C before (:func:`sixfold.solvers.kernel.one_vs_one.fit_svm_paths`)
    answers     K of the held-out rows with the support vectors of any C, once, times all dual coefficients:
                F = K(Z, SV) [a y of C_1, a y of C_2, ...] + b

An indefinite kernel (a sigmoid, a function, a matrix) has several stationary points, and the one that a fit
ends at depends on where it starts. So there each C starts at 0, as a fit of its own does.

Source: DeCoste and Wagstaff (2000), Alpha seeding for support vector machines.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sixfold.budget import Budget
from sixfold.data.labels import LabelledData
from sixfold.errors import InputError
from sixfold.geometry.kernels import Kernel, Linear, Precomputed
from sixfold.learners.base import describe
from sixfold.learners.svm.support_vectors import SupportVectors
from sixfold.learners.svm.svc import SVC, KernelSolution, wants_probabilities
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan
from sixfold.solvers.kernel.kernel_rows import KernelRows, densify_if_small
from sixfold.solvers.kernel.one_vs_one import (
    MOST_SVMS_AT_ONCE,
    BinarySVM,
    SupportLayout,
    certify_all,
    fit_svm_paths,
)

Array = NDArray[Any]

KERNEL_PARAMETERS = ("gamma", "sigma", "degree", "coef0")


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
        if model.time_limit is not None or model.max_iter not in (-1, None):
            return "time_limit and max_iter end each fit where it is by then"
        if model.callbacks or model.verbose or hasattr(model, "_skl_callbacks"):
            return "callbacks and verbose tell of the rounds of each fit"
        return None

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield a model for every setting that makes sense and converges."""
        model = clone(self.model)
        data = model._check(fold.X_train, fold.y_train, fold.sample_weight)
        model.classes_, model._pairwise = data.classes, model._is_pairwise(data.classes.size)
        for rows, candidates in self._by_kernel(model, data):
            with model._threads(data):
                yield from _fit_all(rows, candidates, data, fold)

    def _by_kernel(self, model: SVC, data: LabelledData) -> list[tuple[KernelRows, list[Candidate]]]:
        """Return the settings that share a kernel, for each kernel."""
        groups: list[tuple[KernelRows, list[Candidate]]] = []
        known: dict[tuple[Any, ...], list[Candidate]] = {}
        for number, setting in enumerate(self.settings):
            own = copy.copy(model).set_params(**setting)
            stated = tuple(getattr(own, name) for name in KERNEL_PARAMETERS)
            try:
                own._check_parameters()
                upper = own._upper(data)
                if stated not in known:
                    rows = own._make_kernel_rows(data.X)
                    same = [others for seen, others in groups if seen.kernel == rows.kernel]
                    known[stated] = same[0] if same else []
                    if not same:
                        groups.append((rows, known[stated]))
            except (InputError, TypeError):  # a fit of its own says so
                continue
            known[stated].append(Candidate(number, own, upper, []))
        return groups


def _fit_all(
    rows: KernelRows, candidates: list[Candidate], data: LabelledData, fold: Fold
) -> Iterator[Fitted]:
    """Yield a model for every C of a kernel."""
    first = candidates[0].model
    for candidate in candidates:
        candidate.model.kernel_ = rows.kernel
    candidates.sort(key=lambda one: float(one.model.C))
    paths = fit_svm_paths(
        rows,
        data.index,
        data.classes.size,
        [one.upper for one in candidates],
        first.multi_class == "ovo",
        float(first.tol),
        float(first.cache_size),
    )
    done = []
    for candidate, svms in zip(candidates, paths, strict=True):
        candidate.svms = svms
        try:
            first._require_separable(svms, data)
        except InputError:  # that no hard margin exists
            continue
        certificate = certify_all(svms, float(first.tol))
        if certificate.converged:
            done.append((candidate, certificate))
    answers = JointAnswers([candidate for candidate, _ in done], data, fold.X_test)
    known = {"classes_": data.classes, "n_features_in_": first.n_features_in_}
    for number, (candidate, certificate) in enumerate(done):
        make = partial(_made, candidate, data, fold)
        gap = certificate.relative_gap if certificate.kind == "duality gap" else math.nan
        given: dict[str, Any] = answers.of(number)
        solved = int(any(svm.solution.iterations for svm in candidate.svms))
        yield Fitted(candidate.setting, Answered(make, fold.X_test, given, known), gap, solved)


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
    """

    def __init__(self, candidates: list[Candidate], data: LabelledData, X: Any) -> None:
        self.candidates, self.data, self.X = candidates, data, X

    def of(self, number: int) -> dict[str, Callable[[], Array]]:
        """Return what computes the answers of one of the models when they are asked for."""
        return {"predict": partial(self.labels, number), "decision_function": partial(self.shaped, number)}

    def labels(self, number: int) -> Array:
        """Return the class of each row."""
        model, decisions = self.candidates[number].model, self.decisions[number]
        if model._breaks_ties():
            index = model._tie_winners(decisions)
        else:
            index = SupportVectors(self.layouts[number], self.kernel, None).winners(decisions)
        return self.data.classes[index]

    def shaped(self, number: int) -> Array:
        """Return the decisions in the shape that is asked for."""
        return self.candidates[number].model._shape_decisions(self.decisions[number])

    @property
    def kernel(self) -> Kernel:
        """The kernel of all."""
        return self.candidates[0].svms[0].problem.rows.kernel

    @cached_property
    def layouts(self) -> list[SupportLayout]:
        """The support vectors and coefficients of each model."""
        return [one.model._lay_out(one.svms, self.data) for one in self.candidates]

    @cached_property
    def decisions(self) -> Sequence[Array]:
        """F of every SVM of each model, of shape (rows, SVMs)."""
        model, vectors = self.candidates[0].model, self.data.X
        Z, budget = model._rows(self.X), Budget()
        many = self.layouts[0].intercept.size > MOST_SVMS_AT_ONCE
        if many or isinstance(self.kernel, Linear | Precomputed):
            some = [SupportVectors(one, self.kernel, vectors[one.support]) for one in self.layouts]
            return [each.decisions(Z, budget) for each in some]
        used = np.unique(np.concatenate([one.support for one in self.layouts]))
        factors = np.hstack([_factors(one, used) for one in self.layouts])
        if not used.size:
            return [np.tile(one.intercept, (Z.shape[0], 1)) for one in self.layouts]
        if self.kernel.form is not None:
            vectors, Z = densify_if_small(vectors[used]), densify_if_small(Z)
        else:
            vectors = vectors[used]
        scores = KernelRows(vectors, self.kernel).against(Z).scores(None, factors, np.float64, budget)
        parts = np.split(scores, len(self.layouts), axis=1)
        return [part + one.intercept for part, one in zip(parts, self.layouts, strict=True)]


def _factors(layout: SupportLayout, used: Array) -> Array:
    """Return y a of these rows in each SVM of a model, of shape (rows, SVMs)."""
    factors = np.zeros((used.size, layout.intercept.size))
    place = np.searchsorted(used, layout.support)
    for vectors, svms in layout.blocks():
        factors[place[vectors][:, None], svms] = layout.dual_coef[:, vectors].T
    return factors
