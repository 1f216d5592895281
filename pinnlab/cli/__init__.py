"""The command line. Modules here import JAX and plots only inside their functions."""
