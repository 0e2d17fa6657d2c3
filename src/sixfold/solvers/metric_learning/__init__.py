"""What learns a distance from labelled rows."""
