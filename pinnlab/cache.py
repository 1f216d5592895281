"""Where compiled programs are kept from one run to the next."""

import os
from pathlib import Path


def keep_compiled_programs() -> None:
    """A second run of a problem of the same shape need not compile again."""
    import jax

    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(Path(home) / "pinnlab" / "jax"))
