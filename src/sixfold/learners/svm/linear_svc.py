"""The linear support vector machine: the plane with the widest margin, at a price for rows inside it.

    minimise    |w|^2 / 2 + C sum_i max(0, 1 - y_i (w.x_i + b))            hinge
                |w|^2 / 2 + C sum_i max(0, 1 - y_i (w.x_i + b))^2          squared hinge,    y = -1, +1

which divided by C n (2 C n for the square, whose loss is halved inside) is alpha |w|^2 / 2 + mean loss. C =
inf is the hard margin: |w|^2 / 2 is minimised under y_i (w.x_i + b) >= 1 for all rows. The width of the
margin is 1 / |w|.

More than two classes are fitted one against the rest. The intercept b is not penalised, unlike in LIBLINEAR.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.certificate import Certificate
from sixfold.data.checks import TrainingData
from sixfold.errors import (
    CertificateError,
    IncompatibleError,
    NotSeparable,
    check_flag,
    check_number,
    check_option,
)
from sixfold.explain.diagnosis import describe_overlap
from sixfold.learners.linear.classifier import LinearClassifier
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution, Solver
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.margin.hard_margin import HardMargin, Overlap
from sixfold.solvers.margin.support_vectors import support
from sixfold.solvers.smooth.descent import Model
from sixfold.verify.margin import recompute
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

FIRST_ORDER_SOLVERS = ("gd", "sgd", "minibatch")


class LinearSVC(LinearClassifier):
    """Separate classes by the plane with the widest margin.

    Minimises ``penalty(w) + C * sum_i loss_i`` with the hinge or its square; ``C=inf`` allows no row inside
    the margin. Unlike scikit-learn's class (and LIBLINEAR) it does not penalise the intercept, so
    ``intercept_scaling`` has nothing to do; with ``loss="hinge"`` it solves the problem of
    ``SVC(kernel="linear")``.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        ``|w|**2 / 2`` or ``|w|_1``; the latter with the squared hinge.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        What a row inside the margin costs.
    dual : bool or "auto", default="auto"
        Accepted for scikit-learn's sake; see docs/differences.md.
    tol : float, default=1e-6
        Stop when the certified gap is below ``tol`` times the objective of the zero model.
    C : float, default=1.0
        How much the loss counts beside the penalty; infinity is the hard margin.
    multi_class : {"ovr"}, default="ovr"
        Each class against the rest.
    fit_intercept : bool, default=True
        Whether to fit b. It is not penalised.
    intercept_scaling : float, default=1.0
        Accepted for scikit-learn's sake; see docs/differences.md.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.
    random_state : int or None, default=0
        The seed of the stochastic solvers.
    max_iter : int, default=1000
        Most iterations (epochs) of a solver, for each class against the rest.
    solver : str, default="auto"
        "interior_point" (hinge, dense tables), "dual_coordinate" (sparse ones), "newton", "newton-cg",
        "lbfgs" and "refined-newton" (squared hinge), "coordinate" and "rounded-newton" (L1), "gd", "sgd",
        "minibatch" (everything). "auto" chooses, lets another go on where the first ends short, and
        ``solver_`` says which they were.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the best model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    margin_ : float or ndarray of shape (n_classes,)
        The distance from the plane to the lines w.x + b = -1 and +1.
    support_ : ndarray, or a list of one for each class
        The rows on or inside the margin whose loss pulls at the plane: the model depends on no others.
    dual_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The dual point behind the certificate: the slope of each row's loss.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)`` recomputes
        it.
    solver_, n_iter_, history_
        What was used, the iterations it took, and one record for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import LinearSVC
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0], [5.0, 3.0]])
    >>> model = LinearSVC(C=np.inf, loss="hinge").fit(X, [0, 0, 1, 1, 1])
    >>> round(float(model.margin_), 6), model.predict([[0.9, 5.0]])
    (1.0, array([0]))
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-6,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = 0,
        max_iter: int = 1000,
        solver: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks

    def _loss_name(self) -> str:
        check_option("loss", self.loss, ("squared_hinge", "hinge"))
        return self.loss

    def _problem(self, weight_sum: float) -> Problem:
        check_option("penalty", self.penalty, ("l2", "l1"))
        check_option("multi_class", self.multi_class, ("ovr",))
        check_flag("fit_intercept", self.fit_intercept)
        check_number("C", self.C, above=0)
        loss = self._loss()
        if self.penalty == "l1" and loss.name == "hinge" and self.solver not in FIRST_ORDER_SOLVERS:
            raise IncompatibleError(
                "penalty='l1' with loss='hinge' has no exact solver here. Use loss='squared_hinge', or one "
                "of the solvers 'gd', 'sgd' and 'minibatch'."
            )
        # The squared hinge is halved inside, so it counts twice. C = inf leaves no penalty.
        alpha = 1.0 / (self.C * weight_sum * (1.0 if loss.name == "hinge" else 2.0))
        return Problem(loss, make_penalty(self.penalty), alpha, bool(self.fit_intercept))

    @property
    def _hard(self) -> bool:
        return np.inf == self.C

    def _solvers(self, start: Model | None = None, memory: PathMemory | None = None) -> list[Solver]:
        return [HardMargin()] if self._hard else super()._solvers(start, memory)

    def _solve(
        self,
        problem: Problem,
        data: TrainingData,
        budget: Budget,
        start: Model | None = None,
        memory: PathMemory | None = None,
    ) -> Solution:
        try:
            return super()._solve(problem, data, budget, start, memory)
        except Overlap as overlap:
            target, proof = overlap.target, overlap.proof
            text = describe_overlap(proof, data.y[:, target], self._sides(target))
            text += " C=inf asks for a plane that does; use a finite C."
            raise NotSeparable(text, proof.rows, proof.weights) from None

    def _postprocess(
        self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        inside = support(solution.w, solution.b, data.blocks(), solution.dual)
        rows = [np.flatnonzero(column) for column in inside.T]
        with np.errstate(divide="ignore"):
            margin = 1.0 / np.linalg.norm(solution.w, axis=0)
        self.margin_ = float(margin[0]) if margin.size == 1 else margin
        self.support_ = rows[0] if len(rows) == 1 else rows
        return solution

    def _sides(self, target: int) -> list[Any]:
        """Return what the labels -1 and +1 of a column stand for."""
        labels = self.classes_.tolist()
        return labels if len(labels) == 2 else [f"not {labels[target]!r}", labels[target]]

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        if not self._hard:
            return super()._recompute(claimed, X, y, sample_weight)
        claim = self._claim(X, y, sample_weight)
        if claim.dual is None:
            rows = self.dual_.shape[0]
            raise CertificateError(f"The model was fitted on {rows} rows, not on {claim.y.shape[0]}.")
        return recompute(claim, claimed)

    def _relative_to(self) -> str:
        return "the objective itself" if self._hard else super()._relative_to()
