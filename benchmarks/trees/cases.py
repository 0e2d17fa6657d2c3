"""Decision trees against scikit-learn and LightGBM.

scikit-learn grows the same tree: by entropy, over all thresholds. It uses one thread, for which no option is
better; it gets float32, its own type. LightGBM uses both threads and chooses among at most 255 thresholds a
column; several classes are one tree each to it.

Accuracy is the share of splits that are not the best: thirty of every tree are compared with an exhaustive
search in double precision. For predicted labels it is the share of rows that end in the wrong leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers import Job, Predicted, unchanged
from benchmarks.runner import Case, Contender
from benchmarks.trees.tasks import (
    Splits,
    TreeTask,
    fashion,
    informative,
    iris,
    rows_to_predict,
    share_misrouted,
    share_worse,
    weighted,
)


def grow(job: Job, task: TreeTask) -> Any:
    return job.estimator.fit(job.task.X, job.task.y, job.task.weight)


def sixfold(task: TreeTask) -> Job:
    from sixfold import DecisionTreeClassifier

    return Job(DecisionTreeClassifier(max_depth=task.depth), task)


def sklearn(task: TreeTask) -> Job:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(criterion="entropy", max_depth=task.depth, random_state=0)
    return Job(tree, task.in_single_precision())


def lightgbm(task: TreeTask) -> Job:
    from lightgbm import LGBMClassifier

    tree = LGBMClassifier(
        n_estimators=1,
        max_depth=-1 if task.depth is None else task.depth,
        num_leaves=2 ** min(task.depth or 15, 15),
        min_child_samples=1,
        min_child_weight=0.0,
        max_bin=255,
        n_jobs=2,
        verbose=-1,
    )
    return Job(tree, task)


def splits_of(model: Any) -> Splits:
    """Return the splits of a tree with scikit-learn's arrays."""
    tree = model.tree_
    return Splits(
        np.where(tree.children_left < 0, -1, tree.feature),
        tree.threshold,
        tree.children_left,
        tree.children_right,
    )


def lightgbm_splits(model: Any) -> Splits:
    """Return the splits of LightGBM's (first) tree."""
    nodes: list[tuple[int, float, int, int]] = []

    def visit(node: dict[str, Any]) -> int:
        number = len(nodes)
        nodes.append((-1, np.nan, -1, -1))
        if "split_feature" in node:
            left, right = visit(node["left_child"]), visit(node["right_child"])
            nodes[number] = (node["split_feature"], node["threshold"], left, right)
        return number

    visit(model.booster_.dump_model()["tree_info"][0]["tree_structure"])
    column, threshold, left, right = (np.array(part) for part in zip(*nodes, strict=True))
    return Splits(column, threshold, left, right)


def size(model: Any) -> str:
    return f"depth {model.get_depth()}, {model.get_n_leaves()} leaves"


def bins(model: Any) -> str:
    trees = model.booster_.num_trees()
    return f"255 bins{f', {trees} trees' * (trees > 1)}"


def already_grown(prepare: Callable[[TreeTask], Job], task: TreeTask) -> Any:
    tenth = max(len(task.X) // 10, 100)
    job = prepare(task._replace(X=task.X[:tenth], y=task.y[:tenth]))
    return grow(job, task)


def predict(model: Any, task: TreeTask) -> Predicted:
    return Predicted(model, model.predict(task.X))


def share_of_misrouted(task: TreeTask, predicted: Predicted) -> float:
    return share_misrouted(task, splits_of(predicted.model), predicted.model.apply(task.X))


SIXFOLD = Contender("sixfold", sixfold, grow, splits_of, size)
SKLEARN = Contender("scikit-learn", sklearn, grow, splits_of, size)
LIGHTGBM = Contender("LightGBM", lightgbm, grow, lightgbm_splits, bins)


case = partial(Case, error=share_worse, accuracy=0.0, with_memory=False)

CASES = (
    case(
        "tree_depth_10",
        "tree of depth 10, 200,000 x 100, 2 classes",
        partial(informative, 200_000, 100, 30, 2, 10),
        (SIXFOLD, SKLEARN, LIGHTGBM),
        bars={"scikit-learn": 90, "LightGBM": 8},
        memory_bar=0.5,
        with_memory=True,
    ),
    case(
        "tree_unlimited",
        "tree of any depth, 200,000 x 100, 2 classes",
        partial(informative, 200_000, 100, 30, 2, None),
        (SIXFOLD, SKLEARN),
        bars={"scikit-learn": 60},
        long=True,
    ),
    case(
        "tree_classes",
        "tree of depth 10, 200,000 x 100, 10 classes",
        partial(informative, 200_000, 100, 30, 10, 10),
        (SIXFOLD, SKLEARN, LIGHTGBM),
        bars={"scikit-learn": 60, "LightGBM": 4},
        long=True,
    ),
    case(
        "tree_classes_unlimited",
        "tree of any depth, 200,000 x 100, 10 classes",
        partial(informative, 200_000, 100, 30, 10, None),
        (SIXFOLD, SKLEARN),
        bars={"scikit-learn": 60},
        long=True,
    ),
    case(
        "tree_weighted",
        "tree of depth 10, 200,000 x 100, 2 classes, sample weights",
        partial(weighted, 200_000, 100, 30, 10),
        (SIXFOLD, SKLEARN),
        bars={"scikit-learn": 30},
        long=True,
    ),
    case(
        "tree_million",
        "tree of depth 10, 1,000,000 x 20, 2 classes",
        partial(informative, 1_000_000, 20, 10, 2, 10),
        (SIXFOLD, SKLEARN, LIGHTGBM),
        bars={"scikit-learn": 60, "LightGBM": 4},
    ),
    case(
        "tree_images",
        "tree of depth 10, Fashion-MNIST uint8 (scikit-learn float32)",
        partial(fashion, 10),
        (SIXFOLD, SKLEARN, LIGHTGBM),
        bars={"scikit-learn": 20},
        memory_bar=0.6,
        with_memory=True,
    ),
    case("tree_small", "tree of any depth, iris", iris, (SIXFOLD, SKLEARN), bars={"scikit-learn": 1}),
    case(
        "tree_predict",
        "labels of 200,000 x 100 float32 from a tree grown on 20,000 of them",
        rows_to_predict,
        [
            Contender(grown.name, partial(already_grown, grown.prepare), predict, unchanged)
            for grown in (SIXFOLD, SKLEARN)
        ],
        error=share_of_misrouted,
        bars={"scikit-learn": 1.5},
    ),
)
