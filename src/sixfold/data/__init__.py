"""From what the user has to what solvers read: files and their columns, checks, row blocks, examples."""
