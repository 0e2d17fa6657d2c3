"""How far rows are from each other, whatever learns from it."""
