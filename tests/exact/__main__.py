"""``python -m tests.exact 10000 [first]``: so many random fits against exact arithmetic."""

import sys
import time
from collections import Counter

from tests.exact.fits import check


def main(count, first=0):
    """Print what is wrong as it is found, and the counts in the end."""
    began, tallies, wrong = time.time(), Counter(), 0
    for seed in range(first, first + count):
        try:
            found = check(seed)
        except Exception:
            print(f"{seed}: an error")
            raise
        tallies["refused"] += bool(found.refused)
        tallies["not converged"] += not found.converged
        tallies["restricted"] += found.restricted
        tallies["changed coefficients"] += found.changed
        for sentence in found.wrong:
            wrong += 1
            print(f"{seed} {found.family} [{', '.join(found.traits)}]: {sentence}", flush=True)
        if not found.converged:
            print(
                f"{seed} {found.family} [{', '.join(found.traits)}]: gap {found.relative_gap:.2g}", flush=True
            )
        if (seed - first) % 500 == 499:
            print(
                f"-- {seed + 1 - first} fits, {wrong} wrong, {dict(tallies)}, {time.time() - began:.0f} s",
                flush=True,
            )
    print(f"{count} fits, {wrong} wrong, {dict(tallies)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
