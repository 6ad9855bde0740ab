"""The commands that are asked: their words, what contradicts itself, and how an `Ask` is made for each."""

from collections.abc import Iterable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any

from kforensics.ask.fleet import FleetAsk
from kforensics.ask.model import Ask, What
from kforensics.ask.option import Spelled, as_path, several, spelled_options
from kforensics.ask.simulate import SimulateAsk
from kforensics.errors import UsageError, did_you_mean, nearest_names
from kforensics.words import command_line

WORDS = {
    "triage": (
        "Answer first what was lost, what is at risk, where it is saved, and what to do.\n\n"
        "Give whatever there is: data directories, captures, broker logs, earlier copies with --before. One screen sums up what explain, diff, predict, groups and transactions say of it; `kforensics PATH` is the same. All content is read of logs of up to 64 MiB together, of larger ones only the ends, but with --depth content; transactions need all of it, and are asked about of up to 1 GiB. The exit code is 1 where anything is lost or at risk, 3 where the inputs do not show it."
    ),
    "ls": (
        "List what is here: nodes, log directories, partitions with their offsets, every file by its kind.\n\n"
        "Of each log only the end is read, but with --depth content. In the table, epoch is the leader epoch of the last batch, start and end are the log start and log end offset, HW is the high watermark and recovery the recovery point; a dash means a value that nothing here holds."
    ),
    "dump": (
        "Decode any file of a data directory: batches or records, indexes, snapshots, checkpoints.\n\n"
        "Damage is shown in its place. Records of the metadata log and of Kafka's own topics are decoded to named fields."
    ),
    "verify": (
        "Check every file against its format and against its neighbours.\n\n"
        "Checksums, batch order, leader epochs, lengths and counts; indexes, transactions, producer snapshots and checkpoints against the log; names against content. Behind a damaged batch it continues with the next good one. Where another replica among the inputs holds a damaged range intact, it is named. Exit code 0 says that nothing is damaged."
    ),
    "diff": (
        "Compare the replicas of every partition: where each will truncate, what differs, and what each possible leader would lose.\n\n"
        "Give the data directories of the brokers of one cluster, and of its controllers where it has them. The first line says what is at risk. The exit code follows from it: 1 where something is at risk, differs for good or is truncated, 3 where the inputs do not show it."
    ),
    "explain": (
        "Explain what happened in an incident: every truncation with its cause, and every lost record.\n\n"
        "Works on one broker's directory alone and gets better with every other replica, metadata log, log file and earlier snapshot; it says what is missing. `--format html -o report.html` makes a page for the post-mortem. Exit code 1 means that records that were or may have been committed are lost."
    ),
    "logs": (
        "Say what the logs of brokers mean: every known line by its kind, harmless, a symptom or a cause, and all nodes on one clock.\n\n"
        "Takes log files of any layout, of containers and log collectors too; no data directory is needed. With --line it says what one line means. Exit code 1: a cause is among the lines; 3: no line is known."
    ),
    "predict": (
        "Say what a broker will do to its logs when it is started: scanned, truncated, deleted, rebuilt, or refused, file by file.\n\n"
        "Give the log directories of a stopped broker, or a copy of them, and those of the other brokers to learn who else holds what would be discarded. Nothing is written. Starts are computed one after the other until one succeeds or nothing changes. Where it is not given, the version is the one that the server log names, or that the node registered."
    ),
    "salvage": (
        "Get records back: the best copy of what is lost, at risk, or of everything, with a list of gaps.\n\n"
        "Reads live replicas, .deleted and .swap files, -delete, -stray and -future directories, earlier snapshots, and sound batches behind damage; writes only to OUT, never below an input, and connects to nothing. OUT/manifest.json says of every run of records where it was and what its SHA-256 is, and of every gap why it is there; OUT/README how to put the records back. Exit code 0: all is saved; 1: there are gaps; 3: it is unknown whether that is all, or something could not be read or written."
    ),
    "trace": (
        "Trace a record: every copy of it and what became of it, or what was searched without finding it.\n\n"
        "Reads live replicas, .deleted and .swap files, -delete, -stray and -future directories, captures and earlier snapshots. Records that match everything given are found. `never-here` is the answer only where every offset of the logs was read, on every replica; otherwise the gaps are named."
    ),
    "groups": (
        "Show the positions of consumer groups, how far behind they are, and who set them back.\n\n"
        "`__consumer_offsets` is replayed in the order of its log: commits, transactional ones with their marker, resets, expiry, deletion, and what a truncation took."
    ),
    "transactions": (
        "Show open transactions, whether they hang, and what ends them.\n\n"
        "The logs of the partitions are joined with what the coordinators wrote into `__transaction_state`: a transaction hangs, is torn by a truncation, waits for its coordinator, or is in time. Nothing is sent to a cluster."
    ),
    "metadata": (
        "Show the history of partitions, topics and brokers from the KRaft metadata log and its snapshots.\n\n"
        "The metadata logs of several nodes are compared with each other, and the newest one is shown."
    ),
    "capture": (
        "Save a node's evidence in one file; every command accepts it in place of directories.\n\n"
        "On each broker `kforensics capture`, and where the files are brought together `kforensics diff *.kfc`. Every small file, the metadata log and the log files are in it byte for byte; of segments offsets, leader epochs, damage and digests, and a row a batch where a truncation can still happen. No key, value or header of a user's record is in it, unless --with-tail is given. It reads at the lowest priority for disk and processor, and writes only FILE."
    ),
    "seal": (
        "Seal evidence: a manifest with size, times and sha256 of everything below the paths, to show later that nothing changed.\n\n"
        "Without --check the manifest is written to standard output or to --out, and its own sha256 to standard error: write that down, or sign the manifest. With --check the exit code is 0 where everything is as it was sealed, 1 where something differs, is missing or was added, or the signature does not hold, and 3 where something can't be read."
    ),
    "fleet-audit": (
        "Judge every partition of a fleet as diff does, on Spark, and write Parquet tables and a summary.\n\n"
        "Every source must be readable from every worker by its path; of a capture only the file. Needs Java 17 or later, and kforensics installed with its extra named spark."
    ),
    "fleet-report": (
        "Show an audit again, a part of it, or what changed since an earlier one. Needs neither Spark nor Java."
    ),
    "fleet-trend": (
        "Show audit by audit how many findings there were, and how many were new, gone, worse, better or unchanged. Needs neither Spark nor Java."
    ),
    "fleet-history": (
        "Remove old audits of a history, and what only they hold. Needs neither Spark nor Java.\n\n"
        "A reader sees the history before or after, and where the work ends half way the next run or audit ends it. What is open keeps the time when it was first seen."
    ),
    "fleet-scan": (
        "Extract on a broker what an audit needs of its disks: the old name of `kforensics capture`. Needs no Spark.\n\n"
        "With --out NAME.kfc it is `kforensics capture`. With another --out it takes the capture into that directory, with a row a batch, and where an earlier run left one there, reads only what changed since; `fleet audit` takes the directory, as do all other commands. No keys, no values.\n\n"
        "Reads at the lowest priority for disk and processor, and continues where it was interrupted. The captures can be brought together from all brokers and given to `fleet audit`."
    ),
    "simulate": (
        "Replay how replicas lose and diverge, explore every interleaving, or write a history as data directories.\n\n"
        "A scenario is shown step by step under each truncation protocol. Exploring visits all states of a small configuration and shows the shortest way to a broken invariant: exit code 1 where one breaks, 3 where --max-states ended the search first."
    ),
}
"""What each command does, in paragraphs: its help, its manual page, and the documentation of its function."""


def options_of(command: str) -> tuple[Spelled, ...]:
    """Return the options that a command takes, in the order of its help."""
    return tuple(one for one in spelled_options(asked_by(command)) if command in one.option.takes)


_SUBJECTS = frozenset({"cluster", "topics", "partitions", "is_stopped", "keep_going", "before"})
"""Fields of the options that say what a question is about, and of what state the inputs are."""


def command_of(command: str, ask: Ask, *more: str, paths: Iterable[Path | str] | None = None) -> str:
    """Return the command that asks another question of the subjects of an `Ask`, as it can be pasted.

    Args:
        paths: in place of those that were named.
    """
    words = ["kforensics", command, *more]
    named = [f"./{one}" if str(one).startswith("-") else str(one) for one in (ask.paths if paths is None else paths)]
    for option in (one for one in options_of(command) if one.field in _SUBJECTS):
        value, flag = getattr(ask, option.field), option.option.flags[0]
        several_of = value if isinstance(value, tuple) else sorted(value) if isinstance(value, frozenset) else (value,)
        for each in several_of if value else ():
            own = [flag] if value is True else [f"{flag}={each}"] if str(each).startswith("-") else [flag, str(each)]
            (named if option.field == "before" else words).extend(own)
    return command_line([*words, *named])


def asked_by(command: str) -> Any:
    """Return the class of what a command is asked."""
    return SimulateAsk if command == "simulate" else FleetAsk if command.startswith("fleet-") else Ask


def ask_of(command: str, given: Mapping[str, Any]) -> Any:
    """Return what a command is asked, in the class for it.

    Args:
        given: words or values by field; what is None or left out has its default.

    Raises:
        UsageError: a value is none, or options contradict each other.
        TypeError: a value of another type.
    """
    ask = asked_by(command)(**{one.field: one.value(given.get(one.field)) for one in options_of(command)})
    for words in _contradictions(command, ask):
        raise UsageError(words)
    return ask


def called(command: str, paths: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return what a function of the library is asked.

    Args:
        paths: each a path or several of them; of `simulate` the scenario.

    Raises:
        UsageError: as `ask_of`.
        TypeError: a value of another type, or an option that the command does not take.
        ValueError: no path.
    """
    known = {one.name: one.field for one in options_of(command) if one.option.flags}
    for name in options:
        if name not in known:
            raise TypeError(f"{command} takes no {name}; {did_you_mean(nearest_names(name, known))}".rstrip("; "))
    named = {known[name]: value for name, value in options.items()}
    if command == "simulate":
        if len(paths) > 1:
            raise TypeError("simulate takes one scenario")
        return ask_of(command, {**named, "scenario": (*paths, None)[0]})
    if command.startswith("fleet-") and command != "fleet-scan":
        return ask_of(command, {**_places(command, paths), **named})
    ask: Ask = ask_of(command, {"paths": each_path(paths), **named})
    if not (ask.paths or ask.images or ask.check or ask.line):
        raise ValueError("no path is given")
    return ask


def _places(command: str, given: Sequence[Any]) -> dict[str, Any]:
    """Return the sources or tables that a command for fleets is asked for: paths, or URIs, of which a path would drop a slash."""
    places = []
    for one in (one for several_of in given for one in several(several_of)):
        as_path(one)  # refuses what is none
        places.append(fspath(one))
    if not places:
        raise ValueError("no path is given")
    (field,) = (one.field for one in options_of(command) if not one.option.flags)
    if field == "tables":
        if len(places) > 1:
            raise TypeError(f"{command} takes the tables of one audit, or one history")
        return {field: places[0]}
    return {field: tuple(places)}


def each_path(given: Iterable[Any]) -> list[Path]:
    """Return paths one by one, whether each was given by itself or in a list."""
    return [as_path(path) for one in given for path in several(one)]


def _contradictions(command: str, ask: Any) -> Iterable[str]:
    """Yield why what is asked can't be answered."""
    match command:
        case "fleet-audit":
            if (ask.new_tables is None) == (ask.history_tables is None):
                yield "give either --out, a directory for this audit alone, or --history, tables to which it is appended"
        case "fleet-report" if ask.since is not None and (ask.metrics or ask.fail_on or ask.accept):
            yield "--since shows what changed; --fail-on, --accept and --metrics are for a report of one audit"
        case "diff" if ask.show_payload and not ask.show_records:
            yield "--show-payload needs --show-records"
        case "transactions" if ask.open and ask.all:
            yield "--open and --all exclude each other"
        case "metadata" if ask.partitions and not ask.topics:
            yield "--partition needs --topic"
        case "dump" if len(ask.producer_ids) > 1:
            yield "the batches of one producer are shown: give --producer-id once"
        case "trace":
            if len(ask.topics) != 1:
                yield "--topic NAME is needed" if not ask.topics else "one topic is searched: give --topic once"
            if ask.all_partitions and ask.partitions:
                yield "--all-partitions and --partition contradict each other"
            if ask.key is not None and ask.key_base64 is not None:
                yield "--key and --key-base64 name the same thing: give one of them"
        case "salvage":
            yield from _of_salvage(ask)
        case "simulate":
            yield from _of_simulate(ask)
        case "capture" if (ask.out is None) != ask.plan:
            yield "--out FILE is needed" if ask.out is None else "--plan writes no file: leave --out out"
        case "seal":
            if ask.check is None and (ask.public_key or ask.signature):
                yield "--public-key and --signature go with --check"
            if ask.check is not None and (ask.case_id or ask.operator or ask.sign_with):
                yield "--case-id, --operator and --sign-with go with a new seal, not with --check"


def _of_salvage(ask: Ask) -> Iterable[str]:
    if ask.out is None and not ask.plan:
        yield "-o OUT is needed: the directory for the records"
    if not ask.paths and not ask.images:
        yield "a PATH or --carve IMAGE is needed"
    if ask.images and ask.what is None and (ask.before or ask.leader is not None):
        yield "--carve goes with --before or --leader only where --what lost or --what all is asked for"
    if ask.images and ask.what is What.AT_RISK:
        yield "--carve does not go with --what at-risk: what is at risk is in the PATHs"
    if ask.images and ask.what is not None and not ask.paths:
        yield f"--what {ask.what} needs a PATH: the replicas that say what is missing"


_ONE = {"NAME": "scenario", "--list": "list", "--explore": "model", "--random": "random", "--bytes": "length"}
"""The things that `simulate` does, by the fields that ask for them."""

_PLACES = {
    "protocol": (("NAME", "--random"), "NAME or --random"),
    "write": (("NAME", "--random", "--bytes"), "NAME, --random or --bytes"),
    "steps": (("NAME",), "NAME and --write"),
    "stop": (("NAME", "--random"), "--write and NAME or --random"),
    **dict.fromkeys(("seed", "racks"), (("--random",), "--random")),
    **dict.fromkeys(("brokers", "partitions"), (("--random", "--bytes"), "--random or --bytes")),
    **dict.fromkeys(
        ("replicas", "max_log", "max_records", "max_epoch", "invariant", "max_states"), (("--explore",), "--explore")
    ),
}
"""With what an option of `simulate` has a meaning, and how that is said."""


def _of_simulate(ask: SimulateAsk) -> Iterable[str]:
    wanted = [words for words, field in _ONE.items() if getattr(ask, field) not in (None, False)]
    if len(wanted) != 1:
        yield "one of NAME, --list, --explore, --random and --bytes is needed"
        return
    if wanted[0] in {"--random", "--bytes"} and ask.write is None:
        yield "--random and --bytes go with --write DIR"
    for one in options_of("simulate"):
        places, words = _PLACES.get(one.field, (wanted, ""))
        needs_write = one.field in {"steps", "stop"} and ask.write is None
        if getattr(ask, one.field) != one.default and (wanted[0] not in places or needs_write):
            yield f"{one.option.flags[0]} needs {words}"
