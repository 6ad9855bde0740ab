"""Seals taken and checked: roots, hashes and manifests brought together."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kforensics.errors import EvidenceError, EvidenceNotFound, EvidenceUnreadable, FormatError, UsageError
from kforensics.evidence.discovery.inputs import refuse
from kforensics.evidence.model import Problem
from kforensics.evidence.seal.manifest import LINE_LIMIT, ManifestHead, ManifestReader, SealCounts
from kforensics.evidence.seal.state import Change, Difference, SealEntry, compare_seals, seal_input
from kforensics.source.discover import nearest_paths
from kforensics.source.mapped import WINDOW_LENGTH, EvidenceFile, open_evidence

MOST_NAMED = 100
"""Differences of one kind that findings cite and screens list; the JSON has all."""


def find_roots(paths: Sequence[Path]) -> list[Path]:
    """Return the real places of the paths; a symbolic link is followed here, and only here.

    Raises:
        EvidenceError: one of them is not there; a seal of the others would not be that of what was named.
    """
    roots: list[Path] = []
    errors: list[EvidenceError] = []
    for path in paths:
        try:
            roots.append(path.resolve(strict=True))
        except FileNotFoundError:
            causes = ("a mistyped path",)
            words = "there is no such file or directory"
            errors.append(EvidenceNotFound(str(path), words, causes, nearest=nearest_paths(path)))
        except (OSError, ValueError, RuntimeError) as error:
            errors.append(EvidenceUnreadable(str(path), f"it can't be looked at: {error}"))
    refuse(errors, named=len(paths))
    return roots


def seal_roots(roots: Sequence[Path], *, jobs: int) -> Iterator[SealEntry | Problem]:
    """Yield everything below all roots, with hashes.

    Args:
        roots: real places, in the order of the inputs.
        jobs: the number of threads that read and hash.
    """
    for number, root in enumerate(roots):
        yield from seal_input(number, root, jobs=jobs)


@dataclass(slots=True)
class SealCheck:
    """The result of a comparison with a manifest; complete when its differences have been read to the end."""

    head: ManifestHead
    shown: tuple[str, ...]
    """The inputs as named now, or as sealed where none were named."""
    sealed: SealCounts
    counts: dict[Change, int] = field(default_factory=lambda: dict.fromkeys(Change, 0))
    named: dict[Change, list[Difference]] = field(default_factory=lambda: {change: [] for change in Change})
    problems: list[Problem] = field(default_factory=list)
    held: int = 0
    manifest_sha256: str = ""
    _differences: Iterator[Difference] = field(default_factory=lambda: iter(()))

    def begin(self, differences: Iterator[Difference]) -> None:
        """Take the comparison, which is done as it is read.

        Args:
            differences: of what is there to what was sealed.
        """
        self._differences = differences

    def differences(self) -> Iterator[Difference]:
        """Return the differences, which can be read once."""
        return self._differences


def check_seal(manifest: EvidenceFile, paths: Sequence[Path], *, jobs: int, is_part: bool = False) -> SealCheck:
    """Compare what is there with a manifest; the work is done as the differences are asked for.

    Args:
        paths: what is to be compared; without any, the paths that the manifest names.
        jobs: the number of threads that read and hash.
        is_part: whether there may be more paths than were sealed, where all that were are among them by name.

    Raises:
        EvidenceUnreadable: the manifest is none, or can't be read.
        EvidenceError: one of the paths is not there.
    """
    digest = hashlib.sha256()
    try:
        reader = ManifestReader(_lines(manifest, digest))
    except FormatError as error:
        raise EvidenceUnreadable(str(manifest.path), f"no manifest that can be read: {error}") from error
    shown = tuple(str(path) for path in paths) or reader.head.inputs
    chosen = reader.head.inputs if is_part and set(reader.head.inputs) <= set(shown) else None
    chosen = chosen or _in_sealed_order(reader.head.inputs, shown)
    check = SealCheck(head=reader.head, shown=chosen, sealed=reader.counts)
    roots = find_roots([Path(path) for path in chosen])

    def compare() -> Iterator[Difference]:
        for one in compare_seals(reader.entries(), seal_roots(roots, jobs=jobs), check.problems):
            if isinstance(one, SealEntry):
                check.held += 1
                continue
            check.counts[one.change] += 1
            if len(check.named[one.change]) < MOST_NAMED:
                check.named[one.change].append(one)
            yield one
        check.manifest_sha256 = digest.hexdigest()

    check.begin(compare())
    return check


def _in_sealed_order(sealed: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    if len(sealed) != len(given):
        raise UsageError(
            f"the manifest seals {len(sealed)} paths and {len(given)} are given: give them in the same order, or none"
        )
    # Moved evidence is matched by its place on the command line, evidence at its old place by its path.
    return sealed if sorted(sealed) == sorted(given) else given


def _lines(file: EvidenceFile, digest: "hashlib._Hash") -> Iterator[bytes]:
    """Lines with their ends; one longer than the limit is given in its first part, for the reader to refuse."""
    carry = b""
    for window in _windows(file):
        digest.update(window)
        pieces = (carry + window).split(b"\n")
        carry = pieces.pop()
        for piece in pieces:
            yield piece + b"\n"
        if len(carry) > LINE_LIMIT:
            yield carry
            return
    if carry:
        yield carry


def _windows(file: EvidenceFile) -> Iterable[bytes]:
    position = 0
    buffer = memoryview(bytearray(WINDOW_LENGTH))
    while count := file.read_into(position, buffer):
        yield bytes(buffer[:count])
        position += count


def read_envelope(path: Path, limit: int) -> bytes:
    """Return the bytes of a detached signature.

    Args:
        limit: the most bytes that are taken for one.

    Raises:
        EvidenceError: it can't be read, or is larger.
    """
    with open_evidence(path) as file:
        return file.read_all(limit)
