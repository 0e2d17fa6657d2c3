"""Figures of fits, searches and comparisons, drawn with matplotlib.

Each function takes ``ax=None`` (None makes new axes), returns the Axes, and leaves rcParams and pyplot's
current figure alone. Colours suit people with any colour vision and follow the ground, light or dark.

===========================  ==============================================================================
``calibration``              share of rows in a class over the probability that a classifier gives it
``coefficients``             coefficients of a linear model, the largest first
``decision_boundary``        the regions of a classifier, margins, support vectors, rows that are wrong
``heat_map``                 cross-validation over two parameters
``history``                  objective and certified gap over the iterations of a fit
``leaderboard``              compared learners: folds, mean and standard deviation of each
``learning_curve``           scores over the number of rows learnt from
``losses``                   losses side by side, of the margin or of the residual
``overfitting``              polynomials of degree 1 to 10, and their error on rows held out
``paired``                   compared learners: differences fold by fold, with a corrected interval
``regularisation_path``      coefficients over the strength of the penalty
``residuals``                residuals over predictions, with their running median
``threshold``                precision, recall, F1 and accuracy over the decision threshold
``tree``                     a decision tree
``validation_curve``         cross-validation over one parameter: folds, mean, deviation, the choice
===========================  ==============================================================================

``plot_model`` and ``plot_search`` choose the one that fits; ``model.plot()`` and ``search.plot()`` call them.
"""

from collections.abc import Sequence
from typing import Any

from sixfold.explain.plots.boundary import decision_boundary
from sixfold.explain.plots.choose import plot_model, plot_search
from sixfold.explain.plots.coefficients import coefficients, regularisation_path
from sixfold.explain.plots.heat_map import heat_map
from sixfold.explain.plots.history import history
from sixfold.explain.plots.leaderboard import leaderboard, paired
from sixfold.explain.plots.learning import learning_curve
from sixfold.explain.plots.losses import losses
from sixfold.explain.plots.overfitting import draw_overfitting
from sixfold.explain.plots.probabilities import calibration, threshold
from sixfold.explain.plots.residuals import residuals
from sixfold.explain.plots.tree import tree
from sixfold.explain.plots.validation import validation_curve

__all__ = [
    "calibration",
    "coefficients",
    "decision_boundary",
    "heat_map",
    "history",
    "leaderboard",
    "learning_curve",
    "losses",
    "overfitting",
    "paired",
    "plot_model",
    "plot_search",
    "regularisation_path",
    "residuals",
    "threshold",
    "tree",
    "validation_curve",
]


def overfitting(
    x: Any,
    y: Any,
    ax: Any = None,
    *,
    estimator: Any = None,
    degrees: Sequence[int] = range(1, 11),
    held_out: float | tuple[Any, Any] = 0.5,
    names: tuple[str, str] = ("x", "y"),
    dark: bool | None = None,
) -> Any:
    """Draw polynomials of growing degree through the same rows, and their error on rows held out.

    Parameters
    ----------
    x, y : array of shape (rows,)
        One column, and the target.
    ax : matplotlib Axes, default=None
        Where to draw; None for a new figure. The small pictures and the curve of errors are axes inside of
        it, ``ax.child_axes``, that of the errors last.
    estimator : regressor, default=None
        What is fitted on the polynomials of each degree, as a clone; None for LinearRegression().
    degrees : sequence of int, default=range(1, 11)
    held_out : float or pair of arrays, default=0.5
        Which share of the rows is held out, the same ones every time; or the rows themselves, (x, y).
    names : pair of str, default=("x", "y")
        What the column and the target are.
    dark : bool, default=None
        Whether the ground is dark; None to see by the colour of the axes.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 40)
    >>> ax = overfitting(x, np.sin(6.0 * x), degrees=[1, 3, 5])
    >>> [panel.get_title() for panel in ax.child_axes]
    ['degree 1', 'degree 3', 'degree 5', 'Least error on held-out rows: degree 5']
    """
    if estimator is None:
        from sixfold.learners.linear.linear_regression import LinearRegression

        estimator = LinearRegression()
    return draw_overfitting(estimator, x, y, ax, degrees=degrees, held_out=held_out, names=names, dark=dark)
