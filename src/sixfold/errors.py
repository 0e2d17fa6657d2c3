"""What can go wrong, as one tree.

::

    SixfoldError
    ├── InputError (ValueError)          the data or a parameter cannot be used as given
    │   ├── IncompatibleError            a loss, penalty and solver that do not fit each other
    │   ├── PerfectSeparation            the likelihood has no maximum; carries the direction it grows in
    │   └── NotSeparable                 no plane separates the classes; carries the proof
    ├── CertificateError                 a certificate and the model it speaks of disagree
    ├── TimeLimitReached (TimeoutError)  a fit or query of neighbours took longer than its time_limit
    ├── ClusterError (RuntimeError)      workers or their scheduler were lost in the middle of a fit
    └── MissingExtraError (ImportError)  an optional dependency is needed and not installed

    SixfoldWarning (UserWarning)
    ├── RankWarning                      columns that are combinations of others
    ├── SeparationWarning                a likelihood without maximum; the limit was kept
    ├── MemorisedColumn                  a column of categories with hardly more than a row each
    └── StoppedEarly (ConvergenceWarning)  a limit was reached; carries the certificate

Every message is a sentence or two: what was given, what was expected, what to do.
"""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from sixfold.certificate import Certificate

# Python's own numbers first: asking an abstract class, or making a union of types, takes 1 us a call, and a
# fit checks twenty parameters.
WHOLE, NUMBER = (int, Integral), (float, int, Real)
SEEDS = (*WHOLE, np.random.RandomState, np.random.Generator)


class SixfoldError(Exception):
    """Any error that sixfold raises on purpose."""


class InputError(SixfoldError, ValueError):
    """The data or a parameter cannot be used as given."""


class UsageError(InputError):
    """Another file, column or option has to be named; nothing is wrong with what the files hold."""


class IncompatibleError(InputError):
    """A loss, a penalty and a solver that do not fit each other."""


class PerfectSeparation(InputError):  # noqa: N818 - the name of the phenomenon
    """A plane separates the classes, so that a likelihood without penalty grows for ever along it.

    Attributes
    ----------
    direction : tuple of ndarray, or None
        (w, b) of shape (columns, scores) and (scores,): no row is on its wrong side, some are on its right.
    columns : tuple of str
        The columns that do it.
    kind : {"complete", "quasi-complete"}
        Whether every row is on the right side, or some are on the boundary.
    """

    def __init__(
        self, message: str, direction: Any = None, columns: Iterable[str] = (), kind: str = "complete"
    ) -> None:
        super().__init__(message, direction, tuple(columns), kind)
        self.direction, self.columns, self.kind = direction, tuple(columns), kind

    def __str__(self) -> str:
        return str(self.args[0])


class NotSeparable(InputError):  # noqa: N818 - the name of the phenomenon
    """No plane separates the classes, where one was asked for.

    Attributes
    ----------
    rows : ndarray of int
        Rows of both classes.
    weights : ndarray of float
        Positive, with sum 1: sum_i weight_i y_i (x_i, 1) = 0. The combination of the rows of one class is
        that of the rows of the other, so their hulls meet.
    """

    def __init__(self, message: str, rows: Any = None, weights: Any = None) -> None:
        super().__init__(message, rows, weights)
        self.rows, self.weights = rows, weights

    def __str__(self) -> str:
        return str(self.args[0])


class CertificateError(SixfoldError):
    """A certificate and the model it speaks of disagree."""


class TimeLimitReached(SixfoldError, TimeoutError):  # noqa: N818 - it says what happened
    """A fit or query of neighbours took longer than ``time_limit``; part of an answer would be wrong."""


class ModelFileError(SixfoldError, ValueError):
    """A model file cannot be read, or a model cannot be written to one."""


class ClusterError(SixfoldError, RuntimeError):
    """The workers that hold the rows, or their scheduler, were lost; the model is left as it was."""


class MissingExtraError(SixfoldError, ImportError):
    """An optional dependency is needed and not installed."""


class SixfoldWarning(UserWarning):
    """Any warning that sixfold gives on purpose."""


class RankWarning(SixfoldWarning):
    """Some columns are linear combinations of others, so the coefficients are not unique."""


class SeparationWarning(SixfoldWarning):
    """The classes can be separated, so the likelihood has no maximum; the limit of the model was kept."""


class MemorisedColumn(SixfoldWarning):
    """A column has so many categories that a tree splitting by it learns the rows by heart."""


class StoppedEarly(SixfoldWarning, ConvergenceWarning):
    """A limit was reached before the tolerance; the best model so far was kept.

    Attributes
    ----------
    certificate : Certificate
        How good the kept model is.
    """

    def __init__(self, message: str, certificate: Certificate | None = None) -> None:
        super().__init__(message)
        self.certificate = certificate


_SILENCED: ContextVar[tuple[type[Warning], ...]] = ContextVar("silenced", default=())


@contextmanager
def silenced(*categories: type[Warning]) -> Iterator[None]:
    """Leave out warnings of these kinds, in this thread alone."""
    before = _SILENCED.set((*_SILENCED.get(), *categories))
    try:
        yield
    finally:
        _SILENCED.reset(before)


def warn(warning: Warning | str, category: type[Warning] | None = None) -> None:
    """Warn at the line of the user's code that called sixfold, however many calls are in between."""
    if issubclass(category or type(warning), _SILENCED.get()):
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("sixfold."):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, category, stacklevel=level)


def check_option(parameter: str, value: Any, options: Iterable[Any], also: str = "") -> None:
    """Raise an :class:`InputError` naming the nearest right value unless ``value`` is an option.

    ``also`` says what else may be passed, which the caller has found it is not.

    >>> check_option("penalty", "ll2", [None, "l1", "l2"])
    Traceback (most recent call last):
        ...
    sixfold.errors.InputError: penalty='ll2' is not an option; did you mean 'l2'? \
The options are None, 'l1', 'l2'.
    """
    options = list(options)
    if type(value) is str and value in options:  # nearly always
        return
    # Equal and of the option's type: 1 is not True, and an array is not compared entry by entry.
    if any(isinstance(value, type(option)) and value == option for option in options):
        return
    named = [option for option in options if isinstance(option, str)]
    # Half of the letters: "abs" is near "absolute" (0.55), but "mean" is not near "branch" (0.4).
    near = difflib.get_close_matches(str(value), named, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    listed = ", ".join([*map(repr, options), *[also] * bool(also)])
    raise InputError(f"{parameter}={value!r} is not an option{hint} The options are {listed}.")


def check_flag(parameter: str, value: Any) -> None:
    """Raise an :class:`InputError` unless ``value`` is True or False.

    >>> check_flag("fit_intercept", "no")
    Traceback (most recent call last):
        ...
    sixfold.errors.InputError: fit_intercept='no' is of type str: True or False is needed.
    """
    if type(value) is not bool and not isinstance(value, np.bool_):
        kind = type(value).__name__
        raise InputError(f"{parameter}={value!r} is of type {kind}: True or False is needed.")


def check_seed(value: Any) -> None:
    """Raise an :class:`InputError` unless ``value`` can seed a generator of random numbers.

    >>> check_seed("a")
    Traceback (most recent call last):
        ...
    sixfold.errors.InputError: random_state='a' cannot be used to seed: pass a whole number, a NumPy \
RandomState or Generator, or None.
    """
    if value is None:
        return
    if not isinstance(value, SEEDS):
        raise InputError(
            f"random_state={value!r} cannot be used to seed: pass a whole number, a NumPy RandomState or "
            "Generator, or None."
        )
    if isinstance(value, WHOLE) and not 0 <= int(value) < 2**32:
        raise InputError(
            f"random_state={value!r} is out of range: a seed is a whole number from 0 to {2**32 - 1}."
        )


def check_number(
    parameter: str,
    value: Any,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    optional: bool = False,
    whole: bool = False,
    finite: bool = False,
) -> None:
    """Raise an :class:`InputError` unless ``value`` is a number in range.

    None will do as well where ``optional``.

    >>> check_number("alpha", -1, at_least=0)
    Traceback (most recent call last):
        ...
    sixfold.errors.InputError: alpha=-1 is out of range: a number that is at least 0 is needed.
    """
    if value is None and optional:
        return
    right_kind = isinstance(value, WHOLE if whole else NUMBER) and not isinstance(value, bool)
    in_range = right_kind and value >= at_least and value > above  # which NaN is not
    if in_range and not (finite and math.isinf(value)):
        return
    wanted = f"a {'finite ' * finite}{'whole ' * whole}number"
    if at_least > -math.inf:
        wanted += f" that is at least {at_least:g}"
    if above > -math.inf:
        wanted += f" above {above:g}"
    problem = "is out of range" if right_kind else f"is of type {type(value).__name__}"
    wanted += " or None" * optional
    raise InputError(f"{parameter}={value!r} {problem}: {wanted} is needed.")
