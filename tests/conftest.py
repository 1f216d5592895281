"""Every test runs in 64-bit arithmetic, and knows nothing of its user."""

import atexit
import os
import shutil
import signal
import tempfile
from importlib.metadata import version


def _take_cores() -> None:
    """Workers of pytest-xdist share the cores instead of fighting for them: budgets
    are times, and the threads of JAX and BLAS are as many as the cores seen first."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")[2:]
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        mine = cores[int(worker) :: count] or [cores[int(worker) % len(cores)]]
        os.sched_setaffinity(0, mine)


def _share_programs() -> None:
    """What one test has compiled need not be compiled for another."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.mkdtemp(prefix="pinnlab-programs-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"


_take_cores()
_share_programs()

# These read the environment, and count the cores, when they are imported.
import jax  # noqa: E402
import pytest  # noqa: E402

from pinnlab.room import make_room  # noqa: E402


jax.config.update("jax_enable_x64", True)

ALONE = {"test_slurm"}
"""Files whose slow tests share a service, and have all cores."""


def _compile_quickly() -> None:
    """Short tests wait for the compiler, not for what it makes; slow ones do not. The
    flags are those of one release: another would end the process at an unknown one."""
    if version("jaxlib").startswith("0.10."):
        flags = os.environ.get("XLA_FLAGS", "")
        quick = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
        os.environ["XLA_FLAGS"] = f"{quick} {flags}".strip()


def pytest_configure(config: pytest.Config) -> None:
    """Tests interrupt themselves and processes that they start; what a shell has
    started in the background would ignore that, and so would its children."""
    if config.option.markexpr == "not slow":
        _compile_quickly()
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


@pytest.fixture(autouse=True)
def room():
    """Hundreds of tests compile in one process."""
    make_room()


@pytest.fixture(scope="module")
def compiled_once():
    """Runs of a file that have the same stage use the programs of the first."""
    # Whoever only distributes tests need not wait for it.
    import pinnlab.train

    known, compile_stage = {}, pinnlab.train.compile_stage

    def remembered(stage, *others):
        if stage not in known:
            known[stage] = compile_stage(stage, *others)
        return known[stage]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pinnlab.train, "compile_stage", remembered)
        yield
