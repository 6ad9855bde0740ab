"""Signals that end a command at the next place where nothing is lost."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let a service manager, or a connection that ends, interrupt a command as the keyboard does: what it holds is released."""
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS if number != signal.SIGINT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal has it
    raise KeyboardInterrupt


class Stops:
    """Takes the signals that stop a command, from the keyboard, of a service manager or a connection that ended; the second one ends it at once."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._is_asked = False

    def asked(self) -> bool:
        """Whether the command is to stop."""
        return self._is_asked

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _take(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as signal has it
        self._is_asked = True
        self._restore()
