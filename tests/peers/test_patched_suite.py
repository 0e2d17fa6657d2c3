"""scikit-learn's own tests pass with the patch on, but for those that are listed."""

import pytest

from peers.patched_differences import reason_of
from peers.patched_suite import run

# The other files take minutes: `make test-tools` runs all of them.
QUICK = (
    "linear_model/tests/test_base.py",
    "svm/tests/test_svm.py",
    "tree/tests/test_tree.py",
    "tree/tests/test_export.py",
    "neighbors/tests/test_neighbors_pipeline.py",
    "neighbors/tests/test_graph.py",
)


@pytest.mark.parametrize("module", QUICK)
def test_what_does_not_pass_is_what_is_listed(module):
    outcome = run(module)
    unexpected = {name: why for name, why in outcome.failed.items() if reason_of(name) is None}
    assert not unexpected, "\n\n".join(f"{name}\n{why}" for name, why in unexpected.items())
    assert not module.endswith("test_base.py") or outcome.fits["sixfold"] > 100  # it is ours that is tested
