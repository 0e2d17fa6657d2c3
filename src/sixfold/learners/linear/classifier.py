"""What linear classifiers share: labels become targets, and scores become labels.

    two classes    one score s = w.x + b; the answer is the second class where s > 0
    more           one score a class; the answer is the class with the largest score

The loss says how the scores of several classes are learnt: together (softmax), or each class against the
rest.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sixfold.data.checks import TrainingData
from sixfold.data.labels import check_classes, check_labelled
from sixfold.errors import InputError
from sixfold.learners.linear.model import LinearModel
from sixfold.risk.losses import LOSSES, Loss

Array = NDArray[Any]


class LinearClassifier(ClassifierMixin, LinearModel):
    """A linear model whose targets are classes."""

    classes_: Array
    class_weight: Any

    @abstractmethod
    def _loss_name(self) -> str:
        """Return the name of the loss; ``classes_`` is known."""

    def _loss(self) -> Loss:
        return LOSSES[self._loss_name()]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> TrainingData:
        data = check_labelled(
            self,
            X,
            y,
            sample_weight,
            class_weight=self.class_weight,
            classes=None if reset else self.classes_,
            reset=reset,
        )
        self.classes_ = data.classes
        return data.encoded(self._loss().labels)

    def _check_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TrainingData:
        """Return a batch as solvers read it; the first one has to come with all classes."""
        first = not hasattr(self, "coef_")
        known = check_classes(classes) if first or classes is not None else self.classes_
        if not first and not np.array_equal(known, self.classes_):
            raise InputError(
                f"classes={known.tolist()} differ from those of the first call, "
                f"{self.classes_.tolist()}. Pass "
                "them once, or the same ones again."
            )
        data = check_labelled(
            self,
            X,
            y,
            sample_weight,
            class_weight=self.class_weight,
            classes=known,
            reset=first,
        )
        self.classes_ = known
        return data.encoded(self._loss().labels)

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
