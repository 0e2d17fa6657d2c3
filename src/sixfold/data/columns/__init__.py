"""What the columns of a raw table are, and how their text becomes numbers, categories and dates."""
