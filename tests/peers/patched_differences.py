"""scikit-learn's tests that do not pass with the patch on, each with the reason in one line."""

from __future__ import annotations

# By file and reason: the tests, with their parameters or for all of them.
DIFFERENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "test_base.py": {
        "X is never written to, with copy_X=False neither": (
            "test_inplace_data_preprocessing[42-False-None]",
            "test_inplace_data_preprocessing[42-True-None]",
        ),
        "positive=True takes sparse tables": ("test_raises_value_error_if_positive_and_sparse",),
    },
    "test_logistic.py": {
        "sparse tables with 64-bit indices are fitted, where sag and saga refuse them": (
            "test_large_sparse_matrix",
        ),
        "it compares the iterates of scikit-learn's solvers with a fit that ours has finished": (
            "test_logistic_regression_callback_fitted_estimator",
        ),
        "without a penalty all classes may share a shift, which is 0 to 5e-4 only": (
            "test_logistic_regression_solvers_multiclass_unpenalized[42-True]",
        ),
        "it converges, so there is no other solver to fall back to and nothing to warn of": (
            "test_newton_cholesky_fallback_to_lbfgs",
        ),
    },
}


def reason_of(name: str) -> str | None:
    """Return the reason under which a test ("file.py::test[parameters]") is listed, or None."""
    module, _, test = name.partition("::")
    for reason, tests in DIFFERENCES.get(module, {}).items():
        if test in tests or test.partition("[")[0] in tests:
            return reason
    return None
