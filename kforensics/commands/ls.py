"""The inventory: nodes, log directories, partitions with their offsets, every file by its kind."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from kforensics.ask.model import Ask
from kforensics.case.wanted import wanted_of
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import Inputs, find_inputs, why_not_listed
from kforensics.evidence.inventory import Inventory, take_inventory
from kforensics.evidence.metadata.files import with_roles
from kforensics.evidence.metadata.log import read_metadata_logs
from kforensics.evidence.metadata.set_back import QuorumSetBack, quorum_set_back
from kforensics.findings.answers.contents import ls_answer
from kforensics.findings.rules.directories import inventory_findings
from kforensics.findings.rules.quorum import with_quorum
from kforensics.protocol.loading.starts import start_word_by_name
from kforensics.source.walk import FoundDirectory, FoundFile, Wants, of_wanted
from kforensics.units import METADATA_TOPIC, Depth


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """One file below an input."""

    input: int
    path: str
    kind: str
    suffix: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The inventory of the inputs, and every single file where it is asked for."""

    inventory: Inventory
    found: Inputs
    depth: Depth = Depth.TAILS
    wants: Wants | None = None
    """The partitions that are listed; all where nothing was asked for."""

    def files(self) -> Iterator[ListedFile]:
        """Yield every file of every input; a million of them are never held at once."""
        for index, one in enumerate(self.found.found):
            for file in one.walk():
                if isinstance(file, FoundFile) and of_wanted(file.partition, self.wants):
                    yield ListedFile(
                        input=index,
                        path=file.path,
                        kind=file.name.kind.value,
                        suffix=file.name.suffix.value,
                        bytes=file.length,
                    )


def run(request: Ask) -> Result[Listing]:
    """List what is below the paths; of each log only the end is read where nothing else is asked for."""
    inputs = with_roles(
        find_inputs(
            request.paths,
            with_server_logs=True,
            why_not=why_not_listed,
            keep_going=request.keep_going,
            cluster=request.cluster,
        )
    )
    depth = request.depth or Depth.TAILS
    wants = wanted_of(request, inputs)
    inventory = _with_starts(take_inventory(inputs, depth=depth, wants=wants))
    answer, quorum = ls_answer(inventory, inputs.described), _quorum(inventory, inputs)
    return Result(
        command="ls",
        inputs=inputs.described,
        body=Listing(inventory=inventory, found=inputs, depth=depth, wants=wants),
        concluded=Conclusion(
            answer=answer if quorum is None else with_quorum(answer, quorum),
            findings=inventory_findings(inventory),
            problems=tuple(inventory.problems),
        ),
    )


def _quorum(inventory: Inventory, inputs: Inputs) -> QuorumSetBack | None:
    """Return the voters that can go on without metadata that was committed; none where the metadata logs of all nodes end alike, and of nodes at several moments or of several clusters."""
    nodes = {one.node_id for one in inventory.nodes}
    ends = [one.log_end_offset for one in inventory.partitions if one.topic == METADATA_TOPIC and one.state == "live"]
    is_one = len(nodes) == len(inventory.nodes) and len({one.cluster_id for one in inventory.nodes} - {*Absent}) < 2
    if not is_one or not ends or (len(ends) == len(nodes) and len({*ends}) == 1):
        return None
    return quorum_set_back(read_metadata_logs(inputs), inputs)


class Names(NamedTuple):
    """What is below some paths, by its names."""

    topics: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()


def names_below(paths: Sequence[Path], topics: Collection[str] = ()) -> Names:
    """Return the topics, partitions of some or all, and the brokers below paths, by the names of directories alone; none where a path can't be used."""
    try:
        inputs = find_inputs(paths, keep_going=True)
    except EvidenceError:
        return Names()
    walked = (found for one in inputs.found for found in one.walk(in_outline=True))
    held = {one.name for one in walked if isinstance(one, FoundDirectory) and not isinstance(one.name, Absent)}
    partitions = {one.partition for one in held if not topics or one.topic in topics}
    brokers = {one.broker_id for one in inputs.described if not isinstance(one.broker_id, Absent)}
    return Names(
        topics=tuple(sorted({one.topic for one in held})),
        partitions=tuple(map(str, sorted(partitions))),
        brokers=tuple(map(str, sorted(brokers))),
    )


def _with_starts(inventory: Inventory) -> Inventory:
    """Return the inventory, with what a start does to each partition directory of a node."""
    clean = {
        (node.input, "" if log_dir.path == "." else log_dir.path): log_dir.clean_shutdown
        for node in inventory.nodes
        for log_dir in node.log_dirs
    }
    live = Counter((one.input, one.topic, one.partition) for one in inventory.partitions if one.state == "live")
    partitions = tuple(
        replace(
            one,
            start=start_word_by_name(
                one.path.rpartition("/")[2],
                is_clean=clean[one.input, one.log_dir],
                has_segments=bool(one.segments),
                lacks_index=one.lacks_index,
                is_twice=one.state == "live" and live[one.input, one.topic, one.partition] > 1,
            ).value,
        )
        # Of a directory whose segments are not here a start makes an empty log, which says nothing of the one that was copied.
        if (one.input, one.log_dir) in clean and one.path != "." and (one.segments or one.state != "live")
        else one
        for one in inventory.partitions
    )
    return replace(inventory, partitions=partitions)
