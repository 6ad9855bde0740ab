"""Work on bytes beside the main thread: hashing and writing need no interpreter lock, so they take a second core where there is one."""

import queue
import threading
from collections.abc import Callable

MOST_WAITING = 1
"""Pieces of work that wait: each holds some bytes, so there are few."""

MANY_WAITING = 8
"""Pieces of work that wait where they mostly hold places in files and no bytes."""

Work = Callable[[], None]


class Foreground:
    """Does work at once, in the thread that gives it: where other processes take the other cores, threads would only hold memory."""

    def do(self, work: Work) -> None:
        """Do the work at once.

        Args:
            work: what is called.

        Raises:
            Exception: what the work raised.
        """
        work()

    def wait(self) -> None:
        """Return at once: all work was done when it was given."""

    def close(self) -> None:
        """Return at once: there is no thread to end."""


class Background:
    """One thread that does work in the order in which it is given; it begins with the first, and an error of it is raised by the next call.

    Args:
        most_waiting: pieces of work that may wait.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._queue: queue.Queue[Work | None] = queue.Queue(most_waiting)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def do(self, work: Work) -> None:
        """Do this after everything that was given before.

        Args:
            work: is called in another thread.

        Raises:
            Exception: what earlier work raised.
        """
        self._raise()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self._queue.put(work)

    def wait(self) -> None:
        """Wait until everything is done.

        Raises:
            Exception: what the work raised.
        """
        self._queue.join()
        self._raise()

    def close(self) -> None:
        """End the thread when what was given is done; errors are put aside."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                if self._error is None:
                    work()
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                self._error = error
            finally:
                self._queue.task_done()
        self._queue.task_done()
