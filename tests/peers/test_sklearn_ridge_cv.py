"""scikit-learn's own tests of RidgeCV, with ours in its place."""

from peers.sklearn_suite import Suite, require_listed

SUITE = Suite(
    ours="sixfold.selection.ridge_cv.RidgeCV",
    theirs="sklearn.linear_model.RidgeCV",
    modules=("linear_model/tests/test_ridge.py",),
    fewest=200,
    differences={
        "test_ridge.py::test_regularization_limits_ridge_gcv": (
            "gcv_mode='svd' of a sparse table takes its products, as documented, without a warning"
        ),
    },
)


def test_what_does_not_pass_is_what_is_listed():
    require_listed(SUITE)
