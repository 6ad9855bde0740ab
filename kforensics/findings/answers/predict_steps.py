"""What to do before nodes are started, and what follows their starts."""

import shlex
from collections.abc import Iterator

from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.answers.model import State
from kforensics.findings.answers.predict_cluster import ComparedReplicas, PredictedCluster, node_words
from kforensics.findings.answers.start_order import order_steps
from kforensics.protocol.loading.node import UNREADABLE_LEVEL, UNREGISTERED, Fate
from kforensics.reconcile.logs.predicted_load import DueSegments, PredictedStart
from kforensics.words import Step, counted, form, listed

_COPY_FIRST = "Copy the log directories before anything is started: a start that fails changes them too."


def predict_steps(found: PredictedCluster, state: State, replicas: ComparedReplicas | None = None) -> Iterator[str]:
    """Yield what to do before a node is started.

    Args:
        replicas: how the replicas compare, where that is graver than the starts of the nodes.
    """
    has_strays = any(log.fate in {Fate.STRAY, Fate.DELETED} and log.is_reached for log in found.logs)
    if state in {State.WILL_NOT_START, State.LOSES} or has_strays or found.aged or found.misdated:
        yield _COPY_FIRST
        yield from _keep(found)
    if found.quorum:
        yield found.quorum.step
    elif found.order:
        yield from order_steps(found.order)
    if replicas is not None:
        yield from replicas.answer.now
        yield Step(
            "See what each replica truncates, and which leader loses least",
            (shlex.join(["kforensics", "diff", *replicas.paths]),),
        )


def _keep(found: PredictedCluster) -> Iterator[str]:
    """Yield how to keep what a start removes, and what to mend before it."""
    if found.misdated:
        yield (
            f"Raise retention before the start: it takes records of {listed([log.path for log in found.misdated], most=4)} that are not old, because the time indexes "
            "of their segments end with an earlier time than their records have (zeros are 1970), and a start does not rebuild them."
        )
    if found.aged:
        yield (
            f"Raise retention before the start if these records are to stay: all of {listed([log.path for log in found.aged], most=4)}. "
            "--ways-out compares it."
        )
    unserved = [log.path for log in found.reached if found.is_unserved(log)]
    if unserved:
        yield (
            f"Put partition.metadata with the topic id back into {listed(list(dict.fromkeys(unserved)), most=4)} before any broker is started: "
            "else these partitions begin empty."
        )
    for start in found.starts:
        if start.exception == UNREADABLE_LEVEL and not start.loads_logs:
            yield f"Start {found.node(start.input)} with a release that reads the metadata.version of the cluster: {start.reason.rstrip('.')}."
        elif start.exception == UNREGISTERED or not (start.loads_logs or isinstance(start.result, Absent)):
            yield f"{_first_step(found, start)} of {found.node(start.input)} first: {start.reason.rstrip('.')}."
    for log in found.losing:
        if log.lost.only_here:
            yield f"Save {log.path} of {found.node(log.input)}: {log.lost.only_here:,} of its records are on no other replica given."
        else:
            whole = [holder for holder in log.lost.held_by if holder.records == log.lost.records]
            held = " and ".join(
                _holder(found.inputs[holder.input], found.inputs[log.input]) for holder in whole or log.lost.held_by
            )
            yield f"Keep {held}, which {form(len(whole), 'holds', 'hold')} what {log.path} of {found.node(log.input)} discards."


def _first_step(found: PredictedCluster, start: PredictedStart) -> str:
    if start.exception == "ConfigException":
        return "Mend the settings"
    return "Check the mount" if start.input in found.blank_nodes else "Mend the identity"


def _holder(holder: Input, of: Input) -> str:
    """Return who holds records that a node discards: another node, or an earlier copy of its own disk."""
    is_same = not isinstance(of.broker_id, Absent) and holder.broker_id == of.broker_id
    return f"the copy of {node_words(holder)} at {holder.path}" if is_same else node_words(holder)


def after_starts(found: PredictedCluster) -> Iterator[str]:
    """Yield what retention deletes by settings that are known, and what the controller does when nodes register."""
    known = [log.due for log in found.reached if isinstance(log.due, DueSegments) and log.due.is_setting_known]
    if known:
        whole = sum(one.is_whole_log for one in known)
        everything = f", all that {whole:,} of them {form(whole, 'holds', 'hold')}" if whole else ""
        segments = counted(sum(len(one.base_offsets) for one in known), "segment")
        yield f"Some 30 seconds after the start retention deletes {segments} of {counted(len(known), 'log')}{everything}."
    # Nodes of which the controller has one reason to take them out of every ISR and ELR are named together.
    by_reason: dict[str, list[str]] = {}
    for node, reason in found.unclean_nodes.items():
        by_reason.setdefault(reason, []).append(found.node(node))
    for reason, names in by_reason.items():
        yield (
            f"When {listed(names, most=4)} {form(len(names), 'registers', 'register')}, the controller takes {form(len(names), 'it', 'each')} "
            f"out of every ISR and ELR: {reason}."
        )
