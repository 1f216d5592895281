"""Every test runs in 64-bit arithmetic, and knows nothing of its user."""

import signal

import jax
import pytest


jax.config.update("jax_enable_x64", True)

ALONE = {
    "test_cases", "test_docs", "test_gallery", "test_new", "test_notebooks",
    "test_sabotage", "test_slurm",
}  # fmt: skip
"""Files whose slow tests have a budget of time, or share a service."""


def pytest_configure() -> None:
    """Tests interrupt themselves and processes that they start; what a shell has
    started in the background would ignore that, and so would its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what runs one at a time."""
    for item in items:
        if item.path.stem in ALONE:
            item.add_marker(pytest.mark.alone)


@pytest.fixture(autouse=True, scope="session")
def no_profile(tmp_path_factory):
    """A user's own defaults do not change what is tested."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("config")
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        yield
