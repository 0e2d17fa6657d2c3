"""Trees as text, as pictures, and as reasons for one answer."""
