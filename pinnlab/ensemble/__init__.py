"""Ensembles: many members (seeds, values of parameters) in one compiled program."""
