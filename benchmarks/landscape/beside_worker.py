"""What runs in both builds: answers cases, one a line of the input."""

import sys

from benchmarks.landscape.beside import serve

if __name__ == "__main__":
    for seconds in serve(sys.stdin):
        print(seconds, flush=True)
