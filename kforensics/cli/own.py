"""The commands that do more than write one result: `capture`, `seal` and `simulate`; and the signals that end a command where nothing is lost."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import typer

from kforensics.ask.model import PASSPHRASE_VARIABLE, SIGNATURE_SUFFIX, Ask
from kforensics.ask.simulate import SimulateAsk
from kforensics.cli.command import Output, question
from kforensics.cli.terminal import check_out, write_result
from kforensics.errors import UsageError
from kforensics.render.emit import OutputFormat

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


@question("seal")
def seal(output: Output, ask: Ask) -> None:
    """Write a manifest, or compare with one."""
    output.check(ask.paths, "seal manifest" if ask.check is None else "seal check")
    signature_path = Path(f"{output.out}{SIGNATURE_SUFFIX}")
    if ask.sign_with is not None:
        if output.out is None:
            raise UsageError("--sign-with needs --out: the signature is a file beside the manifest")
        check_out(signature_path, ask.paths)
    from kforensics.case.processes import paced
    from kforensics.commands.seal import check, run

    ask = paced(ask)
    if ask.check is not None:
        checked = check(ask)
        check_out(output.out, [Path(one.path) for one in checked.inputs])
        output.finish(checked)
    result = run(ask, ask_passphrase)
    result.body.is_listed = output.format not in {OutputFormat.TEXT, OutputFormat.JSON}
    if result.body.is_listed and ask.sign_with is not None:
        raise UsageError(f"--sign-with signs a manifest: it does not go with --format {output.format}")
    output.write(result)
    if ask.sign_with is not None and output.out is not None:
        write_result(result.body.signature(output.out.name), signature_path)
    raise typer.Exit(result.exit_code)


def ask_passphrase() -> bytes:
    """The passphrase of an encrypted private key, from the environment or from whoever sits there."""
    given = os.environ.get(PASSPHRASE_VARIABLE)
    if given is None:
        given = typer.prompt("passphrase of the private key", hide_input=True, err=True)
    return given.encode()


def take(output: Output, ask: Ask) -> None:
    """Take a capture, which a signal stops at a place from which it goes on."""
    output.check(())
    check_out(ask.out, ask.paths)
    from kforensics.case.processes import paced
    from kforensics.commands.capture import run

    stops, key, signature = Stops(), None, Path(f"{ask.out}{SIGNATURE_SUFFIX}")
    if ask.sign_with is not None and ask.out is not None:
        from kforensics.commands.seal import signing_key

        check_out(signature, ask.paths)
        key = signing_key(ask.sign_with, ask_passphrase)
    with stops, output.progress() as progress:
        result = run(paced(ask), progress, is_asked_to_stop=stops.asked, lowest_priority=not ask.normal_priority)
    if key is not None and ask.out is not None:
        from kforensics.commands.seal import sign_file

        write_result(sign_file(ask.out, key), signature)
    output.finish(result)


capture = question("capture")(take)


@question("simulate")
def simulate(output: Output, ask: SimulateAsk) -> None:
    """Do the one thing that is asked for."""
    shape = "write" if ask.write else "explore" if ask.model else "replay" if ask.scenario else "list"
    output.check((), f"simulate {shape}")
    from kforensics.commands.simulate import run
    from kforensics.render.emit import truth_json

    output.finish(run(ask, truth_json))
