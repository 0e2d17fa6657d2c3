"""Figures of fits, searches and comparisons, drawn with matplotlib.

Each function takes ``ax=None`` (None makes new axes), returns the Axes, and leaves rcParams and pyplot's
current figure alone. Colours suit people with any colour vision and follow the ground, light or dark.

===========================  =================================================================================
``decision_boundary``        the regions of a classifier, margins, support vectors, rows that are wrong
``losses``                   losses side by side, of the margin or of the residual
``overfitting``              polynomials of degree 1 to 10, and their error on rows held out
``tree``                     a decision tree
``validation_curve``         cross-validation over one parameter: folds, mean, standard deviation, the choice
``heat_map``                 cross-validation over two parameters
===========================  =================================================================================
"""

from collections.abc import Sequence
from typing import Any

from sixfold.explain.plots.boundary import decision_boundary
from sixfold.explain.plots.heat_map import heat_map
from sixfold.explain.plots.losses import losses
from sixfold.explain.plots.overfitting import draw_overfitting
from sixfold.explain.plots.tree import tree
from sixfold.explain.plots.validation import validation_curve

__all__ = [
    "decision_boundary",
    "heat_map",
    "losses",
    "overfitting",
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
