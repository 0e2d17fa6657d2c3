"""Every parametric learner on everyday data: whether each fit is certified, confirmed, and quick.

``python -m benchmarks.gauntlet`` (``make gauntlet``) fits the settings of ``settings.py`` to the tables of
``tables.py`` and ``families.py``.
"""
