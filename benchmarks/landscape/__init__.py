"""Every learner over sizes, shapes and classes beside its best peer: where each is ahead, and by how much."""
