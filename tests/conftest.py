"""Every test runs in 64-bit arithmetic."""

import jax


jax.config.update("jax_enable_x64", True)
