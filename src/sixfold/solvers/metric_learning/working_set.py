"""The triplets that may decide, a few of many, solved exactly; all others tell whether any was left out.

    far inside its hinge      the multiplier is u, of all of them by one hinge together
    near its kink             a hinge of its own
    far outside               0, and left out until the map that is found says otherwise

Rounded hinges find out which triplet is which, and then take hundreds of steps to weigh those near their
kinks: of 100 rows with 200 columns a thousand steps left a gap of 0.002. The interior point weighs them in
ten.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sixfold.budget import Budget
from sixfold.solvers.metric_learning import interior_point
from sixfold.solvers.metric_learning.triplets import ActiveTriplets, TripletProblem, feasible_share, padded

Array = NDArray[Any]

MOST_COLUMNS = 500
# Multipliers strictly between 0 and u. A step of the interior point takes their cube in time, or, where M has
# fewer numbers, the square of these for each: 0.1 to 0.3 seconds in both.
MOST_FREE, MOST_ENTRIES, MOST_PRODUCTS = 2_500, 25e6, 8e9
FEWEST = 1_500  # triplets nearest to their kinks that are taken, needed or not: a step takes 0.05 s
WIDEST = 1.0  # margin that they are looked for within
ROUNDS = 5
NEARLY = 1.01  # times the objective before: few triplets were left out, so that another round pays
EXACTLY = 0.3  # of the tolerance: how well the chosen triplets are solved


class Refined(NamedTuple):
    """A map in the columns of ``X`` with its objective, and multipliers with their bound: each the best."""

    L: Array
    objective: float
    triplets: Array
    multipliers: Array
    bound: float


def refine(
    problem: TripletProblem, X: Array, L: Array, smoothing: float, objective: float, budget: Budget
) -> Refined | None:
    """Return what solving few triplets exactly makes of a map; None if more than a few may decide.

    ``X`` are the rows of the problem in columns in which ``<B, M>`` is the trace of M, ``objective`` is that
    of the map, and ``smoothing`` the width within which hinges were rounded.
    """
    if X.shape[1] > MOST_COLUMNS:
        return None
    prices = (1.0 - problem.pull) * problem.weight
    active = ActiveTriplets(problem)
    chosen = _choose(active, X @ padded(L).T, smoothing, X.shape[1], prices, budget)
    M, best = L.T @ L, None
    for _ in range(ROUNDS):
        if chosen is None:
            break
        hinges = interior_point.TripletHinges(
            X, chosen.single, prices[chosen.single[:, 0]], chosen.group, prices[chosen.group[:, 0]]
        )
        M, a = interior_point.minimise(hinges, M, chosen.multipliers, EXACTLY * budget.tol, budget)
        found, Z = _assess(active, X, M, hinges, a, chosen, prices, budget)
        best = found if best is None else better(best, found)
        if best.objective - best.bound <= budget.tol * best.objective:
            break
        if found.objective > NEARLY * objective and len(chosen.single) >= FEWEST:
            break
        chosen = _add_missing(active, Z, chosen, a, prices)
    return best


class _Chosen(NamedTuple):
    """Triplets with a hinge each, and those that have one together; a multiplier for each hinge."""

    single: Array
    group: Array
    multipliers: Array


def _choose(
    active: ActiveTriplets, Z: Array, smoothing: float, columns: int, prices: Array, budget: Budget
) -> _Chosen | None:
    width = smoothing
    numbers = interior_point.numbers_in(columns)
    most = max(MOST_FREE, min(MOST_ENTRIES / numbers, MOST_PRODUCTS / numbers**2))
    while True:
        active.search(Z, width, 0.0, budget)
        triplets, _ = active.listed(Z, width)
        slopes = np.clip(_margins(Z, triplets) / smoothing + 0.5, 0.0, 1.0)
        inside = slopes < 1.0
        if (inside & (slopes > 0)).sum() > most:
            return None
        if inside.sum() >= FEWEST or width >= WIDEST:
            break
        width = min(4.0 * width, WIDEST)
    if not inside.any():
        return None
    group, single, slopes = triplets[~inside], triplets[inside], slopes[inside]
    nearest = np.argsort(-_margins(Z, single), kind="stable")[: max(FEWEST, int((slopes > 0).sum()))]
    single = single[nearest]
    return _Chosen(single, group, _with_group(prices[single[:, 0]] * slopes[nearest], group, prices))


def _with_group(multipliers: Array, group: Array, prices: Array) -> Array:
    return np.append(multipliers, prices[group[:, 0]].sum()) if group.size else multipliers


def _assess(
    active: ActiveTriplets,
    X: Array,
    M: Array,
    hinges: interior_point.TripletHinges,
    a: Array,
    chosen: _Chosen,
    prices: Array,
    budget: Budget,
) -> tuple[Refined, Array]:
    """Return objective and bound among all triplets, and the rows after the map."""
    values, vectors = np.linalg.eigh(M)
    L = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    Z = X @ padded(L).T
    active.search(Z, 0.0, 0.0, budget)
    violated, _ = active.listed(Z, 0.0)
    stretch = math.sqrt(
        _best_multiple(float(np.square(L).sum()), _margins(Z, violated), prices[violated[:, 0]])
    )
    L, Z = stretch * L, stretch * Z
    objective = float(np.square(L).sum()) + active.sums(Z, 0.0).hinge
    a = a * feasible_share(hinges.combine(a))
    of_group = prices[chosen.group[:, 0]]
    of_group = of_group * (a[-1] / of_group.sum()) if of_group.size else of_group
    triplets = np.concatenate([chosen.single, chosen.group])
    multipliers = np.concatenate([a[: len(chosen.single)], of_group])
    return Refined(L, objective, triplets, multipliers, float(multipliers.sum())), Z


def _best_multiple(trace: float, margins: Array, prices: Array) -> float:
    """Return c >= 1 for which F(c M) is least; ``margins`` are those above 0, and no other ever is.

    F is convex in c, and linear between the points at which hinges close, c = 1 / (1 - m).
    """
    slopes = prices * (margins - 1.0)
    closing = margins < 1.0
    ends = 1.0 / (1.0 - margins[closing])
    order = np.argsort(ends, kind="stable")
    slope = trace + slopes.sum() - np.concatenate([[0.0], np.cumsum(slopes[closing][order])])
    first = int(np.argmax(slope >= 0))  # the last one is at least the trace
    return 1.0 if first == 0 else float(ends[order][first - 1])


def better(one: Refined, other: Refined) -> Refined:
    """Return the lower objective with its map, and the higher bound with its multipliers."""
    lower = min(one, other, key=lambda found: found.objective)
    higher = max(one, other, key=lambda found: found.bound)
    return higher._replace(L=lower.L, objective=lower.objective)


def _add_missing(active: ActiveTriplets, Z: Array, chosen: _Chosen, a: Array, prices: Array) -> _Chosen:
    """Add the dearest triplets that were left out, and let those go alone that the group holds in vain."""
    n = Z.shape[0]
    outside = _margins(Z, chosen.group) < 0
    group, alone = chosen.group[~outside], chosen.group[outside]
    violated, _ = active.listed(Z, 0.0)
    missing = violated[~np.isin(_numbers(violated, n), _numbers(np.vstack([chosen.single, chosen.group]), n))]
    cost = prices[missing[:, 0]] * _margins(Z, missing)
    missing = missing[np.argsort(-cost, kind="stable")[: max(FEWEST // 4, len(chosen.single) // 2)]]
    single = np.concatenate([chosen.single, missing, alone])
    known = a[: len(chosen.single)]
    multipliers = np.concatenate([known, np.zeros(len(missing)), prices[alone[:, 0]]])
    return _Chosen(single, group, _with_group(multipliers, group, prices))


def _numbers(triplets: Array, n: int) -> Array:
    """Return one number for each triplet."""
    result: Array = (triplets[:, 0] * n + triplets[:, 1]) * n + triplets[:, 2]
    return result


def _margins(Z: Array, triplets: Array) -> Array:
    """Return 1 + |z_i - z_j|^2 - |z_i - z_l|^2 of each."""
    row, target, impostor = (Z[rows] for rows in triplets.T)
    result: Array = 1.0 + np.square(row - target).sum(axis=1) - np.square(row - impostor).sum(axis=1)
    return result
