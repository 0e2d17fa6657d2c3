"""What linear classifiers share: labels become targets, and scores become labels.

    two classes    one score s = w.x + b; the answer is the second class where s > 0
    more           one score a class; the answer is the class with the largest score

The loss says how the scores of several classes are learnt: together (softmax), or each class against the
rest.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sixfold.data.checks import TrainingData
from sixfold.data.labels import check_classes, check_labelled
from sixfold.errors import InputError
from sixfold.learners.linear.model import LinearModel
from sixfold.risk.losses import log_softmax, softmax

Array = NDArray[Any]


class LinearClassifier(ClassifierMixin, LinearModel):
    """A linear model whose targets are classes."""

    classes_: Array
    class_weight: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            The columns to predict from.
        y : array of shape (n_samples,)
            The label of each row: text, whole numbers or booleans.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        LinearClassifier
            The fitted model itself.
        """
        return self._run_fit(X, y, sample_weight)

    def _check(
        self, X: Any, y: Any, sample_weight: Any, reset: bool = True, classes: Array | None = None
    ) -> TrainingData:
        """Return the table as solvers read it; ``classes`` are those there are, if y need not have all."""
        known = classes if reset else self.classes_
        data = check_labelled(
            self, X, y, sample_weight, class_weight=self.class_weight, classes=known, reset=reset
        )
        self.classes_ = data.classes
        return data.encoded(self._loss().labels)

    def _check_batch(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> TrainingData:
        """Return a batch as solvers read it; the first one has to come with all classes."""
        first = not hasattr(self, "coef_")
        known = check_classes(classes) if first or classes is not None else self.classes_
        if not first and not np.array_equal(known, self.classes_):
            raise InputError(
                f"classes={known.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}. Pass them once, or the same ones again."
            )
        return self._check(X, y, sample_weight, first, known)

    def _relative_to(self) -> str:
        return "the objective of the model whose scores are all zero"

    def decision_function(self, X: Any) -> Array:
        """Return the score w.x + b of each row, or one score a class where there are more than two.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self.decision_scores(X)
        if self.classes_.size > 2:
            return scores
        # Two classes may have a score each: it is their difference that decides.
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any) -> Array:
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Array = self.classes_[index]
        return labels

    def sparsify(self) -> Self:
        """Keep ``coef_`` as a sparse matrix, which saves memory where most coefficients are zero.

        Returns
        -------
        LinearClassifier
            The model itself; it predicts as before.
        """
        check_is_fitted(self, "coef_")
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep ``coef_`` as an array again.

        Returns
        -------
        LinearClassifier
            The model itself.
        """
        check_is_fitted(self, "coef_")
        self.coef_ = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return self


def _has_probabilities(model: Any) -> bool:
    known = model._likelihood_losses
    loss = getattr(model, "loss", known[0])
    if loss in known:
        return True
    needed = " or ".join(map(repr, known))
    raise AttributeError(f"predict_proba needs loss={needed}: the scores of {loss!r} are no probabilities.")


class ProbabilisticClassifier(LinearClassifier):
    """A linear classifier with probabilities, where its loss is a likelihood."""

    _likelihood_losses: tuple[str, ...] = ("logistic", "softmax")  # by the names they have here

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class for each row, in the order of ``classes_``.

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
        if self._loss_name() == "softmax":
            return scores
        # Logarithms of the probabilities against the rest: all of them may be too small for the numbers.
        return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else log_expit(scores)
