"""Gradient descent and stochastic gradients."""
