"""A tree from a sparse table is the tree that the same table grows when its zeros are written out."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sixfold._native import core
from sixfold.budget import Budget
from sixfold.solvers.trees import growth
from sixfold.solvers.trees.fitted_tree import Reason
from sixfold.solvers.trees.growth import CRITERIA, GrowthRules, TrainingRows

every_criterion = pytest.mark.parametrize("criterion", CRITERIA)
unknown_modes = pytest.mark.parametrize("unknown_best", [False, True])
NUMBERS = np.uint8(0)
ARRAYS = ("column", "threshold", "first", "code", "child", "unknown", "reason", "rows", "totals")


def grow(X, labels, classes=2, weight=None, budget=None, **rules):
    labels, kinds = np.asarray(labels, dtype=np.int32), np.full(X.shape[1], NUMBERS)
    rows = TrainingRows(X, kinds, labels, classes, weight, None if weight is None else np.flatnonzero(weight))
    return growth.grow(rows, GrowthRules(**rules), budget or Budget())


def assert_same_trees(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_as_dense(X, labels, classes, weight=None, **rules):
    """Compare tree and ways with those of the table written out."""
    tree = grow(sp.csr_array(X), labels, classes, weight, **rules)
    dense = grow(X, labels, classes, weight, **rules)
    assert_same_trees(tree, dense)
    np.testing.assert_array_equal(tree.apply(sp.csr_array(X)), dense.apply(X))
    return tree


# -- the same as dense tables -----------------------------------------------------------------------

# What the columns of a table may hold besides zeros.
KINDS_OF_VALUES = [
    [1.0],
    [-1.0, 1.0],
    [-2.0, -1.0, 1.0, 2.0, 3.0],
    [-3.0, -1.0],
    [np.nan],
    [np.nan, 1.0, 2.0],
    [np.nan, -1.0, -0.5, 1.0],
    [5e-324, -5e-324, 1.7e308, -1.7e308],
]


@st.composite
def tables(draw):
    """Tables with ties, empty rows and columns, unknown values and columns without zeros."""
    n, d = draw(st.integers(1, 24)), draw(st.integers(1, 6))
    columns = []
    for _ in range(d):
        held = draw(st.sampled_from(KINDS_OF_VALUES))
        zeros = draw(st.sampled_from([0, 1, 4]))
        columns.append(draw(st.lists(st.sampled_from(held + [0.0] * zeros), min_size=n, max_size=n)))
    return np.array(columns).T.copy()


@given(st.data(), tables())
def test_small_tables_grow_the_trees_of_dense_ones(data, X):
    n, d = X.shape
    classes = data.draw(st.integers(1, 4))
    labels = np.array(data.draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)), np.int32)
    weight = None
    if data.draw(st.booleans()):  # quarters, so that sums are exact
        quarters = data.draw(st.lists(st.integers(0, 8), min_size=n, max_size=n).filter(any))
        weight = np.array(quarters) / 4
    assert_as_dense(
        X,
        labels,
        classes,
        weight,
        criterion=data.draw(st.sampled_from(CRITERIA)),
        unknown_best=data.draw(st.booleans()),
        max_depth=data.draw(st.sampled_from([None, None, 0, 1, 3])),
        min_samples_split=data.draw(st.sampled_from([2, 2, 5])),
        min_samples_leaf=data.draw(st.sampled_from([1, 1, 2, 4])),
        min_leaf_weight=data.draw(st.sampled_from([0.0, 0.0, 0.75, 2.0])),
        min_impurity_decrease=data.draw(st.sampled_from([0.0, 0.0, 0.05, 0.3])),
        max_columns=data.draw(st.sampled_from([None, None, 1, d])),
        seed=data.draw(st.integers(0, 3)),
    )


def words(n, d, share, classes, seed=0, unknown=0.0):
    """Counts of words, with classes that follow from some of them, half of the columns shifted below 0."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(share, size=(n, d)) * rng.integers(1, 4, size=d) * np.where(np.arange(d) % 2, 1.0, -0.5)
    labels = np.argmax(X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes)), axis=1)
    X[(X != 0.0) & (rng.random((n, d)) < unknown)] = np.nan
    return X, labels.astype(np.int32)


@every_criterion
@unknown_modes
@pytest.mark.parametrize("classes", [2, 5])
def test_larger_tables_grow_the_trees_of_dense_ones(criterion, unknown_best, classes):
    X, labels = words(700, 60, 0.3, classes, unknown=0.1)
    tree = assert_as_dense(X, labels, classes, criterion=criterion, unknown_best=unknown_best, max_depth=12)
    assert tree.depth.max() == 12


@every_criterion
def test_weighted_rows_grow_the_trees_of_dense_ones(criterion):
    X, labels = words(600, 50, 0.3, 3, seed=1)
    weight = np.random.default_rng(1).integers(0, 9, size=600) / 4
    assert_as_dense(X, labels, 3, weight, criterion=criterion, max_depth=10, min_leaf_weight=2.0)


@every_criterion
@unknown_modes
def test_weights_that_vanish_beside_others_do_no_harm(criterion, unknown_best):
    X, labels = words(300, 20, 0.3, 3, seed=6, unknown=0.05)
    weight = 10.0 ** -np.random.default_rng(6).integers(0, 40, size=300)
    for classes, of_row in [(3, labels), (2, np.minimum(labels, 1))]:
        tree = grow(sp.csr_array(X), of_row, classes, weight, criterion=criterion, unknown_best=unknown_best)
        ends = np.bincount(tree.apply(sp.csr_array(X)), minlength=tree.node_count)
        np.testing.assert_array_equal(ends[tree.is_leaf], tree.rows[tree.is_leaf])
        assert (tree.rows[tree.is_leaf] > 0).all()


@every_criterion
def test_a_split_of_many_distinct_values_is_found_among_all(criterion):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((500, 40)) < 0.3, rng.normal(size=(500, 40)), 0.0)
    labels = (X[:, 7] + 0.3 * rng.normal(size=500) > 0.5).astype(np.int32)
    assert_as_dense(X, labels, 2, criterion=criterion, max_depth=6)


@every_criterion
def test_long_chains_grow_as_in_dense_tables(criterion):
    depths = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((400, 60)) < 0.1, rng.random((400, 60)), 0.0)
        scores = X @ np.where(rng.random(60) < 0.4, rng.normal(size=60), 0.0)
        labels = (scores > np.median(scores)).astype(np.int32)
        depths.append(assert_as_dense(X, labels, 2, criterion=criterion).depth.max())
    assert max(depths) > 20


@every_criterion
def test_a_choice_of_columns_is_that_of_dense_tables(criterion):
    X, labels = words(300, 40, 0.05, 2, seed=3)
    trees = [assert_as_dense(X, labels, 2, criterion=criterion, max_columns=5, seed=s) for s in (0, 1)]
    assert trees[0].column[0] != trees[1].column[0]


def test_the_gain_ratio_compares_only_columns_with_at_least_the_average_gain():
    # One row of eight told apart gains 0.1379 of 0.5436 bits; six on the right side gain 0.1887 of 1 bit.
    peels, halves = [1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 1, 1]
    parity = [0, 1, 0, 1, 0, 1, 0, 1]  # gains nothing
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1], dtype=np.int32)
    two, three = np.column_stack([peels, halves]), np.column_stack([peels, halves, parity])
    assert assert_as_dense(two.astype(float), labels, 2, criterion="gain_ratio").column[0] == 1
    assert assert_as_dense(three.astype(float), labels, 2, criterion="gain_ratio").column[0] == 0


@every_criterion
def test_threads_do_not_matter(criterion):
    X, labels = words(1500, 120, 0.2, 3, seed=4)
    X = sp.csc_array(X)
    assert X.nnz > 1 << 14  # so many that threads share them
    trees = []
    for threads in (1, 2, 5):
        before = core.limit_threads(threads)
        trees.append(grow(X, labels, 3, criterion=criterion, max_depth=12))
        core.limit_threads(before)
    assert_same_trees(trees[0], trees[1])
    assert_same_trees(trees[0], trees[2])


# -- worked by hand ---------------------------------------------------------------------------------


def test_zeros_stand_between_what_is_below_and_above():
    X = sp.csr_array(np.array([[-4.0], [-2.0], [0.0], [0.0], [6.0], [8.0]]))
    low = grow(X, [0, 0, 1, 1, 1, 1])
    high = grow(X, [0, 0, 0, 0, 1, 1])
    apart = grow(X, [0, 0, 1, 1, 0, 0])
    assert low.threshold[0] == -1.0
    assert high.threshold[0] == 3.0
    # -1 and 3 are equally good: 4 bits less f(2) + f(2); the lower one is taken.
    np.testing.assert_array_equal(apart.threshold, [-1.0, -2.0, 3.0, -2.0, -2.0])
    np.testing.assert_array_equal(apart.rows, [6, 2, 4, 2, 2])


def test_the_first_of_equal_columns_splits():
    column = np.array([0.0, 0.0, 1.0, 1.0])
    tree = grow(sp.csr_array(np.column_stack([0 * column, column[::-1], column, column])), [0, 0, 1, 1])
    np.testing.assert_array_equal(tree.column, [1, -1, -1])


def test_unknown_values_have_a_branch():
    X = sp.csr_array(np.array([[np.nan], [np.nan], [0.0], [0.0], [2.0]]))
    tree = grow(X, [2, 2, 0, 0, 1], 3)
    assert tree.children(0) == [1, 2, 3]
    assert tree.unknown[0] == 3
    np.testing.assert_array_equal(tree.totals[1:], [[2, 0, 0], [0, 1, 0], [0, 0, 2]])


def test_unknown_values_join_the_side_that_suits():
    X = sp.csr_array(np.array([[np.nan], [np.nan], [0.0], [0.0], [2.0]]))
    joined = grow(X, [1, 1, 0, 0, 1], unknown_best=True)
    np.testing.assert_array_equal(joined.rows, [5, 2, 3])
    assert joined.unknown[0] == 2
    apart = grow(X, [1, 1, 0, 0, 0], unknown_best=True)
    assert apart.threshold[0] == np.inf
    assert apart.branches(0) == {0: 1, 1: 2}
    assert apart.unknown[0] == 2


def test_stored_zeros_are_zeros_and_repeated_entries_are_added():
    coordinates = [0, 0, 1, 2, 2, 3], [0, 0, 0, 0, 0, 0]
    X = sp.coo_array(([1.0, 2.0, 0.0, 4.0, -4.0, 5.0], coordinates), shape=(4, 2)).tocsr()
    X.has_canonical_format = False
    before = X.copy()
    tree = grow(X, [1, 0, 0, 1])
    assert_same_trees(tree, grow(sp.csr_array([[3.0, 0], [0, 0], [0, 0], [5.0, 0]]), [1, 0, 0, 1]))
    assert tree.threshold[0] == 1.5
    np.testing.assert_array_equal(tree.apply(X), [2, 1, 1, 2])
    np.testing.assert_array_equal(X.data, before.data)


def test_a_table_of_zeros_cannot_be_split():
    tree = grow(sp.csr_array((3, 4)), [0, 1, 0])
    assert tree.reason.tolist() == [Reason.EXHAUSTED]
    np.testing.assert_array_equal(tree.totals, [[2, 1]])


def test_one_row_is_a_leaf():
    tree = grow(sp.csr_array([[1.0, 0.0]]), [1])
    assert tree.reason.tolist() == [Reason.PURE]
    assert tree.apply(sp.csr_array((2, 2))).tolist() == [0, 0]


def test_a_table_without_columns_is_a_leaf():
    assert grow(sp.csr_array((2, 0)), [0, 1]).reason.tolist() == [Reason.EXHAUSTED]


def test_float32_is_read_as_it_is():
    X, labels = words(200, 10, 0.3, 2)
    X = (X * np.float32(0.1)).astype(np.float32)  # thresholds lie halfway between values of float32
    tree = assert_as_dense(X, labels, 2)
    assert tree.node_count > 10


# -- the way of rows --------------------------------------------------------------------------------


def test_rows_of_any_kind_end_where_dense_ones_do():
    X, labels = words(400, 30, 0.3, 2, unknown=0.05)
    tree = grow(sp.csr_array(X), labels, max_depth=8)
    other = words(300, 30, 0.6, 2, seed=9, unknown=0.3)[0]  # unknown values where none were met, too
    np.testing.assert_array_equal(tree.apply(sp.csc_array(other)), tree.apply(other))


def test_rows_end_where_they_do_alone():
    X, labels = words(100, 200, 0.1, 2)
    X = sp.csr_array(X)
    tree = grow(X, labels)
    alone = [tree.apply(X[[i]])[0] for i in range(100)]  # with less entries than columns
    np.testing.assert_array_equal(tree.apply(X), alone)


def test_tables_of_categories_are_refused():
    tree = grow(sp.csr_array([[0.0, 1.0], [1.0, 1.0]]), [0, 1])
    tree.kinds[1] = 1
    with pytest.raises(ValueError, match="numbers alone"):
        tree.apply(sp.csr_array((1, 2)))


# -- limits -----------------------------------------------------------------------------------------


def test_a_growth_without_time_is_a_leaf_that_was_stopped():
    X, labels = words(50, 10, 0.3, 2)
    budget = Budget(time_limit=0.0)
    tree = grow(sp.csr_array(X), labels, budget=budget)
    assert tree.reason.tolist() == [Reason.STOPPED]
    assert budget.stopped_by == "time_limit=0 s"
    assert tree.rows.tolist() == [50]


def test_a_growth_that_is_stopped_leaves_whole_levels():
    X, labels = words(20_000, 60, 0.3, 2, seed=5)
    X = sp.csc_array(X)
    whole = grow(X, labels)
    for seconds in (0.001, 0.01, 0.02, 0.04, 0.08):
        tree = grow(X, labels, budget=Budget(time_limit=seconds))
        depth = tree.depth.max()
        assert set(tree.depth[tree.reason == Reason.STOPPED]) <= {depth}
        inner = whole.cut(whole.depth < depth)
        np.testing.assert_array_equal(tree.column, inner.column)
        np.testing.assert_array_equal(tree.totals, inner.totals)


PROGRAM = """
import resource
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sixfold.budget import Budget
from sixfold.solvers.trees.growth import GrowthRules, TrainingRows, grow

rng = np.random.default_rng(0)
n, d, held = 4000, 50_000, 100
columns = np.argsort(rng.random((n, d // 100)), axis=1)[:, :held] * 100 + rng.integers(100, size=(n, held))
X = sp.csr_array((np.ones(n * held), columns.ravel(), np.arange(0, n * held + 1, held)), shape=(n, d))
X.sort_indices()
labels = rng.integers(2, size=n).astype(np.int32)
kinds = np.zeros(d, dtype=np.uint8)
grow(TrainingRows(X[:400], kinds, labels[:400], 2, None), GrowthRules(max_depth=2), Budget())  # threads
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 64 * X.nnz, resource.RLIM_INFINITY))
print(grow(TrainingRows(X, kinds, labels, 2, None), GrowthRules(max_depth=20), Budget()).depth.max())
"""


@pytest.mark.limits_memory
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux how much memory is taken")
def test_memory_is_a_few_times_that_of_the_entries():
    # 64 bytes an entry, of which a copy by columns takes 12 and lists 20; written out it were 4,000.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "20\n"), done.stderr
