"""Processes that solve one problem together: what they tell each other on the host.

JAX adds numbers up over the devices of all processes, for which all must run the same
programs. Whatever a process decides by itself (a clock, a signal) therefore goes over
the lines of this module: a connection of each process with process 0, which ends when
the process does. So a process that dies is noticed at once, whatever the others are
doing, and a computer or a network that is lost within `SILENCE` seconds.
"""

import json
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any


GRACE = 10.0
"""Seconds that a process has to end by itself after another one has ended."""
SILENCE = 20
"""Seconds after which a computer that does not answer counts as lost."""

Message = dict[str, Any]


class Line:
    """A connection with one other process, read by a thread of its own.

    **Arguments:**

    - `connection`: best `watched`.
    - `other`: the number of the other process.
    - `lost`: called with what happened where the other died or failed.
    - `ended`: called with the status of process 0 when it ends.
    """

    def __init__(
        self,
        connection: socket.socket,
        other: int,
        lost: Callable[[str], None],
        ended: Callable[[int], None],
    ):
        self.other = other
        self._connection = connection
        self._lost = lost
        self._ended = ended
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._closed = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Message) -> None:
        """Send a message; where the other is gone, the reading thread says so."""
        if "status" in message:
            self._closing.set()
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self._closed.wait()

    def receive(self) -> Message:
        """The next message."""
        return self._messages.get()

    def close(self, patience: float) -> None:
        """From now on the other may leave; waits so many seconds until it has."""
        self._closing.set()
        self._closed.wait(patience)
        self._connection.close()

    def _read(self) -> None:
        try:
            with self._connection.makefile("rb") as lines:
                for line in lines:
                    message = json.loads(line)
                    if "failed" in message:
                        self._fail_soon(message["failed"])
                    if "status" in message:
                        self._closing.set()
                        self._ended(message["status"])
                    self._messages.put(message)
        except OSError:
            pass
        self._closed.set()
        if not self._closing.is_set():
            self._lost(f"process {self.other} has died, or its computer is lost")

    def _fail_soon(self, why: str) -> None:
        """Where this process fails for the same reason it says so itself."""
        what = f"process {self.other} failed: {why}"
        timer = threading.Timer(GRACE, self._lost, (what,))
        timer.daemon = True
        timer.start()


def watched(connection: socket.socket) -> None:
    """Have the system ask a silent computer whether it is still there."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENCE // 4),
        ("TCP_KEEPINTVL", SILENCE // 4),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 1000 * SILENCE),
    ):
        if hasattr(socket, name):  # Not all systems have all of them.
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Team:
    """All processes of a run, seen from one of them.

    **Arguments:**

    - `index`: of this process. Process 0 leads: it decides, prints and writes.
    - `lines`: those of process 0 with all others in order, or that of another process
        with process 0; none where a process is alone.
    - `settle`: waits after an error until it is known whether another process died, of
        which it is the consequence.
    """

    def __init__(
        self,
        index: int = 0,
        lines: Sequence[Line] = (),
        settle: Callable[[], None] = lambda: None,
    ):
        self.index = index
        self.lines = tuple(lines)
        self.settle = settle

    @property
    def leads(self) -> bool:
        """Whether this process decides, prints and writes."""
        return self.index == 0

    def gathered(self, own: Sequence[float]) -> list[list[float]]:
        """The numbers of every process in their order; every process must ask."""
        if not self.lines:
            return [list(own)]
        if not self.leads:
            self.tell({"numbers": list(own)})
            return self.told("all")
        every = [list(own), *(line.receive()["numbers"] for line in self.lines)]
        self.tell({"all": every})
        return every

    def decided(self, own: float) -> float:
        """The number of process 0; every process must ask."""
        return self.gathered([own])[0][0]

    def tell(self, message: Message) -> None:
        """Send a message over all lines."""
        for line in self.lines:
            line.send(message)

    def told(self, key: str):
        """What process 0 sends next under this key.

        Raises `SystemExit` with its status where process 0 has ended.
        """
        message = self.lines[0].receive()
        if "status" in message:
            raise SystemExit(message["status"])
        return message[key]

    def close(self, patience: float) -> None:
        """The others may leave; waits up to so many seconds until they have."""
        for line in self.lines:
            line.close(patience)


ALONE = Team()
