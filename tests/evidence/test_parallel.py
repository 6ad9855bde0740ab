"""Work over processes: the same results in the same order, whatever happens to a process."""

import os
import signal
import weakref

import pytest

from kforensics.errors import EvidenceUnreadable
from kforensics.evidence.parallel import WORTH_A_PROCESS, InTurn, spread, stream

PARENT = os.getpid()


def double(task, progress):
    progress(task)
    return task * 2, os.getpid()


def run(work, tasks, jobs, *, joins=False):
    told: list[int] = []
    results = spread(work, tasks, weights=[WORTH_A_PROCESS] * len(tasks), jobs=jobs, progress=told.append, joins=joins)
    return results, sum(told)


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.some(2)
def test_results_come_in_the_order_of_the_tasks(jobs):
    results, told = run(double, list(range(20)), jobs)
    assert [value for value, _ in results] == [task * 2 for task in range(20)]
    assert told == sum(range(20))
    assert ({process for _, process in results} == {os.getpid()}) is (jobs == 1)


def test_this_process_takes_tasks_too():
    taken_here, take_here = os.pipe()

    def work(task, progress):
        if os.getpid() == PARENT:
            os.write(take_here, b"." * 300)
        else:
            os.read(taken_here, 1)  # the other process, however fast, waits until a task was taken here
        return double(task, progress)

    results, told = run(work, list(range(200)), 2, joins=True)
    os.close(taken_here)
    os.close(take_here)
    assert [value for value, _ in results] == [task * 2 for task in range(200)]
    assert told == sum(range(200))
    assert os.getpid() in {process for _, process in results}


def test_little_work_is_done_here():
    assert spread(double, [1, 2], weights=[10, 10], jobs=4) == [(2, os.getpid()), (4, os.getpid())]
    assert spread(double, [], weights=[], jobs=4) == []


@pytest.mark.slow
def test_more_tasks_than_the_pipe_takes():
    results = spread(double, list(range(20_000)), weights=[WORTH_A_PROCESS] * 20_000, jobs=2)
    assert [value for value, _ in results] == [task * 2 for task in range(20_000)]


def test_a_killed_process_costs_only_time():
    def work(task, _progress):
        if os.getpid() != PARENT:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    assert run(work, [1, 2, 3], 2)[0] == [1, 2, 3]


def test_the_system_may_forget_processes_that_ended():
    """As where SIGCHLD is ignored, which a process takes over from the one that starts it."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert [2, 4] == [value for value, _ in run(double, [1, 2], 2)[0]]
        assert [2, 4, 6] == list(stream(lambda task: task * 2, [1, 2, 3], jobs=2))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_an_error_of_the_evidence_arrives():
    def work(_task, _progress):
        raise EvidenceUnreadable("path", "it can't be read")

    with pytest.raises(EvidenceUnreadable, match="can't be read"):
        run(work, [1, 2], 2)


def test_a_defect_in_a_process_shows_here():
    def work(_task, _progress):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(work, [1, 2], 2)


def test_large_results_pass():
    def work(task, _progress):
        return bytes([task]) * 3_000_000

    assert [len(set(result)) for result in run(work, [1, 2, 3], 2)[0]] == [1, 1, 1]


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.some(2)
def test_a_stream_keeps_the_order(jobs):
    results = list(stream(lambda task: (task, os.getpid(), "x" * 300_000), list(range(12)), jobs=jobs))
    assert [task for task, _, _ in results] == list(range(12))
    assert len({process for _, process, _ in results}) == jobs


def test_a_stream_that_is_left_early_ends_its_processes():
    results = stream(lambda task: (task, os.getpid(), "x" * 300_000), list(range(50)), jobs=2)
    processes = {next(results)[1], next(results)[1]}
    results.close()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_stream_whose_process_is_killed_goes_on_here():
    def work(task):
        if os.getpid() != PARENT and task > 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    assert list(stream(work, list(range(9)), jobs=2)) == list(range(9))


def in_turn(work, then, tasks):
    processes = InTurn(work, then, jobs=3)
    try:
        for task in tasks:
            yield from processes.submit(task)
        yield from processes.results()
    finally:
        processes.close()


@pytest.mark.parametrize("place", ["work", "then"])
@pytest.mark.some(1)
def test_what_a_process_raises_in_turn_is_raised_behind_the_results_before_it(place):
    def fail(task):
        if task == 7:
            raise EvidenceUnreadable("a.log", "the disk gives an I/O error")
        return task

    def tasks():
        yield from range(10)
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # the next task is for the process that has failed
        yield from range(10, 20)

    work, then = (fail, str) if place == "work" else (int, fail)
    results = in_turn(work, then, tasks())

    assert list(range(7)) == [int(next(results)) for _ in range(7)]
    with pytest.raises(EvidenceUnreadable, match="the disk gives an I/O error"):
        next(results)


def test_a_process_that_is_killed_in_turn_is_said():
    def killed(task):
        if task == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    with pytest.raises(ChildProcessError, match="was killed"):
        list(in_turn(int, killed, range(20)))


def test_what_was_made_in_turn_is_given_back_before_more_is_made():
    class Made:
        pass

    before: list[weakref.ref[Made]] = []

    def work(_task):
        assert not before or before[0]() is None
        made = Made()
        before[:] = [weakref.ref(made)]
        return made

    assert list(in_turn(work, lambda _made: "done", range(9))) == ["done"] * 9
