"""Learners: scikit-learn estimators, each a named choice of hypothesis, loss, penalty and solver."""
