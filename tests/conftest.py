"""Every test runs in 64-bit arithmetic, and knows nothing of its user."""

import jax
import pytest


jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True, scope="session")
def no_profile(tmp_path_factory):
    """A user's own defaults do not change what is tested."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("config")
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        yield
