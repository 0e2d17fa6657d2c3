"""What a fit needs at the least beside what this machine can do: the share of the limit that is reached."""
