"""scikit-learn's estimators with our fits inside: what all of them share.

A drop-in is a subclass of scikit-learn's class, whose constructor, parameters, tags and private methods it
keeps, so that ``isinstance`` holds and tools find what they look for. Of its methods some are told in another
way:

    fit       state scikit-learn's parameters in ours -> fit our learner -> set scikit-learn's attributes
    predict   ask our learner
    either    what we do not offer, and every error, is left to scikit-learn's own method

The last line is the rule that keeps code running: nothing fails that scikit-learn does not refuse, and what
it refuses is refused in its words. With ``SIXFOLD_VERBOSE=1`` each call says on stderr who answered, and why.
"""

from __future__ import annotations

import functools
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn import get_config

from sixfold.errors import RankWarning, silenced

VERBOSE = "SIXFOLD_VERBOSE"


class HandedBack(Exception):  # noqa: N818 - no error: scikit-learn goes on
    """What scikit-learn's own method has to do, and why."""


class DropIn(ABC):
    """The part of a drop-in that stands before scikit-learn's class.

    Subclasses that users write are left as they are.

    Attributes
    ----------
    _fits : tuple of str
        Methods that learn; each is told by ``_learn``.
    _answers : tuple of str
        Methods that our fitted learner has too, with the same meaning.
    _extras : tuple of str
        What a model has besides where ours has learnt it.
    """

    _fits: tuple[str, ...] = ("fit",)
    _answers: tuple[str, ...] = ("predict",)
    _extras: tuple[str, ...] = ("certificate_", "explain", "history_", "plot", "solver_", "summary")
    _ours: Any = None  # our fitted learner; None where scikit-learn has learnt

    def __init_subclass__(cls, **kwargs: Any) -> None:
        theirs = cls.__bases__[-1]
        if cls.__module__.startswith(__package__) and not issubclass(theirs, DropIn):
            for name in cls._fits:
                if name not in vars(cls):
                    setattr(cls, name, _fitting(getattr(theirs, name)))
            for name in cls._answers:
                if name not in vars(cls):
                    setattr(cls, name, _answering(name, getattr(theirs, name)))
        super().__init_subclass__(**kwargs)  # where scikit-learn reads the signatures of fit and predict

    # -- what a class says ---------------------------------------------------------------------------------

    @abstractmethod
    def _learner(self) -> Any:
        """Return our learner with these parameters; raise :class:`HandedBack` for those it does not have."""

    def _learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return our fitted learner."""
        model = self._learner()
        return model.fit(X, y) if sample_weight is None else model.fit(X, y, sample_weight=sample_weight)

    def _shared_learner(self) -> Any:
        """Return our learner where it tells all of a fit, so that a search may share work between several.

        Raises
        ------
        HandedBack
            Unless a class says otherwise: its candidates are fitted one by one.
        """
        raise HandedBack(f"{type(self).__name__} is fitted one by one")

    @abstractmethod
    def _set_fitted(self, model: Any) -> None:
        """Set scikit-learn's attributes from our fitted learner."""

    def _is_ours(self) -> bool:
        """Return whether our learner may answer: it has learnt, and nobody has changed the model since."""
        return self._ours is not None

    def _answer(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Return the answer of our learner's method of this name."""
        return getattr(self._ours, name)(*args, **kwargs)

    # -- who does it ---------------------------------------------------------------------------------------

    def _fit_by(self, theirs: Callable[..., Any], X: Any, *args: Any, **kwargs: Any) -> Any:
        """Fit by ours, or else by theirs."""
        model, why = None, ""
        try:
            require(not get_config()["array_api_dispatch"], "arrays are dispatched to their own libraries")
            require(not hasattr(self, "_skl_callbacks"), "callbacks are told of scikit-learn's iterations")
            with silenced(RankWarning):  # of which scikit-learn does not warn
                model = self._learn(X, *args, **kwargs)
        except Exception as error:
            why = _reason(error)
        self._forget()
        if model is None:  # outside of the handler, so that its errors do not speak of ours
            _say(self, theirs.__name__, f"scikit-learn: {why}")
            return theirs(self, X, *args, **kwargs)
        self._set_fitted(model)
        self._ours = model
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        _say(self, theirs.__name__, "sixfold")
        return self

    def _forget(self) -> None:
        """Forget the last fit, but for what a warm start reads."""
        for name in ("_ours", "feature_names_in_"):
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._extras and self._ours is not None:
            return getattr(self._ours, name)
        return super().__getattribute__(name)  # raises what was raised before, in the same words


def _fitting(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def fit(self: DropIn, X: Any, *args: Any, **kwargs: Any) -> Any:
        return self._fit_by(theirs, X, *args, **kwargs)

    return fit


def _answering(name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def answer(self: DropIn, *args: Any, **kwargs: Any) -> Any:
        if self._is_ours():
            try:
                found = self._answer(name, *args, **kwargs)
            except Exception as error:
                _say(self, name, f"scikit-learn: {_reason(error)}")
            else:
                _say(self, name, "sixfold")
                return found
        return theirs(self, *args, **kwargs)

    return answer


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, HandedBack) else f"{type(error).__name__}, {text}"


def _say(model: Any, method: str, what: str) -> None:
    if os.environ.get(VERBOSE, "0") not in ("", "0"):
        print(f"sixfold.patch: {type(model).__name__}.{method}: {what}", file=sys.stderr, flush=True)


def require(offered: bool, reason: str) -> None:
    """Hand back to scikit-learn, for this reason, what is not offered."""
    if not offered:
        raise HandedBack(reason)


@contextmanager
def as_theirs(model: DropIn) -> Iterator[None]:
    """Have scikit-learn's own methods answer inside."""
    kept = model.__dict__.pop("_ours", None)
    try:
        yield
    finally:
        if kept is not None:
            model._ours = kept
