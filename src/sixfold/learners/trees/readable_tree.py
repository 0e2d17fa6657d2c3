"""Reading a fitted tree: as text, rules, plain data, DOT and SVG, and the way of one row through it.

Each is a function of the tree and the names of what it speaks of; here they become methods of the model.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sixfold.data.one_row import one_row
from sixfold.data.tree_table import check_tree_table
from sixfold.errors import check_number
from sixfold.explain.trees import text
from sixfold.explain.trees.explanation import TreeExplanation, explain_row
from sixfold.explain.trees.names import TreeNames
from sixfold.explain.trees.svg import Picture, export_svg
from sixfold.solvers.trees.fitted_tree import FittedTree


class ReadableTree:
    """Adds what people read to a learner that is a tree."""

    tree_: FittedTree
    _kinds: Any

    @abstractmethod
    def _names(self) -> TreeNames:
        """Return what columns, categories and classes are called."""

    def _reading(self) -> tuple[FittedTree, TreeNames]:
        """Return the tree and the names of what it speaks of."""
        check_is_fitted(self, "tree_")
        return self.tree_, self._names()

    def export_text(
        self,
        *,
        max_depth: int | None = None,
        decimals: int | None = 3,
        max_categories: int | None = 8,
        max_branches: int | None = 30,
    ) -> str:
        """Return the tree as indented lines: the test of each branch, the class and its share in each leaf.

        Parameters
        ----------
        max_depth : int, default=None
            How many tests deep the text goes; deeper nodes are counted.
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_categories : int, default=8
            How many categories of a branch are listed; the others are counted. None for all.
        max_branches : int, default=30
            How many branches of a node are shown, those with the most rows; others are counted. None for all.

        Returns
        -------
        str
        """
        _check_shown(max_depth, decimals, max_categories, max_branches)
        return text.export_text(
            *self._reading(),
            max_depth=max_depth,
            decimals=decimals,
            max_categories=max_categories,
            max_branches=max_branches,
        )

    def export_rules(self, *, decimals: int | None = 3, max_categories: int | None = None) -> str:
        """Return one if/then sentence a leaf, each on a line.

        Parameters
        ----------
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_categories : int, default=None
            How many categories of a condition are listed; the others are counted. None for all.

        Returns
        -------
        str
        """
        _check_shown(None, decimals, max_categories, None)
        return text.export_rules(*self._reading(), decimals=decimals, max_categories=max_categories)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as nested plain data that JSON can hold, with nothing rounded or shortened.

        Returns
        -------
        dict
            ``columns``, ``classes``, ``unit`` and ``root``, see :func:`sixfold.explain.trees.text.to_dict`.
        """
        return text.to_dict(*self._reading())

    def export_graphviz(
        self,
        *,
        max_depth: int | None = None,
        decimals: int | None = 3,
        max_categories: int | None = 4,
        max_branches: int | None = 12,
    ) -> str:
        """Return the tree in DOT, the language of Graphviz.

        Parameters
        ----------
        max_depth : int, default=None
            How many tests deep the drawing goes; deeper nodes are counted.
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_categories : int, default=4
            How many categories of a branch are listed; the others are counted. None for all.
        max_branches : int, default=12
            How many branches of a node are drawn, those with the most rows; others are counted. None for all.

        Returns
        -------
        str
        """
        _check_shown(max_depth, decimals, max_categories, max_branches)
        return text.export_graphviz(
            *self._reading(),
            max_depth=max_depth,
            decimals=decimals,
            max_categories=max_categories,
            max_branches=max_branches,
        )

    def export_svg(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_depth: int | None = 4,
        decimals: int | None = 3,
        max_branches: int | None = 12,
    ) -> Picture:
        """Return the tree as a drawing in SVG, and write it to a file if a path is given.

        Parameters
        ----------
        path : str or path, default=None
            Where to write the drawing, a name that ends in .svg; a file that is there is replaced by the
            whole new one.
        max_depth : int, default=4
            How many tests deep the drawing goes; a node where it ends says how many are below. None for all.
        decimals : int, default=3
            Of thresholds and impurities; None for every digit. Thresholds that would look the same
            have more.
        max_branches : int, default=12
            How many branches of a node are drawn, those with the most rows; others are counted. None for all.

        Returns
        -------
        Picture
            A str, which notebooks show as a picture.
        """
        _check_shown(max_depth, decimals, None, max_branches)
        return export_svg(
            *self._reading(), path=path, max_depth=max_depth, decimals=decimals, max_branches=max_branches
        )

    def explain(self, x: Any) -> TreeExplanation:
        """Return why one row gets its label: its way, the entropy at each step, and what would change it.

        Parameters
        ----------
        x : array of shape (n_features,), or a table with one row

        Returns
        -------
        TreeExplanation
        """
        tree, names = self._reading()
        given = one_row(x, names.columns)
        with warnings.catch_warnings():  # one row is rightly written without names
            warnings.simplefilter("ignore", UserWarning)
            table, _ = check_tree_table(self, given, False, self._kinds)
        row = table.toarray()[0] if sp.issparse(table) else np.asarray(table)[0]
        return explain_row(tree, names, row.astype(np.float64), _values(given, row))


def _check_shown(max_depth: Any, decimals: Any, max_categories: Any, max_branches: Any) -> None:
    """Raise an :class:`InputError` about what is asked to be shown, if it makes no sense."""
    check_number("max_depth", max_depth, at_least=0, whole=True, optional=True)
    check_number("decimals", decimals, at_least=0, whole=True, optional=True)
    check_number("max_categories", max_categories, at_least=1, whole=True, optional=True)
    check_number("max_branches", max_branches, at_least=1, whole=True, optional=True)


def _values(given: Any, row: Any) -> list[Any]:
    """Return the values of one row as they were given."""
    if sp.issparse(given):
        return row.tolist()
    if isinstance(given, np.ndarray):
        return given[0].tolist()
    import narwhals.stable.v1 as nw

    frame: Any = nw.from_native(given, eager_only=True, pass_through=True)
    return (
        list(frame.row(0)) if isinstance(frame, nw.DataFrame) else np.asarray(given, dtype=object)[0].tolist()
    )
