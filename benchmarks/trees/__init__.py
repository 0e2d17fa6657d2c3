"""Decision trees beside their peers."""
