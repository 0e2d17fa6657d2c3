"""Which of the tuned learners is taken, and why, in one sentence.

    best    the highest mean score on the folds
    1se     the simplest learner whose mean score is at most one standard error below the best

The standard error is that of the best learner's mean: the standard deviation of its scores on the K folds,
divided by sqrt(K). Learners are ordered by how easily a person can follow them: the baseline ignores the
columns; a sparse linear model is a sum over few of them (so l1 comes before l2), the others a sum over all; a
linear SVM gives no probabilities; a tree is a list of questions, but often long; which plane a perceptron
finds depends on the order of the rows; neighbours and kernels keep rows instead of a formula. A fit that did
not reach its optimum is taken only where none that did is near the best.

Source: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, section 3.4.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sixfold.errors import InputError, check_option
from sixfold.selection.contenders import GOWER
from sixfold.selection.leaderboard import BASELINE, Comparison, Entry, score_text
from sixfold.selection.refit import converged
from sixfold.selection.rules import RULES

ROUNDING = 1e-12  # of mean scores that are the same
SIMPLEST_FIRST = (
    BASELINE,
    "lasso",
    "logistic regression (l1)",
    "ridge regression",
    "logistic regression",
    "absolute loss",
    "linear SVM",
    "tree",
    "perceptron",
    "nearest neighbours",
    GOWER,
    "SVM (rbf)",
)


@dataclass(frozen=True)
class Choice:
    """A learner and why it was taken.

    Attributes
    ----------
    entry : Entry
    reason : str
        One sentence, without its full stop.
    """

    entry: Entry
    reason: str


def choose(comparison: Comparison, rule: str) -> Choice:
    """Return the learner that a rule takes.

    Parameters
    ----------
    comparison : Comparison
    rule : {"best", "1se"}
    """
    check_option("rule", rule, RULES)
    scored = [one for one in comparison.entries if not one.left_out and not math.isnan(one.mean)]
    able = [one for one in scored if one.name != BASELINE]
    if not able:
        raise InputError(_nothing_to_choose(comparison))
    complete = [one for one in scored if one.scores.size == comparison.folds]
    if not any(one.name != BASELINE for one in complete):
        return _partial(comparison, able)
    best = max(complete, key=lambda one: one.mean)
    choice = (_best if rule == "best" else _simplest)(comparison, complete, best)
    if len(able) == 1 and choice.entry.name != BASELINE:
        only = f"{choice.entry.name} is the only learner that was finished, {_at(choice.entry, comparison)}"
        return Choice(choice.entry, only)
    return choice


def _nothing_to_choose(comparison: Comparison) -> str:
    out = [one for one in comparison.entries if one.left_out and one.name != BASELINE]
    if out:
        said = (
            "There is no learner to choose: none but the baseline, which ignores the columns, was finished."
        )
        return f"{said} {out[0].name}: {out[0].left_out.rstrip('.')}."
    rows = comparison.train_rows // max(1, comparison.folds)
    return (
        f"There is no learner to choose: their {comparison.metric} is not a number on some folds, which hold "
        f"out about {rows:,} of {comparison.train_rows:,} training rows each. Use fewer folds, or more rows."
    )


def _partial(comparison: Comparison, able: list[Entry]) -> Choice:
    most = max(one.scores.size for one in able)
    first = max((one for one in able if one.scores.size == most), key=lambda one: one.mean)
    return Choice(
        first,
        f"no learner finished all {comparison.folds} folds; of those with the most, {most}, {first.name} is "
        f"the best, {_at(first, comparison)}",
    )


def _best(comparison: Comparison, complete: list[Entry], best: Entry) -> Choice:
    if best.name == BASELINE:
        return Choice(best, f"no learner does better than {_ignoring(best)}: {_NO_HELP}")
    others = [one for one in complete if one is not best]
    second = max(others, key=lambda one: one.mean, default=None)
    ahead = "" if second is None else f"; the next is {second.name} at {score_text(second.mean)}"
    return Choice(best, f"{best.name} has the best mean score, {_at(best, comparison)}{ahead}")


def _simplest(comparison: Comparison, complete: list[Entry], best: Entry) -> Choice:
    folds = best.scores.size
    error = float(best.scores.std(ddof=1)) / math.sqrt(folds) if folds > 1 else 0.0
    near = sorted((one for one in complete if one.mean >= best.mean - error), key=_order)
    taken, within = near[0], f"within one standard error ({_error_text(error)}) of the best"
    if taken.name == BASELINE:
        whom = "" if taken is best else f", {within}, {best.name} at {score_text(best.mean)}"
        return Choice(taken, f"no learner does clearly better than {_ignoring(taken)}{whom}: {_NO_HELP}")
    skipped = [one.name for one in near[1:] if _order(one)[1] < _order(taken)[1]]
    aside = f"; {' and '.join(skipped)} did not reach the optimum of the fit" * bool(skipped)
    if taken.mean < best.mean - ROUNDING:
        so = f"scores {score_text(taken.mean)}, {within}, {best.name} at {score_text(best.mean)}, and is"
        which = "the simpler of the two" if len(near) == 2 else f"the simplest of the {len(near)} that are"
        return Choice(taken, f"{taken.name} {so} {which}{aside}")
    so = f"has the best mean score, {_at(taken, comparison)}"
    others = f"is the simplest of the {len(near)}" if len(near) > 1 else "no other is"
    return Choice(
        taken,
        f"{taken.name} {so}, and {others} within one standard error ({_error_text(error)}) of it{aside}",
    )


def _order(one: Entry) -> tuple[bool, int, float]:
    """Return what is smaller for a learner that is rather taken."""
    known = SIMPLEST_FIRST.index(one.name) if one.name in SIMPLEST_FIRST else len(SIMPLEST_FIRST)
    return not converged(one.model), known, -one.mean


_NO_HELP = "the columns do not help to predict the target"


def _ignoring(one: Entry) -> str:
    return f"the baseline, which ignores the columns and scores {score_text(one.mean)}"


def _at(one: Entry, comparison: Comparison) -> str:
    folds = one.scores.size
    return f"{score_text(one.mean)} ({comparison.metric} on {folds} fold{'s' * (folds != 1)})"


def _error_text(error: float) -> str:
    return f"{error:.2g}" if error < 0.001 else score_text(error)
