"""sixfold."""
