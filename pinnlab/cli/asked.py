"""The options of `solve`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from pinnlab.errors import ProblemError


Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="The result file; NAME.h5 if missing."),
]
Target = Annotated[float, typer.Option(help="The relative L2 error wanted.")]
Budget = Annotated[
    str, typer.Option(help="Time for training: 90, 60s, 2m, 1h; the rest is extra.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Of everything random.")]
Seeds = Annotated[
    int,
    typer.Option(
        min=1,
        max=4096,
        help="Solve from so many seeds, SEED and those after it; the best is written, "
        "with the spread of all. --budget is for all together.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Check the run and add a diagnosis; slower.")
]
Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Leave short traces of JAX's profiler in a folder."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from NAME.ckpt, if it is there.")
]
Devices = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Devices (GPUs) that share the collocation points; all there are if "
        "missing.",
    ),
]
Coordinator = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where the processes meet: a free port of the computer of process 0. "
        "Not needed under srun or mpirun.",
    ),
]
Processes = Annotated[
    int | None, typer.Option(metavar="N", help="How many processes there are.")
]
Process = Annotated[
    int | None, typer.Option(metavar="I", help="The number of this one, from 0.")
]
NoReference = Annotated[
    bool, typer.Option("--no-reference", help="Do not solve classically for the truth.")
]
Plot = Annotated[bool, typer.Option(help="Also draw NAME.png.")]


@dataclasses.dataclass(frozen=True)
class Asked:
    """The options of `solve`, checked one by one."""

    problem: str
    path: Path
    target: float
    budget: float
    seed: int
    seeds: int
    settings: list[str] | None
    plot: bool
    force: bool
    resume: bool
    reference: bool
    debug: bool
    profile: Path | None
    devices: int | None

    @property
    def picture(self) -> Path:
        return self._beside(".png")

    @property
    def checkpoint(self) -> Path:
        return self._beside(".ckpt")

    def _beside(self, suffix: str) -> Path:
        # A path that is no file's is refused later, with its reason.
        return self.path.parent / f"{self.path.stem}{suffix}"

    def check_seeds(self, together: bool) -> None:
        """Refuse what is made for one run alone, or goes past the last seed.

        `together`: whether several processes train one run.
        """
        alone = {
            "--debug": self.debug,
            "--profile": self.profile is not None,
            "several processes": together,
        }
        for name, wanted in alone.items():
            if wanted:
                raise ProblemError(f"{name} is for one seed: leave --seeds away")
        if self.seed + self.seeds > 2**31:
            raise ProblemError(
                f"--seeds {self.seeds}: the last seed would be above 2147483647"
            )
