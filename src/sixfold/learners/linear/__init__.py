"""Learners whose scores are w.x + b."""
