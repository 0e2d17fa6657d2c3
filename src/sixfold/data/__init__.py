"""From what the user has to what solvers read: checks, row blocks, built-in examples."""
