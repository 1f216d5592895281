"""Equations as data: the expression tree, its parser, its derivatives and values."""
