"""Whether a plane separates classes, with the direction or the rows that prove it."""
