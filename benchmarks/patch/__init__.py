"""One line added to a script."""
