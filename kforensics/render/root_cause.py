"""The root cause in one sentence: what happened, on which broker, when."""

from kforensics.damage import Absent
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.conclusion import CAUSE_WORDS
from kforensics.reconcile.incident.root_cause import RootCause
from kforensics.words import counted, form, listed, utc_text

MOST_NAMED = 4


def root_cause_sentence(cause: RootCause) -> str:
    """Return the sentence; it names broker and time only where an input shows them.

    Args:
        cause: one that is not proven is called likely.
    """
    words = _happened(cause)
    likely = " (likely, not proven)" if cause.confidence != "proven" else ""
    return f"{words[:1].upper()}{words[1:]}{likely}{_rest(cause)}."


def _rest(cause: RootCause) -> str:
    rest = f"; {counted(len(cause.other_causes), 'other cause')} in the ledger" if cause.other_causes else ""
    if cause.unexplained:
        rest += f"; what took {counted(cause.unexplained, 'other record')} is not shown"
    return rest


def _happened(cause: RootCause) -> str:
    of = listed([str(one) for one in cause.partitions], most=MOST_NAMED)
    if isinstance(cause.brokers, Absent):
        return f"{CAUSE_WORDS[cause.cause]} took records of {of}; the inputs do not name the broker"
    many = len(cause.brokers) > 1
    who = f"{form(len(cause.brokers), 'broker')} {listed([str(one) for one in cause.brokers])}"
    leader, its = ("leaders", "their") if many else ("leader", "its")
    logs = form(len(cause.partitions), "log")
    when = _when(cause)
    match cause.cause:
        case CauseName.UNCLEAN_ELECTION:
            return f"{who} became {leader} of {of} by unclean election{when}{_isr(cause)}"
        case CauseName.UNCOMMITTED_TAIL:
            return f"{who} became {leader} of {of} cleanly{when}, before the end of the log had reached {'them' if many else 'it'}"
        case CauseName.DISK_REPLACED:
            return f"{who} became {leader} of {of} again{when}, with another disk than before, or an emptied one"
        case CauseName.DISK_RESTORED:
            return f"{who} became {leader} of {of} again{when}, with {its} {form(len(cause.brokers), 'disk')} put back to an earlier state"
        case CauseName.LAST_REPLICA_STANDING:
            return f"{who}, the last in sync, lost the end of {its} {logs} of {of}{_found(cause)} and led again"
        case CauseName.POWER_LOSS:
            return f"{who} lost the end of {its} {logs} of {of} in a power loss or crash{_found(cause)}"
        case CauseName.HIGH_WATERMARK:
            return f"{who} truncated {of} to {its} high watermark{when}, as brokers did before leader epochs (KIP-101)"
        case CauseName.DAMAGE:
            return f"damage inside of the {logs} of {of} on {who}{when} made all behind it unreadable, or start-up recovery discarded it"
        case CauseName.RECOVERY:
            return f"start-up recovery of {who} emptied segments of {of}{when}"
        case _:
            return f"{CAUSE_WORDS[cause.cause]} took records of {of} on {who}{when}"


def _when(cause: RootCause) -> str:
    if not isinstance(cause.first_ms, int) or not isinstance(cause.last_ms, int):
        return " at a time that no input shows"
    if cause.first_ms == cause.last_ms:
        return f" at {utc_text(cause.first_ms)}"
    return f" from {utc_text(cause.first_ms)} to {utc_text(cause.last_ms)}"


def _found(cause: RootCause) -> str:
    """When start-up recovery found it: the records were lost some time before."""
    if not isinstance(cause.first_ms, int):
        return ""
    return f", as start-up recovery found at {utc_text(cause.first_ms)}"


def _isr(cause: RootCause) -> str:
    if isinstance(cause.isr, Absent):
        return ""
    return f", while the ISR was {'[' + ', '.join(map(str, cause.isr)) + ']' if cause.isr else 'empty'}"
