"""Runs the command line with one fault in it: `run.py kill=120 solve case.toml`.

`kill`, `term`, `usr1` and `int` send the process a signal at that iteration, and
`later=120.35` kills it 35 milliseconds after it; `torn` kills it in the middle of
writing that checkpoint; `none` does nothing. A checkpoint is written between any two
pieces of training.
"""

import os
import signal
import sys
import threading

from pinnlab import atomic, keeper
from pinnlab.cli.main import main


SIGNALS = {
    "kill": signal.SIGKILL,
    "term": signal.SIGTERM,
    "usr1": signal.SIGUSR1,
    "int": signal.SIGINT,
}


def signalling(name, iteration):
    """Sends the process a signal once, when training has made so many iterations."""
    acting(lambda: os.kill(os.getpid(), SIGNALS[name]), iteration)


def acting(act, iteration):
    """Does something once, when training has made so many iterations."""
    pause, done = keeper.Keeper.pause, []

    def watched(self, take):
        if take().record.iterations >= iteration and not done:
            done.append(iteration)
            act()
        return pause(self, take)

    keeper.Keeper.pause = watched


def tearing(count):
    """Kills the process when half of a checkpoint is on the disk."""
    write, written = keeper.write_checkpoint, []

    def torn(path, snapshot, identity):
        written.append(path)
        if len(written) < count:
            return write(path, snapshot, identity)
        with atomic.replacing(path, force=True) as draft:
            draft.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    keeper.write_checkpoint = torn


def run():
    """The command line, after the fault is in place."""
    name, _, number = sys.argv.pop(1).partition("=")
    keeper.PERIOD = keeper.SHARE = 0.0
    if name in SIGNALS:
        signalling(name, int(number))
    elif name == "later":
        iteration, wait = map(int, number.split("."))
        die = lambda: os.kill(os.getpid(), signal.SIGKILL)
        acting(threading.Timer(wait / 1000, die).start, iteration)
    elif name == "torn":
        tearing(int(number))
    main()


if __name__ == "__main__":
    run()
