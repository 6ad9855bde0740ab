"""The program: `kforensics` and `python -m kforensics`."""

import atexit
import gc
import os
import signal
import sys

_GARBAGE = 100_000, 20, 100
"""When garbage in cycles is looked for: evidence becomes millions of small objects without any, and Python's own values take a fifth of the time."""


def main() -> None:
    """Run the command line as a process of its own, and exit."""
    exit_codes: list[int] = []
    atexit.register(_leave, exit_codes)  # what is registered first is called last
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(
            signal.SIGINT, signal.SIG_DFL
        )  # until all is loaded an interrupt ends the process without a traceback
    gc.disable()  # nothing that is loaded is garbage: a search for some takes 7 ms
    from kforensics.cli.app import main as run  # noqa: PLC0415 - loaded while no garbage is looked for

    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    gc.enable()
    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, int):
            exit_codes.append(end.code)
        raise


def _leave(exit_codes: list[int]) -> None:
    """End the process without freeing its objects one by one, which takes 8 ms; by then all threads and exit functions have ended."""
    from contextlib import suppress  # noqa: PLC0415 - little is loaded before an interrupt is taken

    for code in exit_codes:
        with suppress(OSError):
            sys.stderr.flush()  # standard output was flushed where a failure could still be reported
        os._exit(code)


if __name__ == "__main__":
    main()
