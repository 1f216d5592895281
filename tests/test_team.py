"""What processes tell each other, and how each learns who it is: no JAX is needed."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pinnlab.cli.processes import launched
from pinnlab.errors import ProblemError
from pinnlab.team import ALONE, Line, Team


class Ends:
    """What a line called when something ended."""

    def __init__(self):
        self.heard: list[object] = []
        self.event = threading.Event()

    def __call__(self, what: object) -> None:
        self.heard.append(what)
        self.event.set()


@pytest.fixture
def trio():
    """Three members of a team, what each hears of an end, and their sockets."""
    pairs = [socket.socketpair() for _ in range(2)]
    ends = [Ends() for _ in range(3)]
    leader = Team(
        0, [Line(a, i + 1, ends[0], ends[0]) for i, (a, _) in enumerate(pairs)]
    )
    others = [
        Team(i + 1, [Line(b, 0, ends[i + 1], ends[i + 1])])
        for i, (_, b) in enumerate(pairs)
    ]
    yield [leader, *others], ends, pairs
    for a, b in pairs:
        a.close()
        b.close()


def test_all_learn_the_numbers_of_all_in_order_and_take_those_of_process_0(trio):
    members, _, _ = trio
    with ThreadPoolExecutor(3) as pool:
        seen = list(pool.map(lambda m: m.gathered([m.index, 10 * m.index]), members))
        decided = list(pool.map(lambda m: m.decided(m.index + 7), members))
    assert seen == [[[0, 0], [1, 10], [2, 20]]] * 3
    assert decided == [7, 7, 7]


def test_an_order_is_told_and_the_end_of_process_0_has_a_status(trio):
    (leader, *others), ends, _ = trio
    leader.tell({"train": 2.5})
    leader.tell({"status": 75})
    for other in others:
        assert other.told("train") == 2.5
        with pytest.raises(SystemExit) as left:
            other.gathered([1.0])
        assert left.value.code == 75
    assert [e.heard for e in ends[1:]] == [[75], [75]]


def test_a_process_that_dies_is_named_while_others_wait(trio):
    (leader, *_), ends, pairs = trio
    threading.Thread(target=lambda: leader.gathered([0]), daemon=True).start()
    pairs[1][1].shutdown(socket.SHUT_RDWR)
    assert ends[0].event.wait(10)
    assert ends[0].heard == ["process 2 has died, or its computer is lost"]


def test_an_end_that_was_told_is_not_a_death(trio):
    (leader, *others), ends, pairs = trio
    leader.tell({"status": 0})
    for other in others:
        with pytest.raises(SystemExit):
            other.told("status")
    for _, other in pairs:
        other.shutdown(socket.SHUT_RDWR)
    leader.close(10)
    assert [e.heard for e in ends] == [[], [0], [0]]


def test_a_failure_of_another_process_is_told_with_its_reason(trio, monkeypatch):
    monkeypatch.setattr("pinnlab.team.GRACE", 0.05)
    (_, other, _), ends, _ = trio
    other.tell({"failed": "MemoryError: no"})
    assert ends[0].event.wait(10)
    assert ends[0].heard == ["process 1 failed: MemoryError: no"]


def test_a_process_that_is_alone_asks_nobody():
    assert ALONE.leads
    assert ALONE.gathered([1.0, 2.0]) == [[1.0, 2.0]]
    assert ALONE.decided(3.0) == 3.0
    ALONE.tell({"train": 1})


def test_processes_are_found_by_how_they_were_started():
    assert (
        launched(None, None, None, {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}) is None
    )
    assert launched(None, None, None, {"SLURM_STEP_NUM_TASKS": "1"}) is None
    slurm = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}
    found = launched(None, None, None, slurm)
    assert found and (found.method, found.count, found.index) == ("slurm", 4, 3)
    mpi = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}
    found = launched(None, None, None, mpi)
    assert found and (found.method, found.count, found.index) == ("ompi", 2, 1)
    found = launched("node1:29500", 3, 2, slurm)
    assert found and (found.count, found.index) == (3, 2)
    assert found.address == "node1:29500"
    assert launched("node1:29500", 1, 0, {}) is None


@pytest.mark.parametrize(
    ("visible", "tasks", "devices"),
    [
        ("0,1,2,3", "1(x2)", (0, 1, 2, 3)),  # one task a node has all
        ("0,1,2,3", "4(x2)", None),  # JAX gives each its own
        ("1", "4", (0,)),  # bound by the scheduler: it sees one only
        ("", "1", None),  # no GPUs
    ],
)
def test_each_task_has_the_gpus_that_it_should(visible, tasks, devices):
    found = launched(
        None,
        None,
        None,
        {
            "SLURM_STEP_NUM_TASKS": "8",
            "SLURM_PROCID": "1",
            "SLURM_STEP_TASKS_PER_NODE": tasks,
            "CUDA_VISIBLE_DEVICES": visible,
        },
    )
    assert found and found.devices == devices


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("node1:29500", 2, None), "belong together"),
        ((None, 2, 0), "belong together"),
        (("node1", 2, 0), "expected HOST:PORT"),
        (("node1:0", 2, 0), "expected HOST:PORT"),
        (("node1:29500", 2, 2), "--process 2: expected a number from 0 to 1"),
    ],
)
def test_options_that_make_no_sense_are_errors(options, words):
    with pytest.raises(ProblemError, match=words):
        launched(options[0], options[1], options[2], {})
