"""An explanation with hosts and principals replaced; groups have been replaced before anything was concluded from them."""

import dataclasses

from kforensics.commands.cited import CitedFile
from kforensics.commands.explanation import Explanation
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.commands.redaction.values import redacted


def redact_explanation(result: Explanation, pseudonyms: Pseudonyms) -> Explanation:
    """Return the explanation with every path, message, detail and sentence redacted; topics, offsets and times stay.

    Args:
        result: in which groups have pseudonyms already.
        pseudonyms: to which the hosts and topics of the result are added.
    """
    return dataclasses.replace(redacted(result, _knowing(result, pseudonyms)), hosts=())


def redact_cited_files(
    files: tuple[CitedFile, ...], result: Explanation, pseudonyms: Pseudonyms
) -> tuple[CitedFile, ...]:
    """Return the files with the same paths as citations have in the redacted explanation."""
    known = _knowing(result, pseudonyms)
    return tuple(dataclasses.replace(file, path=known.path(file.path)) for file in files)


def _knowing(result: Explanation, pseudonyms: Pseudonyms) -> Pseudonyms:
    return pseudonyms.knowing(hosts=result.hosts, topics=result.topics)
