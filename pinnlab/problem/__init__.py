"""Problems: what is to be solved, as data."""
