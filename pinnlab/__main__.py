"""The `pinnlab` command and `python -m pinnlab`: an interrupt is never a traceback."""

import sys


def main() -> None:
    """The command line; Ctrl-C while it is being imported ends it with status 130."""
    try:
        from pinnlab.cli.main import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted; nothing was written", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
