"""The bytes of a model file: one safetensors file, sealed by a digest.

    8 bytes      n, the length of the header, little-endian
    n bytes      the header, JSON padded with spaces to a multiple of 8:
                 {"__metadata__": {"format": "2", "sha256": "...", "sixfold": "<JSON>"},
                  "<name>": {"dtype": "F64", "shape": [3, 4], "data_offsets": [0, 96]}, ...}
    the rest     the arrays, one after the other without gaps, little-endian, rows first

``sha256`` is that of the whole file with sixty-four zeros in its own place, so that a change of any bit is
found. Everything is checked before memory is asked for: the lengths against those of the file, the arrays
against each other, and the number of values that the header claims against its size.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import ModelFileError

Array = NDArray[Any]

DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "F16": "float16",
    "U32": "uint32", "I32": "int32", "F32": "float32", "U64": "uint64", "I64": "int64", "F64": "float64",
}  # fmt: skip
NAMES = {name: short for short, name in DTYPES.items()}
METADATA = {"format", "sha256", "sixfold"}
LENGTH_BYTES = 8
MOST_HEADER_BYTES = 100_000_000  # what readers of safetensors accept
NO_DIGEST = "0" * 64
SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})"')
MOST_AXES = 32
LARGEST_AXIS = 1 << 31  # of arrays without numbers, which take no bytes that could be compared
# What Python takes for what a byte of JSON announces, and what all together may take: of the files that are
# written, the densest (a search over many settings) announce six times their size.
VALUE_BYTES = {b"{": 200, b"[": 96, b",": 40, b'"': 28}
ALLOWED_ANYWAY, ALLOWED_TIMES = 1 << 20, 6


@dataclass(frozen=True)
class Container:
    """What a model file holds before anything is made of it.

    Attributes
    ----------
    version : int
        That of the format.
    tree : dict
        The description: class, parameters, attributes, facts.
    arrays : dict of str to ndarray
        Read-only views of the file.
    """

    version: int
    tree: dict[str, Any]
    arrays: dict[str, Array]


# -- writing -----------------------------------------------------------------------------------------------


def pieces(version: int, tree: Mapping[str, Any], arrays: Mapping[str, Array]) -> list[Any]:
    """Return the bytes of a file in pieces, the arrays as they lie in memory.

    Arrays are C-contiguous, of the types in :data:`DTYPES`. Wider numbers come first: all are aligned.
    """
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, Any] = {
        "__metadata__": {"format": str(version), "sha256": NO_DIGEST, "sixfold": canonical(tree)}
    }
    end = 0
    for name in order:
        array, start = arrays[name], end
        end += array.nbytes
        header[name] = {
            "dtype": NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
    text = canonical(header).encode("ascii")
    text += b" " * (-len(text) % LENGTH_BYTES)
    data: list[Any] = [memoryview(arrays[name]).cast("B") for name in order if arrays[name].size]  # type: ignore[arg-type]
    length = len(text).to_bytes(LENGTH_BYTES, "little")
    digest = hashlib.sha256()
    for piece in (length, text, *data):
        digest.update(piece)
    place = text.index(f'"sha256":"{NO_DIGEST}"'.encode()) + len('"sha256":"')
    text = text[:place] + digest.hexdigest().encode() + text[place + len(NO_DIGEST) :]
    return [length, text, *data]


def canonical(value: Any) -> str:
    """Return JSON that is the same for equal values: keys in order, no blanks, nothing but ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


# -- reading -----------------------------------------------------------------------------------------------


def parse(data: bytes, source: str) -> Container:
    """Return what the bytes of a file hold, after checking all that can be checked without a model."""
    end = LENGTH_BYTES + header_length(data, len(data), source)
    rest = memoryview(data)[end:]
    require_digest(data[:end], [rest], source)
    return _parsed(_header(data[LENGTH_BYTES:end], len(data), source), rest, source)


def parse_header(start: bytes, size: int, source: str) -> tuple[int, dict[str, Any]]:
    """Return version and description from the length and the header of a file of ``size`` bytes."""
    version, tree, _ = _described(_header(start[LENGTH_BYTES:], size, source), source)
    return version, tree


def header_length(start: bytes, size: int, source: str) -> int:
    """Return how many bytes the header has, by the first bytes of a file."""
    if size < LENGTH_BYTES + 2:
        raise ModelFileError(
            f"{source} is not a sixfold model file: it has {size} bytes, and the shortest has a header. Pass "
            "a file that `sixfold.save` or `sixfold fit` has written."
        )
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    if start[LENGTH_BYTES : LENGTH_BYTES + 1] != b"{" or length > MOST_HEADER_BYTES:
        raise ModelFileError(
            f"{source} is not a sixfold model file: it begins with {bytes(start[:12])!r}. Pass a file that "
            "`sixfold.save` or `sixfold fit` has written."
        )
    if length > size - LENGTH_BYTES:
        raise ModelFileError(
            f"{source} is cut off: its header should have {length} bytes, but {size - LENGTH_BYTES} are "
            "there. Copy the file again, or save the model again."
        )
    return length


def _header(text: bytes, size: int, source: str) -> dict[str, Any]:
    """Return what the header says, unless it says more than a file of this size can hold."""
    claimed = sum(text.count(mark) * cost for mark, cost in VALUE_BYTES.items())
    if claimed > ALLOWED_ANYWAY + ALLOWED_TIMES * size:
        raise ModelFileError(
            f"{source} is damaged, or was made to use up memory: its header announces values that would take "
            f"{claimed:,} bytes, and the file has {size:,}. Save the model again."
        )
    return read_json(text, f"The header of {source}")


def read_json(text: bytes | str, what: str) -> dict[str, Any]:
    """Return the object that JSON describes; each key may be there once, and numbers are finite."""
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelFileError(f"{what} is damaged: {reason}. Save the model again.") from None
    if not isinstance(found, dict):
        raise ModelFileError(f"{what} is damaged: it is no object of JSON. Save the model again.")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} is there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def require_digest(start: bytes, rest: Iterable[Any], source: str) -> None:
    """Raise a :class:`ModelFileError` unless the file is what was written, to the last bit.

    ``start`` are its length and header, ``rest`` are the bytes after them, in pieces.
    """
    seals = list(SEAL.finditer(start))
    if len(seals) != 1:
        raise ModelFileError(
            f"{source} is not a sixfold model file, or its header was changed: it has {len(seals)} digests "
            "(sha256), not one. Pass a file that `sixfold.save` has written."
        )
    first, last = seals[0].span(1)
    digest = hashlib.sha256(start[:first] + NO_DIGEST.encode() + start[last:])
    for piece in rest:
        digest.update(piece)
    if digest.hexdigest().encode() != seals[0].group(1):
        raise ModelFileError(
            f"{source}: the sha256 does not match, so the file was changed, damaged or cut off after it was "
            "written. Copy it again, or save the model again."
        )


def _described(header: dict[str, Any], source: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Return version, description, and what the header says of each array."""
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or set(metadata) != METADATA:
        raise ModelFileError(
            f"{source} holds arrays, but no sixfold model: its metadata are not {', '.join(sorted(METADATA))}"
            ". Pass a file that `sixfold.save` has written."
        )
    version, text = metadata["format"], metadata["sixfold"]
    if not isinstance(version, str) or not re.fullmatch(r"[1-9][0-9]{0,3}", version):
        raise ModelFileError(f"{source} is damaged: its format version is {version!r:.40}. Save it again.")
    if not isinstance(text, str):
        raise ModelFileError(f"{source} is damaged: its description is no text. Save the model again.")
    return int(version), read_json(text, f"The description in {source}"), header


def _parsed(header: dict[str, Any], data: memoryview, source: str) -> Container:
    version, tree, entries = _described(header, source)
    arrays, end = {}, 0
    for name, dtype, shape, start, stop in sorted(_entries(entries, source), key=lambda one: one[3:]):
        if start != end:
            raise ModelFileError(
                f"{source} is damaged: the array {name[:80]!r} begins at byte {start}, but the one before it "
                f"ends at {end}. Save the model again."
            )
        if stop > len(data):
            raise ModelFileError(
                f"{source} is cut off: the array {name[:80]!r} ends at byte {stop}, but {len(data)} are "
                "there. Copy the file again."
            )
        flat = np.frombuffer(data[start:stop], dtype) if stop > start else np.empty(0, dtype)
        arrays[name], end = flat.reshape(shape), stop
    if end != len(data):
        raise ModelFileError(
            f"{source} is damaged: {len(data) - end} bytes follow the last array. Save the model again."
        )
    return Container(version, tree, arrays)


def _entries(entries: dict[str, Any], source: str) -> Iterator[tuple[str, Any, tuple[int, ...], int, int]]:
    """Go through the arrays: name, type, shape, where each begins and ends."""
    for name, entry in entries.items():
        if not _is_entry(entry):
            raise ModelFileError(
                f"{source} is damaged: the header's entry of the array {name[:80]!r} is no type, shape and "
                "place. Save the model again."
            )
        dtype, shape = np.dtype(DTYPES[entry["dtype"]]).newbyteorder("<"), tuple(entry["shape"])
        start, stop = entry["data_offsets"]
        if math.prod(shape) * dtype.itemsize != stop - start:
            raise ModelFileError(
                f"{source} is damaged: the array {name[:80]!r} of shape {shape} and type {entry['dtype']} "
                f"does not fill its {stop - start} bytes. Save the model again."
            )
        yield name, dtype, shape, start, stop


def _is_entry(entry: Any) -> bool:
    """Return whether this says what type and shape an array has, and where it is."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return False
    dtype, places = entry["dtype"], entry["data_offsets"]
    known = isinstance(dtype, str) and dtype in DTYPES
    return known and are_sizes(entry["shape"]) and _are_counts(places) and len(places) == 2


def are_sizes(shape: Any) -> bool:
    """Return whether these are the lengths of the axes of an array."""
    return _are_counts(shape) and (0 not in shape or max(shape) <= LARGEST_AXIS)


def _are_counts(values: Any) -> bool:
    if not isinstance(values, list) or len(values) > MOST_AXES:
        return False
    return all(type(value) is int and 0 <= value < 1 << 62 for value in values)
