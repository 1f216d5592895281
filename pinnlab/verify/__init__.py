"""Evidence: preflight before training, the truth report after it."""
