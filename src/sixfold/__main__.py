"""``python -m sixfold``: see :mod:`sixfold.app.cli`."""

from sixfold.app.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
