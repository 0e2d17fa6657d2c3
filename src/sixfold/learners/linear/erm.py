"""The general recipe: any loss, any penalty, any solver that fits them.

    minimise  alpha * penalty(w) + (1 / n) sum_i loss(w.x_i + b, y_i)

With weights, 1/n becomes weight_i / sum of weights. The named learners are special cases of this one.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.utils.metaestimators import available_if

from sixfold.data.checks import TrainingData, check_training
from sixfold.errors import check_option
from sixfold.learners.linear.classifier import LinearClassifier
from sixfold.learners.linear.erm_base import Recipe
from sixfold.learners.linear.model import LinearRegressor
from sixfold.risk.losses import LOSSES, Loss, log_softmax, softmax

Array = NDArray[Any]

REAL_LOSSES = ("squared", "absolute", "cubed")
CLASS_LOSSES = ("logistic", "squared", "perceptron", "hinge", "squared_hinge", "softmax")


def _has_probabilities(model: ERMClassifier) -> bool:
    if model.loss in ("logistic", "softmax"):
        return True
    raise AttributeError(
        f"predict_proba needs loss='logistic' or 'softmax': the scores of {model.loss!r} are no "
        "probabilities."
    )


class ERMRegressor(Recipe, LinearRegressor):
    """Predict numbers by a linear function, with the loss, penalty and solver of your choice.

    Minimises ``alpha * penalty(w) + mean_i loss(w.x_i + b, y_i)``.

    Parameters
    ----------
    loss : {"squared", "absolute", "cubed"}, default="squared"
        ``(s - y)**2 / 2``, ``|s - y|`` or ``|s - y|**3 / 3`` of the score s.
    penalty : {None, "l2", "l1", "elasticnet"}, default=None
        ``|w|**2 / 2``, ``|w|_1``, or the mixture of both by ``l1_ratio``.
    alpha : float, default=1e-4
        How much the penalty counts.
    l1_ratio : float, default=0.5
        The share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    solver : str, default="auto"
        "direct" and "cg" (squared loss), "coordinate" (squared loss with absolute values in the penalty),
        "newton" (smooth loss), "interior_point" (absolute loss), "gd", "sgd", "minibatch" (everything).
        "auto" takes the first that fits; ``solver_`` says which.
    tol : float, default=1e-6
        Stop when the certified gap is below ``tol`` times the objective of the constant model.
    max_iter : int, default=1000
        Most iterations (epochs).
    time_limit : float, default=None
        Most seconds; the best model so far is kept.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    learning_rate : {"auto", "constant", "decay", "invscaling"}, default="auto"
        For "gd", "sgd", "minibatch": the step after t updates is ``eta0``, ``eta0 / (1 + decay t)`` or
        ``eta0 / (t + 1)**power_t``.
    eta0 : float, default=None
        The first step; None finds one from the data.
    decay : float, default=None
        How fast "decay" falls; None takes one epoch as the unit of time.
    power_t : float, default=0.5
        The exponent of "invscaling".
    average : bool or int, default=False
        Return the average of the iterates, of all or of those after so many updates.
    shuffle : bool, default=True
        Visit the rows in a new random order in every epoch.
    batch_size : int, default=32
        Rows an update of "minibatch".
    random_state : int, default=0
        The seed of the shuffling.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    certificate_ : Certificate
        How far from the least possible objective the fit is at most.
    dual_ : ndarray of shape (n_samples,)
        The dual point behind the certificate, where the solver has one ("interior_point").
    solver_, n_iter_, history_
        What was used, the iterations it took, and one record for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import ERMRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> y = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])  # the last one is an outlier
    >>> ERMRegressor(loss="absolute").fit(X, y).coef_.round(3)
    array([1.])
    """

    def __init__(
        self,
        loss: str = "squared",
        *,
        penalty: str | None = None,
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        time_limit: float | None = None,
        callbacks: Any = None,
        learning_rate: str = "auto",
        eta0: float | None = None,
        decay: float | None = None,
        power_t: float = 0.5,
        average: bool | int = False,
        shuffle: bool = True,
        batch_size: int = 32,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.decay = decay
        self.power_t = power_t
        self.average = average
        self.shuffle = shuffle
        self.batch_size = batch_size
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _loss(self) -> Loss:
        check_option("loss", self.loss, REAL_LOSSES)
        return LOSSES[self.loss]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,)
            The numbers to predict.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        ERMRegressor
            The fitted model itself.
        """
        return self._run_fit(X, y, sample_weight)

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingData:
        return check_training(self, X, y, sample_weight, reset=reset, one_target=True)


class ERMClassifier(Recipe, LinearClassifier):
    """Tell classes apart by linear scores, with the loss, penalty and solver of your choice.

    Minimises ``alpha * penalty(w) + mean_i loss(w.x_i + b, y_i)``. With more than two classes every loss but
    "softmax" fits one class against the rest.

    Parameters
    ----------
    loss : {"logistic", "squared", "perceptron", "hinge", "squared_hinge", "softmax"}, default="logistic"
        ``log(1 + exp(-y s))``, ``(s - y)**2 / 2``, ``max(0, -y s)``, ``max(0, 1 - y s)``, its square halved,
        or cross-entropy of the softmax; y is -1 or +1.
    penalty : {None, "l2", "l1", "elasticnet"}, default="l2"
        ``|w|**2 / 2``, ``|w|_1``, or the mixture of both by ``l1_ratio``.
    alpha : float, default=1e-4
        How much the penalty counts.
    l1_ratio : float, default=0.5
        The share of the absolute values in "elasticnet".
    fit_intercept : bool, default=True
        Whether to fit b. It is never penalised.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count; "balanced" gives all classes the same total.
    solver : str, default="auto"
        "direct" and "cg" (squared loss), "newton", "newton-cg" and "lbfgs" (smooth loss), "coordinate"
        (absolute values in the penalty), "interior_point" and "dual_coordinate" (hinge), "gd", "sgd",
        "minibatch" (everything). "auto" takes the first that fits; ``solver_`` says which.
    tol : float, default=1e-6
        Stop when the certified gap is below ``tol`` times the objective of the zero model.
    max_iter : int, default=1000
        Most iterations (epochs).
    time_limit : float, default=None
        Most seconds; the best model so far is kept.
    callbacks : sequence of callables, default=None
        Called with a record (iteration, seconds, objective, gap) after every iteration; True stops the fit.
    learning_rate : {"auto", "constant", "decay", "invscaling"}, default="auto"
        For "gd", "sgd", "minibatch": the step after t updates is ``eta0``, ``eta0 / (1 + decay t)`` or
        ``eta0 / (t + 1)**power_t``.
    eta0 : float, default=None
        The first step; None finds one from the data.
    decay : float, default=None
        How fast "decay" falls; None takes one epoch as the unit of time.
    power_t : float, default=0.5
        The exponent of "invscaling".
    average : bool or int, default=False
        Return the average of the iterates, of all or of those after so many updates.
    shuffle : bool, default=True
        Visit the rows in a new random order in every epoch.
    batch_size : int, default=32
        Rows an update of "minibatch".
    random_state : int, default=0
        The seed of the shuffling.
    n_jobs : int, default=None
        Threads for the native loops; None or -1 for all.

    Attributes
    ----------
    coef_ : ndarray of shape (n_scores, n_features)
    intercept_ : ndarray of shape (n_scores,)
    classes_ : ndarray of shape (n_classes,)
    certificate_ : Certificate
        How far from the least possible objective the fit is at most.
    dual_ : ndarray
        The dual point behind the certificate, where the solver has one.
    solver_, n_iter_, history_
        What was used, the iterations it took, and one record for each.

    Examples
    --------
    >>> import numpy as np
    >>> from sixfold import ERMClassifier
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> ERMClassifier(loss="squared", penalty=None).fit(X, ["a", "a", "b", "b"]).coef_
    array([[0.6]])
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        time_limit: float | None = None,
        callbacks: Any = None,
        learning_rate: str = "auto",
        eta0: float | None = None,
        decay: float | None = None,
        power_t: float = 0.5,
        average: bool | int = False,
        shuffle: bool = True,
        batch_size: int = 32,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.decay = decay
        self.power_t = power_t
        self.average = average
        self.shuffle = shuffle
        self.batch_size = batch_size
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _loss(self) -> Loss:
        check_option("loss", self.loss, CLASS_LOSSES)
        return LOSSES[self.loss]

    def _loss_name(self) -> str:
        return self.loss

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass of stochastic updates over these rows, from where the last call ended.

        Starts from zero weights, or from those of ``fit``, with the step ``eta0`` (found on the first batch
        if None) and the schedule ``learning_rate``; ``solver="minibatch"`` updates once every ``batch_size``
        rows.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,), default=None
            All labels that there are; needed in the first call.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        ERMClassifier
            The model itself.
        """
        data = self._check_batch(X, y, classes, sample_weight)
        self._learn_batch(data, self.classes_.size if self.loss == "softmax" else data.y.shape[1])
        return self

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row; needs the loss "logistic" or "softmax".

        Scores of classes against the rest are turned into probabilities one by one and scaled to the sum 1.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._class_scores(X))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probability of each class, finite where the probability underflows.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return log_softmax(self._class_scores(X))

    def _class_scores(self, X: Any) -> Array:
        """Return one score a class, of which the softmax is the probabilities."""
        scores = self.decision_scores(X)
        if self.loss == "softmax":
            return scores
        # Logarithms of the probabilities against the rest: all of them may be too small for the numbers.
        return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else log_expit(scores)
