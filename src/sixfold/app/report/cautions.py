"""What to be careful about, each in a sentence or two that name the columns and give the figures.

Those that can make the score worthless (leaks, copies, work that was cut short, a better model that exists)
are serious; the others are to be kept in mind. docs/report.md has the rule of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sixfold.app.fitting import FitResult
from sixfold.app.report.column_checks import strength
from sixfold.app.report.examination import Examination, examine
from sixfold.app.report.grid_edges import grid_edges
from sixfold.app.report.row_checks import Drift
from sixfold.app.report.words import Metric, listed, number_text, percent, score_text, shortened
from sixfold.app.report.yardstick import NAME as YARDSTICK
from sixfold.explain.last_step import last_step
from sixfold.plain_words import counted
from sixfold.selection.leaderboard import BASELINE, Entry
from sixfold.selection.trial import INTERRUPTED

NEARLY_PERFECT = 0.98  # strength of a column that gives the answer away
STRONG, NEARLY_ALL = 0.85, 0.97  # strength of a column, and its share of the strength of the whole model
FEW_TRAINING, FEW_TEST = 10, 5  # rows of a class
FEW_TEST_ROWS = 50
WIDE = 0.1  # of an interval, where fewer test rows are called few
MOST_SEPARATING = 5  # columns that are named
IMBALANCE = 0.8  # share of the largest class
MUCH_MISSING = 0.2  # share of a column
LEAST_COPIES, MANY_COPIES = 2, 0.02  # test rows, and their share
MANY_VALUES, MANY_VALUES_ROWS = 50, 5_000  # of numbers in the first rows: copies of such are no chance
UNSOLVABLE = 0.02  # share of rows that no model can get right


@dataclass(frozen=True)
class Caution:
    """Something to be careful about.

    Attributes
    ----------
    kind : str
        What it is about, in a word or two.
    sentence : str
        What was found, with figures, and what to do.
    columns : tuple of str
        That it speaks of.
    serious : bool
        Whether the score may not be what it seems.
    """

    kind: str
    sentence: str
    columns: tuple[str, ...] = ()
    serious: bool = False


def find_cautions(result: FitResult, found: Examination | None = None) -> list[Caution]:
    """Return what to be careful about, the serious first."""
    found = examine(result) if found is None else found
    cautions = [caution for check in CHECKS for caution in check(result, found)]
    return sorted(cautions, key=lambda caution: not caution.serious)


# -- the score itself ----------------------------------------------------------------------------------------


def _leakage(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Name columns that alone are almost perfect, or almost as good as the whole model."""
    if found.baseline is None or not math.isfinite(found.baseline.mean):
        return
    base, metric = found.baseline.mean, Metric(result.scoring, result.metric)
    whole = strength(result.chosen.mean, base, found.perfect)
    several = len(found.alone) > 1
    suspects: dict[str, list[tuple[str, float]]] = {"perfect": [], "all": []}
    for name, score in sorted(found.alone.items(), key=lambda pair: -pair[1]):
        own = strength(score, base, found.perfect)
        if own >= NEARLY_PERFECT:
            suspects["perfect"].append((name, score))
        elif several and own >= STRONG and own >= NEARLY_ALL * whole:
            suspects["all"].append((name, score))
    for which, pairs in suspects.items():
        if not pairs:
            continue
        names = tuple(name for name, _ in pairs)
        each = "each " if len(pairs) > 1 else ""
        how = (
            "almost perfect" if which == "perfect" else f"the whole model {metric.shown(result.chosen.mean)}"
        )
        yield Caution(
            "leakage suspect",
            f"{listed(names)} alone {each}{'have' if each else 'has'} {metric.words} "
            f"{metric.shown(pairs[0][1])} in cross-validation, {how}. If that is only known once the answer "
            "is, or was made from it, leave it out.",
            names,
            serious=which == "perfect",
        )


def _yardstick(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Say where gradient boosting scores better on the test rows, by more than the spread over the folds."""
    score, own = found.yardstick.score, found.score
    if score is None or not math.isfinite(own):
        return
    spread = result.chosen.std if math.isfinite(result.chosen.std) else 0.0
    if score - own <= spread:
        return
    metric = Metric(result.scoring, result.metric)
    yield Caution(
        "a better model exists",
        f"{YARDSTICK[0].upper()}{YARDSTICK[1:]} scores {metric.shown(score)} on the same test rows, the "
        f"chosen model {metric.shown(own)}: the learners here leave {metric.words} of "
        f"{score_text(score - own)} on the table, more than the spread over the folds "
        f"({score_text(spread)}). Where the answer matters more than the reason, use it.",
        serious=result.test.size >= FEW_TEST_ROWS,
    )


def _copies(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Say how many test rows have a copy among the training rows, and how many rows contradict another."""
    copies, metric = found.copies, Metric(result.scoring, result.metric)
    same = int(copies.test_rows.sum())
    if same >= LEAST_COPIES and same >= MANY_COPIES * copies.test_rows.size:
        others = copies.test_rows.size - same
        expected = not _has_many_values(found)  # a few categories have a few combinations
        without = (
            f"On the other {counted(others, 'row')} the score is {metric.shown(found.without_copies)}."
            if found.without_copies is not None
            else "Too few others are left to score the model on them alone."
        )
        yield Caution(
            "copies",
            f"{same:,} of {counted(copies.test_rows.size, 'test row')} {'has' if same == 1 else 'have'} a "
            f"training row that is the same in every column{', as happens with few values' * expected}: the "
            f"model may have seen the answer. {without}",
            serious=not expected and same >= 0.2 * copies.test_rows.size,
        )
    if copies.best_accuracy is not None and copies.best_accuracy <= 1.0 - UNSOLVABLE:
        yield Caution(
            "contradictions",
            f"{counted(copies.contradicting, 'row')} have a twin that is the same in every column and has "
            f"another target: no model can be right about more than {percent(copies.best_accuracy)} of the "
            "rows. Only more columns can help.",
        )


def _has_many_values(found: Examination) -> bool:
    numbers = found.codes.values[:MANY_VALUES_ROWS, ~found.codes.is_category]
    return any(np.unique(column[~np.isnan(column)]).size > MANY_VALUES for column in numbers.T)


def _stopped(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Say what Ctrl-C or the time limit has cut short."""
    comparison = result.comparison
    late = [one.name for one in comparison.entries if _out_of_time(one)]
    if result.stopped:
        before = f" before {listed(late)} {'were' if len(late) > 1 else 'was'} finished" if late else ""
        yield Caution(
            "stopped early",
            f"The work was stopped by {result.stopped}{before}: the choice is among the learners that were "
            "finished.",
            serious=True,
        )
    short = [
        one.name
        for one in comparison.entries
        if not one.left_out and one.name != BASELINE and one.scores.size < comparison.folds
    ]
    if short:
        yield Caution(
            "unfinished",
            f"Time was up before {listed(short)} had been tried on all {comparison.folds} folds: the scores "
            "are those of fewer. Allow more time for a fair comparison.",
            serious=result.chosen.name in short,
        )
    if late and not result.stopped:
        yield Caution("not tried", f"There was no time for {listed(late)}. Allow more time to compare all.")


def _out_of_time(one: Entry) -> bool:
    return "time" in one.left_out or one.left_out in ("not tried", INTERRUPTED)


def _certificate(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Say where the fit is not proven optimal."""
    certificate = getattr(last_step(result.chosen.model), "certificate_", None)
    if certificate is None and result.chosen.name != BASELINE:
        yield Caution(
            "no certificate", f"The fit of {result.chosen.name} proves nothing about how good it is."
        )
    elif certificate is not None and not certificate.converged and result.chosen.name != "perceptron":
        yield Caution(
            "not proven optimal",
            f"The fit of {result.chosen.name} ended before it was proven to be the best ({certificate}). "
            "Allow more time or iterations.",
            serious=True,
        )


def _test_rows(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Say how little few test rows tell."""
    metric, rows = Metric(result.scoring, result.metric), result.test.size
    if rows == 0:
        yield Caution(
            "no test rows",
            "No rows were held out. The score is that of cross-validation, by which the model was chosen, "
            "and a little too good for that.",
            serious=True,
        )
        return
    only = Caution("few test rows", f"The test score is that of {counted(rows, 'row')} only.")
    if found.low is None or found.high is None:
        if rows < FEW_TEST_ROWS:
            yield only
        return
    low, high = sorted((metric.sign * found.low, metric.sign * found.high))
    wide = metric.sign < 0 or high - low > WIDE
    if wide and rows < (FEW_TEST_ROWS if metric.sign < 0 else 10 * FEW_TEST_ROWS):
        yield Caution(
            "few test rows",
            f"{counted(rows, 'test row')} {'say' if rows != 1 else 'says'} little: the {metric.words} of "
            f"{metric.shown(result.chosen.test)} may as well be anything from {score_text(low)} to "
            f"{score_text(high)} (95% interval).",
        )
    elif rows < FEW_TEST_ROWS:
        yield only


def _no_better(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Compare with the baseline on the test rows."""
    chosen, baseline, metric = result.chosen, found.baseline, Metric(result.scoring, result.metric)
    if baseline is None or chosen.name == BASELINE or not chosen.test <= baseline.test:
        return
    yield Caution(
        "no better than the baseline",
        f"On the test rows the model has {metric.words} {metric.shown(chosen.test)}, the baseline, which "
        f"ignores the columns, {metric.shown(baseline.test)}: that the columns help is not shown.",
        serious=True,
    )


def _test_against_folds(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Compare with what one more fold would score: mean ± t std sqrt(1 + 1 / folds), t that of 95%."""
    from scipy.stats import t as student

    chosen, metric = result.chosen, Metric(result.scoring, result.metric)
    if found.low is None or found.high is None or chosen.scores.size < 3:
        return
    quantile = float(student.ppf(0.975, chosen.scores.size - 1))
    likely = quantile * float(chosen.scores.std(ddof=1)) * math.sqrt(1.0 + 1.0 / chosen.scores.size)
    inside = found.low <= chosen.mean <= found.high
    if inside or _as_many_mistakes(result) or abs(chosen.test - chosen.mean) <= likely:
        return
    worse = chosen.test < chosen.mean
    yield Caution(
        "test and folds differ",
        f"The test rows say {metric.words} {metric.shown(chosen.test)}, cross-validation "
        f"{metric.shown(chosen.mean)} ± {score_text(chosen.std)}: {'worse' if worse else 'better'} than "
        f"chance explains. {'Trust the lower one' if worse else 'Do not count on the better one'}, and "
        "see whether the test rows differ from the others.",
        serious=worse,
    )


def _as_many_mistakes(result: FitResult) -> bool:
    """Whether mistakes in the test rows are as frequent as in the folds, by Fisher's exact test.

    Folds without a mistake have no spread, and one mistake in the test rows may still be chance.
    """
    from scipy.stats import fisher_exact

    if result.scoring != "accuracy":
        return False
    shares = ((result.chosen.test, result.test.size), (result.chosen.mean, result.train.size))
    counts = [(round(share * rows), rows - round(share * rows)) for share, rows in shares]
    return float(fisher_exact(counts).pvalue) >= 0.05


# -- rows ----------------------------------------------------------------------------------------------------


def _drift(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Name columns that differ between training and test rows, or between the ends of the table."""
    if found.drift:
        names, differ = _differing(found.drift)
        yield Caution(
            "drift between the parts",
            f"{differ} between training and test rows{_most(found.drift)}: the test score is that of other "
            "rows than the model has learnt from.",
            names,
        )
    if found.order_drift:
        names, differ = _differing(found.order_drift)
        rows = "rows of each class" if result.task == "classification" else "rows"
        yield Caution(
            "order of the rows",
            f"{differ} between the first and the last quarter of the {rows}{_most(found.order_drift)}. If "
            "the file is in the order of time, rows to come will differ too, and the score on rows drawn at "
            "random is too good.",
            names,
        )


def _differing(drift: list[Drift]) -> tuple[tuple[str, ...], str]:
    names = tuple(dict.fromkeys(one.column for one in drift))
    return names, f"{listed(names)} {'differ' if len(names) > 1 else 'differs'}"


def _most(drift: list[Drift]) -> str:
    where = " in what is missing" if drift[0].what == "missing" else ""
    name = f"'{shortened(drift[0].column)}', " if len(drift) > 1 else ""
    return f" ({'most: ' * bool(name)}{name}by {drift[0].size:.2f}{where} on a scale from 0 to 1)"


def _classes(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Name classes with few rows, and one that has nearly all."""
    if result.task != "classification":
        return
    labels, counts = np.unique(result.y[result.train], return_counts=True)
    few = [f"{label}" for label, count in zip(labels, counts, strict=True) if count < FEW_TRAINING]
    if few:
        yield Caution(
            "few rows of a class",
            f"{'Classes' if len(few) > 1 else 'Class'} {listed(few)} {'have' if len(few) > 1 else 'has'} "
            f"fewer than {FEW_TRAINING} training rows: what the model says about "
            f"{'them' if len(few) > 1 else 'it'} rests on next to nothing.",
        )
    tested = dict(zip(*np.unique(result.y[result.test], return_counts=True), strict=True))
    rare = [f"{label}" for label in labels if result.test.size and tested.get(label, 0) < FEW_TEST]
    rare = [label for label in rare if label not in few]
    if rare:
        yield Caution(
            "few rows of a class",
            f"The test part has fewer than {FEW_TEST} rows of {'classes' if len(rare) > 1 else 'class'} "
            f"{listed(rare)}: its score says little about {'them' if len(rare) > 1 else 'it'}.",
        )
    share = float(counts.max() / counts.sum())
    if share > IMBALANCE and counts.size > 1:
        label = shortened(labels[counts.argmax()])
        yield Caution(
            "imbalance",
            f"{percent(share)} of the rows have the class '{label}': always saying so has that accuracy "
            "without knowing anything. Judge the model by how many of the other rows it finds.",
        )


# -- columns -------------------------------------------------------------------------------------------------


def _separation(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Say where a plane separates classes without a mistake."""
    apart = found.separation
    if apart is None or not apart.classes:
        return
    which = (
        "the classes"
        if apart.every
        else f"{'classes' if len(apart.classes) > 1 else 'class'} {listed(apart.classes)} from the others"
    )
    most = apart.columns[:MOST_SEPARATING]
    by = f" ({listed(most)} {'count' if len(most) > 1 else 'counts'} most)" if most else ""
    yield Caution(
        "separation",
        f"A plane separates {which} in the training rows without a mistake{by}: the size of coefficients, "
        "and probabilities near 0 and 1, are set by the penalty and not by the data.",
        tuple(apart.columns),
    )


def _dependence(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Name columns that follow from others, copies of columns, and columns that are nearly the same."""
    dependence = found.dependence
    if dependence.equations:
        names = tuple(dependence.equations)
        equations = "; ".join(list(dependence.equations.values())[:3])
        more = f"; and {len(names) - 3} more" if len(names) > 3 else ""
        yield Caution(
            "dependent columns",
            f"{counted(len(names), 'column')} {'follow' if len(names) > 1 else 'follows'} from others: "
            f"{equations}{more}. Coefficients and importances of these are shared at will among them: leave "
            "one of each out before reading anything into them.",
            names,
        )
    for group in dependence.copies[:3]:
        yield Caution(
            "dependent columns",
            f"{listed(group)} tell the same rows apart, in other words: each is a copy of the other.",
            tuple(group),
        )
    if dependence.correlated:
        names = tuple(dict.fromkeys(name for pair in dependence.correlated for name in pair[:2]))
        one, two, r = dependence.correlated[0]
        pair = f"most: '{shortened(one)}' and '{shortened(two)}', " if len(names) > 2 else ""
        yield Caution(
            "correlated columns",
            f"{listed(names)} say nearly the same{' in pairs' * (len(names) > 2)} ({pair}correlation "
            f"{math.floor(1000 * abs(r)) / 1000 * (1 if r > 0 else -1):.3f}): their coefficients "
            "cannot be told apart, and neither looks important while the other is there.",
            names,
        )


def _missing(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Name columns of which much is missing."""
    rows = result.y.size
    shares = [(one.null_count() / rows, one.name) for one in result.X.iter_columns()]
    much = sorted(((share, name) for share, name in shares if share >= MUCH_MISSING), reverse=True)
    if much:
        yield Caution(
            "missing values",
            f"{listed([name for _, name in much])} {'are' if len(much) > 1 else 'is'} missing in "
            f"{'up to ' * (len(much) > 1)}{percent(much[0][0])} of the rows. That a value is missing may "
            "give the answer away, or be otherwise in rows to come.",
            tuple(name for _, name in much),
        )


def _set_aside(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Name texts that were not used."""
    aside = [one for one in result.schema.set_aside if one.kind == "text"]
    if aside:
        names = tuple(one.name for one in aside)
        yield Caution(
            "set aside",
            f"{listed(names)} {'were' if len(names) > 1 else 'was'} not used (text). If there is something "
            f"to learn from {'them' if len(names) > 1 else 'it'}, make columns of it first.",
            names,
        )


# -- the search ----------------------------------------------------------------------------------------------


def _grid_edge(result: FitResult, found: Examination) -> Iterator[Caution]:
    """Name parameters that were chosen at an end of what was tried."""
    for parameter, value, end in grid_edges(result.chosen.search):
        yield Caution(
            "edge of the grid",
            f"{parameter} = {number_text(value)} is the {end} value that was tried, and the score was still "
            f"rising towards it: a {'larger' if end == 'largest' else 'smaller'} one may be better.",
        )


CHECKS: tuple[Callable[[FitResult, Examination], Iterator[Caution]], ...] = (
    *(_stopped, _certificate, _leakage, _yardstick, _copies, _test_rows, _no_better, _test_against_folds),
    *(_drift, _separation, _dependence, _missing, _classes, _grid_edge, _set_aside),
)
