"""From a problem to real equations: terms, where they hold, and exact conditions."""
