"""Why training goes as it does: checks of a run, and one change to try."""
