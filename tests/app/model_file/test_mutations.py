"""Damaged files end in a ModelFileError, or in a model that answers: no crash, no hang, little memory."""

from __future__ import annotations

import sys
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

from sixfold.app.model_file.classes import BUILDERS, describe
from sixfold.app.model_file.container import ALLOWED_ANYWAY, ALLOWED_TIMES, VALUE_BYTES, canonical
from sixfold.app.model_file.decode import Decoder
from sixfold.app.model_file.encode import Encoder
from sixfold.app.model_file.read import model_from
from sixfold.app.model_file.write import model_pieces
from sixfold.errors import ModelFileError
from tests.app.model_file.saved_models import case
from tests.fuzz.model_file_mutations import closed, opened
from tests.fuzz.mutate_model_files import in_another_process


@pytest.mark.limits_memory
def test_damaged_files_do_no_harm() -> None:
    """Here 3,000 of them; ``python -m tests.fuzz.mutate_model_files`` tries 24,000."""
    result = in_another_process(0, 3000, measured=True)
    wrong = [text for text in result["found"] if text.startswith(("FAILED", "unforeseen"))]
    assert wrong == []
    assert sum(result["found"].values()) == 3000
    assert result["found"]["refused"] >= 1400
    assert result["found"]["refused though sealed"] >= 700
    assert result["times"] < 10


def test_a_crash_is_seen() -> None:
    """A process that ends by a signal is a failure with a number, and the files after it are still tried."""
    crash = "import os; print(1, flush=True); os.kill(os.getpid(), 11)"
    program = [sys.executable, "-c", f"{crash}"]
    result = in_another_process(1, 2, False, program)
    assert any("FAILED 1: the process ended with -11" in text for text in result["found"])


@pytest.mark.parametrize(
    "value", ["[]", "{}", '"ab"', "1.5", "[0]", '{"a":0}', '{"tuple":[]}', '{"dict":[]}']
)
@pytest.mark.parametrize("place", ["facts", "parameter"])
def test_headers_that_announce_much_take_little(value: str, place: str) -> None:
    """As many small values as a file of its length may announce, and a few more."""
    header, tree, arrays = opened(b"".join(model_pieces(case("least squares")[0], {})))
    cost = sum(f"{value},".count(chr(mark[0])) * bytes_ for mark, bytes_ in VALUE_BYTES.items())
    count = 20_000
    filled = max(count * cost - ALLOWED_ANYWAY, 0) // ALLOWED_TIMES
    tree["facts"] = {"fill": "a" * filled}
    (tree["facts"] if place == "facts" else tree["model"]["model"][1])["random_state"] = "many"
    many = f"[{','.join([value] * count)}]"
    data = closed(header, canonical(tree).replace('"many"', many), arrays)
    tracemalloc.start()
    with suppress(ModelFileError):
        model_from(data, "the file")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(data) + (1 << 20)
    far = closed(header, canonical(tree).replace('"many"', f"[{many},{many},{many},{many}]"), arrays)
    if len(far) * ALLOWED_TIMES + ALLOWED_ANYWAY < 4 * count * cost:
        with pytest.raises(ModelFileError, match="use up memory"):
            model_from(far, "the file")


@pytest.mark.parametrize("word", ["ab", "Ā", "да", "\U0001f600"])
def test_many_short_words_take_little(word: str) -> None:
    encoder = Encoder(describe)
    node = encoder.node(np.array([word] * 50_000, dtype=object), "words")
    size = sum(array.nbytes for array in encoder.arrays.values())
    tracemalloc.start()
    found = Decoder(encoder.arrays, BUILDERS).value(node, "words")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[-1] == word
    assert peak < 9 * size
