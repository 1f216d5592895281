"""The linear route: random features and one least-squares solve."""
