"""`kforensics seal`: evidence hashed now, and shown to be the same later."""

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.destination import check_out, write_result
from kforensics.cli.options import JobsOption, ReadRateOption, apply_read_rate, argument, option
from kforensics.errors import UsageError

PASSPHRASE_VARIABLE = "KFORENSICS_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable
SIGNATURE_SUFFIX = ".sig"


@with_output("seal")
def seal(
    output: Output,
    *,
    paths: Annotated[
        list[Path] | None,
        argument(
            metavar="PATH...",
            help="Directories or files to seal, whatever is in them. With --check: the same in the same order, or none to look where they were sealed.",
            readable=False,
        ),
    ] = None,
    check: Annotated[
        Path | None,
        option(
            "--check", metavar="MANIFEST", help="Compare with this manifest; a capture is checked by the one in it."
        ),
    ] = None,
    case_id: Annotated[str | None, option("--case-id", metavar="ID", help="Write this into the manifest.")] = None,
    operator: Annotated[str | None, option("--operator", metavar="NAME", help="Write this into the manifest.")] = None,
    sign_with: Annotated[
        Path | None,
        option(
            "--sign-with",
            metavar="KEY",
            help=f"Sign the manifest with this Ed25519 private key (PEM); the signature is written to FILE{SIGNATURE_SUFFIX}. "
            f"The passphrase of an encrypted key is taken from {PASSPHRASE_VARIABLE}, or asked for.",
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        option(
            "--public-key",
            metavar="KEY",
            help="With --check: the signature must be there and hold for this Ed25519 public key (PEM).",
        ),
    ] = None,
    signature: Annotated[
        Path | None,
        option(
            "--signature",
            metavar="FILE",
            help=f"With --check: the signature; MANIFEST{SIGNATURE_SUFFIX} where it is not given.",
        ),
    ] = None,
    jobs: JobsOption = None,
    read_rate: ReadRateOption = None,
) -> None:
    """Seal evidence: a manifest with size, times and sha256 of everything below the paths, to show later that nothing changed.

    Without --check the manifest is written to standard output or to --out, and its own sha256 to standard error: write that
    down, or sign the manifest. With --check the exit code is 0 where everything is as it was sealed, 1 where something
    differs, is missing or was added, or the signature does not hold, and 3 where something can't be read.
    """
    jobs = apply_read_rate(read_rate, jobs)
    if check is None:
        if public_key or signature:
            raise UsageError("--public-key and --signature go with --check")
        _take(output, tuple(paths or ()), case_id=case_id, operator=operator, sign_with=sign_with, jobs=jobs)
    if case_id or operator or sign_with:
        raise UsageError("--case-id, --operator and --sign-with go with a new seal, not with --check")
    output.check(paths or (), "seal check")
    from kforensics.commands.seal import SealCheckRequest
    from kforensics.commands.seal import check as check_evidence

    request = SealCheckRequest(
        manifest=check, paths=tuple(paths or ()), public_key=public_key, signature=signature, jobs=jobs
    )
    result = check_evidence(request)
    check_out(output.out, [Path(one.path) for one in result.inputs])
    output.finish(result)


def _take(
    output: Output,
    paths: tuple[Path, ...],
    *,
    case_id: str | None,
    operator: str | None,
    sign_with: Path | None,
    jobs: int | None,
) -> NoReturn:
    output.check(paths, "seal manifest")
    if sign_with is not None and output.out is None:
        raise UsageError("--sign-with needs --out: the signature is a file beside the manifest")
    signature_path = Path(f"{output.out}{SIGNATURE_SUFFIX}")
    if sign_with is not None:
        check_out(signature_path, paths)
    from kforensics.commands.seal import SealRequest, run

    request = SealRequest(
        paths=paths, case_id=case_id, operator=operator, sign_with=sign_with, passphrase=ask_passphrase, jobs=jobs
    )
    result = run(request)
    output.write(result)
    if sign_with is not None and output.out is not None:
        write_result(result.body.signature(output.out.name), signature_path)
    raise typer.Exit(result.exit_code)


def ask_passphrase() -> bytes:
    """The passphrase of an encrypted private key, from the environment or from whoever sits there."""
    given = os.environ.get(PASSPHRASE_VARIABLE)
    if given is None:
        given = typer.prompt("passphrase of the private key", hide_input=True, err=True)
    return given.encode()
