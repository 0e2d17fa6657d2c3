"""scikit-learn's own tests pass with the patch on, but for those that are listed."""

import pytest

from peers.patched_differences import reason_of
from peers.patched_suite import MODULES, run

# The others are run by `make test-tools`: these alone take half of the time of all.
SLOW = ("linear_model/tests/test_ridge.py", "neighbors/tests/test_neighbors.py")


@pytest.mark.parametrize("module", [one for one in MODULES if one not in SLOW])
def test_what_does_not_pass_is_what_is_listed(module):
    outcome = run(module)
    unexpected = {name: why for name, why in outcome.failed.items() if reason_of(name) is None}
    assert not unexpected, "\n\n".join(f"{name}\n{why}" for name, why in unexpected.items())
    assert not module.endswith("test_base.py") or outcome.fits["sixfold"] > 100  # it is ours that is tested
