"""Decision trees: growth, exhaustive splits, pruning."""
