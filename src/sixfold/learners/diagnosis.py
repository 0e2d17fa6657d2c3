"""What went wrong, in sentences: which columns depend on which."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_NAMED = 5  # columns (or terms of a combination) spelt out before "and n more"


def describe_dependence(root: Any, names: list[str], fit_intercept: bool) -> str:
    """Return a sentence that names the dependent columns and how they follow from the others."""
    sentences = [
        _equation(names, root, position, fit_intercept)
        for position in range(min(root.dependent.size, MOST_NAMED))
    ]
    more = root.dependent.size - len(sentences)
    if more > 0:
        sentences.append(f"and {more} more")
    count = root.dependent.size
    columns = f"{count} of {len(names)} columns add{'s' * (count == 1)} nothing to the others"
    return (
        f"{columns}: {'; '.join(sentences)}. The predictions are unique, the coefficients are not: the "
        "shortest were chosen. Drop these columns, or use penalty='l2', to make the coefficients unique."
    )


def _equation(names: list[str], root: Any, position: int, fit_intercept: bool) -> str:
    """Return, for instance, ``'c' = 2 'a' - 'b' + constant``."""
    name = names[root.dependent[position]]
    factors = root.combination[:, position]
    used = np.flatnonzero(factors)
    used = used[np.argsort(-np.abs(factors[used]), kind="stable")]
    if used.size == 0:
        return f"{name!r} is {'constant' if fit_intercept else 'zero'}"
    terms = "".join(_term(factors[k], names[root.kept[k]]) for k in used[:MOST_NAMED])
    rest = f" + {used.size - MOST_NAMED} more terms" if used.size > MOST_NAMED else ""
    constant = " + a constant" if fit_intercept else ""
    return f"{name!r} = {terms.removeprefix(' + ').removeprefix(' ')}{rest}{constant}"


def _term(factor: float, name: str) -> str:
    sign = "-" if factor < 0 else "+"
    size = abs(factor)
    number = "" if abs(size - 1) < 1e-9 else f"{size:.6g} "
    return f" {sign} {number}{name!r}"
