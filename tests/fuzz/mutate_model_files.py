"""Load thousands of damaged model files: ``python -m tests.fuzz.mutate_model_files --cases 24000``.

Each has to end in a ModelFileError, or in a model that answers: with the digest of the original as the
original did, to the last bit; with a digest that was made to fit as it may, but without a crash, a hang, or
an error that is neither ours nor a ValueError of scikit-learn. Loading may not take more than ten times the
bytes of the file (and 1 MB).

Files are loaded in another process, which is killed when one takes longer than ten seconds: a crash or a hang
is seen and has a number.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
import traceback
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

SECONDS = 10  # for one file
MEMORY = 3 << 30  # of the process, on top of what it has when it begins
TIMES, ANYWAY = 10, 1 << 20
EVERY = 9  # of the files, memory is looked at, and of all with --measured
LARGE = 100_000  # bytes of files that the figure at the end speaks of
FILES = (
    "pipeline, table",
    "tree, categories",
    "neighbours, gower",
    "svm, probabilities",
    "svm, sparse",
    "grid",
    "least squares",
    "encoder",
    "neighbours, tree",
    "neighbours, sparse",
    "tree, sparse",
    "perceptron in batches",
    "logistic path",
    "svm, sum and product",
    "averages, several",
    "encoder, neighbours",
    "random",
    "erm in batches",
    "radius, columns of labels",
)


def run_cases(first: int, last: int, measured: bool) -> None:
    """Load the files of these numbers, each after its number was printed; then print what became of them."""
    from tests.fuzz.model_file_mutations import mutated

    warnings.simplefilter("ignore")
    known = originals()
    if (taken := Path("/proc/self/statm")).exists():  # Linux
        size = int(taken.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    found: Counter[str] = Counter()
    largest = 0.0
    for number in range(first, last):
        name = FILES[number // 2 % len(FILES)]
        data, X, before = known[name]
        damaged, sealed = mutated(data, number)
        print(number, flush=True)
        model, text, peak = loaded(damaged, sealed, measured or number % EVERY == 1)
        largest = max(largest, peak / len(damaged) if len(damaged) > LARGE else 0.0)
        if peak > TIMES * len(damaged) + ANYWAY:
            text = f"FAILED: {peak:,} bytes for a file of {len(damaged):,}"
        elif model is not None:
            text = compared(model, X, before, sealed)
        found[f"{text} ({number}, {name})" if text.startswith(("FAILED", "unforeseen")) else text] += 1
    print(json.dumps({"found": found, "times": largest}))


def originals() -> dict[str, tuple[bytes, Any, dict[str, Any]]]:
    """Return the files to be damaged, each with rows to predict, and what is predicted."""
    from sixfold.app.model_file.read import model_from
    from sixfold.app.model_file.write import model_pieces
    from tests.app.model_file.saved_models import answers, case

    found = {}
    for name in FILES:
        model, X, _ = case(name)
        data = b"".join(model_pieces(model, {"target": "y"}))
        found[name] = data, X, answers(model_from(data, name).model, X)
    return found


def loaded(data: bytes, sealed: bool, measured: bool) -> tuple[Any, str, int]:
    """Return the model, or None with what was said, and the most memory that loading took."""
    from sixfold.app.model_file.read import model_from
    from sixfold.errors import ModelFileError

    model, text, peak = None, "", 0
    if measured:
        tracemalloc.start()
    signal.alarm(SECONDS)
    try:
        model = model_from(data, "the file").model
    except ModelFileError as error:
        text = f"refused{' though sealed' * sealed}"
        if "cannot be put together" in str(error):
            text = f"unforeseen: {error}"
    except BaseException as error:
        text = f"FAILED: {type(error).__name__}: {error!s:.100}"
    finally:
        signal.alarm(0)
        if measured:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return model, text, peak


def compared(model: Any, X: Any, before: dict[str, Any], sealed: bool) -> str:
    """Return how the answers of a model from a damaged file compare with those of the original."""
    from sklearn.exceptions import NotFittedError

    from sixfold.errors import SixfoldError
    from tests.app.model_file.saved_models import answers, same

    signal.alarm(SECONDS)
    try:
        after = answers(model, X)
    except BaseException as error:
        # Of scikit-learn: other names of columns, gaps that an imputer does not look for.
        place = traceback.extract_tb(error.__traceback__)[-1].filename
        ours = isinstance(error, SixfoldError | NotFittedError)
        ours = ours or (isinstance(error, ValueError) and "sklearn" in place)
        return (
            "answers with a sentence"
            if sealed and ours
            else f"FAILED: {type(error).__name__}: {error!s:.100}"
        )
    finally:
        signal.alarm(0)
    equal = before.keys() == after.keys() and all(same(before[one], after[one]) for one in before)
    if not equal and not sealed:
        return "FAILED: other answers"
    return "same answers" if equal else "other answers, of another model"


def in_another_process(
    first: int, last: int, measured: bool, program: list[str] | None = None
) -> dict[str, Any]:
    """Return what became of the files of these numbers; one that ends the process is named."""
    command = program or [sys.executable, "-m", "tests.fuzz.mutate_model_files", "--here"]
    command += ["--first", str(first), "--cases", str(last - first), *["--measured"] * measured]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines and lines[-1].startswith("{"):
        result: dict[str, Any] = json.loads(lines[-1])
        return result
    number = int(lines[-1]) if lines and lines[-1].isdigit() else first
    text = f"FAILED {number}: the process ended with {done.returncode}: {done.stderr[-300:]}"
    rest = (
        in_another_process(number + 1, last, measured, program)
        if number + 1 < last and lines
        else {"found": {}}
    )
    return {"found": {**rest["found"], text: 1}, "times": rest.get("times", 0.0)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=24_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--measured", action="store_true", help="also look at the memory that loading takes")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    first, last = given.first, given.first + given.cases
    if given.here:
        run_cases(first, last, given.measured)
        return 0
    begun, total, times = time.perf_counter(), Counter(), 0.0  # type: ignore[var-annotated]
    for start in range(first, last, 4000):
        part = in_another_process(start, min(start + 4000, last), given.measured)
        total.update(part["found"])
        times = max(times, part["times"])
    failed = [text for text in total if text.startswith("FAILED")]
    for text, count in sorted(total.items()):
        print(f"{count:7,}  {text}")
    seconds = time.perf_counter() - begun
    print(f"{last - first:,} files in {seconds:.0f} s; large ones took at most {times:.1f} times their bytes")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
