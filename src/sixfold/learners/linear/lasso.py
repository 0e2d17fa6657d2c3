"""Lasso and elastic net: least squares with a penalty that makes most coefficients exactly zero.

    minimise  |y - b - X w|^2 / (2 n) + alpha (rho |w|_1 + (1 - rho) |w|^2 / 2)

with rho = l1_ratio, which is 1 for the lasso. With weights, 1/n becomes weight_i / sum of weights. Targets
are fitted one by one, each to the tolerance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget
from sixfold.data.checks import TrainingData
from sixfold.errors import InputError, check_flag, check_number, check_option
from sixfold.learners.linear.separate_targets import SeparateRegressor, SeparateSolutions
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.l1.proximal_newton import PathMemory
from sixfold.solvers.smooth.descent import Model

Array = NDArray[Any]


class _LassoBase(SeparateRegressor):
    """What lasso and elastic net share."""

    solver = "auto"
    max_iter: Any
    precompute: Any
    warm_start: bool
    positive: bool
    selection: str

    def _loss_name(self) -> str:
        return "squared"

    def _check_parameters(self) -> None:
        for name in ("copy_X", "warm_start"):
            check_flag(name, getattr(self, name))
        check_number("tol", self.tol, at_least=0)
        check_option("selection", self.selection, ("cyclic", "random"))
        if not isinstance(self.precompute, bool | np.bool_) and np.ndim(self.precompute) != 2:
            raise InputError(
                f"precompute={self.precompute!r:.50} is neither True or False nor a table of the products of "
                "columns. Leave it out: they are computed where they are needed."
            )

    def _groups(self, n_targets: int) -> list[Array]:
        return [np.array([target]) for target in range(n_targets)]

    def _limits(self) -> tuple[float, int | None]:
        return 2.0 * self.tol, self.max_iter  # the scale of gaps is half the mean square

    def _solve(
        self,
        problem: Problem,
        data: TrainingData,
        budget: Budget,
        start: Model | None = None,
        memory: PathMemory | None = None,
    ) -> Solution:
        if start is None and self.warm_start and hasattr(self, "coef_"):
            start = self._parameters()
            if start[0].shape != (data.X.shape[1], data.y.shape[1]):
                start = None
        return super()._solve(problem, data, budget, start, memory)

    def _set_fitted(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        super()._set_fitted(solution, data, budget)
        self.dual_gap_: Any = solution.certificate.gap
        if isinstance(solution, SeparateSolutions):
            self.dual_gap_ = np.array([part.certificate.gap for part in solution.parts])
            self.n_iter_ = [part.n_iter for part in solution.parts]

    @property
    def sparse_coef_(self) -> sp.csr_matrix:
        """The coefficients as a sparse matrix, one row a target."""
        check_is_fitted(self, "coef_")
        return sp.csr_matrix(self.coef_)


class ElasticNet(_LassoBase):
    """Fit numbers by least squares with a penalty on absolute values and squares of the coefficients.

    Minimises ``|y - b - X w|**2 / (2 n) + alpha * (l1_ratio * |w|_1 + (1 - l1_ratio) * |w|**2 / 2)``. A
    drop-in for scikit-learn's class that does not end unconverged: every fit is certified to ``tol``.

    Parameters
    ----------
    alpha : float, default=1.0
        How much the penalty counts. 0 is ordinary least squares.
    l1_ratio : float, default=0.5
        The share of the absolute values in the penalty: 0 is ridge regression, 1 the lasso.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    precompute : bool or array of shape (n_features, n_features), default=False
        Accepted for scikit-learn's sake: products of columns are computed where they are needed.
    max_iter : int, default=1000
        Most iterations for each target; None for no limit.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    tol : float, default=1e-4
        The gap to the optimum that is allowed, as a part of the mean square of y (about its mean if there is
        an intercept), as in scikit-learn.
    warm_start : bool, default=False
        Whether to start from the coefficients of the last fit.
    positive : bool, default=False
        Whether to keep all coefficients at 0 or above.
    random_state : int or None, default=None
        Accepted for scikit-learn's sake: nothing is drawn.
    selection : {"cyclic", "random"}, default="cyclic"
        Accepted for scikit-learn's sake: columns are visited in one order.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the best model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights w.
    sparse_coef_ : sparse matrix of shape (1, n_features) or (n_targets, n_features)
        Those that are not zero.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    dual_gap_ : float or ndarray of shape (n_targets,)
        How far from the least possible objective each target is at most.
    n_iter_ : int or list of int
        The iterations that each target took.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective all targets together are at most;
        ``certificate_.verify(X, y)`` recomputes it.
    solver_, history_
        What was used, and one record for each iteration.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import ElasticNet
    >>> X = np.array([[-1.0], [1.0]])
    >>> y = np.array([-1.0, 1.0])
    >>> ElasticNet(alpha=0.5, l1_ratio=0.5).fit(X, y).coef_  # (1 - alpha/2) / (1 + alpha/2)
    array([0.6])
    """

    penalty = "elasticnet"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int | None = 1000,
        copy_X: bool = True,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose


class Lasso(_LassoBase):
    """Fit numbers by least squares with a penalty on the absolute values of the coefficients.

    Minimises ``|y - b - X w|**2 / (2 n) + alpha * |w|_1``: the larger alpha, the more coefficients are
    exactly zero. A drop-in for scikit-learn's class that does not end unconverged: every fit is certified to
    ``tol``.

    Parameters
    ----------
    alpha : float, default=1.0
        How much the penalty counts. 0 is ordinary least squares.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    precompute : bool or array of shape (n_features, n_features), default=False
        Accepted for scikit-learn's sake: products of columns are computed where they are needed.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    max_iter : int, default=1000
        Most iterations for each target; None for no limit.
    tol : float, default=1e-4
        The gap to the optimum that is allowed, as a part of the mean square of y (about its mean if there is
        an intercept), as in scikit-learn.
    warm_start : bool, default=False
        Whether to start from the coefficients of the last fit.
    positive : bool, default=False
        Whether to keep all coefficients at 0 or above.
    random_state : int or None, default=None
        Accepted for scikit-learn's sake: nothing is drawn.
    selection : {"cyclic", "random"}, default="cyclic"
        Accepted for scikit-learn's sake: columns are visited in one order.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds; the best model so far is kept, with a :class:`StoppedEarly` warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights w.
    sparse_coef_ : sparse matrix of shape (1, n_features) or (n_targets, n_features)
        Those that are not zero.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    dual_gap_ : float or ndarray of shape (n_targets,)
        How far from the least possible objective each target is at most.
    n_iter_ : int or list of int
        The iterations that each target took.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective all targets together are at most;
        ``certificate_.verify(X, y)`` recomputes it.
    solver_, history_
        What was used, and one record for each iteration.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import Lasso
    >>> X = np.array([[-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> y = X @ [3.0, 0.2]
    >>> model = Lasso(alpha=0.5, tol=1e-9).fit(X, y)
    >>> model.coef_  # each moved towards zero by alpha, and no further
    array([2.5, 0. ])
    >>> model.sparse_coef_.nnz
    1
    """

    penalty = "l1"
    l1_ratio = 1.0

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int | None = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
