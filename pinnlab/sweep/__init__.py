"""Many runs of one problem: an experiment file, the runs, and tables of them."""
