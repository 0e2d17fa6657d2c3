"""The exact median of numbers that come in pieces, in one pass, with memory that does not grow with them.

    near the middle   values between two marks are kept with their counts, those below are counted; the marks
                      move together as numbers come, so that WIDTH ranks on either side of the middle remain
    on disk           every number is also written to a temporary file, which is read only where the middle
                      has left the marks in the end, as in a sorted column: the range of the middle is cut
                      into 65,536 parts again and again, by whole numbers that are in the order of the floats

In a random order of the rows the middle of N numbers moves by some sqrt(N) / 2 ranks: the file is not read.
No algorithm gets by without it: one pass over numbers in any order has to keep as many as there are (Munro
and Paterson 1980).
"""

from __future__ import annotations

import errno
import math
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixfold.errors import InputError

Array = NDArray[Any]

WIDTH = 1 << 15  # ranks on either side of the middle that are kept
WAITING = 1 << 16  # numbers that are looked at before they are sorted
AT_ONCE = 1 << 20  # numbers that are sorted rather than counted
BITS = 16  # of a part of a range
IN_MEMORY = 1 << 24  # bytes that the file may have before it becomes one


class NumberStore:
    """Numbers in a temporary file, which is in memory while it is small, and gone when it is closed.

    Parameters
    ----------
    folder : str or None
        Where the file is; None takes the system's place for such.
    """

    def __init__(self, folder: Any = None) -> None:
        self._folder = folder
        self._end = 0
        # Closed by close(): it outlives the call that makes it.
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="sixfold-", dir=folder)  # noqa: SIM115

    def append(self, numbers: Array) -> int:
        """Write float64 numbers, and return their place."""
        place = self._end
        try:
            self._file.write(np.ascontiguousarray(numbers).data)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            where = self._folder or tempfile.gettempdir()
            raise InputError(
                f"There is no space left in {str(where)!r}, where the numbers of the columns are kept until "
                "their medians are known: 8 bytes each. Name another folder by folder=."
            ) from error
        self._end += numbers.size * 8
        return place

    def read(self, place: int, count: int) -> Array:
        """Return so many numbers from a place on."""
        numbers = np.empty(count)
        view = numbers.data.cast("B")
        self._file.seek(place)
        done = 0
        while done < len(view):
            read = self._file.readinto(view[done:])
            if not read:
                raise OSError(f"The temporary file ends {len(view) - done} bytes too early.")
            done += read
        return numbers

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


class RunningMedian:
    """The two numbers in the middle of those so far.

    Parameters
    ----------
    store : NumberStore
    """

    def __init__(self, store: NumberStore) -> None:
        self.count = 0
        self._store = store
        self._places: list[tuple[int, int]] = []
        self._low, self._high, self._below = -math.inf, math.inf, 0
        self._values, self._counts = np.empty(0), np.empty(0, dtype=np.int64)
        self._waiting: list[Array] = []
        self._lost = False

    def add(self, numbers: Array) -> None:
        """Take float64 numbers without NaN."""
        self._places.append((self._store.append(numbers), numbers.size))
        self.count += numbers.size
        if self._lost:
            return
        self._below += int(np.count_nonzero(numbers < self._low))
        self._waiting.append(numbers[(numbers >= self._low) & (numbers <= self._high)])
        if sum(map(len, self._waiting)) >= WAITING:
            self._sort()
            self._narrow()

    def _sort(self) -> None:
        """Add what waits to the values between the marks."""
        values, counts = np.unique(np.concatenate([np.empty(0), *self._waiting]), return_counts=True)
        self._waiting = []
        places = np.searchsorted(self._values, values)
        known = np.append(self._values, np.nan)[places] == values
        self._counts[places[known]] += counts[known]
        self._values = np.insert(self._values, places[~known], values[~known])
        self._counts = np.insert(self._counts, places[~known], counts[~known])

    def _narrow(self) -> None:
        """Move the marks towards the middle."""
        width = max(WIDTH, int(8 * math.sqrt(self.count)))
        middle = (self.count - 1) // 2 - self._below
        ends = np.cumsum(self._counts)
        if not 0 <= middle < ends[-1]:
            self._lost, self._values = True, np.empty(0)
            return
        first, last = np.searchsorted(ends, [max(middle - width, 0), middle + width], side="right")
        last = min(last, self._values.size - 1)
        self._below += int(ends[first - 1]) if first else 0
        if first:
            self._low = self._values[first]
        if last < self._values.size - 1:
            self._high = self._values[last]
        self._values, self._counts = self._values[first : last + 1], self._counts[first : last + 1]

    def middle(self, low: float, high: float) -> tuple[float, float]:
        """Return the numbers at ranks (n - 1) // 2 and n // 2, counted from 0.

        Parameters
        ----------
        low, high : float
            The smallest and the largest of all.
        """
        lower, upper = (self.count - 1) // 2, self.count // 2
        if not self._lost:
            self._sort()
            ends = np.cumsum(self._counts)
            if self._below <= lower and upper - self._below < ends[-1]:
                places = np.searchsorted(ends, np.array([lower, upper]) - self._below, side="right")
                return float(self._values[places[0]]), float(self._values[places[1]])
        return self._stored_middle(low, high)

    def _stored_middle(self, low: float, high: float) -> tuple[float, float]:
        """Return the same from the file."""
        lower, upper = (self.count - 1) // 2, self.count // 2
        first, last = (int(one) for one in _ranks_of_floats(np.array([low, high])))
        below, inside = 0, self.count
        while inside > AT_ONCE and first < last:
            shift = max((last - first).bit_length() - BITS, 0)
            counts = np.zeros(((last - first) >> shift) + 1, dtype=np.int64)
            for place, size in self._places:
                ranks = _ranks_of_floats(self._store.read(place, size))
                ranks = ranks[(ranks >= np.uint64(first)) & (ranks <= np.uint64(last))]
                parts = ((ranks - np.uint64(first)) >> np.uint64(shift)).astype(np.intp)
                counts += np.bincount(parts, minlength=counts.size)
            ends = np.cumsum(counts)
            part = int(np.searchsorted(ends, lower - below, side="right"))
            below += int(ends[part] - counts[part])
            inside = int(counts[part])
            first, last = first + (part << shift), min(first + ((part + 1) << shift) - 1, last)
        near, above = [], math.inf
        for place, size in self._places:
            numbers = self._store.read(place, size)
            ranks = _ranks_of_floats(numbers)
            within = (ranks >= np.uint64(first)) & (ranks <= np.uint64(last))
            near.append(numbers[within] if first < last else numbers[within][:1])
            above = min(above, numbers[ranks > np.uint64(last)].min(initial=math.inf))
        values = np.sort(np.concatenate(near))
        found = [
            float(values[min(rank - below, values.size - 1)]) if rank - below < inside else above
            for rank in (lower, upper)
        ]
        return found[0], found[1]


def _ranks_of_floats(numbers: Array) -> Array:
    """Return whole numbers that are in the same order; 0 and -0 are one.

    >>> ranks = _ranks_of_floats(np.array([-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, np.inf]))
    >>> np.diff(ranks.astype(float)).tolist()[2:4], bool((np.diff(ranks) >= 0).all())
    ([0.0, 0.0], True)
    """
    bits = (numbers + 0.0).view(np.uint64)
    top = np.uint64(1 << 63)
    return np.where(bits & top, ~bits, bits | top)
