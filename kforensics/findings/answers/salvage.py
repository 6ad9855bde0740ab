"""The answer of `salvage`: how many of how many records are saved, and what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kforensics.evidence.model import Problem
from kforensics.findings.answers.model import CALM_OF_DIFF, Answer, State
from kforensics.units import TopicPartition
from kforensics.words import Count, byte_count, counted, form, listed

_KINDS = {"lost": "lost records", "at-risk": "records at risk", "all": "records"}

_REASONS = {
    "damaged": "in damaged bytes of which no sound copy is among the inputs",
    "not-read": "in batches beyond what kforensics reads at once, which nothing shows to be damaged",
    "never-seen": "held by no input",
    "remote": "below the local log, where only remote storage can hold them",
    "in-neither-tier": "in no live log, and in no finished copy in remote storage",
    "not-captured": "left on the broker by its capture",
    "overlapping": "in batches that overlap others of the same log",
}


_REMOTE = "what remote storage holds: it was not read"

_CALM = CALM_OF_DIFF | {State.NOTHING_LOST}
_GRAVE = frozenset({State.LOST, State.MAYBE_LOST, State.AT_RISK, State.MAYBE_AT_RISK, State.UNCOMMITTED_LOST})


@dataclass(frozen=True, slots=True, kw_only=True)
class CarvedFigures:
    """What was found in disk images, each batch as often as it lies there."""

    bytes_read: int
    batches: int
    records: int
    bytes: int
    old_batches: int
    """Of magic 0 or 1, which less proves."""
    logs: int
    named_logs: int
    """Those that share a batch with a given replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """The result for one partition."""

    partition: TopicPartition
    records: int
    of_leader: int
    """Saved beside them: what the leader holds where another replica in use keeps other content."""
    certain: int
    missing: int
    """Offsets that are not saved, other than by intention."""
    reasons: tuple[str, ...]
    in_remote_storage: int
    """Offsets that no live log holds and a finished copy on record does."""
    is_guessed: bool
    """No input shows the leader."""
    unread_ends: tuple[str, ...] = ()
    """Bytes behind the last batch that may hold records of unknown offsets."""


SAVABLE = "can be saved"


def salvage_answer(
    partitions: Sequence[Salvaged],
    *,
    what: str,
    out: str | None,
    failure: str,
    premise: Answer,
    problems: Sequence[Problem],
    looked_at: int,
    unsettled: Sequence[TopicPartition] = (),
    not_all_given: Sequence[TopicPartition] = (),
    of_images: Sequence[str] = (),
    chosen: str = "",
    counts_at_least: bool = False,
    is_uncommitted: bool = False,
) -> Answer:
    """Return the answer of `salvage`: `saved` only where the records are shown to be all: the leader is known, every replica given, and no partition is unsettled.

    Args:
        premise: what says which records are lost or at risk.
    """
    saved = sum(one.records for one in partitions)
    missing = sum(one.missing for one in partitions)
    if failure:
        return Answer(
            state=State.UNKNOWN,
            headline=f"NOT ALL IS WRITTEN: {failure}.",
            now=(_run_again(out or "OUT"),),
        )
    ends = [f"what {end} held, of {one.partition}" for one in partitions for end in one.unread_ends]
    remote = sum(one.in_remote_storage for one in partitions)
    elsewhere = f"{counted(remote, 'offset')} {form(remote, 'is', 'are')} in remote storage by finished copies on record, which were not read"
    if not saved and not missing and remote:
        return Answer(state=State.UNKNOWN, headline=f"Nothing was saved: {elsewhere}.", unknown=(_REMOTE, *ends))
    if not saved and not missing:
        nothing = _nothing(what, premise, is_calm=not problems, looked_at=looked_at, chosen=chosen)
        return replace(nothing, unknown=(*nothing.unknown, *ends))
    total = saved + missing
    named = listed([str(one.partition) for one in partitions if one.records or one.missing], most=4)
    certain = sum(one.certain for one in partitions if not one.is_guessed)
    guessed = any(one.is_guessed for one in partitions)
    noun, clause = _kind(what, State.UNCOMMITTED_LOST if is_uncommitted else premise.state, total)
    if not out:
        clause = clause.removesuffix(" is").removesuffix(" are")
    count = Count(total, is_at_least=counts_at_least and premise.state is State.LOST and not chosen)
    words = f"{saved:,} of {count} {noun} of {named}{chosen}{clause} {'saved' if out else SAVABLE}"
    details = [f"{certain:,} committed"] if certain else []
    if guessed:
        details.append("by a leader that is guessed")
    words += f" ({', '.join(details)})" if details else ""
    beside = sum(one.of_leader for one in partitions)
    if beside:
        words += f", and {counted(beside, 'record')} that {'that leader' if guessed else 'the leader'} holds at these offsets"
    reasons = {reason for one in partitions for reason in one.reasons}
    unknown = [
        f"{counted(one.missing, 'offset')} of {one.partition}: {_why(one.reasons)}" for one in partitions if one.missing
    ]
    if missing:
        words += f"; {missing:,} {form(missing, 'is', 'are')} {_why(sorted(reasons))}"
    if remote:
        words += f"; {elsewhere}"
        unknown.append(_REMOTE)
    if premise.state is State.UNKNOWN:
        unknown.append(f"whether there is more: {premise.headline}")
    if unsettled:
        unknown.append(
            f"whether {'anything' if not saved else 'more'} is to be saved of {listed([str(one) for one in unsettled], most=4)}"
        )
    if not_all_given:
        unknown.append(
            f"what replicas of {listed([str(one) for one in not_all_given], most=4)} hold that are not among the inputs"
        )
    unknown += of_images
    state = State.GAPS if missing else State.SAVED
    if problems and state is State.SAVED:
        state = State.UNKNOWN
        words += "; not everything could be read"
    if ends:
        unknown += ends
        words += f"; {counted(len(ends), 'log')} {form(len(ends), 'ends', 'end')} in bytes that can't be read"
        state = State.UNKNOWN if state is State.SAVED else state
    is_part = not_all_given or guessed or premise.state is State.UNKNOWN
    if state is State.SAVED and what != "all" and (is_part or unsettled):
        state = State.UNKNOWN
        is_of_some = what == "lost" and not is_part
        words += (
            f"; whether more are lost in {counted(len(unsettled), 'partition')} is unknown"
            if is_of_some
            else "; whether there are more is unknown"
        )
    return Answer(
        state=state,
        headline=f"{words}.",
        now=_put_back(out) if saved else (),
        unknown=tuple(unknown),
    )


def carved_unknown(figures: CarvedFigures, *, has_replicas: bool = True) -> tuple[str, ...]:
    """Return what disk images leave open."""
    out = ["what is overwritten, or is not in one piece, is not found"]
    if figures.old_batches:
        many = counted(figures.old_batches, "batch", "batches")
        out.append(f"{many} of magic 0 or 1: proven by CRC-32 and structure alone, so some may be chance")
    if nameless := figures.logs - figures.named_logs:
        why = "no given replica shares a batch" if has_replicas else "give replicas of the cluster along with the image"
        out.append(f"which partitions {counted(nameless, 'log')} of the images are of: {why}")
    return tuple(out)


def carved_answer(
    figures: CarvedFigures,
    *,
    saved: int,
    missing: int,
    out: str | None,
    failure: str,
    has_replicas: bool,
    is_incomplete: bool,
) -> Answer:
    """Return what disk images hold."""
    if failure:
        return Answer(state=State.UNKNOWN, headline=f"NOT ALL IS WRITTEN: {failure}.", now=(_run_again(out or "OUT"),))
    if not figures.batches:
        words = f"No record batch was found in {byte_count(figures.bytes_read)}."
        unknown = ("whether there were any: what is overwritten, encrypted or not in one piece can't be found",)
        return Answer(state=State.UNKNOWN, headline=words, unknown=unknown)
    found = f"{counted(figures.records, 'record')} in {counted(figures.batches, 'sound batch', 'sound batches')}"
    share = f"{byte_count(figures.bytes)} of {byte_count(figures.bytes_read)}"
    words = f"{found}, {share}, in {counted(figures.logs, 'log')}"
    words += f", {figures.named_logs:,} of them of partitions given here" if figures.named_logs else ""
    words += f"; {counted(saved, 'record')}{' that no given replica holds' if has_replicas else ''} {'saved' if out else SAVABLE}."
    state = State.GAPS if missing else State.UNKNOWN if is_incomplete else State.SAVED
    return Answer(
        state=state,
        headline=words,
        now=_put_back(out) if saved else (),
        unknown=carved_unknown(figures, has_replicas=has_replicas),
    )


def _run_again(out: str) -> str:
    return (
        f"Make room (--jobs 1 takes less memory), remove {out} and run it again: files named .partial are incomplete."
    )


def _put_back(out: str | None) -> tuple[str, ...]:
    if out is None:
        return ("Run it again with -o OUT in place of --plan: nothing was written.",)
    return (
        f"{out}/README says how to put them back; nothing was sent anywhere.",
        f"Keep {out} private: it holds keys and values as they were produced.",
    )


def _nothing(what: str, premise: Answer, *, is_calm: bool, looked_at: int, chosen: str) -> Answer:
    where = counted(looked_at, "partition")
    if what == "all":
        return Answer(state=State.UNKNOWN, headline=f"No record{chosen} can be read in any input; {where} looked at.")
    # What was deleted on request is not lost, and may still be here: what to do about it stays.
    kept = replace(premise, state=State.UNKNOWN, later=(), unknown=())
    kinds = f"{_KINDS[what]}{chosen}"
    if is_calm and premise.state in _CALM:
        return replace(kept, state=State.SAVED, headline=f"There are no {kinds} to save. {premise.headline}")
    words = f"No {kinds} are shown by these inputs, and it is not shown that there are none."
    if chosen and premise.state in _GRAVE:
        # What is lost elsewhere is no answer to what is lost there, and it must not be missed.
        return replace(kept, headline=f"{words} Elsewhere: {premise.headline}")
    return replace(kept, headline=words, unknown=(premise.headline,))


def _kind(what: str, premise: State, total: int) -> tuple[str, str]:
    """Return what the records are called, and what follows their partitions: they are called lost only where that is certain."""
    plural = "" if total == 1 else "s"
    verb = form(total, "is", "are")
    if what == "lost" and premise in {State.NOTHING_LOST, State.UNCOMMITTED_LOST}:
        return f"uncommitted record{plural}", f" that the leader does not hold {verb}"
    if what == "lost" and premise is not State.LOST:
        return f"record{plural}", f" that may be lost {verb}"
    if what == "at-risk" and premise in {State.MAYBE_AT_RISK, State.UNKNOWN}:
        return f"record{plural}", f" that may be at risk {verb}"
    return {"lost": f"lost record{plural}", "at-risk": f"record{plural} at risk", "all": f"record{plural}"}[what], ""


def _why(reasons: Sequence[str]) -> str:
    return " or ".join(_REASONS.get(reason, reason) for reason in reasons)
