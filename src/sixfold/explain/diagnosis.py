"""What went wrong, in sentences: columns that depend on others or separate classes, rows that overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_NAMED = 5  # columns (or terms of a combination) spelt out before "and n more"


def describe_dependence(factor: Any, names: list[str], fit_intercept: bool, penalty: str) -> str:
    """Return a sentence that names the dependent columns and how they follow from the others.

    ``penalty`` is what to write for one that makes the coefficients unique.
    """
    sentences = [
        _equation(names, factor, position, fit_intercept)
        for position in range(min(factor.dependent.size, MOST_NAMED))
    ]
    more = factor.dependent.size - len(sentences)
    if more > 0:
        sentences.append(f"and {more} more")
    count = factor.dependent.size
    columns = f"{count} of {len(names)} columns add{'s' * (count == 1)} nothing to the others"
    return (
        f"{columns}: {'; '.join(sentences)}. The predictions are unique, the coefficients are not: the "
        f"shortest were chosen. Drop these columns, or use {penalty}, to make the coefficients unique."
    )


def _equation(names: list[str], factor: Any, position: int, fit_intercept: bool) -> str:
    """Return, for instance, ``'c' = 2 'a' - 'b' + constant``."""
    name = names[factor.dependent[position]]
    coefficients = factor.combination[:, position]
    used = np.flatnonzero(coefficients)
    used = used[np.lexsort((factor.kept[used], -np.abs(coefficients[used].round(12))))]
    if used.size == 0:
        return f"{name!r} is {'constant' if fit_intercept else 'zero'}"
    terms = "".join(_term(coefficients[k], names[factor.kept[k]]) for k in used[:MOST_NAMED])
    rest = f" + {used.size - MOST_NAMED} more terms" if used.size > MOST_NAMED else ""
    constant = " + a constant" if fit_intercept else ""
    return f"{name!r} = {terms.removeprefix(' + ').removeprefix(' ')}{rest}{constant}"


def _term(coefficient: float, name: str) -> str:
    sign = "-" if coefficient < 0 else "+"
    size = abs(coefficient)
    number = "" if abs(size - 1) < 1e-9 else f"{size:.6g} "
    return f" {sign} {number}{name!r}"


def describe_separation(found: Any, alone: list[Any], names: list[str], classes: Any, kept: bool) -> str:
    """Return sentences that say which columns separate the classes, and what follows.

    Parameters
    ----------
    found : Separation
    alone : list of SeparatingColumn
    names : list of str
        Of the columns.
    classes : sequence
        The labels as the user wrote them, in the order of the scores; [negative, positive] for one score.
    kept : bool
        Whether the model that the coefficients tend to is kept.
    """
    if alone:
        how = "; ".join(_lone_column(separator, names, classes) for separator in alone[:MOST_NAMED])
        more = len(alone) - MOST_NAMED
        how += f"; and {more} more columns do so too" if more > 0 else ""
    else:
        # Seven modules, which a fit that has nothing to say of them does without.
        from sixfold.solvers.separation.separating_columns import important_columns

        how = f"{_listed(names, important_columns(found))} together separate the classes"
    quasi = found.kind != "complete"
    boundary = f" But for {_count(found.boundary.size, 'row')} on the boundary the" if quasi else " The"
    certain = "0 and 1 but on the boundary" if quasi else "0 and 1"
    limit = (
        f"The model that the coefficients tend to was kept: its probabilities are {certain}, and its "
        "coefficients are only a direction. "
        if kept
        else "on_separation='warn' keeps the model that the coefficients tend to. "
    )
    return (
        f"{how[0].upper()}{how[1:]}.{boundary} model can be made as certain as one likes, and the likelihood "
        f"has no maximum. {limit}For finite coefficients use penalty='l2' with a finite C, for instance "
        "C=1.0, or drop what gives the class away."
    )


def describe_overlap(proof: Any, y: Any, classes: Any, space: str = "") -> str:
    """Return a sentence that says why no plane separates two classes.

    Parameters
    ----------
    proof : Proof
    y : ndarray of shape (rows,)
        -1 and +1.
    classes : sequence
        The labels as the user wrote them: [negative, positive].
    space : str, default=""
        Where the planes are, such as "in the space of the kernel"; where the rows are, if empty.
    """
    sides = [_mixture(proof, y[proof.rows] == side) for side in (-1, 1)]
    if not all(sides):
        return "No plane through 0 has all rows on the right side: " + (sides[0] or sides[1]) + " mix to 0."
    (minus, plus), (no, yes) = sides, classes
    one, other = (proof.rows[y[proof.rows] == side] for side in (-1, 1))
    if one.size == other.size == 1:
        both = f"row {one[0]} of {no!r} and row {other[0]} of {yes!r} are the same point"
    else:
        mix = "mixes" if one.size == 1 else "mix"
        both = f"{minus} of {no!r} {mix} to the same point as {plus} of {yes!r}"
    return f"No plane{space and ' '}{space} separates {no!r} from {yes!r}: {both}."


def _mixture(proof: Any, there: Any) -> str:
    rows, weights = proof.rows[there], proof.weights[there] / proof.weights[there].sum()
    # Equal but for rounding, which is another on every processor: then by row.
    order = np.argsort(-weights.round(9), kind="stable")[:MOST_NAMED]
    shares = ", ".join(f"{weights[k]:.3g} of row {rows[k]}" for k in order)
    if rows.size == 0:
        return ""
    more = f" and {rows.size - MOST_NAMED} more" if rows.size > MOST_NAMED else ""
    return f"{_count(rows.size, 'row')} ({shares}{more})"


def _lone_column(separator: Any, names: list[str], classes: Any) -> str:
    """Return, for instance, ``column 'x3' alone separates: every row above 2.5 is 'yes'``."""
    inside = classes[separator.side]
    others = f"{classes[1 - separator.side]!r}" if len(classes) == 2 else f"not {inside!r}"
    above, below = (f"{inside!r}", others) if separator.above else (others, f"{inside!r}")
    where = f"{separator.threshold:.6g}"
    equal = "" if separator.strict else f", and rows equal to {where} are either"
    return (
        f"column {names[separator.column]!r} alone separates: every row above {where} is {above}, "
        f"every row below is {below}{equal}"
    )


def _listed(names: list[str], columns: Any) -> str:
    shown = [repr(names[column]) for column in columns[:MOST_NAMED]]
    more = len(columns) - len(shown)
    shown += [f"{more} more"] * (more > 0)
    if len(shown) == 1:
        return f"the intercept and column {shown[0]}"
    return f"the columns {', '.join(shown[:-1])} and {shown[-1]}" if shown else "the intercept"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
