"""Figures of fits, searches and comparisons, drawn with matplotlib.

Each function takes ``ax=None`` (None makes new axes), returns the Axes, and leaves rcParams and pyplot's
current figure alone. Colours suit people with any colour vision and follow the ground, light or dark.

===========================  ==============================================================================
``calibration``              share of rows in a class over the probability that a classifier gives it
``coefficients``             coefficients of a linear model, the largest first
``heat_map``                 cross-validation over two parameters
``history``                  objective and certified gap over the iterations of a fit
``leaderboard``              compared learners: folds, mean and standard deviation of each
``learning_curve``           scores over the number of rows learnt from
``regularisation_path``      coefficients over the strength of the penalty
``residuals``                residuals over predictions, with their running median
``threshold``                precision, recall, F1 and accuracy over the decision threshold
``validation_curve``         cross-validation over one parameter: folds, mean, deviation, the choice
===========================  ==============================================================================

``plot_model`` and ``plot_search`` choose the one that fits; ``model.plot()`` and ``search.plot()`` call them.
"""

from sixfold.explain.plots.choose import plot_model, plot_search
from sixfold.explain.plots.coefficients import coefficients, regularisation_path
from sixfold.explain.plots.heat_map import heat_map
from sixfold.explain.plots.history import history
from sixfold.explain.plots.leaderboard import leaderboard
from sixfold.explain.plots.learning import learning_curve
from sixfold.explain.plots.probabilities import calibration, threshold
from sixfold.explain.plots.residuals import residuals
from sixfold.explain.plots.validation import validation_curve

__all__ = [
    "calibration",
    "coefficients",
    "heat_map",
    "history",
    "leaderboard",
    "learning_curve",
    "plot_model",
    "plot_search",
    "regularisation_path",
    "residuals",
    "threshold",
    "validation_curve",
]
