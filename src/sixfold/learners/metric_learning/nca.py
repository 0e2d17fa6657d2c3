"""Neighbourhood components analysis: a distance in which rows find rows of their class."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget, Record
from sixfold.certificate import Certificate
from sixfold.data.checks import check_table, check_weight, column_names, require_computable, require_order
from sixfold.data.labels import LabelledData, check_labels
from sixfold.errors import InputError
from sixfold.learners.metric_learning.model import LearnedMap
from sixfold.solvers.metric_learning import nca
from sixfold.verify import soft_neighbors
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

KIND = "stationary point"
FLAT = 1e-12  # slopes below this lead nowhere, though the loss may have far to go
FLAT_START = (
    "the objective is flat here: every row picks its nearest for sure; standardise the columns, or begin "
    "with init='whitening'"
)


class NeighborhoodComponentsAnalysis(LearnedMap):
    r"""Learn a linear map after which rows have rows of their own class as neighbours.

    Each row picks another one as its neighbour, near ones more often than far ones. The map L maximises the
    mean probability with which the picked row is of the same class:

    .. math::

        \max_L \; \frac{\sum_i q_i p_i}{\sum_i q_i}, \qquad
        p_i = \sum_{j:\, y_j = y_i} p_{ij}, \qquad
        p_{ij} = \frac{q_j \exp(-|L x_i - L x_j|^2)}{\sum_{k \ne i} q_k \exp(-|L x_i - L x_k|^2)}

    Same parameters and the same objective as scikit-learn's class. The objective is not convex: what is
    found is a point from which no small change leads further up, and the certificate says so;
    ``verify(X, y)`` recomputes objective and slope.

    Parameters
    ----------
    n_components : int, default=None
        How many columns the rows have after the map; None keeps as many as there are.
    init : {"auto", "pca", "lda", "identity", "random", "whitening"} or array, default="auto"
        The map to begin with, an array of shape (n_components, n_features) or a name. "auto" is "lda" where
        there are more classes than components, else "pca" where there are fewer components than columns, else
        "identity". "whitening" lets each class spread by 1 in all directions.
    warm_start : bool, default=False
        Whether a fit begins where the last one ended.
    max_iter : int, default=50
        Most iterations of L-BFGS.
    tol : float, default=1e-5
        The fit ends with three iterations in a row that each gain less than this share of the objective.
    callback : callable, default=None
        Called as ``callback(transformation, n_iter)`` after each iteration, with the map as one long vector.
    verbose : int, default=0
        Whether to print how the fit gets on.
    random_state : int, RandomState or None, default=None
        Where the numbers of ``init="random"`` come from.
    n_jobs : int, default=None
        Threads; None or -1 for all. The result is the same for any number.
    time_limit : float, default=None
        Most seconds; the best map so far is kept.
    callbacks : sequence of callables, default=None
        Each is called with a record (iteration, seconds, objective, gap) after every iteration, and ends the
        fit by returning True.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The map L.
    n_iter_ : int
        Iterations of L-BFGS.
    random_state_ : RandomState
        Where the numbers of ``init="random"`` come from.
    classes_ : ndarray
        The labels.
    n_features_in_ : int
        Columns of the rows.
    history_ : list of Record
        The loss, 1 - the mean probability, and its slope after each iteration.
    certificate_ : Certificate
        The loss, its slope, and no bound. The slope (``gap``) is relative: changing L by a share e of its
        size changes the loss by at most e times the slope, to first order.

    Notes
    -----
    A weight says how often a row occurs: of weight 2 it is there twice, and like any two equal rows its
    copies are neighbours at distance 0. In the formula above, row i then picks itself with the weight
    ``max(q_i - 1, 0)``. Weights that say how much a row matters, and not how often it occurs, are divided by
    the largest first: up to 1 no row picks itself. Of one class alone every map has the mean probability 1,
    and the first one is kept; a row that is alone in its class has the probability 0 by any map.

    References
    ----------
    J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov (2004), "Neighbourhood components analysis".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sixfold import NeighborhoodComponentsAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> nca = NeighborhoodComponentsAnalysis(n_components=2).fit(X, y)
    >>> nca.transform(X).shape
    (150, 2)
    >>> print(f"{1 - nca.certificate_.objective:.3f}")  # the mean probability of the right class
    1.000
    >>> print(nca.certificate_.verify(X, y).kind)
    stationary point
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: Any = "auto",
        warm_start: bool = False,
        max_iter: int = 50,
        tol: float = 1e-5,
        callback: Callable[[Array, int], Any] | None = None,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        callbacks: Sequence[Callable[[Record], Any]] | None = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.callbacks = callbacks

    # -- the steps of a fit ------------------------------------------------------------------------------

    def _limits(self) -> tuple[float, int | None]:
        return self.tol, self.max_iter

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.callback is not None and not callable(self.callback):
            raise InputError(
                f"callback={self.callback!r} cannot be called. Pass a function of the map and the iteration."
            )

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> LabelledData:
        """Return rows and labels; one class will do, of which every map is a best one."""
        require_order(self, X, y)
        X = check_table(self, X, reset)
        if sp.issparse(X):
            raise InputError("X is sparse, and distances are learnt of dense rows. Pass X.toarray().")
        classes, index = check_labels(self, y, X, None if reset else self.classes_)
        if X.shape[0] < 2:
            raise InputError(
                "Found array with 1 sample(s): a row has no neighbour where it is the only one. Pass 2 rows "
                "at least."
            )
        weight = check_weight(sample_weight, X.shape[0])
        require_computable(X, "X", lambda: column_names(self, X.shape[1]))
        return LabelledData(X, weight, self, classes, index)

    def _state_problem(self, data: LabelledData) -> Array:
        return self._start(data)

    def _solve(self, start: Array, data: LabelledData, budget: Budget) -> nca.LearnedComponents:
        heard = None if self.callback is None else self._hear
        return nca.learn(data.X, data.index, data.weight, start, budget, data.X.dtype, heard)

    def _hear(self, components: Array, iteration: int) -> None:
        assert self.callback is not None
        self.callback(components.ravel(), iteration)

    def _set_fitted(self, solution: nca.LearnedComponents, data: LabelledData, budget: Budget) -> None:
        self.components_ = solution.components
        self.classes_ = data.classes
        self.history_ = budget.history
        self.n_iter_ = max(len(budget.history), 1)
        self._certificate = certify(solution)

    @property
    def random_state_(self) -> np.random.RandomState:
        """Where the numbers of ``init="random"`` come from."""
        check_is_fitted(self)
        return check_random_state(self._fit_parameters["random_state"])

    # -- the certificate ---------------------------------------------------------------------------------

    def _relative_to(self) -> str:
        return "1, the loss of a map by which no row picks one of its class"

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        data = self._check(X, y, sample_weight, reset=False)
        q = np.ones(data.X.shape[0]) if data.weight is None else data.weight
        return soft_neighbors.recompute(data.X, data.index, q, self.components_, claimed)


def certify(solution: nca.LearnedComponents) -> Certificate:
    """Return the certificate of components: loss and slope, and no bound."""
    slope = solution.slope
    claim = f"no bound: not convex; the slope is {slope:.1g} of the loss for a change of L by its own size"
    flat = slope <= FLAT and solution.loss > math.sqrt(FLAT)
    notes = (FLAT_START,) if flat else ()
    return Certificate(KIND, solution.loss, slope, 1.0, 0.0, {}, claim, notes, solution.rounding)
