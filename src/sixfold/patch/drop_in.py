"""scikit-learn's estimators with our fits inside: what all of them share.

A drop-in is a subclass of scikit-learn's class, whose constructor, parameters, tags and private methods it
keeps, so that ``isinstance`` holds and tools find what they look for. These methods are replaced:

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
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

from sklearn import get_config

from sixfold.errors import RankWarning, StoppedEarly, silenced

VERBOSE = "SIXFOLD_VERBOSE"


class HandedBack(Exception):  # noqa: N818 - no error: scikit-learn goes on
    """What scikit-learn's own method has to do, and why."""


class DropInType(ABCMeta):
    """The type of drop-ins: a model of scikit-learn's class is one of ours to ``isinstance``.

    scikit-learn's own modules make theirs (the trees of a forest, say), and users compare those with the name
    that they have imported.
    """

    def __instancecheck__(cls, model: Any) -> bool:
        return issubclass(type(model), cls)

    def __subclasscheck__(cls, other: type) -> bool:
        # Of a drop-in itself: what users derive from it is their own.
        return (cls.__dict__.get("_theirs") or cls) in other.__mro__


class DropIn(metaclass=DropInType):
    """The part of a drop-in that stands before scikit-learn's class.

    Subclasses that users write are left as they are.

    Attributes
    ----------
    _fits : tuple of str
        Methods that learn, by ``_learn``.
    _answers : tuple of str
        Methods that our fitted learner has too, with the same meaning.
    _extras : tuple of str
        What a model has besides where ours has learnt it.
    """

    _fits: tuple[str, ...] = ("fit",)
    _answers: tuple[str, ...] = ("predict",)
    _extras: tuple[str, ...] = ("certificate_", "explain", "history_", "plot", "solver_", "summary")
    _theirs: type  # scikit-learn's class, of a drop-in itself
    _overridden: bool = False
    _ours: Any = None  # our fitted learner; None where scikit-learn has learnt

    def __init_subclass__(cls, **kwargs: Any) -> None:
        theirs = cls.__bases__[-1]
        if cls.__module__.startswith(__package__) and not issubclass(theirs, DropIn):
            cls._theirs = theirs
            for name in cls._fits:
                if name not in vars(cls):
                    setattr(cls, name, _fitting(getattr(theirs, name)))
            for name in cls._answers:
                if name not in vars(cls):
                    setattr(cls, name, _answering(name, getattr(theirs, name)))
        else:  # scikit-learn's methods call each other, and so find what a user's subclass has in their place
            cls._overridden = any(name in vars(cls) for name in cls._answers) or cls._overridden
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
        before, why = self.__dict__.copy(), ""
        try:
            require(not get_config()["array_api_dispatch"], "arrays are dispatched to their own libraries")
            require(not hasattr(self, "_skl_callbacks"), "callbacks are told of scikit-learn's iterations")
            _check_parameters(self)
            with silenced(RankWarning, StoppedEarly):  # of which scikit-learn does not warn, or in its words
                model = self._learn(X, *args, **kwargs)
            self._forget()
            self._set_fitted(model)
        except Exception as error:
            why = _reason(error)
        if why:  # outside of the handler, so that scikit-learn's errors do not speak of ours
            _say(self, theirs.__name__, f"scikit-learn: {why}")
            return self._fit_theirs(before, theirs, X, *args, **kwargs)
        self._ours = model
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        _say(self, theirs.__name__, "sixfold")
        return self

    def _fit_theirs(
        self, before: dict[str, Any], theirs: Callable[..., Any], X: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Fit by theirs; a fit that fails leaves the model that was there."""
        self.__dict__.clear()
        self.__dict__.update(before)
        self._forget()
        try:
            return theirs(self, X, *args, **kwargs)
        except BaseException:
            for name, value in before.items():
                self.__dict__.setdefault(name, value)
            raise

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
        if not self._overridden and self._is_ours():
            try:
                found = self._answer(name, *args, **kwargs)
            except Exception as error:
                _say(self, name, f"scikit-learn: {_reason(error)}")
            else:
                _say(self, name, "sixfold")
                return found
        return theirs(self, *args, **kwargs)

    return answer


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


PLAIN = (str, int, float, bool, type(None))
_valid: set[Any] = set()  # plain parameters that scikit-learn has found to be right


def _check_parameters(model: Any) -> None:
    """Raise what scikit-learn does for wrong parameters; its check takes as long as some predictions."""
    if get_config()["skip_parameter_validation"]:
        return
    values = [getattr(model, name) for name in _parameter_names(model.__class__)]
    key = (
        (type(model), *map(type, values), *values) if all(isinstance(one, PLAIN) for one in values) else None
    )
    if key is None or key not in _valid:
        model._validate_params()
        if key is not None:
            _valid.add(key)


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
