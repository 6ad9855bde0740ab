"""`kforensics capture`: the evidence of a node in one file."""

from pathlib import Path

from kforensics.ask.model import SIGNATURE_SUFFIX, Ask
from kforensics.cli.command import Output, question
from kforensics.cli.destination import check_out, write_result
from kforensics.cli.seal import ask_passphrase
from kforensics.cli.stops import Stops


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
