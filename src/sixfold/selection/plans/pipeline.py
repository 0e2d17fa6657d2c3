"""Pipelines: the transformers run once a fold and once for each setting of theirs.

The last step has its own plan, which sees transformed rows. What comes out is a pipeline again, fitted, whose
answers for the held-out rows are those of its last step. Transformers that fail, and plans of the last step,
are no end for the others.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.pipeline import Pipeline

from sixfold.selection.plans.base import RESPONSES, Answered, Fitted, Fold, Plan, Table, noted
from sixfold.selection.plans.groups import Group, grouped, make_plans, with_setting


class PipelinePlan(Plan):
    """All settings of a pipeline whose last step is one of our learners."""

    parameters = ()

    @classmethod
    def knows(cls, model: Any, parameter: str) -> bool:
        """Return True: settings are sorted out fold by fold."""
        return True

    @classmethod
    def objection(cls, model: Any) -> str | None:
        """Return why the pipeline has to be fitted as a whole, or None."""
        if getattr(model, "transform_input", None) is not None:
            return "what it transforms besides X is known to the pipeline alone"
        return None

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield the fitted pipeline of every setting, and then raise the first error that some met with."""
        last, errors = self.model.steps[-1][0] + "__", list[Exception]()
        for group in grouped(self.settings, lambda name: name.startswith(last)):
            with noted(errors):
                yield from self._fit_group(group, last, fold, errors)
        if errors:
            raise errors[0]

    def _fit_group(self, group: Group, last: str, fold: Fold, errors: list[Exception]) -> Iterator[Fitted]:
        """Yield the pipelines with the same transformers."""
        pipeline = with_setting(self.model, group.common)
        first, learner = pipeline.steps[:-1], pipeline.steps[-1][1]
        inner = fold
        if first:
            before = Pipeline(first)
            X_train = before.fit_transform(fold.X_train, fold.y_train)
            inner = replace(fold, X_train=X_train, X_test=before.transform(fold.X_test))
        settings = [{name.removeprefix(last): value for name, value in own.items()} for own in group.own]
        for members, plan in make_plans(learner, settings, Table(None, None, None, ())):
            with noted(errors):
                for fitted in plan.fit(inner):
                    number = group.members[members[fitted.setting]]
                    model = self._answered(pipeline, fitted.model, fold, inner)
                    yield fitted._replace(setting=number, model=model)

    def _answered(self, pipeline: Pipeline, model: Any, fold: Fold, inner: Fold) -> Answered:
        """Return the pipeline with the fitted last step, asked about rows that are transformed already."""

        def make() -> Pipeline:
            last = model.model if isinstance(model, Answered) else model
            return Pipeline([*pipeline.steps[:-1], (pipeline.steps[-1][0], last)])

        def respond(name: str) -> Any:
            return getattr(model, name)(inner.X_test)

        unfitted = pipeline.steps[-1][1]
        answers = {name: partial(respond, name) for name in RESPONSES if hasattr(unfitted, name)}
        known: dict[str, Any] = {}
        if is_classifier(unfitted):  # to ask a regressor would make it be fitted
            known["classes_"] = model.classes_
        answered = Answered(make, fold.X_test, answers, known, unfitted=pipeline, part=model)
        own = inspect.unwrap(getattr(type(unfitted), "score", type(None)))  # ours take scans as well
        if own in (ClassifierMixin.score, RegressorMixin.score):  # which asks for predictions only
            # A circle would keep the rows until the next collection of garbage.
            known["score"] = partial(own, weakref.proxy(answered))
        return answered
