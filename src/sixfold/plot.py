"""Figures of fits, searches and comparisons, drawn with matplotlib.

Each function takes ``ax=None`` (None makes new axes), returns the Axes, and leaves rcParams and pyplot's
current figure alone. Colours suit people with any colour vision and follow the ground, light or dark.

===========================  =================================================================================
``validation_curve``         cross-validation over one parameter: folds, mean, standard deviation, the choice
``heat_map``                 cross-validation over two parameters
===========================  =================================================================================
"""

from sixfold.explain.plots.heat_map import heat_map
from sixfold.explain.plots.validation import validation_curve

__all__ = [
    "heat_map",
    "validation_curve",
]
