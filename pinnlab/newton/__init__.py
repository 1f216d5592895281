"""Gauss-Newton over the coefficients of separable features, in slabs of time."""
