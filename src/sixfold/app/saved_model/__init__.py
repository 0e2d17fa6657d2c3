"""A model file as commands use it: opened, scored piece by piece, compared, its training rows read back."""
