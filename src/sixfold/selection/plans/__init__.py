"""How the candidates of a search share work on one fold: a plan for each family of learners."""
