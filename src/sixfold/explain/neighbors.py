"""Why a nearest-neighbour model answers as it does: the neighbours, their votes, and the margin to a tie."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError
from sixfold.explain.axes import axes_or_new, named_rows, tick_names
from sixfold.explain.palette import class_colours, matplotlib_fill
from sixfold.solvers.neighbors.search import Neighbors
from sixfold.solvers.neighbors.votes import Decision, count_votes

Array = NDArray[Any]

MOST_OTHERS = 500  # numbers of neighbours that are tried on either side of k


@dataclass(frozen=True)
class NeighborsExplanation:
    """An answer and the training rows it comes from, as plain data.

    Attributes
    ----------
    answer : object
        What the model predicts.
    rows : list of int
        The training rows, the nearest first.
    index : list
        What they are called in the frame of the fit; their numbers where it has no index of its own.
    distances, weights : list of float
        How far each is, and how much it counts.
    targets : list
        Their labels or values.
    votes : dict
        The share of the votes each class has; empty for numbers.
    runner_up : object
        The class that comes next; None for numbers, and where there is no other.
    margin : float
        What share of the votes the answer is ahead of the runner-up; 0 is a tie. For numbers: how far the
        answer moves at most if one neighbour is left out.
    changes_at : tuple or None
        (k, answer): the number of neighbours nearest to the model's own with which the class is another.
    """

    answer: Any
    rows: list[int]
    index: list[Any]
    distances: list[float]
    weights: list[float]
    targets: list[Any]
    votes: dict[Any, float]
    runner_up: Any
    margin: float
    changes_at: tuple[int, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """Say what was found in a few lines."""
        lines = [f"answer: {_short(self.answer)}"]
        for row, distance, weight, target in zip(
            self.index, self.distances, self.weights, self.targets, strict=True
        ):
            lines.append(
                f"  row {row!s:<8} distance {distance:<10.4g} counts {weight:<8.3g} {_short(target)}"
            )
        lines += [f"  {share:.0%} of the votes: {label}" for label, share in self.votes.items() if share > 0]
        return "\n".join([*lines, *self._margin()])

    def _margin(self) -> list[str]:
        silent = sum(weight == 0 for weight in self.weights)
        if not self.votes:
            if len(self.rows) - silent == 1:
                return ["the answer is that of one neighbour"]
            return [f"leaving out one neighbour moves the answer by {self.margin:.4g} at most"]
        if self.runner_up is None:
            lines = ["every neighbour that counts says so" if silent else "every neighbour says so"]
        elif self.margin == 0:
            lines = [f"a tie with {self.runner_up}, which is no nearer in all"]
        else:
            lines = [f"ahead of {self.runner_up} by {self.margin:.0%} of the votes"]
        if self.changes_at is not None:
            k, answer = self.changes_at
            lines.append(f"with {k} neighbour{'s' * (k != 1)} the answer would be {answer}")
        return lines

    def plot(self, axes: Any = None) -> Any:
        """Draw the neighbours by their distance, as large as they count, coloured by what they say.

        Parameters
        ----------
        axes : matplotlib axes, default=None
            Where to draw; None makes new ones.

        Returns
        -------
        matplotlib axes
        """
        axes = axes_or_new(axes, 6.0, 0.3 * len(self.rows) + 1.2)
        far = max(self.distances) or 1.0
        sizes = 15.0 + 120.0 * np.array(self.weights) / max(self.weights)
        # A class has the colour it has in every drawing: that of its place among all classes.
        shares = np.array(list(self.votes.values()))
        colours = dict(zip(self.votes, class_colours(shares).values(), strict=True))
        for target in dict.fromkeys(self.targets) if self.votes else [None]:
            some = [i for i, one in enumerate(self.targets) if target is None or one == target]
            fill = matplotlib_fill(colours.get(target, 0))
            axes.scatter([self.distances[i] for i in some], some, sizes[some], label=target, **fill)
        pairs = zip(self.index, self.targets, strict=True)
        labels = [f"row {row}" + ("" if self.votes else f": {_short(target)}") for row, target in pairs]
        names = tick_names(labels)
        axes.set(yticks=range(len(self.rows)), yticklabels=names, xlim=(-0.05 * far, 1.05 * far))
        axes.set(xlabel="distance", title=f"answer: {_short(self.answer)}")
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.invert_yaxis()
        if self.votes:
            axes.legend(title="says", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return axes


def _short(answer: Any) -> str:
    return f"{answer:.6g}" if isinstance(answer, float) else str(answer)


def explain_vote(
    found: Neighbors,
    labels: Array,
    weigh: Callable[[Neighbors], Array],
    classes: Array,
    k: int,
    index: Array | None,
    decide: Decision,
) -> NeighborsExplanation:
    """Return why the first k neighbours of one query vote as they do; the others say what more would.

    ``weigh`` is asked for the weights of each number of neighbours, since they may depend on all of them;
    ``index`` is what the training rows are called, None for their numbers; ``decide`` returns the winner of
    votes, labels and distances.
    """
    names, distances = classes.tolist(), found.distances[0]
    weights = weigh(_nearest(found, k))[0]
    shares, winner = _vote(labels[:k], weights, distances[:k], len(names), decide)
    winners_at = _winners(found, labels, weigh, len(names), k, decide)
    others = [label for label in range(len(names)) if label != winner and shares[label] > 0]
    second = max(others, key=lambda label: (shares[label], -label), default=None)
    changes = [m for m, other in winners_at.items() if other != winner]
    nearest = min(changes, key=lambda m: abs(m - k), default=None)
    return NeighborsExplanation(
        answer=names[winner],
        rows=found.rows[0, :k].tolist(),
        index=named_rows(found.rows[0, :k], index),
        distances=distances[:k].tolist(),
        weights=weights.tolist(),
        targets=[names[label] for label in labels[:k]],
        votes={name: float(share) for name, share in zip(names, shares, strict=True)},
        runner_up=None if second is None else names[second],
        margin=float(shares[winner] - (0.0 if second is None else shares[second])),
        changes_at=None if nearest is None else (nearest, names[winners_at[nearest]]),
    )


def _nearest(found: Neighbors, k: int) -> Neighbors:
    return replace(found, distances=found.distances[:, :k], rows=found.rows[:, :k])


def _winners(
    found: Neighbors,
    labels: Array,
    weigh: Callable[[Neighbors], Array],
    classes: int,
    k: int,
    decide: Decision,
) -> dict[int, int]:
    """Return the winner of each number of neighbours that can vote, unless it is far from k."""
    result = {}
    for m in range(max(1, k - MOST_OTHERS), min(labels.size, k + MOST_OTHERS) + 1):
        # A user's function may have no weights for so few neighbours.
        with suppress(InputError):
            weights = weigh(_nearest(found, m))[0]
            result[m] = _vote(labels[:m], weights, found.distances[0, :m], classes, decide)[1]
    return result


def _vote(
    labels: Array, weights: Array, distances: Array, classes: int, decide: Decision
) -> tuple[Array, int]:
    """Return the share of the votes of each class, and the winner."""
    votes = count_votes(labels[None], weights[None], classes)
    return votes[0] / votes.sum(), int(decide(votes, labels[None], distances[None])[0])


def explain_average(
    found: Neighbors, targets: Array, weights: Array, index: Array | None
) -> NeighborsExplanation:
    """Return why the neighbours of one query have the average they have."""
    answer = float(weights @ targets / weights.sum())
    kept = ~np.eye(weights.size, dtype=bool)
    without = [
        float(weights[some] @ targets[some] / weights[some].sum()) for some in kept if weights[some].sum() > 0
    ]
    return NeighborsExplanation(
        answer=answer,
        rows=found.rows[0].tolist(),
        index=named_rows(found.rows[0], index),
        distances=found.distances[0].tolist(),
        weights=weights.tolist(),
        targets=targets.tolist(),
        votes={},
        runner_up=None,
        margin=max((abs(other - answer) for other in without), default=0.0),
        changes_at=None,
    )
