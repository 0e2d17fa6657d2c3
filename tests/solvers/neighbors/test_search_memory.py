"""Running out of memory is an error of the search, whichever thread meets it, and it can be asked again."""

import subprocess
import sys
from pathlib import Path

import pytest

# All pairs of 6,000 rows take 576 MB; 16 MB more than the process has are allowed.
PROGRAM = """
import resource
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sixfold.budget import Budget
from sixfold.geometry.distances.base import EUCLIDEAN
from sixfold.solvers.neighbors.kd_tree import KdTree
from sixfold.solvers.neighbors.projected import ProductSearch, ProjectedSearch
from sixfold.solvers.neighbors.scan import ScanSearch
from sixfold.solvers.neighbors.sparse import SparseSearch

soft, hard = resource.getrlimit(resource.RLIMIT_AS)
wide = np.random.default_rng(0).normal(size=(6000, 130))
few = np.ascontiguousarray(wide[:, :6])
for search, X in [
    (ProjectedSearch(wide, EUCLIDEAN), wide),
    (ProductSearch(few, EUCLIDEAN), few),
    (KdTree(few, EUCLIDEAN), few),
    (ScanSearch(few, EUCLIDEAN), few),
    (SparseSearch(sp.csr_array(few), EUCLIDEAN), sp.csr_array(few)),
]:
    search.within(X[:100], 0.0, Budget())  # starts the threads
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 24), hard))
    try:
        search.within(X, np.inf, Budget())
    except MemoryError:
        print("refused", end=" ")
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    print(*search.within(X[:1], 0.0, Budget()).rows, flush=True)
"""


@pytest.mark.limits_memory
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux how much memory is taken")
def test_running_out_of_memory_is_an_error():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused 0\n" * 5), done.stderr
