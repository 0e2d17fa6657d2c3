"""Empirical risk: losses, penalties, and the one problem they make up."""
