"""Linear regression and linear classifiers beside their peers."""
