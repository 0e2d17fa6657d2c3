"""Tables as arrays: what needs no conversion is passed on, everything else is checked by scikit-learn."""

import numpy as np
import pytest

from sixfold import SVC
from sixfold.data.checks import check_table
from sixfold.errors import InputError

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("table", [X, X.astype(np.float32), np.asfortranarray(X), X[::2, ::-1]])
def test_arrays_that_are_ready_are_passed_on(table):
    model = SVC()
    assert check_table(model, table, reset=True) is table
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("dtype", [np.float16, ">f8", np.int64, bool, object])
def test_other_numbers_become_floats(dtype):
    found = check_table(SVC(), X.astype(dtype), reset=True)
    assert found.dtype in (np.float64, np.float32)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, X.astype(dtype).astype(float))


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (np.zeros(3), "2D array"),
        (np.zeros((2, 2, 2)), "dim"),
        (X + 1j, "Complex"),
    ],
)
def test_arrays_that_are_no_table_are_refused(table, reason):
    with pytest.raises(InputError, match=reason):
        check_table(SVC(), table, reset=True)


def test_another_number_of_columns_is_refused():
    model = SVC()
    check_table(model, X, reset=True)
    with pytest.raises(InputError, match="2 features"):
        check_table(model, X[:, :2], reset=False)
