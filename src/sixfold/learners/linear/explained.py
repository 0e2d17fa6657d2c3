"""What a learner with scores w.x + b has to say about one row: :meth:`ExplainedScores.explain`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sixfold.data.checks import check_rows, column_names
from sixfold.data.column_means import ColumnMeans
from sixfold.data.one_row import one_row
from sixfold.errors import InputError

if TYPE_CHECKING:
    from sixfold.explain.linear import Background

Array = NDArray[Any]


class ExplainedScores:
    """Knows the means of its columns, and what each column of a row adds to a score."""

    coef_: Any
    intercept_: Any
    feature_means_: Array
    mean_rows_: int
    _mean_weight: float

    def _set_means(self, means: ColumnMeans) -> None:
        self.feature_means_, self.mean_rows_, self._mean_weight = means.mean, means.rows, means.weight

    def _known_means(self) -> ColumnMeans | None:
        """Return the means of the rows so far, None where there were none."""
        if "feature_means_" not in self.__dict__:
            return None
        rows = self.__dict__.get("mean_rows_", 1)
        return ColumnMeans(self.feature_means_, rows, self.__dict__.get("_mean_weight", float(rows)))

    def _parameters(self) -> tuple[Array, Array]:
        """Return w (columns x scores) and b (scores) in float64 from the public attributes."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        w = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T
        return w, np.broadcast_to(np.asarray(self.intercept_, dtype=np.float64), w.shape[1]).copy()

    def explain(self, x: Any, *, of: Any = None, background: Any = None) -> Any:
        """Return what each column of one row adds to the score, against the mean of the column.

        ``score(x) = score(mean) + sum_j w_j (x_j - mean_j)``. For models with probabilities also as factors
        on the odds, and as the way from the probability of the mean row to that of this one.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row
        of : class, or number of a target, default=None
            What to explain; None for the class that is predicted, or for all targets. A class is compared
            with the one among the others that has the highest score.
        background : row or table, default=None
            What to compare with instead of the means of the training rows: one row, or the mean of several.

        Returns
        -------
        LinearExplanation
            Plain data (``to_dict()``) that prints as a table and draws itself (``plot()``). A list of them
            where there are several targets and ``of`` names none.
        """
        # Words and pictures are nothing that a fit needs.
        from sixfold.explain.linear import Row, ScoreTable, explain_class, explain_targets

        check_is_fitted(self, "coef_")
        w, b = self._parameters()
        names = column_names(self, w.shape[0])
        with warnings.catch_warnings():  # one row is rightly written without names
            warnings.simplefilter("ignore", UserWarning)
            table = one_row(x, names)
            row = Row(names, _dense(check_rows(self, table))[0])
            answer = np.asarray(self.predict(table))[0]  # type: ignore[attr-defined]
            start = self._background(background, names)
        classes = getattr(self, "classes_", None)
        if classes is None:
            return explain_targets(
                row, ScoreTable(w, b), start, np.atleast_1d(answer), of, np.ndim(answer) > 0
            )
        if w.shape[1] == 1:  # two classes share one score: that of the first is 0
            w, b = np.hstack([np.zeros_like(w), w]), np.append(0.0, b)
        return explain_class(row, ScoreTable(w, b, self._chances()), start, answer, of, classes)

    def _chances(self) -> str:
        """Return how scores of classes become probabilities; "" where they do not."""
        if not hasattr(self, "predict_proba"):
            return ""
        softmax = self._loss_name() == "softmax" or self.classes_.size == 2  # type: ignore[attr-defined]
        return "softmax" if softmax else "one against the rest"

    def _background(self, given: Any, names: list[str]) -> Background:
        from sixfold.explain.linear import Background

        if given is None:
            means = self._known_means()
            if means is None:
                raise InputError(
                    f"This {type(self).__name__} does not know the means of its columns: it was not fitted "
                    "by this version. Pass rows to compare with: explain(x, background=X)."
                )
            return Background(means.mean, f"mean of {means.rows:,} row{'s' * (means.rows != 1)}")
        if isinstance(given, dict) or np.ndim(given) == 1 or hasattr(given, "to_frame"):
            return Background(_dense(check_rows(self, one_row(given, names)))[0], "the row given")
        table = check_rows(self, given)
        rows = table.shape[0]
        mean = np.asarray(table.mean(axis=0, dtype=np.float64)).ravel()
        return Background(mean, "the row given" if rows == 1 else f"mean of the {rows:,} rows given")


def _dense(table: Any) -> Array:
    return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)
