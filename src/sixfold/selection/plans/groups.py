"""From candidates to plans: settings that share work are put together, the others are looped over.

Candidates that differ only in parameters their plan knows form a group with one plan; the other parameters
are set on the model of the group. A learner without a plan, or whose plan has an objection, is fitted anew
for every setting (:class:`SeparateFits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from sixfold.explain.last_step import last_step
from sixfold.geometry.distances import Learned
from sixfold.selection.plans.base import Fitted, Fold, Plan, Setting, Table, noted
from sixfold.selection.plans.registry import plan_of


class Group(NamedTuple):
    """Candidates that agree in some parameters.

    Attributes
    ----------
    members : list of int
        Their numbers.
    common : dict
        What they agree in.
    own : list of dict
        The other parameters of each.
    """

    members: list[int]
    common: dict[str, Any]
    own: list[dict[str, Any]]


def grouped(settings: Sequence[Setting], differs: Callable[[str], bool]) -> list[Group]:
    """Return groups of settings that agree in every parameter but those that may differ.

    >>> [group.members for group in grouped([{"k": 1, "p": 1}, {"k": 1, "p": 2}, {"k": 3, "p": 1}],
    ...                                     lambda name: name == "k")]
    [[0, 2], [1]]
    """
    groups: dict[Any, Group] = {}
    for number, setting in enumerate(settings):
        common = {name: value for name, value in setting.items() if not differs(name)}
        key = tuple((name, type(value), _key(value)) for name, value in sorted(common.items()))
        group = groups.setdefault(key, Group([], common, []))
        group.members.append(number)
        group.own.append({name: value for name, value in setting.items() if differs(name)})
    return list(groups.values())


def _key(value: Any) -> Any:
    """Return what tells a value from others: itself, or its place in memory where it cannot be hashed."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def make_plans(model: Any, settings: Sequence[Setting], table: Table) -> Iterator[tuple[list[int], Plan]]:
    """Yield the numbers of the candidates of each group, and their plan."""
    kind = plan_of(model) or SeparateFits
    for group in grouped(settings, lambda name: kind.knows(model, name)):
        base = with_setting(model, group.common)
        plan = SeparateFits if kind.objection(base) else kind
        for numbers, part in plan(base, group.own, table).parts():
            yield [group.members[number] for number in numbers], part


def with_setting(model: Any, setting: Setting) -> Any:
    """Return an unfitted copy of the model with these parameters, which are copied where they are models."""
    copy = clone(model)
    return copy.set_params(**{name: clone(value, safe=False) for name, value in setting.items()})


def weight_parameter(model: Any) -> str:
    """Return under which name ``fit`` takes the weights of the rows.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sixfold import SVC
    >>> weight_parameter(make_pipeline("passthrough", SVC()))
    'svc__sample_weight'
    """
    return f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"


def fit_one(model: Any, setting: Setting, fold: Fold) -> Any:
    """Return a separate fit of one setting."""
    weights = {} if fold.sample_weight is None else {weight_parameter(model): fold.sample_weight}
    return with_setting(model, setting).fit(fold.X_train, fold.y_train, **weights)


@contextmanager
def limited_time(model: Any, seconds: float | None) -> Iterator[None]:
    """Let a learner, or the last step of a pipeline, take no more time inside, if it knows such a limit."""
    learner = last_step(model)
    if seconds is None or "time_limit" not in learner.get_params(deep=False):
        yield
        return
    own = learner.time_limit
    learner.set_params(time_limit=seconds if own is None else min(own, seconds))
    try:
        yield
    finally:
        learner.set_params(time_limit=own)


def gap_of(model: Any) -> float:
    """Return the relative gap that the certificate of a fitted model states; NaN where there is none."""
    learner = last_step(model)
    certificate = getattr(learner, "certificate_", None)
    # Neighbours are found exactly; how good the distance is, nobody claims.
    learnt = isinstance(getattr(learner, "metric", None), Learned)
    return float("nan") if certificate is None or learnt else float(certificate.relative_gap)


class SeparateFits(Plan):
    """Fit every setting anew."""

    parameters = ()

    @classmethod
    def knows(cls, model: Any, parameter: str) -> bool:
        """Return True: nothing is shared, so nothing has to agree."""
        return True

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield the fit of one setting after the other, and then raise what the first that fails does."""
        errors: list[Exception] = []
        for number, setting in enumerate(self.settings):
            with noted(errors):
                model = fit_one(self.model, setting, fold)
                yield Fitted(number, model, gap_of(model))
        if errors:
            raise errors[0]


def simpler_parameters(model: Any) -> dict[str, int]:
    """Return what makes this model simpler: parameter to +1 where larger values do, -1 where smaller ones."""
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return {f"{name}__{own}": sign for own, sign in simpler_parameters(last).items()}
    plan = plan_of(model)
    return {} if plan is None else dict(plan.simpler)
