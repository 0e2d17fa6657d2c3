"""What a plan is: all settings of some parameters, evaluated on one fold with work done once.

    search    group the candidates by the parameters that the plan does not know (they are looped over);
              for each group    plan = Plan(model, settings, table)
                                for each fold    plan.fit(fold) yields a fitted model for every setting

A fitted model is a learner as ``fit`` leaves it, or an :class:`Answered`, which stands for one: it has the
answers for the held-out rows already and makes the learner only where something else is asked of it.
Whatever a plan yields predicts what a separate fit would predict. A plan that fails on a fold is not the end:
the settings it has not yielded are fitted one by one, and those that fail then are reported.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]
Setting = Mapping[str, Any]

# What scikit-learn, 1.6 and later, looks at to learn the kind of a model.
TAGS = ("__sklearn_tags__", "_estimator_type", "_more_tags", "_get_tags", "transform", "fit_transform")
RESPONSES = ("predict", "predict_proba", "predict_log_proba", "decision_function")


@dataclass(frozen=True)
class Fold:
    """One split into rows to learn from and rows that are held out.

    Attributes
    ----------
    number : int
        Which of the splits it is.
    train, test : ndarray of int
        The numbers of the rows, in the table of the whole search.
    X_train, y_train, X_test, y_test
        The rows themselves and their targets. X_train may be a :class:`Later`, and is taken when it is asked
        for: copying it takes longer than some plans, which never do.
    sample_weight : ndarray or None
        Of the rows to learn from.
    """

    number: int
    train: Array
    test: Array
    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    sample_weight: Array | None = None

    def __post_init__(self) -> None:
        if isinstance(self.X_train, Later):
            self.__dict__["_take"] = self.__dict__.pop("X_train")

    def __getattr__(self, name: str) -> Any:
        # Only what is not found otherwise comes here. Of two threads that ask at once, both get the first.
        if name == "X_train" and "_take" in self.__dict__:
            return self.__dict__.setdefault(name, self.__dict__["_take"].take())
        raise AttributeError(name)


@dataclass(frozen=True)
class Later:
    """A table that is taken when it is asked for."""

    take: Callable[[], Any]


@dataclass(frozen=True)
class Table:
    """All rows of a search, for plans that share work between folds.

    Attributes
    ----------
    X, y
        As they were given; for the last step of a pipeline X is None, since each fold has its own.
    sample_weight : ndarray or None
    splits : sequence of (train, test)
        The numbers of the rows of every fold.
    """

    X: Any
    y: Any
    sample_weight: Array | None
    splits: Sequence[tuple[Array, Array]]


class Fitted(NamedTuple):
    """What a plan found for one setting on one fold.

    Attributes
    ----------
    setting : int
        Which of the plan's settings it is.
    model : learner or Answered
    gap : float
        The relative gap of the model's certificate; NaN where it makes no such claim.
    solved : int
        How many problems were solved for it; 0 where it came with another.
    separate : str or None
        Why it was fitted by itself although there is a plan; None where the plan has found it.
    """

    setting: int
    model: Any
    gap: float = math.nan
    solved: int = 1
    separate: str | None = None


@contextmanager
def noted(errors: list[Exception]) -> Iterator[None]:
    """Keep an error for later, so that a plan goes on with the settings that have nothing to do with it."""
    try:
        yield
    except Exception as error:
        errors.append(error)


class Plan(ABC):
    """One way to evaluate many settings of a learner on a fold.

    Attributes
    ----------
    parameters : tuple of str
        Those whose settings share work.
    simpler : mapping of str to int
        What makes a model of this learner simpler, the most important parameter first: +1 where larger
        values do, -1 where smaller ones do. None counts as infinite.
    """

    parameters: ClassVar[tuple[str, ...]]
    simpler: ClassVar[Mapping[str, int]] = {}

    def __init__(self, model: Any, settings: Sequence[Setting], table: Table) -> None:
        self.model = model  # unfitted, with all parameters but those of the settings
        self.settings = settings
        self.table = table

    @classmethod
    def knows(cls, model: Any, parameter: str) -> bool:
        """Return whether settings of this parameter share work."""
        return parameter in cls.parameters

    @classmethod
    def objection(cls, model: Any) -> str | None:
        """Return why these candidates have to be fitted one by one, or None."""
        return None

    def parts(self) -> list[tuple[list[int], Plan]]:
        """Return plans of some settings each, which share nothing that matters, with the settings' numbers.

        They may run at the same time, so that a fold with much to do does not keep one thread busy alone.
        """
        return [(list(range(len(self.settings))), self)]

    @abstractmethod
    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield the fitted model of every setting, in any order."""


@dataclass
class Answered:
    """A fitted model that has been asked already: it answers for some tables from memory.

    Attributes
    ----------
    make : callable
        Returns the fitted learner; called once, where something else is asked.
    X : table
        The one it has answers for, told by identity.
    answers : mapping
        Name of a response, such as "predict", to the answers or to a function that returns them.
    known : mapping
        Fitted attributes that are known without the learner, such as ``classes_``.
    also : sequence of (table, answers)
        Other tables that it has answers for, such as the rows it has learnt from.
    unfitted : learner, optional
        The same without a fit, which tells tags and what can be asked: scorers want to know both.
    solves : int
        How many problems ``make`` solves anew.
    part : Answered or learner, optional
        The last step of a pipeline, which is the one that solves problems.
    """

    make: Callable[[], Any]
    X: Any
    answers: dict[str, Any]
    known: Mapping[str, Any] = field(default_factory=dict)
    also: Sequence[tuple[Any, dict[str, Any]]] = ()
    unfitted: Any = None
    solves: int = 0
    part: Any = None
    _model: Any = None

    @property
    def solved(self) -> int:
        """How many problems were solved because the learner was asked for."""
        if isinstance(self.part, Answered):
            return self.part.solved
        return 0 if self._model is None else self.solves

    @property
    def model(self) -> Any:
        """The fitted learner."""
        if self._model is None:
            self._model = self.make()
        return self._model

    def __getattr__(self, name: str) -> Any:
        # Only what is not found otherwise comes here.
        if name.startswith("__") and name != "__sklearn_tags__":
            raise AttributeError(name)
        if name in self.known:
            return self.known[name]
        if name not in self.answers:
            if self.unfitted is not None and name in (*TAGS, *RESPONSES):
                of_unfitted = getattr(self.unfitted, name)  # raises where there is no such method
                if name not in RESPONSES:
                    return of_unfitted
            return getattr(self.model, name)

        def respond(X: Any) -> Any:
            for table, answers in ((self.X, self.answers), *self.also):
                if X is table and name in answers:
                    if callable(answers[name]):
                        answers[name] = answers[name]()
                    return answers[name]
            return getattr(self.model, name)(X)

        respond.__name__ = name  # by which scorers know what they ask
        return respond
