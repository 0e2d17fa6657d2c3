"""Nearest neighbours beside their peers."""
