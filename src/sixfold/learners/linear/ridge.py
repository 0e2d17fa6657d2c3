"""Ridge regression: least squares with a penalty on the squares of the coefficients.

    minimise  sum_i s_i (y_i - b - w.x_i)^2 + alpha |w|^2                 s_i the weights of the rows

which divided by twice their sum is the form used inside, mean squared error / 2 + l2 |w|^2 / 2 with
l2 = alpha / sum_i s_i. Each target may have an alpha of its own.

The classifier is the same on labels: -1 and +1 for two classes, one such column a class for more, and the
largest score decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.certificate import CONSTANT_MODEL
from sixfold.errors import InputError, check_flag, check_number
from sixfold.learners.linear.classifier import LinearClassifier
from sixfold.learners.linear.separate_targets import SeparateRegressor, SeparateTargets
from sixfold.risk.penalties import make_penalty
from sixfold.risk.problem import Problem

Array = NDArray[Any]

MOST_ITERATIONS = 1000  # where max_iter is None
# scikit-learn's names for solvers that have another name here, or no counterpart.
SKLEARN_RIDGE_SOLVERS = {
    "svd": "direct", "cholesky": "direct", "lsqr": "cg", "sparse_cg": "cg",
    "sag": "auto", "saga": "auto", "lbfgs": "auto",
}  # fmt: skip


class _RidgeBase(SeparateTargets):
    """What ridge regression is, for numbers and for labels."""

    penalty = "l2"
    alpha: Any
    max_iter: Any
    positive: bool

    def _loss_name(self) -> str:
        return "squared"

    def _check_parameters(self) -> None:
        for name in ("fit_intercept", "copy_X", "positive"):
            check_flag(name, getattr(self, name))
        check_number("tol", self.tol, at_least=0)

    def _problem(self, weight_sum: float) -> Problem:
        for place, value in np.ndenumerate(np.asarray(self.alpha, dtype=object)):
            name = f"alpha[{place[0]}]" if place else "alpha"
            check_number(name, value, at_least=0, finite=True)
        penalty = make_penalty("l2", positive=bool(self.positive))
        one = np.ndim(self.alpha) == 0
        alpha: Any = (float(self.alpha) if one else np.asarray(self.alpha, np.float64)) / weight_sum
        return Problem(self._loss(), penalty, alpha, bool(self.fit_intercept))

    def _groups(self, n_targets: int) -> list[Array]:
        """Return the targets that have the same penalty."""
        if np.ndim(self.alpha) == 0:
            return [np.arange(n_targets)]
        alphas = np.asarray(self.alpha, dtype=np.float64)
        if alphas.shape != (n_targets,):
            raise InputError(
                f"Number of targets and number of penalties do not correspond: {alphas.size} != {n_targets}. "
                "Pass one alpha, or a list with one for each target."
            )
        return [np.flatnonzero(alphas == alpha) for alpha in np.unique(alphas)]

    def _solver_name(self) -> str:
        return SKLEARN_RIDGE_SOLVERS.get(self.solver, self.solver)

    def _limits(self) -> tuple[float, int | None]:
        # The gap is half the mean square of how far the fitted values are from the best ones, or more.
        return self.tol**2, MOST_ITERATIONS if self.max_iter is None else self.max_iter


class Ridge(_RidgeBase, SeparateRegressor):
    """Fit numbers by least squares with a penalty that keeps the coefficients small.

    Minimises ``sum_i (y_i - b - w.x_i)**2 + alpha * |w|**2``. A drop-in for scikit-learn's class, with the
    same ``alpha``; that of :class:`LinearRegression` with ``penalty="l2"`` is this one divided by the number
    of rows.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        How much the penalty counts; each target may have a number of its own. 0 is ordinary least squares.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    max_iter : int, default=None
        Most iterations (epochs) of an iterative solver; None for 1000.
    tol : float, default=1e-4
        Iterative solvers stop when the fitted values are proven to be this near to the best ones: their root
        mean square distance is below ``tol`` times the standard deviation of y.
    solver : str, default="auto"
        "direct", "cg" (large sparse tables), "coordinate" (``positive=True``), "newton" and "refined-newton"
        (as "direct", by steps), "gd", "sgd", "minibatch". "auto" chooses by the problem and the shape of the
        data, and ``solver_`` says which it was. Of the names of scikit-learn's solvers "svd" and "cholesky"
        mean "direct", "lsqr" and "sparse_cg" mean "cg", and "sag", "saga" and "lbfgs" mean "auto".
    positive : bool, default=False
        Whether to keep all coefficients at 0 or above.
    random_state : int or None, default=None
        The seed of the stochastic solvers.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds for an iterative solver; the best model so far is kept, with a :class:`StoppedEarly`
        warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights w.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept b.
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)`` recomputes
        it. The objective is that of the first line divided by twice the number of rows.
    solver_, n_iter_, history_
        What was used, the iterations it took, and one record for each.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import Ridge
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> y = np.array([-3.0, 1.0, 5.0])
    >>> model = Ridge(alpha=2.0).fit(X, y)
    >>> model.coef_, float(model.intercept_)  # 8 / (2 + alpha), where least squares has 4
    (array([2.]), 1.0)
    >>> print(model.certificate_)
    least squares: optimal to machine precision
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose


class RidgeClassifier(_RidgeBase, LinearClassifier):
    """Tell classes apart by a ridge regression of their labels.

    Minimises ``sum_i (y_i - b - w.x_i)**2 + alpha * |w|**2`` where y is -1 for the first class and +1 for the
    second; with more classes once for each, +1 for the class and -1 for all others. A drop-in for
    scikit-learn's class.

    Parameters
    ----------
    alpha : float or array of shape (n_scores,), default=1.0
        How much the penalty counts; each score may have a number of its own. 0 is ordinary least squares.
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    max_iter : int, default=None
        Most iterations (epochs) of an iterative solver; None for 1000.
    tol : float, default=1e-4
        Iterative solvers stop when the scores are proven to be this near to the best ones: their root mean
        square distance is below ``tol`` times the standard deviation of the labels -1 and +1.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total.
    solver : str, default="auto"
        "direct", "cg" (large sparse tables), "coordinate" (``positive=True``), "newton" and "refined-newton"
        (as "direct", by steps), "gd", "sgd", "minibatch". "auto" chooses by the problem and the shape of the
        data, and ``solver_`` says which it was. Of the names of scikit-learn's solvers "svd" and "cholesky"
        mean "direct", "lsqr" and "sparse_cg" mean "cg", and "sag", "saga" and "lbfgs" mean "auto".
    positive : bool, default=False
        Whether to keep all coefficients at 0 or above.
    random_state : int or None, default=None
        The seed of the stochastic solvers.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    time_limit : float, default=None
        Most seconds for an iterative solver; the best model so far is kept, with a :class:`StoppedEarly`
        warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    verbose : int, default=0
        Whether to print progress: the first and the last iteration, and one in half a second between.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    feature_means_ : ndarray of shape (n_features,)
        The means of the columns, with which :meth:`explain` compares.
    mean_rows_ : int
        How many rows they were taken from: 4,096 at most, unless the solver knows those of all.
    certificate_ : Certificate
        How far from the least possible objective the fit is at most; ``certificate_.verify(X, y)`` recomputes
        it. The objective is that of the first line divided by twice the number of rows.
    solver_, n_iter_, history_
        What was used, the iterations it took, and one record for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import RidgeClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> model = RidgeClassifier(alpha=2.0).fit(X, ["cold", "cold", "warm", "warm"])
    >>> model.decision_function([[-0.5], [3.0]])  # 6 / (10 + alpha) times x
    array([-0.25,  1.5 ])
    >>> model.predict([[-0.5], [3.0]]).tolist()
    ['cold', 'warm']
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose

    def _relative_to(self) -> str:
        return CONSTANT_MODEL  # scores are compared with labels as numbers
