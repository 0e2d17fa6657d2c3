"""Files of models, damaged on purpose.

Three ways: bytes are changed (which the digest finds), bytes are changed and the digest is made to fit, and
the description or an array is changed for the worse by someone who knows the format, digest included.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from sixfold.app.model_file.container import DTYPES, LENGTH_BYTES, NO_DIGEST, SEAL, canonical

Mutation = Callable[[bytes, random.Random], bytes]

# -- bytes -------------------------------------------------------------------------------------------------


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def drop(data: bytes, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(data)), rng.choice([1, 1, 4, 8, 64])
    return data[:start] + data[start + length :]


def insert(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    more = rng.randbytes(rng.choice([1, 1, 4, 8, 64]))
    return data[:start] + more + data[start:]


def duplicate(data: bytes, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(data)), rng.choice([1, 8, 64, 1024])
    return data[: start + length] + data[start:]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(data)), rng.choice([1, 2, 4, 8])
    value = rng.choice([b"\0", b"\xff", b"\x7f", b"\x80", b"{", b"[", b'"', b" "]) * length
    return data[:start] + value + data[start + length :]


def swap(data: bytes, rng: random.Random) -> bytes:
    length = rng.choice([1, 8, 64])
    first, second = sorted(rng.randrange(len(data)) for _ in range(2))
    second = max(second, first + length)
    one, other = data[first : first + length], data[second : second + length]
    return data[:first] + other + data[first + length : second] + one + data[second + length :]


BYTES: list[Mutation] = [flip, drop, insert, duplicate, truncate, overwrite, swap]


def sealed(data: bytes) -> bytes:
    """Return a file with a digest that fits, and a length of the header that does if it is off by little."""
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    seals = list(SEAL.finditer(data[LENGTH_BYTES : LENGTH_BYTES + min(length, len(data))]))
    if len(seals) != 1:
        return data
    start, end = (LENGTH_BYTES + place for place in seals[0].span(1))
    blank = data[:start] + NO_DIGEST.encode() + data[end:]
    return data[:start] + hashlib.sha256(blank).hexdigest().encode() + data[end:]


def resealed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change bytes of the arrays, or of the header without a change of its length, and seal the file."""
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    start = LENGTH_BYTES + length
    if rng.random() < 0.6 and start < len(data):
        return sealed(
            data[:start] + rng.choice([flip, overwrite, swap])(data[start:], rng)[: len(data) - start]
        )
    head = rng.choice([flip, overwrite, swap])(data[LENGTH_BYTES:start], rng)[:length].ljust(length)
    return sealed(data[:LENGTH_BYTES] + head + data[start:])


# -- by someone who knows the format -----------------------------------------------------------------------


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return header, description and arrays of a file."""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    header = json.loads(data[LENGTH_BYTES:end])
    return header, json.loads(header["__metadata__"]["sixfold"]), data[end:]


def closed(header: dict[str, Any], tree: Any, arrays: bytes) -> bytes:
    """Return a file with this header, description and arrays, sealed."""
    text = tree if isinstance(tree, str) else json.dumps(tree, sort_keys=True, separators=(",", ":"))
    metadata = {**header["__metadata__"], "sha256": NO_DIGEST, "sixfold": text}
    written = canonical({**header, "__metadata__": metadata}).encode()
    written += b" " * (-len(written) % LENGTH_BYTES)
    return sealed(len(written).to_bytes(LENGTH_BYTES, "little") + written + arrays)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value inside JSON."""
    found = [path] if path else []
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        found += places(value, (*path, key))
    return found


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    255,
    2**31 - 1,
    2**31,
    -(2**31),
    2**53,
    2**62,
    2**63,
    2**64,
    -(2**63),
    10**30,
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e300,
    -1e308,
    1.5,
    True,
    False,
]
WORDS = [
    "",
    "x",
    "C",
    "F",
    "auto",
    "nan",
    "text",
    "float64",
    "int32",
    "object",
    "csr_array",
    "passthrough",
    "linear",
    "euclidean",
    "precomputed",
    "gower",
    "balanced",
    "__class__",
    "os.system",
    "é\ud800",
    "a" * 300,
    "SVC",
    "Pipeline",
    "KNeighborsClassifier",
    "FittedTree",
    "StoredRows",
    "RBF",
    "model",
    "kd_tree",
]


def hostile(rng: random.Random, tree: Any, old: Any) -> Any:
    """Return another value in place of an old one."""
    kind = rng.randrange(10)
    if isinstance(old, int | float) and not isinstance(old, bool) and kind < 6:
        return rng.choice([*NUMBERS, old + 1, old - 1, -old, old * 2, float(old)])
    if isinstance(old, str) and kind < 6:
        return rng.choice([*WORDS, old[:-1], old + "_", old.upper(), old * 2])
    if kind == 6:
        return rng.choice(
            [[], {}, [[]], [None] * 20, [[[]]] * 8, {"float": "nan"}, {"float": "inf"}, {"tuple": []}]
        )
    if kind == 7:
        return copy.deepcopy(at(tree, rng.choice(places(tree))))  # something else of the same file
    if kind == 8:
        return rng.choice(
            [
                {"dict": []},
                {"range": [0, 2**62, 1]},
                {"scalar": ["float32", 1e300]},
                {"scalar": ["int8", 5]},
                {"objects": [[0, 2**31], []]},
                {"slice": [None, None, None]},
                {"objects": [[2**31, 2**31], []]},
                {"type": "object"},
                {"words": [[0], "a", "b"]},
                {"part": ["RBF", [1.0, None]]},
                {"part": ["Linear", []]},
                {"model": ["SVC", {}, {}]},
                {"sparse": ["csr_array", [2**31 - 1, 5], [], [], []]},
                {"set": [1, 2]},
            ]
        )
    return rng.choice([None, *NUMBERS, *WORDS])


def edit_tree(data: bytes, rng: random.Random) -> bytes:
    """Replace, remove, add, repeat or exchange values of the description."""
    header, tree, arrays = opened(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        listed = [path for path in places(tree) if len(path) > 1 or path == ("class",)]
        path = rng.choice(listed)
        above, key = at(tree, path[:-1]), path[-1]
        kind = rng.randrange(10)
        if kind < 6:
            above[key] = hostile(rng, tree, above[key])
        elif kind == 6:
            del above[key]
        elif isinstance(above, list):
            other = rng.randrange(len(above))
            if kind == 7:
                above.insert(other, copy.deepcopy(above[key]))
            else:
                above[key], above[other] = above[other], above[key]
        else:
            other = rng.choice(list(above))
            if kind == 7:
                above[rng.choice([*WORDS, f"{key}_"])] = copy.deepcopy(above[key])
            else:
                above[key], above[other] = above[other], above[key]
    return closed(header, tree, arrays)


def edit_text(data: bytes, rng: random.Random) -> bytes:
    """Change the text of the description: keys that are there twice, deep nesting, many values, no JSON."""
    header, tree, arrays = opened(data)
    text = canonical(tree)
    kind = rng.randrange(6)
    if kind == 0:
        text = text.replace("{", '{"class":"SVC",', 1)
    elif kind == 1:
        depth = rng.choice([70, 2000, 200_000])
        text = text.replace('"facts":{', '"facts":{"deep":' + "[" * depth + "]" * depth + ",", 1)
    elif kind == 2:
        many = rng.choice(["[]", "{}", '"ab"', "1.5", "[0]", '{"a":0}'])
        text = text.replace(
            '"facts":{', '"facts":{"many":[' + ",".join([many] * rng.choice([10, 200_000])) + "],", 1
        )
    elif kind == 3:
        digits = rng.choice([300, 5000, 100_000])
        text = text.replace('"facts":{', '"facts":{"long":' + "9" * digits + ",", 1)
    else:
        place = rng.randrange(len(text))
        text = (
            text[:place]
            + rng.choice(["NaN", "Infinity", "\\u0000", "é", ",", "}", "]", "1e999"])
            + text[place:]
        )
    return closed(header, text, arrays)


def edit_entry(data: bytes, rng: random.Random) -> bytes:
    """Change what the header says of an array: type, shape, place, name."""
    header, tree, arrays = opened(data)
    names = [name for name in header if name != "__metadata__"]
    if not names:
        return flip(data, rng)
    name = rng.choice(names)
    entry, kind = header[name], rng.randrange(7)
    if kind == 0:
        entry["dtype"] = rng.choice([*DTYPES, "BF16", "F8_E4M3", "", 7])
    elif kind == 1:
        entry["shape"] = rng.choice(
            [
                [],
                [0],
                [2**40],
                [0, 2**31],
                [-1],
                entry["shape"][::-1],
                [1, *entry["shape"]],
                [2**32, 2**32],
                [0, 2**62],
                [1.5],
                None,
                [1] * 40,
            ]
        )
    elif kind == 2:
        place = rng.randrange(2)
        entry["data_offsets"][place] = hostile(rng, tree, entry["data_offsets"][place])
    elif kind == 3:
        header[rng.choice([*WORDS, f"{name} (2)"])] = header.pop(name)
    elif kind == 4:
        header[name], header[rng.choice(names)] = header[rng.choice(names)], header[name]
    elif kind == 5:
        del header[name]
    else:
        header["__metadata__"][rng.choice(["format", "sixfold", "more"])] = rng.choice(
            ["0", "1", "3", "99", "x", "2"]
        )
    return closed(header, tree, arrays)


def edit_array(data: bytes, rng: random.Random) -> bytes:
    """Change numbers of an array: indices that lead astray, infinities, all of one kind."""
    header, tree, arrays = opened(data)
    names = [name for name, entry in header.items() if name != "__metadata__" and 0 not in entry["shape"]]
    if not names:
        return flip(data, rng)
    entry = header[rng.choice(names)]
    start, stop = entry["data_offsets"]
    values = np.frombuffer(arrays[start:stop], DTYPES[entry["dtype"]]).copy()
    for _ in range(rng.choice([1, 1, 3, values.size])):
        place = rng.randrange(values.size)
        if values.dtype.kind == "f":
            values[place] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e30, 5e-324, values[place] * 2])
        else:
            low, high = (
                (0, 1)
                if values.dtype.kind == "b"
                else (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max)
            )
            choices = [low, high, high // 2, 0, 1, 2, values.size, int(values[rng.randrange(values.size)])]
            choices += [int(values[place]) + 1, int(values[place]) - 1]
            values[place] = min(max(rng.choice(choices), low), high)
    raw = values.tobytes()
    if values.dtype.kind == "b" and rng.random() < 0.5:
        raw = bytes([rng.randrange(256)]) + raw[1:]
    return closed(header, tree, arrays[:start] + raw + arrays[stop:])


def grow_array(data: bytes, rng: random.Random) -> bytes:
    """Make an array longer or shorter, so that it no longer fits the others."""
    header, tree, arrays = opened(data)
    names = [name for name, entry in header.items() if name != "__metadata__" and 0 not in entry["shape"]]
    names = [name for name in names if header[name]["shape"]]
    if not names:
        return flip(data, rng)
    name = rng.choice(names)
    start, stop = header[name]["data_offsets"]
    axis = rng.randrange(len(header[name]["shape"]))
    values = np.frombuffer(arrays[start:stop], DTYPES[header[name]["dtype"]]).reshape(header[name]["shape"])
    part = np.take(values, [0], axis=axis)
    shorter = np.delete(values, -1, axis=axis)
    values = np.ascontiguousarray(
        np.concatenate([values, part], axis=axis) if rng.random() < 0.5 else shorter
    )
    header[name]["shape"] = list(values.shape)
    more = values.nbytes - (stop - start)
    for key, entry in header.items():
        if key == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        if key == name:
            entry["data_offsets"] = [begin, end + more]
        elif begin >= stop:
            entry["data_offsets"] = [begin + more, end + more]
    return closed(header, tree, arrays[:start] + values.tobytes() + arrays[stop:])


SEMANTIC: list[Mutation] = [
    edit_tree,
    edit_tree,
    edit_tree,
    edit_array,
    edit_array,
    edit_entry,
    grow_array,
    edit_text,
    resealed_bytes,
]


def mutated(data: bytes, number: int) -> tuple[bytes, bool]:
    """Return a damaged file, and whether its digest was made to fit; the number says which."""
    rng = random.Random(number)
    known = number % 2 == 1
    return rng.choice(SEMANTIC if known else BYTES)(data, rng), known
