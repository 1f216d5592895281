"""Functions that solutions are made of at corners and around holes, and where."""
