"""Linear regression: the w and b with the least mean squared error, with or without a penalty.

    minimise  (1 / n) sum_i (y_i - b - w.x_i)^2 / 2 + alpha * penalty(w)

    penalty   none: ordinary least squares        l2: |w|^2 / 2, ridge regression
              l1: |w|_1, the lasso                elasticnet: l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2

With weights, 1/n becomes weight_i / sum of weights. ``alpha`` is that of scikit-learn's ``Lasso`` and
``ElasticNet``; its ``Ridge(alpha=a)`` is ``alpha = a / n`` here.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget
from sixfold.certificate import Subject
from sixfold.data.checks import TrainingData
from sixfold.errors import InputError
from sixfold.explain.summary import Summary, summarise
from sixfold.learners.linear.model import LinearRegressor
from sixfold.risk.problem import Problem
from sixfold.solvers.base import Solution
from sixfold.solvers.least_squares.direct import DirectSolution, solve_moments
from sixfold.solvers.least_squares.moments import Moments, block_moments

Array = NDArray[Any]


def _moments_suffice(model: LinearRegression) -> bool:
    """Return whether the statistics of earlier rows are enough; say which parameter is in the way if not."""
    if model.penalty in (None, "l2") and not model.positive:
        return True
    raise AttributeError(
        "partial_fit works with penalty=None or 'l2' and positive=False; here "
        f"penalty={model.penalty!r}, positive={model.positive}. Use fit with all rows, or one of these."
    )


class LinearRegression(LinearRegressor):
    """Fit a line (or plane) to numbers by least squares.

    Minimises ``sum_i (y_i - b - w.x_i)**2 / (2 n) + alpha * penalty(w)``; see the parameters for the
    penalties. A drop-in for scikit-learn's ``LinearRegression`` that also covers ``Lasso`` and ``ElasticNet``
    (same ``alpha``) and ``Ridge`` (``alpha`` here is Ridge's divided by the number of rows).

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake; see docs/differences.md.
    tol : float, default=1e-6
        Iterative solvers stop when the certified gap is below ``tol`` times the variance of y (halved).
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.
    positive : bool, default=False
        Whether to keep all coefficients at 0 or above.
    penalty : {None, "l2", "l1", "elasticnet"}, default=None
        What to add to the mean squared error.
    alpha : float, default=1.0
        How much the penalty counts.
    l1_ratio : float, default=0.5
        The share of the absolute values in "elasticnet".
    solver : str, default="auto"
        "direct" and "cg" (no penalty or squares), "coordinate" and "rounded-newton" (absolute values in the
        penalty), "newton" and "refined-newton" (as "direct", by steps), "gd", "sgd", "minibatch"
        (everything). "auto" chooses by the problem and the shape of the data, lets another go on where the
        first ends short, and ``solver_`` says which they were.
    max_iter : int, default=1000
        Most iterations (epochs) of an iterative solver, for each target.
    time_limit : float, default=None
        Most seconds for an iterative solver; the best model so far is kept, with a :class:`StoppedEarly`
        warning.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    random_state : int or None, default=0
        The seed of the stochastic solvers.
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
        How far from the least possible error the fit is at most; ``certificate_.verify(X, y)`` recomputes it.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        The iterations it took.
    history_ : list of Record
        Iteration, seconds, objective and gap after every iteration.
    rank_ : int
        The rank of the centred table, where a direct solver found it out.
    singular_ : ndarray
        The singular values of the centred table (direct solution, more rows than columns).
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import LinearRegression
    >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0]])
    >>> y = 3.0 + X @ [1.0, 2.0]
    >>> model = LinearRegression().fit(X, y)
    >>> model.coef_.round(12), round(float(model.intercept_), 12)
    (array([1., 2.]), 3.0)
    >>> print(model.certificate_)
    least squares: optimal to machine precision
    """

    _moments: Moments  # of the rows that partial_fit has seen
    _direct: DirectSolution | None

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
        penalty: str | None = None,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        solver: str = "auto",
        max_iter: int = 1000,
        time_limit: float | None = None,
        callbacks: Any = None,
        random_state: int | None = 0,
        verbose: int = 0,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    def _loss_name(self) -> str:
        return "squared"

    def _postprocess(
        self, solution: Solution, problem: Problem, data: TrainingData, budget: Budget
    ) -> Solution:
        self.__dict__.pop("_moments", None)
        return solution

    @available_if(_moments_suffice)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those seen by earlier calls of ``partial_fit`` and fit all of them, exactly.

        What is kept is the mean and the products of all pairs of columns, which add up, so the order of the
        batches does not matter beyond rounding. Needs no penalty or "l2". A call of ``fit`` forgets
        everything.
        """
        check = partial(self._check, reset="_moments" not in self.__dict__)
        return self._run_batch(X, y, sample_weight, check, self._add_rows)

    def _add_rows(self, problem: Problem, data: TrainingData, budget: Budget) -> Solution:
        moments = data.blocks().reduce(lambda block: block_moments(block, budget.flag), Moments.__add__)
        if "_moments" in self.__dict__:
            if moments.mean.size != self._moments.mean.size:
                raise InputError(
                    f"y has {data.y.shape[1]} targets, but earlier batches had "
                    f"{self._moments.mean.size - moments.n_columns}. Pass the same targets in every batch."
                )
            moments = self._moments + moments
        else:
            self.__dict__.pop("_fitted_to", None)  # of another fit
        self._moments = moments
        return solve_moments(problem, moments, budget)

    def _subject_before(self) -> Subject | None:
        return self._subject if "_moments" in self.__dict__ else None

    def _warn_of_batch(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        if self._moments.rows > self._moments.n_columns:
            self._warn_of_dependence(solution, data)
        super()._warn_of_batch(solution, data, budget)

    def summary(self, confidence: float = 0.95) -> Summary:
        """Return standard errors, t, p and confidence intervals of the coefficients, with R-squared.

        Parameters
        ----------
        confidence : float, default=0.95
            The probability with which an interval covers the true coefficient.

        Returns
        -------
        Summary
            Plain data (``to_dict()``) that prints as a table. A list of them for several targets.
        """
        check_is_fitted(self, "coef_")
        return summarise(self, confidence)

    def _coef_dtype(self, data: TrainingData) -> Any:
        # Moments are float64, whatever the type of the last batch.
        return np.float64 if "_moments" in self.__dict__ else data.X.dtype

    def _set_fitted(self, solution: Solution, data: TrainingData, budget: Budget) -> None:
        super()._set_fitted(solution, data, budget)
        self._rank = solution.rank
        self._direct = solution if isinstance(solution, DirectSolution) else None

    @property
    def rank_(self) -> int:
        """The rank of the (centred) table."""
        return int(self._known("_rank"))

    @property
    def singular_(self) -> Array:
        """The singular values of the (centred) table, largest first."""
        direct: DirectSolution = self._known("_direct")
        return direct.factor.singular_values() * np.sqrt(direct.moments.weight)

    def _known(self, name: str) -> Any:
        value = self.__dict__.get(name)
        if value is None:
            raise AttributeError(
                f"{type(self).__name__} has no such attribute: only a direct fit without penalty finds it."
            )
        return value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
