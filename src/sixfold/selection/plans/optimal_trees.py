"""Optimal trees: the trees of all leaf penalties of a fold from a few searches.

With fit(T) the errors or the entropy of a tree T, the least cost as a function of the penalty

    c(p) = min over T of  fit(T) + p leaves(T)

is a minimum of lines: concave, with the number of leaves as its slope. If the best trees at a < b have
equally many leaves, each costs no more than the other at its own end, so both cost the same; then c is at
least the straight line between its ends, which is what these trees cost, and they are the best at every
penalty between. Trees with other numbers of leaves cost more there, as their lines would be below c on one
side. So the penalties are sorted, both ends are searched, and the middle one as long as the ends differ:

    a ............ b      equally many leaves: all between are known
    a ..... m .... b      else search at m, and go on with both halves

Where several trees of equally many leaves cost the same, a fit of its own may end with another one of them.

What was searched is a fit. What lies between answers with the tree of the lower end; where more is asked of
it than predictions and its nodes, such as a certificate, which rests on a search of its own, it is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from sixfold.learners.trees.decision_tree import DecisionTreeClassifier
from sixfold.selection.plans.base import Answered, Fitted, Fold, Plan, Setting, Table
from sixfold.selection.plans.groups import fit_one, gap_of

RESPONSES = ("predict", "predict_proba", "predict_log_proba")


class PenaltyPlan(Plan):
    """Search for the trees of some penalties, such that those of all others are known.

    Parameters
    ----------
    model : DecisionTreeClassifier
        With ``search="optimal"``, unfitted.
    settings : sequence of mapping
        They differ in ``leaf_penalty`` alone.
    table : Table
    penalties : sequence of float or None
        That of each setting; None where a setting makes no sense, which a fit of its own says.
    """

    parameters: ClassVar = ("leaf_penalty",)

    def __init__(
        self, model: Any, settings: Sequence[Setting], table: Table, penalties: Sequence[float | None]
    ) -> None:
        super().__init__(model, settings, table)
        sorted_ = sorted((p, number) for number, p in enumerate(penalties) if p is not None)
        self._order = [number for _, number in sorted_]

    def fit(self, fold: Fold) -> Iterator[Fitted]:
        """Yield a model for every setting that makes sense."""
        if not self._order:
            return
        last = len(self._order) - 1
        low = self._searched(0, fold)
        yield low
        if last == 0:
            return
        high = self._searched(last, fold)
        yield high
        yield from self._between(0, low.model, last, high.model, fold)

    def _searched(self, place: int, fold: Fold) -> Fitted:
        """Return the fit of the setting at a place in the order of the penalties."""
        number = self._order[place]
        model = fit_one(self.model, self.settings[number], fold)
        return Fitted(number, model, gap_of(model))

    def _between(
        self, first: int, low: DecisionTreeClassifier, last: int, high: DecisionTreeClassifier, fold: Fold
    ) -> Iterator[Fitted]:
        """Yield what lies between two places whose models are known."""
        if last - first < 2:
            return
        if _is_whole(low) and _is_whole(high) and low.get_n_leaves() == high.get_n_leaves():
            yield from self._known(self._order[first + 1 : last], low, fold)
            return
        middle = (first + last) // 2
        found = self._searched(middle, fold)
        yield found
        yield from self._between(first, low, middle, found.model, fold)
        yield from self._between(middle, found.model, last, high, fold)

    def _known(self, numbers: list[int], model: DecisionTreeClassifier, fold: Fold) -> Iterator[Fitted]:
        """Yield models of these settings, all with the tree of this one."""
        # The same answers for all, which are worked out when the first is asked.
        of_test, of_train = (
            {name: partial(getattr(model, name), X) for name in RESPONSES}
            for X in (fold.X_test, fold.X_train)
        )
        known = {"classes_": model.classes_, "n_features_in_": model.n_features_in_}
        for number in numbers:
            setting = self.settings[number]
            limits = model.tree_.limits | {"leaf_penalty": setting["leaf_penalty"]}
            answered = Answered(
                partial(fit_one, self.model, setting, fold),
                fold.X_test,
                of_test,
                known | {"tree_": replace(model.tree_, limits=limits)},
                [(fold.X_train, of_train)],
                self.model,
                solves=1,
            )
            yield Fitted(number, answered, gap=0.0, solved=0)


def _is_whole(model: DecisionTreeClassifier) -> bool:
    """Return whether the tree is the best one for certain, and was not cut once it was found."""
    return model.ccp_alpha_ == 0.0 and model.certificate_.gap == 0.0
