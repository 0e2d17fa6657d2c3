"""Tables in files that may be larger than memory."""
