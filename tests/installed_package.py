"""Try an installed sixfold: with the loops of every level that runs here, every learner proves its fits.

``make wheel`` runs this with the Python of a bare virtual environment: no test tools, no source tree.
"""

import os
import platform
import subprocess
import sys


def try_every_level():
    from sixfold import _native

    built = _native.built_levels()
    if platform.machine() == "x86_64":
        assert built == ["v2", "v3", "v4"], f"a wheel has every level, this one {built}"
    for level in built[: built.index(_native.level) + 1]:
        subprocess.run(
            [sys.executable, "-I", __file__, "learners"], env={**os.environ, "SIXFOLD_ISA": level}, check=True
        )


def try_every_learner():
    from sixfold import _native
    from sixfold.data.examples import load_example
    from sixfold.learners.registry import LEARNERS, TRANSFORMERS

    asks = {
        "search": lambda model, X: model.kneighbors()[1],
        "transformation": lambda model, X: model.transform(X),
    }
    for learner in LEARNERS + TRANSFORMERS:
        for demonstration in learner.demonstrations:
            example = load_example(demonstration.example)
            model = learner.make(**demonstration.parameters).fit(example.X, example.y)
            model.certificate_.verify(example.X, example.y)
            asked = asks.get(learner.task, lambda model, X: model.predict(X))(model, example.X)
            assert asked.shape[0] == example.y.shape[0]
    count = len(LEARNERS + TRANSFORMERS)
    print(f"{_native.level}: {count} learners fit, answer and prove it ({_native.__file__})")


if __name__ == "__main__":
    try_every_learner() if sys.argv[1:] else try_every_level()
