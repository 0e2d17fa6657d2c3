"""What people read: summaries, diagnoses, explanations and pictures of fitted models."""
