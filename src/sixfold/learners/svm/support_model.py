"""What a fitted machine with a kernel answers: decisions, classes, probabilities, reasons, its certificate.

Everything comes from the public attributes (``support_vectors_``, ``dual_coef_``, ``intercept_``,
``kernel_``), so a model whose attributes are changed answers by the changed ones, and its certificate tells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sixfold.budget import Budget, BudgetExhausted
from sixfold.certificate import Certificate
from sixfold.data.checks import check_rows, column_names
from sixfold.data.labels import LabelledData, class_factors, require_weight
from sixfold.data.one_row import one_row
from sixfold.errors import CertificateError, InputError
from sixfold.explain.kernel import SupportExplanation, explain_decision
from sixfold.geometry.kernels import Kernel, Linear, Precomputed
from sixfold.learners.callbacks import CallbackSupport
from sixfold.learners.svm.object_input import kernel_values, one_thing
from sixfold.learners.svm.pair_votes import class_scores, count_pair_votes
from sixfold.learners.svm.sigmoid import Calibration, couple
from sixfold.learners.svm.support_layout import SupportLayout
from sixfold.learners.svm.support_scores import SupportScores, as_loops_read, plane_normals, winning
from sixfold.solvers.threads import thread_limit
from sixfold.verify.kernel import Claims, recompute
from sixfold.verify.recomputed import Recomputed

Array = NDArray[Any]

LITTLE_WORK = 1 << 24  # products of two numbers: some milliseconds


def wants_probabilities(model: SupportModel) -> bool:
    """Return whether the model is to have probabilities."""
    return bool(model.probability) and not isinstance(model.probability, str)  # "deprecated" of 1.9 is none


def has_probabilities(model: SupportModel) -> bool:
    """Return True if the model is to have probabilities; raise the AttributeError of scikit-learn if not."""
    if wants_probabilities(model):
        return True
    raise AttributeError("predict_proba is not available when probability=False")


class SupportModel(ClassifierMixin, CallbackSupport, BaseEstimator, ABC):
    """A learner whose scores are sums of kernel values with support vectors."""

    C: float
    kernel: Any
    class_weight: Any
    probability: Any
    decision_function_shape: str
    break_ties: bool
    n_jobs: int | None

    classes_: Array
    support_: Array
    n_support_: Array
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Array
    kernel_: Kernel
    shape_fit_: tuple[int, int]
    n_features_in_: int
    _certificate: Certificate
    _calibration: Calibration | None
    _things: Array | None  # the training rows, where only a function can compare them
    _pairwise: bool  # whether there is a machine for each pair of three classes or more

    @abstractmethod
    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool = True) -> LabelledData:
        """Return the table as the solver reads it; compare with that of the fit unless ``reset``."""

    # -- answers -------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return how far each row is on the side of each class.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            With kernel="precomputed", the kernel values with the training rows, of shape (n_samples,
            n_train).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: f, positive for ``classes_[1]``. More: a score for each class, votes of the pairs
            with equal ones told apart by their decisions; with ``decision_function_shape="ovo"`` f of each
            pair, positive for its first class.
        """
        return self._answers(X, self._shaped)

    def _answers(self, X: Any, make: Callable[[Array], Array]) -> Array:
        """Return what ``make`` makes of the decisions of some rows at a time: of all those of X."""
        scores, rows = self._scores(), self._rows(X)
        with self._asking(rows) as budget:
            parts = [make(scores.decisions(rows[part], budget)) for part in scores.portions(rows.shape[0])]
        return np.concatenate(parts)

    def _shaped(self, decisions: Array) -> Array:
        if decisions.shape[1] == 1:
            return decisions[:, 0]
        if self._pairwise and self.decision_function_shape == "ovr":
            return class_scores(decisions, self.classes_.size)
        return decisions

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores()
        if self._breaks_ties():
            index = self._answers(X, self._tie_winners)
        else:
            rows = self._rows(X)
            with self._asking(rows) as budget:
                index = scores.winners(rows, budget)
        labels: Array = self.classes_[index]
        return labels

    def _breaks_ties(self) -> bool:
        """Return whether equal votes are told apart by decisions."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InputError(
                "break_ties must be False when decision_function_shape is 'ovo': ties are broken by the "
                "scores of classes. Use decision_function_shape='ovr'."
            )
        return self.break_ties and self._pairwise

    def _tie_winners(self, decisions: Array) -> Array:
        """Return the class number of each row where equal votes are told apart by decisions."""
        winners: Array = class_scores(decisions, self.classes_.size).argmax(axis=1)
        return winners

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class.

        For two classes the more probable one is that of :meth:`predict`. For more, the probabilities of pairs
        are joined; the most probable class is nearly always the predicted one.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "support_")
        calibration = self._calibration
        if calibration is None:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        return self._answers(X, lambda decisions: self._joined(calibration.probabilities(decisions)))

    def _joined(self, positive: Array) -> Array:
        """Return the probability of each class from those of the positive class of each machine."""
        if positive.shape[1] == 1:
            return np.column_stack([1.0 - positive, positive])
        if self._pairwise:
            return couple(positive, self.classes_.size)
        result: Array = positive / positive.sum(axis=1, keepdims=True)
        return result

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            logarithms: Array = np.log(self.predict_proba(X))
        return logarithms

    def explain(self, x: Any) -> SupportExplanation:
        """Return why one row gets its class: the support vectors that decide, with their shares.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row
            Of things that only a function can compare, the thing, or a list of it alone.

        Returns
        -------
        SupportExplanation
            Of several classes, the decision of the answer, which is that of :meth:`predict`, against the
            runner-up.
        """
        scores, breaks_ties = self._scores(), self._breaks_ties()
        given = self._things is not None
        row = self._rows(one_thing(x) if given else one_row(x, column_names(self, self.n_features_in_)))
        with self._asking(row) as budget:
            decisions = scores.decisions(row, budget)
        layout, n_classes = scores.layout, self.classes_.size
        winners = (
            self._tie_winners(decisions) if breaks_ties else winning(decisions, n_classes, self._pairwise)
        )
        answer = int(winners[0])
        order = class_scores(decisions, n_classes) if self._pairwise else decisions
        second = 1 - answer if n_classes == 2 else int(_without(order[0], answer).argmax())
        if n_classes > 2 and not self._pairwise:
            coefficients = layout.coefficients(answer) - layout.coefficients(second)
            intercept = layout.intercept[answer] - layout.intercept[second]
        else:
            machine, sign = _between(layout, answer, second)
            coefficients, intercept = sign * layout.coefficients(machine), sign * layout.intercept[machine]
        labels = self.classes_.tolist()
        votes = count_pair_votes(decisions, n_classes)[0].astype(int).tolist() if self._pairwise else []
        return explain_decision(
            self._kernel_values(row),
            coefficients,
            float(intercept),
            self.support_,
            [label for label, count in zip(labels, self.n_support_, strict=True) for _ in range(count)],
            answer=labels[answer],
            runner_up=labels[second],
            votes=dict(zip(labels, votes, strict=True)) if votes else {},
        )

    def _kernel_values(self, row: Any) -> Array:
        """Return K of one row with every support vector."""
        if isinstance(self.kernel_, Precomputed):
            return np.asarray(row[0, self.support_], dtype=np.float64)
        return self.kernel_(row, self.support_vectors_)[0]

    # -- public attributes as prediction reads them --------------------------------------------------------

    def _layout(self) -> SupportLayout:
        coefficients = self.dual_coef_.toarray() if sp.issparse(self.dual_coef_) else self.dual_coef_
        together = self.n_support_.sum()
        if together != coefficients.shape[1] or self.support_.size != coefficients.shape[1]:
            raise InputError(
                f"The internal representation of {type(self).__name__} was altered: there are "
                f"{self.support_.size} support vectors, {together} of the classes together and "
                f"{coefficients.shape[1]} coefficients of each machine. Fit again."
            )
        return SupportLayout(self.support_, self.n_support_, coefficients, self.intercept_, self._pairwise)

    def _scores(self) -> SupportScores:
        if not hasattr(self, "support_"):
            check_is_fitted(self, "support_")  # which asks for all tags first
        return SupportScores(self._layout(), self.kernel_, self.support_vectors_)

    def _rows(self, X: Any) -> Any:
        if self._things is not None:
            X = kernel_values(self.kernel, X, self._things)
        rows = check_rows(self, X)
        return rows.toarray() if isinstance(self.kernel_, Precomputed) and sp.issparse(rows) else rows

    def _threads(self, work: float) -> AbstractContextManager[None]:
        """Let native loops use the threads that are asked for, but one where there is little work.

        Beside other busy processes, a fit of 270 rows took 28 ms with two threads, which wait for each other,
        and 1.6 ms with one.
        """
        return thread_limit(self.n_jobs, alone=work < LITTLE_WORK)

    @contextmanager
    def _asking(self, rows: Any) -> Iterator[Budget]:
        """Give a budget without limits; Ctrl-C, which native loops notice, is raised when they are done."""
        work = rows.shape[0] * rows.shape[1] * self.support_.size
        budget = Budget()
        # Loops of milliseconds need not notice: to take Ctrl-C over and hand it back costs them a tenth.
        with budget if work >= LITTLE_WORK else nullcontext(), self._threads(work), suppress(BudgetExhausted):
            yield budget
        if budget.interrupted:
            raise KeyboardInterrupt

    @property
    def coef_(self) -> Any:
        """W of each machine, for the linear kernel."""
        check_is_fitted(self, "support_")
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        normals = plane_normals(self._layout(), as_loops_read(self.support_vectors_))
        coef: Any = sp.csr_matrix(normals) if sp.issparse(self.support_vectors_) else normals
        # It is made of the dual coefficients: to change it would change nothing.
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    # -- certificate ---------------------------------------------------------------------------------------

    @property
    def certificate_(self) -> Certificate:
        """How far from the least possible objective the fit is at most."""
        if "_certificate" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no certificate_ before it is fitted.")
        return self._certificate.bind(self)

    def _class_factors(self, data: LabelledData) -> Array:
        """Return how much the rows of each class count."""
        return class_factors(self.class_weight, data.classes, data.index, data.weight)

    def _upper(self, data: LabelledData) -> Array:
        """Return C times the weight of each row; 0 for rows that do not count."""
        if self.class_weight is None and data.weight is None:
            return np.full(data.index.size, float(self.C))
        weight = self._class_factors(data)[data.index]
        weight = weight if data.weight is None else weight * data.weight
        require_weight(data.classes, data.index, weight)
        result: Array = np.multiply(float(self.C), weight, where=weight > 0, out=np.zeros(weight.size))
        return result

    def _verify(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Certificate:
        return self._recompute(claimed, X, y, sample_weight).compare(claimed)

    def _recompute(self, claimed: Certificate, X: Any, y: Any, sample_weight: Any) -> Recomputed:
        """Return the certificate of the public attributes, from the data alone."""
        data = self._check(X, y, sample_weight, reset=False)
        if data.X.shape[0] != self.shape_fit_[0]:
            raise CertificateError(
                f"The model was fitted on {self.shape_fit_[0]} rows, not on {data.X.shape[0]}: the data are "
                "not those of the fit."
            )
        claims = Claims(
            self._layout(), self.kernel_, self.support_vectors_, data.X, data.index, self._upper(data)
        )
        return recompute(claims, claimed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise, tags.input_tags.sparse = self._gives_values(), not self._gives_values()
        return tags

    def _gives_values(self) -> bool:
        """Return whether X holds kernel values in place of rows."""
        named = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return named or isinstance(self.kernel, Precomputed)


def _without(values: Array, place: int) -> Array:
    rest = values.astype(np.float64)
    rest[place] = -np.inf
    return rest


def _between(layout: SupportLayout, answer: int, second: int) -> tuple[int, float]:
    """Return the machine of two classes, and -1 where the answer is its negative class."""
    machines = layout.machines
    return (
        (machines.index((answer, second)), 1.0)
        if (answer, second) in machines
        else (machines.index((second, answer)), -1.0)
    )
