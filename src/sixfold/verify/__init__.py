"""The checker: recomputes what a certificate claims from the data alone."""
