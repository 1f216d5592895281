"""Classical solutions of the same problem file, each with its own error."""
