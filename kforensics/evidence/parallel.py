"""Work spread over processes that are forked when it is worth it; a result does not depend on how many there are.

Forked processes share what has been imported and planned, so starting them costs some milliseconds. Tasks are handed
out largest first, one by one.
"""

import gc
import os
import pickle
import signal
import struct
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kforensics.errors import EvidenceError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Task = TypeVar("Task")
Result = TypeVar("Result")

Progress = Callable[[int], None]
"""A function that is called with the bytes read since the last call."""

WORTH_A_PROCESS = 24 << 20
"""Bytes to read for which a second process pays."""

_TOKEN = struct.Struct(">i")
_MOST_TOKENS = 8192  # the pipe takes 64 KiB before its writer would wait
_REPORT_EVERY = 64 << 20


def spread(
    work: Callable[[Task, Progress], Result],
    tasks: Sequence[Task],
    *,
    weights: Sequence[int],
    jobs: int,
    progress: Progress = lambda _: None,
    joins: bool = False,
) -> list[Result]:
    """Return the results of all tasks, in their order.

    Args:
        work: a function of a task; it may be called in another process.
        joins: this process is one of them and takes tasks too; for tasks of some milliseconds, as nothing is received meanwhile.
    """
    processes = min(jobs, len(tasks), max(sum(weights) // WORTH_A_PROCESS, 1))
    if processes < 2 or not hasattr(os, "fork"):
        return [work(task, progress) for task in tasks]
    order = sorted(range(len(tasks)), key=lambda at: -weights[at])
    size = -(-len(order) // _MOST_TOKENS)
    groups = [order[at : at + size] for at in range(0, len(order), size)]
    return _Spread(work, tasks, groups, progress).run(processes, joins=joins)


class _Spread(Generic[Task, Result]):
    def __init__(
        self,
        work: Callable[[Task, Progress], Result],
        tasks: Sequence[Task],
        groups: list[list[int]],
        progress: Progress,
    ) -> None:
        self._work = work
        self._tasks = tasks
        self._groups = groups
        self._progress = progress
        self._results: dict[int, Result] = {}

    def run(self, processes: int, *, joins: bool) -> list[Result]:
        read_token, write_token = os.pipe()
        os.write(write_token, b"".join(_TOKEN.pack(at) for at in range(len(self._groups))))
        children: dict[Connection, int] = {}
        try:
            for _ in range(processes - joins):
                pipe, child = _forked(partial(self._serve, read_token), (write_token,), children)
                children[pipe] = child
            os.close(write_token)
            write_token = -1
            self._gather(list(children), read_token if joins else None)
        finally:
            for descriptor in (read_token, write_token):
                if descriptor >= 0:
                    os.close(descriptor)
            _reap(children)
        for at, task in enumerate(self._tasks):
            if at not in self._results:  # its process was killed: whatever the reason, the task is done here
                self._results[at] = self._work(task, self._progress)
        return [self._results[at] for at in range(len(self._tasks))]

    def _serve(self, read_token: int, results: "Connection") -> None:
        pending = 0

        def report(count: int) -> None:
            nonlocal pending
            pending += count
            if pending >= _REPORT_EVERY:
                results.send(("bytes", pending))
                pending = 0

        while len(token := os.read(read_token, _TOKEN.size)) == _TOKEN.size:
            for at in self._groups[_TOKEN.unpack(token)[0]]:
                try:
                    result: tuple[str, Any] = ("result", (at, self._work(self._tasks[at], report)))
                except EvidenceError as error:
                    result = ("error", error)
                results.send(result)
        results.send(("bytes", pending))

    def _gather(self, pipes: "list[Connection]", read_token: int | None) -> None:
        from multiprocessing.connection import wait  # noqa: PLC0415 - where processes were started

        while pipes or read_token is not None:
            if read_token is not None and not self._take(read_token):
                read_token = None
            ready = wait(pipes, None if read_token is None else 0)
            for pipe in [one for one in pipes if one in ready]:
                received = _receive(pipe)
                if received is None:
                    pipes.remove(pipe)
                else:
                    what, value = received[0]
                    if what == "error":
                        raise value
                    if what == "bytes":
                        self._progress(value)
                    else:
                        self._results[value[0]] = value[1]

    def _take(self, read_token: int) -> bool:
        """Do the next tasks in this process, and return whether there were any."""
        token = os.read(read_token, _TOKEN.size)
        for at in self._groups[_TOKEN.unpack(token)[0]] if token else ():
            self._results[at] = self._work(self._tasks[at], self._progress)
        return bool(token)


def stream(work: Callable[[Task], Result], tasks: Sequence[Task], *, jobs: int) -> Generator[Result, None, None]:
    """Yield the results in the order of the tasks, one after the other: processes are ahead by one result each, no more is held.

    Args:
        work: a function of a task; it may be called in another process, and there sees what it left behind itself.
    """
    processes = min(jobs, len(tasks))
    if processes < 2 or not hasattr(os, "fork"):
        yield from map(work, tasks)
        return
    children: dict[Connection, int] = {}
    try:
        for number in range(processes):
            pipe, child = _forked(partial(_serve_in_order, work, tasks[number::processes]), (), children)
            children[pipe] = child
        pipes = list(children)
        for at, task in enumerate(tasks):
            received = _receive(pipes[at % processes])
            # A process that was killed, whatever the reason, leaves its tasks to be done here.
            yield work(task) if received is None else received[0]
    finally:
        _reap(children)


class InTurn(Generic[Task, Result]):
    """Processes that work on tasks as they come, and then do in the order of the tasks what must be done in order.

    Args:
        work: a function of a task; what it makes stays in its process.
        then: a function of what `work` made, called there when it has returned for every task before.
        jobs: the number of processes; no thread may run when they are started.
    """

    def __init__(self, work: Callable[[Task], Any], then: Callable[[Any], Result], *, jobs: int) -> None:
        turns = [os.pipe() for _ in range(jobs)]
        self._children: dict[Connection, int] = {}
        self._tasks: list[Connection] = []
        self._given = 0
        self._waiting: deque[int] = deque()
        for number in range(jobs):
            read_task, write_task = _pipe()
            mine = (turns[number][0], turns[(number + 1) % jobs][1])
            serve = partial(_serve_in_turn, work, then, read_task, *mine)
            unneeded = {one for pair in turns for one in pair} - set(mine)
            pipe, child = _forked(serve, unneeded, (write_task, *self._tasks, *self._children))
            read_task.close()
            self._children[pipe] = child
            self._tasks.append(write_task)
        self._results = list(self._children)
        os.write(turns[0][1], _TURN)
        for one in (one for pair in turns for one in pair):
            os.close(one)

    def submit(self, task: Task) -> Iterator[Result]:
        """Give a task to the next process, and yield the results that had to be asked for before; where that process has ended, those before what it raised.

        Args:
            task: the processes take tasks in turn, so that results come in the order of tasks.

        Raises:
            ChildProcessError: a process was killed: what it did in order may be half done.
            Exception: what a process raised; those behind it do nothing more.
        """
        message = pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
        # A small task waits in the pipe of its process, which has it at once when the one before is done; a large one is sent to a process that reads.
        most = len(self._tasks) * (2 if len(message) <= _HELD_BY_A_PIPE else 1)
        while len(self._waiting) >= most:
            yield self._next()
        number = self._given % len(self._tasks)
        self._given += 1
        self._waiting.append(number)
        try:
            self._tasks[number].send_bytes(message)
        except BrokenPipeError:
            yield from self.results()  # one of them raises
            raise ChildProcessError(_KILLED) from None

    def results(self) -> Iterator[Result]:
        """Yield the results that are still to come."""
        while self._waiting:
            yield self._next()

    def _next(self) -> Result:
        received = _receive(self._results[self._waiting.popleft()])
        if received is None:
            raise ChildProcessError(_KILLED)
        if isinstance(received[0], _Raised):
            raise received[0].error
        result: Result = received[0]
        return result

    def close(self) -> None:
        """End the processes."""
        for pipe in self._tasks:
            pipe.close()
        _reap(self._children)


class _Raised(NamedTuple):
    error: Exception


_TURN = b"."
_HELD_BY_A_PIPE = 32 << 10  # a pipe takes 64 KiB before its writer would wait
_KILLED = "a process that it had started was killed"


def _serve_in_turn(
    work: Callable[[Any], Any],
    then: Callable[[Any], Any],
    tasks: "Connection",
    my_turn: int,
    next_turn: int,
    results: "Connection",
) -> None:
    while (task := _receive(tasks)) is not None:
        try:
            made = work(task[0])
            if not os.read(my_turn, 1):
                return
            result = then(made)
            del made  # it may be large, and would be held until the next is made
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            results.send(_Raised(error))
            return
        with suppress(
            BrokenPipeError
        ):  # the next process raised before its turn: this result is asked for all the same
            os.write(next_turn, _TURN)
        results.send(result)


def _serve_in_order(work: Callable[[Any], Any], tasks: Sequence[Any], results: "Connection") -> None:
    for task in tasks:
        results.send(work(task))


def _pipe() -> "tuple[Connection, Connection]":
    from multiprocessing import Pipe  # noqa: PLC0415 - where processes are started

    return Pipe(duplex=False)


def _forked(
    serve: "Callable[[Connection], None]", unneeded: Iterable[int], others: "Iterable[Connection]"
) -> "tuple[Connection, int]":
    """Return a process that writes what it has to say into a pipe: the end to read from, and the process."""
    read_result, write_result = _pipe()
    child = os.fork()
    if child:
        write_result.close()
        return read_result, child
    code = 1
    try:
        gc.freeze()  # a collection would write to all objects of the parent, and so copy the memory that is shared with it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for descriptor in unneeded:
            os.close(descriptor)
        for pipe in (read_result, *others):
            pipe.close()
        serve(write_result)
        code = 0
    finally:
        os._exit(code)  # nothing of the parent's is to be flushed or closed twice
    raise AssertionError


def _receive(pipe: "Connection") -> tuple[Any] | None:
    """Return what was sent, none where the other end is closed."""
    try:
        return (pipe.recv(),)
    except (EOFError, OSError):
        return None


def _reap(children: "Mapping[Connection, int]") -> None:
    for pipe, child in children.items():
        pipe.close()
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
        with suppress(ChildProcessError):  # where SIGCHLD is ignored, the system has done so
            os.waitpid(child, 0)
