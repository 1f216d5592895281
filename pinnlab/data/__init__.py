"""Numbers from files of other programs: grids and scattered points, by name."""
