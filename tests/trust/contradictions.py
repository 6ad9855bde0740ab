"""Commands compared with each other: what one says of some directories, another one must not deny, whatever the order and the names of the directories.

    python -m tests.trust.contradictions --runs N --seed S [--only GLOB] [--relation GLOB]
    python -m tests.trust.contradictions --taken --runs N --seed S [--only GLOB] [--kind GLOB]

A subject is a cluster as it is now, with copies from before: the directory of the README, the recordings, and simulated histories, a new one for each seed. With `--taken` it
is a snapshot of a recording of which evidence was taken away, damaged or mixed up, another for each seed. Prints each relation that did not hold and how often; exit code 1 where one did not.
"""

import argparse
import fnmatch
import itertools
import json
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.protocol.truncation import ProtocolName
from kforensics.units import METADATA_TOPICS
from tests.conftest import FIXTURES
from tests.fuzz.commands import invoke
from tests.simulation.less_explained import write_history
from tests.trust.taken_evidence import CHANGES, RECORDINGS, changed, unpacked

Document = dict[str, Any]
NOW = "2026-11-21T07:00:00Z"
CALM = {
    "diff": {"agree", "behind", "same-ends"},
    "explain": {"nothing-lost"},
    "predict": {"starts-unchanged", "starts-and-repairs"},
    "verify": {"sound", "repairable"},
}
GRAVE = {"error", "critical"}
MOST_OFFSETS = 3
"""Lost runs of a subject that are looked for with `trace`."""


class Meant(NamedTuple):
    """A difference between commands that is none."""

    relation: str
    words: str
    """A regular expression that its description matches."""
    reason: str


KNOWN = (
    Meant(
        "all commands have one verdict",
        r"; (?:triage|explain): uncommitted-lost ",
        "what was discarded and never committed is gone by the rules: neither replicas nor files are worse for it",
    ),
    Meant(
        "all commands have one verdict",
        r"^(?:explain|diff|verify): .*; (?:triage|predict): (?:loses|will-not-start) ",
        "what a start does to one node is asked of predict and triage; where records are at risk by it, diff says so, and all with it",
    ),
    Meant(
        "all commands have one verdict",
        r"^(?:explain|diff|verify): .*; (?:triage|predict): unknown \((?:As after a crash, )?Kafka ",
        "what a start does is open, and so is asked of predict and triage likewise",
    ),
    Meant(
        "all commands have one verdict",
        r"^explain: nothing-lost .*; triage: unknown \(UNKNOWN: the last records ",
        "whether what the leader holds is on another disk, too, is asked of diff and triage: nothing of it is lost",
    ),
    Meant(
        "all commands have one verdict",
        r"^explain: nothing-lost .*; triage: unknown \(UNKNOWN: the replicas given .*, and no input shows whether they are all",
        "the last ISR on record is here, and held all that was committed: whether others are out of sync is asked of diff and triage",
    ),
    Meant(
        "all commands have one verdict",
        r"^triage: .*; verify: damaged \(1 of .*-(?:delete|stray) can't be read",
        "damage in a directory that was set aside takes nothing of what is in use",
    ),
    Meant(
        "all commands have one verdict",
        r"; triage: (?:past-the-end|set-back|hanging|torn|prepared) ",
        "what became of groups and transactions is asked of their commands and of triage",
    ),
    Meant(
        "all commands have one verdict",
        r"^predict: starts.*; (?:triage|explain|diff): unknown .*(?:which replica leads|no input shows whether they are all)",
        "what is given loads, and discards nothing as a follower whoever leads: who led decides what was lost, and what others hold",
    ),
    Meant(
        "all commands have one verdict",
        r"^verify: unknown \(MAYBE AT RISK",
        "what a copy of running brokers looks like is no damage: verify says it, and leaves it open",
    ),
    Meant(
        "no loss is called none",
        r"^predict: starts",
        "a start says what becomes of the logs, not what they had lost",
    ),
    Meant(
        "all commands have one verdict",
        r"^explain: nothing-lost .*; triage: unknown \(UNKNOWN: controller",
        "a controller that is not given took no records: its log decides what metadata was committed, and others hold what was",
    ),
    Meant(
        "all commands have one verdict",
        r"^(?:diff: unknown \(UNKNOWN: these inputs can't be compared|predict: unknown ).*; triage: .* It is not shown that all inputs are of one cluster",
        "a node that is given twice is compared with nothing; what the logs of the other nodes show of each other explain and triage say all the same",
    ),
    Meant(
        "severity and state agree",
        r"^diff: unknown \(UNKNOWN: these inputs can't be compared",
        "the same",
    ),
    Meant(
        "all commands count alike",
        r": DATA AT RISK: broker \d+ will discard .* discards \d+ records",
        "of a log that a start shortens diff counts what is left of it then, and explain what lies in its file",
    ),
)
"""Differences that are meant; each with the reason."""


@dataclass
class Subject:
    """A cluster as it is now, and earlier copies of it."""

    name: str
    root: Path
    """All of its files are below; a copy of it elsewhere is the same subject."""
    now: tuple[Path, ...]
    before: tuple[Path, ...] = ()
    logs: tuple[Path, ...] = ()
    has_lost: bool = False
    """Whether committed records are known to be lost, whatever was taken away."""
    cache: dict[tuple[str, ...], tuple[int, Document]] = field(default_factory=dict)

    def run(
        self, command: str, *arguments: str, paths: Sequence[Path] | None = None, before: Sequence[Path] = ()
    ) -> Document:
        """The document of a command, with its exit code; empty where it refuses."""
        named = [str(path) for path in (self.now if paths is None else paths)]
        words = [command, *named, *arguments]
        for path in before:
            words += ["--before", str(path)]
        return self.of(words)

    def of(self, words: Sequence[str]) -> Document:
        """The document of a command line."""
        key = tuple(words)
        if key not in self.cache:
            code, out, err = invoke([*words, "--format", "json"])
            if code not in {0, 1, 2, 3}:
                raise AssertionError(f"exit {code}: {' '.join(words)}: {err[-300:]}")
            self.cache[key] = code, json.loads(out) if out.strip() else {}
        code, document = self.cache[key]
        return {**document, "exit_code": code}

    def diff(self) -> Document:
        return self.run("diff", "--jobs", "1", paths=(*self.now, *self.logs))

    def predict(self) -> Document:
        return self.run("predict", "--now", NOW, "--jobs", "1", paths=(*self.now, *self.logs))

    def explain(self, *, before: bool = True) -> Document:
        return self.run("explain", paths=(*self.now, *self.logs), before=self.before if before else ())

    def triage(self, *, before: bool = False) -> Document:
        return self.run("triage", paths=(*self.now, *self.logs), before=self.before if before else ())

    def verdicts(self) -> dict[str, Document]:
        """The documents of the commands that judge the same directories, without the earlier copies that some of them can't be asked about."""
        return {
            "triage": self.triage(),
            "explain": self.explain(before=False),
            "diff": self.diff(),
            "predict": self.run(
                "predict", "--jobs", "1", paths=(*self.now, *self.logs)
            ),  # at the time that triage asks of
            "verify": self.run("verify", "--jobs", "1", paths=(*self.now, *self.logs)),
        }


def state(document: Document) -> str:
    """The state of the answer; of a refusal, that word."""
    return str(document["answer"]["state"]) if "answer" in document else "refused"


def headline(document: Document) -> str:
    """The headline, numbers without separators."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", document["answer"]["headline"]) if "answer" in document else ""


Relation = Callable[[Subject], Iterator[str]]


def calmer_prediction(subject: Subject) -> Iterator[str]:
    """`predict` is not calm where `diff` of the same directories is not."""
    compared, predicted = subject.diff(), subject.predict()
    if compared["exit_code"] == 1 and state(predicted) in CALM["predict"] and predicted["exit_code"] == 0:
        yield f"diff: {state(compared)} ({headline(compared)}); predict: {state(predicted)} ({headline(predicted)})"


def promised_to_the_refused(subject: Subject) -> Iterator[str]:
    """`diff` promises no truncation of a broker that by `predict` does not start, without saying so."""
    predicted, compared = subject.predict(), subject.diff()
    last = {one["input"]: one for one in predicted.get("starts", ())}
    for number, start in last.items():
        if start["outcome"] != "exits":
            continue
        broker = predicted["inputs"][number]["broker_id"]
        promised = re.search(rf"brokers? (?:\d+, )*{broker}\b[^.]* will discard", headline(compared))
        if promised and "not start" not in headline(compared):
            yield f"broker {broker} does not start ({start['exception']}); diff: {headline(compared)}"


def calmer_check(subject: Subject) -> Iterator[str]:
    """`verify` does not call sound what a start refuses, or deletes, by the bytes of the files; it points to `predict`."""
    checked, predicted = subject.run("verify", "--jobs", "1"), subject.predict()
    if state(predicted) != "will-not-start" and not re.search(r"deletes|discards", headline(predicted)):
        return
    if (
        state(predicted) in {"will-not-start", "loses"}
        and state(checked) in CALM["verify"]
        and checked["exit_code"] == 0
    ):
        answer = json.dumps(checked["answer"])
        is_by_load = any(log.get("outcome") == "fails" or log["records_lost"] for log in predicted["logs"])
        if is_by_load and "predict" not in answer:
            yield f"verify: {headline(checked)}; predict: {headline(predicted)}"


def lost_and_present(subject: Subject) -> Iterator[str]:
    """What `explain` calls lost lies in no live directory, as `trace` finds it."""
    document = subject.explain()
    gone = [one for one in document.get("losses", ()) if one["was_committed"] != "no" and one["held_by"]]
    gone = [one for one in gone if not any(each["in_use"] for each in one["held_by"])]
    for loss in gone[:MOST_OFFSETS]:
        traced = subject.run(
            "trace",
            "-t",
            loss["topic"],
            "-p",
            str(loss["partition"]),
            "--offset",
            str(loss["first_offset"]),
            paths=(*subject.now, *subject.logs),
            before=subject.before,
        )
        holders = {(one["input"], one["path"]) for one in loss["held_by"]}
        roots = tuple(str(path) for path in subject.now)
        for record in traced.get("records", ()):
            places = [(one["input"], one["path"].rpartition("/")[0], one) for one in record["copies"]]
            # A directory can hold one record in a segment that was set aside, and another one in use.
            if not any((number, folder) in holders and one["in"] != "live" for number, folder, one in places):
                continue
            live = [
                f"{traced['inputs'][number]['path']}/{folder}"
                for number, folder, one in places
                if one["in"] == "live"
                and str(traced["inputs"][number]["path"]).startswith(roots)
                and (number, folder) not in holders
            ]
            if live:
                yield f"{loss['topic']}-{loss['partition']} offset {loss['first_offset']} is lost by explain, and lies in {live}"


def salvage_counts(subject: Subject) -> Iterator[str]:
    """`salvage` counts the lost records that `explain` does; those of the metadata log where it is asked for them."""
    document = subject.explain()
    losses = [one for one in document.get("losses", ()) if one["topic"] not in METADATA_TOPICS]
    if not any(one["held_by"] for one in losses):
        return
    with tempfile.TemporaryDirectory() as folder:
        words = ["salvage", *map(str, (*subject.now, *subject.logs)), "--what", "lost", "-o", f"{folder}/out"]
        for path in subject.before:
            words += ["--before", str(path)]
        saved = subject.of(words)
    if "answer" not in saved:
        return
    said = re.match(r"(\d+) of (?:at least )?(\d+) ", headline(saved))
    records = sum(one["records"] for one in losses)
    if said is None or int(said[2]) != records:
        yield f"explain: {records} records ({headline(document)}); salvage: {headline(saved)}"


def numbers_agree(subject: Subject) -> Iterator[str]:
    """The headline, the rows and the document of `explain` have one number, and hedge alike."""
    document = subject.explain()
    losses = [one for one in document.get("losses", ()) if one["topic"] not in METADATA_TOPICS]
    words = headline(document)
    sure = sum(one["records"] for one in losses if one["committed"] == "certain" and not _is_in_use(one))
    was = sum(one["records"] for one in losses if one["was_committed"] == "certain" and not _is_in_use(one))
    said = re.match(r"(?:At least )?(\d+) records? that (?:was|were) committed (?:is|are) lost", words)
    if state(document) == "lost" and said is not None and int(said[1]) not in {sure, was}:
        yield f"headline: {words}; rows: {was} were certainly committed"
    every = [one for one in losses if one["was_committed"] != "no"]
    if "possibly committed" in words and every and all(one["was_committed"] == "certain" for one in every):
        yield f"headline: {words}; every row is certainly committed"


def _is_in_use(loss: Document) -> bool:
    return any(one["in_use"] for one in loss["held_by"])


def grave_but_open(subject: Subject) -> Iterator[str]:
    """No finding of severity error or critical stands beside a state that says less than an alarm."""
    for command, document in (("diff", subject.diff()), ("explain", subject.explain())):
        grave = [one for one in document.get("findings", ()) if one["severity"] in GRAVE]
        if grave and state(document) in CALM[command] | {"unknown"}:
            yield f"{command}: {state(document)} ({headline(document)}); {grave[0]['code']}: {grave[0]['statement']}"


def same_in_any_order(subject: Subject) -> Iterator[str]:
    """The order of paths, and that of earlier copies, decides nothing."""
    turned = tuple(reversed(subject.now))
    for command, arguments in (("diff", ("--jobs", "1")), ("explain", ()), ("predict", ("--now", NOW, "--jobs", "1"))):
        one = summary(subject.run(command, *arguments, paths=subject.now))
        other = summary(subject.run(command, *arguments, paths=turned))
        yield from _differences(f"{command}, paths reversed", one, other)
    if len(subject.before) > 1:
        paths = (*subject.now, *subject.logs)
        one = summary(subject.run("explain", paths=paths, before=subject.before))
        other = summary(subject.run("explain", paths=paths, before=tuple(reversed(subject.before))))
        yield from _differences("explain, --before reversed", one, other)


def same_by_any_name(subject: Subject) -> Iterator[str]:
    """Directories with other names, below another folder, are the same."""
    with tempfile.TemporaryDirectory() as folder:
        names = {path: Path(folder, f"copy of {at}", f"data-{at}") for at, path in enumerate(subject.now)}
        for path, target in names.items():
            shutil.copytree(path, target, symlinks=True)
        back = {str(target): str(path) for path, target in names.items()}
        for command, arguments in (("diff", ("--jobs", "1")), ("explain", ())):
            one = summary(subject.run(command, *arguments))
            other = summary(subject.run(command, *arguments, paths=tuple(names.values())), back)
            yield from _differences(f"{command}, renamed", one, other)


def same_from_captures(subject: Subject) -> Iterator[str]:
    """A capture says what its directory does."""
    with tempfile.TemporaryDirectory() as folder:
        captures = [Path(folder, f"{at}.kfc") for at in range(len(subject.now))]
        for path, target in zip(subject.now, captures, strict=True):
            code, _, err = invoke(["capture", str(path), "--out", str(target)])
            if code not in {0, 3}:
                yield f"capture of {path}: exit {code}: {err[-200:]}"
                return
        for command, arguments in (("diff", ("--jobs", "1")), ("explain", ())):
            one = summary(subject.run(command, *arguments))
            other = summary(subject.run(command, *arguments, paths=captures))
            for each in (one, other):
                each.pop("headline")
            yield from _differences(f"{command}, captured", one, other)


FORBIDDEN = {
    ("nothing-lost", "lost"),
    ("nothing-lost", "maybe-lost"),
    ("nothing-lost", "diverged"),
    ("uncommitted-lost", "lost"),
    ("diverged", "lost"),
}


def more_refines(subject: Subject) -> Iterator[str]:
    """An earlier copy, and the log files, refine: they make no loss of what was proven whole."""
    if not subject.before:
        return
    chain = [subject.run("explain", before=subject.before[:count]) for count in range(len(subject.before) + 1)]
    chain.append(subject.explain())
    for less, more in itertools.pairwise(chain):
        if (state(less), state(more)) in FORBIDDEN:
            yield f"{state(less)} ({headline(less)}) becomes {state(more)} ({headline(more)})"


def explained_calmly(subject: Subject) -> Iterator[str]:
    """`explain` does not call proven whole what `diff` of the same directories sees at risk by what is certainly committed."""
    compared, explained = subject.diff(), subject.explain()
    if state(compared) in {"at-risk", "diverged"} and state(explained) == "nothing-lost":
        yield f"diff: {headline(compared)}; explain: {headline(explained)}"


GRAVE_STATES = {"at-risk", "maybe-at-risk", "diverged"}
COORDINATED = {"groups": ("__consumer_offsets", "__share_group_state"), "transactions": ("__transaction_state",)}
"""The topics that commands are about whatever is asked."""


def calm_beside_replicas(subject: Subject) -> Iterator[str]:
    """No command is calm where the replicas of the same partitions are not, of all nodes or of some; one directory alone compares nothing."""
    for nodes in {subject.now, subject.now[: max(2, len(subject.now) // 2)], subject.now[:1]}:
        paths = (*nodes, *subject.logs)
        compared = subject.run("diff", "--depth", "tails", "--jobs", "1", paths=paths)
        for command, arguments in (
            ("verify", ("--jobs", "1")),
            ("explain", ()),
            ("predict", ("--now", NOW, "--jobs", "1")),
            ("groups", ()),
            ("transactions", ()),
        ):
            told = subject.run(command, *arguments, paths=paths)
            grave = _grave_of(compared, COORDINATED.get(command)) if len(nodes) > 1 else []
            if grave and told["exit_code"] == 0:
                yield f"diff: {state(compared)} ({headline(compared)}); {command}: {state(told)} ({headline(told)})"
            # Its own checkpoints may say more than its logs hold.
            if len(nodes) == 1 and state(compared) not in GRAVE_STATES and "kforensics diff" in headline(told):
                yield f"{command} of one directory: {headline(told)}"
        yield from _calm_about_another(subject, paths, compared)


def _grave_of(compared: Document, topics: Sequence[str] | None) -> list[Document]:
    return [
        one
        for one in compared.get("partitions", ())
        if one["state"] in GRAVE_STATES and (topics is None or one["topic"] in topics)
    ]


def _calm_about_another(subject: Subject, paths: Sequence[Path], compared: Document) -> Iterator[str]:
    """A command that is asked about one topic says nothing of another."""
    grave = {one["topic"] for one in _grave_of(compared, None)}
    for topic in sorted({one["topic"] for one in compared.get("partitions", ())} - grave)[:1]:
        told = subject.run("explain", "--topic", topic, paths=paths)
        if state(told) in {"at-risk", "maybe-at-risk"}:
            yield f"explain --topic {topic}: {headline(told)}"


def one_verdict(subject: Subject) -> Iterator[str]:
    """What one command alarms about none leaves open or is calm about; where one can't answer these directories, none does."""
    told = subject.verdicts()
    refused = {name for name, document in told.items() if "answer" not in document}
    if 0 < len(refused) < len(told):
        yield f"refused by {', '.join(sorted(refused))} alone"
    codes = {name: document["exit_code"] for name, document in told.items() if name not in refused}
    if len({code for name, code in codes.items() if name != "verify"} | {codes.get("verify", 0) % 3}) == 1:
        return
    graver = [name for name in codes if codes[name] == 1] or [name for name in codes if codes[name] == 3]
    for name, code in codes.items():
        # Whether files are sound, no open question decides; and of damaged ones all records may lie elsewhere, which triage alone weighs.
        if (
            name in graver
            or (name == "verify" and codes[graver[0]] == 3)
            or (graver == ["verify"] and (name != "triage" or code or _is_of_quorum(told["verify"])))
        ):
            continue
        yield f"{name}: {state(told[name])} ({headline(told[name])}); {graver[0]}: {state(told[graver[0]])} ({headline(told[graver[0]])})"


def _is_of_quorum(verified: Document) -> bool:
    """Whether only metadata logs are damaged: what a majority of the voters holds of them is copied again."""
    grave = [one for one in verified["findings"] if one["severity"] in GRAVE]
    return bool(grave) and all(one.get("topic") == "__cluster_metadata" for one in grave)


def groups_beside_triage(subject: Subject) -> Iterator[str]:
    """What became of groups and transactions `triage` says as their commands do."""
    asked = subject.triage(before=True)
    for command in COORDINATED:
        told = subject.run(command, paths=(*subject.now, *subject.logs), before=subject.before)
        if told["exit_code"] == 1 and asked["exit_code"] != 1:
            yield f"{command}: {state(told)} ({headline(told)}); triage: {state(asked)} ({headline(asked)})"


def earlier_copies_alike(subject: Subject) -> Iterator[str]:
    """With earlier copies `triage` is as grave as `explain`, but for what was never committed."""
    asked, explained = subject.triage(before=True), subject.explain()
    if state(explained) == "uncommitted-lost":
        return
    if (explained["exit_code"] == 1 and asked["exit_code"] != 1) or explained["exit_code"] > asked["exit_code"] == 0:
        yield f"explain: {state(explained)} ({headline(explained)}); triage: {state(asked)} ({headline(asked)})"


def what_to_save(subject: Subject) -> Iterator[str]:
    """A plan of `salvage` is calm where nothing is lost alone, and names what `triage` says can be got back; that then is there."""
    asked, explained = subject.triage(before=True), subject.explain()
    plan = subject.run("salvage", "--plan", paths=(*subject.now, *subject.logs), before=subject.before)
    if "answer" not in plan or "answer" not in asked:
        return
    if "to save. " in headline(plan) and plan["exit_code"] == 0 and explained["exit_code"]:
        yield f"explain: {state(explained)} ({headline(explained)}); salvage: {headline(plan)}"
    named = re.findall(r"kforensics (salvage --what .*?) -o ", " ".join(asked["answer"]["now"]))
    for line in dict.fromkeys(named):
        wanted = re.search(r"--what (\S+)", line)
        if (
            wanted
            and wanted[1] == "all"
            and not plan["records"]
            and "--what all" not in " ".join(plan["answer"]["now"])
        ):
            yield f"triage: {line}; salvage: {headline(plan)} {plan['answer']['now']}"
        saved = subject.of([*shlex.split(line), "--plan"])
        if "answer" not in saved or not (saved["records"] or re.match(r"0 of (?:at least )?[1-9]", headline(saved))):
            yield f"triage: {line}; salvage: {headline(saved)}"


COUNTS = (
    r"(\d+) committed record",
    r"(\d+) records? that (?:was|were) committed",
    r"(\d+) records? of [^.]*possibly committed",
)
"""How first lines count records."""


def one_number(subject: Subject) -> Iterator[str]:
    """The first lines of all commands count the same records alike."""
    first = {name: headline(document) for name, document in subject.verdicts().items()}
    for pattern in COUNTS:
        kept = r"keep (\d+) more committed" if pattern == COUNTS[0] else "$^"
        more = {name: sum(map(int, re.findall(kept, words))) for name, words in first.items()}
        counts = {
            name: int(found[1]) + more[name] for name, words in first.items() if (found := re.search(pattern, words))
        }
        if len(set(counts.values())) > 1:
            yield f"{pattern}: {counts}: {first[next(iter(counts))]}"


def calm_about_losses(subject: Subject) -> Iterator[str]:
    """Where committed records are lost, no command says that none is."""
    if not subject.has_lost:
        return
    told = subject.verdicts()
    for name in ("triage", "explain", "diff", "predict"):
        if told[name]["exit_code"] == 0 or state(told[name]) in {"nothing-lost", "uncommitted-lost"}:
            yield f"{name}: {state(told[name])} ({headline(told[name])})"


RELATIONS: dict[str, Relation] = {
    "all commands have one verdict": one_verdict,
    "all commands count alike": one_number,
    "no loss is called none": calm_about_losses,
    "groups and transactions are as triage has them": groups_beside_triage,
    "triage with earlier copies is as grave as explain": earlier_copies_alike,
    "what triage says to save is there": what_to_save,
    "no command is calm beside its replicas": calm_beside_replicas,
    "predict is as grave as diff": calmer_prediction,
    "diff knows what a start refuses": promised_to_the_refused,
    "verify points to predict": calmer_check,
    "explain is as grave as diff": explained_calmly,
    "lost is not present": lost_and_present,
    "salvage counts as explain does": salvage_counts,
    "headline and rows agree": numbers_agree,
    "severity and state agree": grave_but_open,
    "the order of paths is nothing": same_in_any_order,
    "names of directories are nothing": same_by_any_name,
    "a capture is its directory": same_from_captures,
    "more evidence refines": more_refines,
}


def summary(document: Document, names: dict[str, str] | None = None) -> Document:
    """What two runs over the same must agree in, whatever the paths."""
    words = headline(document)
    # The number of a node without an id is its place among the paths.
    words = re.sub(r"\binput (\d+)", lambda one: document["inputs"][int(one[1]) - 1]["path"], words)
    for there, here in (names or {}).items():
        words = words.replace(there, here)
    return {
        "state": state(document),
        "exit code": document["exit_code"],
        "headline": words,
        "partitions": sorted(
            (one["topic"], one["partition"], str(one.get("state")))
            for one in document.get("partitions", ())
            if "topic" in one
        ),
        "losses": sorted(
            (one["topic"], one["partition"], one["first_offset"], one["last_offset"], one["records"], one["committed"])
            for one in document.get("losses", ())
        ),
        "truncations": sorted(
            (one["topic"], one["partition"], str(one["broker_id"]), str(one["from_offset"]), one["to_offset"])
            for one in document.get("truncations", ())
        ),
        "findings": sorted(
            (one["code"], str(one["topic"]), str(one["partition"]), str(one["broker_id"]))
            for one in document.get("findings", ())
        ),
    }


def _differences(what: str, one: Document, other: Document) -> Iterator[str]:
    for key in one:
        if one[key] != other[key]:
            yield f"{what}: {key}: {one[key]!s:.300} / {other[key]!s:.300}"
            return


def _nodes(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.iterdir() if path.is_dir()))


def fixture_subject() -> Subject:
    """The cluster of the README."""
    root = FIXTURES / "unclean-election"
    return Subject("unclean-election", root, _nodes(root))


@contextmanager
def recorded(name: str) -> Iterator[Subject]:
    """The last state of a recording, with those before and the log files of its brokers."""
    with unpacked(name) as root:
        *before, now = sorted((root / "snapshots").iterdir())
        logs = _nodes(root / "logs") if (root / "logs").is_dir() else ()
        yield Subject(name, root, _nodes(now), tuple(before), logs)


@contextmanager
def simulated(seed: int) -> Iterator[Subject]:
    """A random history, its directories at the end and at moments before; of every second one without the log files of its brokers."""
    protocols = list(ProtocolName)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        history = write_history(seed, protocols[seed % len(protocols)], root)
        logs = _nodes(root / "logs") if seed % 2 and (root / "logs").is_dir() else ()
        yield Subject(f"history {seed}", root, _nodes(root / "now"), tuple(history.snapshots), logs)


@contextmanager
def taken(seed: int, only: str = "*", kind: str = "*") -> Iterator[Subject]:
    """A snapshot of a recording of which something was taken away; what was lost before the last stays so whatever is missing."""
    names = [name for name in RECORDINGS if fnmatch.fnmatch(name, only)]
    kinds = [name for name in CHANGES if fnmatch.fnmatch(name, kind)]
    with changed(seed, names, kinds) as copy:
        facts = json.loads((copy.recording / "checks.json").read_text()).get("explain") or {}
        has_lost = copy.snapshot.name == facts.get("snapshot") and any(one["offsets"] for one in facts.get("lost", ()))
        name = f"{seed} {copy.recording.name}/{copy.snapshot.name}{' with logs' * bool(copy.logs)} without {' and '.join(copy.done)}"
        yield Subject(name, copy.nodes[0].parent, tuple(copy.nodes), (), (copy.logs,) if copy.logs else (), has_lost)


def contradictions(subject: Subject, relations: Sequence[str] = tuple(RELATIONS)) -> Iterator[tuple[str, str]]:
    """Each relation that does not hold of a subject, with what was said; those that are known to be none are left out."""
    for name in relations:
        for words in RELATIONS[name](subject):
            if not any(one.relation == name and re.search(one.words, words) for one in KNOWN):
                yield name, words


def subjects(runs: int, seed: int, only: str) -> Iterator[Callable[[], Any]]:
    """Makers of subjects: the fixture, the recordings, and histories up to a number of runs."""
    recordings = sorted(path.name.removesuffix(".tar.xz") for path in (FIXTURES / "incidents").glob("*.tar.xz"))
    random.Random(seed).shuffle(recordings)
    made: list[tuple[str, Callable[[], Any]]] = [("unclean-election", lambda: _as_is(fixture_subject()))]
    made += [(name, partial(recorded, name)) for name in recordings]
    made += [(f"history {seed + at}", partial(simulated, seed + at)) for at in range(max(0, runs - len(made)))]
    for name, make in made[:runs] if only == "*" else made:
        if fnmatch.fnmatch(name, only):
            yield make


@contextmanager
def _as_is(subject: Subject) -> Iterator[Subject]:
    yield subject


def main() -> int:
    """Run it, and print figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=int, default=60, metavar="N", help="subjects: the fixture, the recordings, then histories"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--only", default="*", metavar="GLOB", help="names of subjects")
    parser.add_argument("--relation", default="*", metavar="GLOB", help="names of relations")
    parser.add_argument("--taken", action="store_true", help="recordings of which evidence was taken away")
    parser.add_argument("--kind", default="*", metavar="GLOB", help="what is taken away")
    options = parser.parse_args()
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1795244400")  # NOW: by the clock retention deletes recordings
    made = (
        [partial(taken, options.seed + at, options.only, options.kind) for at in range(options.runs)]
        if options.taken
        else subjects(options.runs, options.seed, options.only)
    )
    chosen = [name for name in RELATIONS if fnmatch.fnmatch(name, options.relation)]
    runs, wrong = 0, Counter[str]()
    for make in made:
        with make() as subject:
            runs += 1
            for name, words in contradictions(subject, chosen):
                wrong[name] += 1
                print(f"{subject.name}: {name}: {words}", flush=True)
    print(f"{runs} subjects")
    for name in chosen:
        print(f"{wrong[name]:5d}  {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
