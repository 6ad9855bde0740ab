"""Every command, declared once: what it does, the states of its answer, and examples.

The command line, the functions of the package, manual pages, exit codes and schemas are made of it.
"""

from typing import NamedTuple

_DIFF = "at-risk maybe-at-risk diverged unknown uncommitted-only behind same-ends agree"
_FLEET = "at-risk maybe-at-risk diverged damaged unknown uncommitted-only behind same-ends agree"


class Command(NamedTuple):
    """What is declared of a command."""

    words: str
    """What it does, in paragraphs: its help, its manual page, and the documentation of its function."""
    states: str
    """The states that its answer can have, the worst first: names of `findings.answers.model.State`."""
    examples: tuple[tuple[str, str], ...] = ()
    """For its help and its manual page: a purpose, and a command line."""


COMMANDS = {
    "triage": Command(
        "Answer first what was lost, what is at risk, where it is saved, and what to do.\n\n"
        "Give whatever there is: data directories, captures, broker logs, earlier copies with --before. One screen sums up what explain, diff, predict, groups and transactions say of it; `kforensics PATH` is the same. All content is read of logs of up to 64 MiB together, of larger ones only the ends, but with --depth content; transactions need all of it, and are asked about of up to 1 GiB. The exit code is 1 where anything is lost or at risk, 3 where the inputs do not show it.",
        "lost at-risk will-not-start loses maybe-lost maybe-at-risk diverged hanging torn past-the-end prepared set-back below-the-start wrong-epoch set-forward unknown uncommitted-lost uncommitted-only nothing-lost",
        (
            ("After an incident, with all that there is", "kforensics triage broker-1 broker-2 broker-3 logs"),
            ("With an earlier copy of the same disks", "kforensics triage evidence logs --before earlier"),
            ("For a chat", "kforensics triage evidence --brief"),
        ),
    ),
    "ls": Command(
        "List what is here: nodes, log directories, partitions with their offsets, every file by its kind.\n\n"
        "Of each log only the end is read, but with --depth content. In the table, epoch is the leader epoch of the last batch, start and end are the log start and log end offset, HW is the high watermark and recovery the recovery point; a dash means a value that nothing here holds.",
        "unknown complete",
        (
            ("What is in a copy, node by node", "kforensics ls evidence"),
            ("Every file as JSON", "kforensics ls evidence --files --format jsonl"),
        ),
    ),
    "dump": Command(
        "Decode any file of a data directory: batches or records, indexes, snapshots, checkpoints.\n\n"
        "Damage is shown in its place. Records of the metadata log and of Kafka's own topics are decoded to named fields.",
        "damaged unknown complete",
        (
            ("The batches of a segment", "kforensics dump broker-1/orders-0/00000000000000000000.log"),
            (
                "Records from an offset on, with their payloads",
                "kforensics dump broker-1/orders-0 --from-offset 4711 --show-payload --text",
            ),
            ("A checkpoint of high watermarks", "kforensics dump broker-1/replication-offset-checkpoint"),
        ),
    ),
    "capture": Command(
        "Save a node's evidence in one file; every command accepts it in place of directories.\n\n"
        "On each broker `kforensics capture`, and where the files are brought together `kforensics diff *.kfc`. Every small file, the metadata log and the log files are in it byte for byte; of segments offsets, leader epochs, damage and digests, and a row a batch where a truncation can still happen. No key, value or header of a user's record is in it, unless --with-tail is given. It reads at the lowest priority for disk and processor, and writes only FILE.",
        "unknown complete",
        (
            ("How long will it take, and how large will it be?", "kforensics capture --plan /var/lib/kafka"),
            ("On each broker, with its logs", "kforensics capture /var/lib/kafka /opt/kafka/logs --out broker-1.kfc"),
            ("Gently, on a busy broker", "kforensics capture /var/lib/kafka --read-rate 50MB/s --out broker-1.kfc"),
        ),
    ),
    "diff": Command(
        "Compare the replicas of every partition: where each will truncate, what differs, and what each possible leader would lose.\n\n"
        "Give the data directories of the brokers of one cluster, and of its controllers where it has them. The first line says what is at risk. The exit code follows from it: 1 where something is at risk, differs for good or is truncated, 3 where the inputs do not show it.",
        f"lost maybe-lost {_DIFF}",
        (
            ("Before a restart: what would each broker discard?", "kforensics diff broker-1 broker-2 broker-3"),
            (
                "One partition, with every request of the protocol",
                "kforensics diff evidence -t orders -p 0 --explain-steps",
            ),
            ("The answer for a chat", "kforensics diff evidence --brief"),
        ),
    ),
    "explain": Command(
        "Explain what happened in an incident: every truncation with its cause, and every lost record.\n\n"
        "Works on one broker's directory alone and gets better with every other replica, metadata log, log file and earlier snapshot; it says what is missing. `--format html -o report.html` makes a page for the post-mortem. Exit code 1 means that records that were or may have been committed are lost.",
        "lost at-risk maybe-lost maybe-at-risk diverged unknown uncommitted-lost nothing-lost",
        (
            ("After an incident, with the logs of the brokers", "kforensics explain evidence logs"),
            (
                "Compared with an earlier copy, as a page",
                "kforensics explain evidence --before earlier --format html -o report.html",
            ),
            ("The events for Timesketch", "kforensics explain evidence logs --format timesketch -o events.jsonl"),
        ),
    ),
    "logs": Command(
        "Say what the logs of brokers mean: every known line by its kind, harmless, a symptom or a cause, and all nodes on one clock.\n\n"
        "Takes log files of any layout, of containers and log collectors too; no data directory is needed. With --line it says what one line means. Exit code 1: a cause is among the lines; 3: no line is known.",
        "causes unknown symptoms harmless",
        (
            ("What do these logs say?", "kforensics logs server.log controller.log"),
            ("Is this line harmless?", 'kforensics logs --line "Fencing broker 2 because its session has timed out."'),
        ),
    ),
    "verify": Command(
        "Check every file against its format and against its neighbours.\n\n"
        "Checksums, batch order, leader epochs, lengths and counts; indexes, transactions, producer snapshots and checkpoints against the log; names against content. Behind a damaged batch it continues with the next good one. Where another replica among the inputs holds a damaged range intact, it is named. Exit code 0 says that nothing is damaged.",
        "lost at-risk maybe-lost maybe-at-risk diverged damaged unknown repairable sound",
        (
            ("Is anything damaged?", "kforensics verify evidence"),
            (
                "Only checksums, gently, on a live broker",
                "kforensics verify --level crc --read-rate 50MB/s /var/lib/kafka",
            ),
            ("For the viewers of CI results", "kforensics verify evidence --format sarif -o verify.sarif"),
        ),
    ),
    "predict": Command(
        "Say what a broker will do to its logs when it is started: scanned, truncated, deleted, rebuilt, or refused, file by file.\n\n"
        "Give the log directories of a stopped broker, or a copy of them, and those of the other brokers to learn who else holds what would be discarded. Nothing is written. Starts are computed one after the other until one succeeds or nothing changes. Where it is not given, the version is the one that the server log names, or that the node registered.",
        "lost at-risk will-not-start loses maybe-lost maybe-at-risk diverged unknown starts-and-repairs starts-unchanged",
        (
            ("What does the start of a stopped broker do?", "kforensics predict /mnt/broker-3 --kafka 4.1.0"),
            ("Who else holds what it discards?", "kforensics predict broker-1 broker-2 broker-3 --kafka 3.9.1"),
            (
                "The same without the marker of a clean stop",
                "kforensics predict broker-3 --kafka 4.1.0 --without broker-3/.kafka_cleanshutdown",
            ),
        ),
    ),
    "salvage": Command(
        "Get records back: the best copy of what is lost, at risk, or of everything, with a list of gaps.\n\n"
        "Reads live replicas, .deleted and .swap files, -delete, -stray and -future directories, earlier snapshots, and sound batches behind damage; writes only to OUT, never below an input, and connects to nothing. OUT/manifest.json says of every run of records where it was and what its SHA-256 is, and of every gap why it is there; OUT/README how to put the records back. Exit code 0: all is saved; 1: there are gaps; 3: it is unknown whether that is all, or something could not be read or written.",
        "at-risk maybe-at-risk diverged gaps unknown saved",
        (
            (
                "The lost records, out of all that is left",
                "kforensics salvage evidence logs --before earlier -o rescue",
            ),
            ("What would that write?", "kforensics salvage evidence logs --before earlier --plan"),
            (
                "Before a restart: what would be discarded",
                "kforensics salvage broker-1 broker-2 broker-3 --what at-risk -o rescue",
            ),
            (
                "Everything that a deleted topic's directories still hold, for analysis",
                "kforensics salvage broker-1 --what all -t orders --form parquet -o orders",
            ),
            (
                "Records of deleted files, out of a disk image",
                "kforensics salvage --carve /dev/vg0/kafka-snapshot broker-2 broker-3 -o carved",
            ),
        ),
    ),
    "trace": Command(
        "Trace a record: every copy of it and what became of it, or what was searched without finding it.\n\n"
        "Reads live replicas, .deleted and .swap files, -delete, -stray and -future directories, captures and earlier snapshots. Records that match everything given are found. `never-here` is the answer only where every offset of the logs was read, on every replica; otherwise the gaps are named.",
        "lost unknown in-remote-storage present superseded deleted-on-purpose never-here",
        (
            (
                "Was this order ever written, and where did it go?",
                "kforensics trace evidence logs --before earlier -t orders --key order-4711",
            ),
            ("What became of an offset", "kforensics trace broker-1 broker-2 broker-3 -t orders -p 0 --offset 60"),
            (
                "The same for a key that the command line should not show",
                "kforensics trace evidence -t orders --key-sha256 $(printf %s order-4711 | sha256sum | cut -c 1-64)",
            ),
        ),
    ),
    "seal": Command(
        "Seal evidence: a manifest with size, times and sha256 of everything below the paths, to show later that nothing changed.\n\n"
        "Without --check the manifest is written to standard output or to --out, and its own sha256 to standard error: write that down, or sign the manifest. With --check the exit code is 0 where everything is as it was sealed, 1 where something differs, is missing or was added, or the signature does not hold, and 3 where something can't be read.",
        "changed unknown unchanged complete",
        (
            ("Seal a copy", "kforensics seal evidence --case-id 2026-17 --out evidence.manifest"),
            ("Is it still the same?", "kforensics seal --check evidence.manifest"),
        ),
    ),
    "simulate": Command(
        "Replay how replicas lose and diverge, explore every interleaving, or write a history as data directories.\n\n"
        "A scenario is shown step by step under each truncation protocol. Exploring visits all states of a small configuration and shows the shortest way to a broken invariant: exit code 1 where one breaks, 3 where --max-states ended the search first.",
        "violated unknown lost diverged complete",
        (
            ("The built-in scenarios", "kforensics simulate --list"),
            ("One of them under one protocol", "kforensics simulate hw-loss --protocol hw"),
            ("Data directories of a random history", "kforensics simulate --random --seed 7 --write history"),
        ),
    ),
    "metadata": Command(
        "Show the history of partitions, topics and brokers from the KRaft metadata log and its snapshots.\n\n"
        "The metadata logs of several nodes are compared with each other, and the newest one is shown.",
        "diverged unknown behind agree complete",
        (
            ("The history of a partition", "kforensics metadata evidence --topic orders --partition 0"),
            ("What changed since a time", 'kforensics metadata evidence --since "yesterday 14:00"'),
            ("The state at an offset of the metadata log", "kforensics metadata controller-100 --at 82"),
        ),
    ),
    "groups": Command(
        "Show the positions of consumer groups, how far behind they are, and who set them back.\n\n"
        "`__consumer_offsets` is replayed in the order of its log: commits, transactional ones with their marker, resets, expiry, deletion, and what a truncation took.",
        "at-risk maybe-at-risk diverged past-the-end set-back below-the-start wrong-epoch set-forward unknown no-setback",
        (
            ("Who was set back, and by whom?", "kforensics groups broker-1 broker-2 broker-3"),
            ("Every commit of a group", "kforensics groups evidence --group billing --history"),
            ("All groups with their lag as of a time", "kforensics groups evidence --at 2026-11-21T06:33:10Z"),
        ),
    ),
    "transactions": Command(
        "Show open transactions, whether they hang, and what ends them.\n\n"
        "The logs of the partitions are joined with what the coordinators wrote into `__transaction_state`: a transaction hangs, is torn by a truncation, waits for its coordinator, or is in time. Nothing is sent to a cluster.",
        "at-risk maybe-at-risk diverged hanging torn prepared unknown in-time none-open",
        (
            ("What holds the last stable offset?", "kforensics transactions broker-1 broker-2 broker-3"),
            ("The history of one id on disk", "kforensics transactions evidence --transactional-id pay-17"),
        ),
    ),
    "fleet-audit": Command(
        "Judge every partition of a fleet as diff does, on Spark, and write Parquet tables and a summary.\n\n"
        "Every source must be readable from every worker by its path; of a capture only the file. Needs Java 17 or later, and kforensics installed with its extra named spark.",
        _FLEET,
        (
            ("All nodes of an inventory", "kforensics fleet audit nodes.yaml --out audit-1"),
            (
                "Again, reading only what changed",
                "kforensics fleet audit nodes.yaml --since audit-1 --out audit-2 --master spark://host:7077",
            ),
            (
                "Every night",
                "kforensics fleet audit nodes.yaml --history history --take-over --fail-on worse --accept accepted.yaml --format jsonl",
            ),
        ),
    ),
    "fleet-report": Command(
        "Show an audit again, a part of it, or what changed since an earlier one. Needs neither Spark nor Java.",
        _FLEET,
        (
            ("What changed last night", "kforensics fleet report history --since previous"),
            ("The gravest findings of a topic", "kforensics fleet report audit-1 -t orders --severity error"),
            ("What changed since", "kforensics fleet report audit-2 --since audit-1"),
        ),
    ),
    "fleet-trend": Command(
        "Show audit by audit how many findings there were, and how many were new, gone, worse, better or unchanged. Needs neither Spark nor Java.",
        "unknown complete",
        (("The last week", "kforensics fleet trend history --last 7"),),
    ),
    "fleet-history": Command(
        (
            "Remove old audits of a history, and what only they hold. Needs neither Spark nor Java.\n\n"
            "A reader sees the history before or after, and where the work ends half way the next run or audit ends it. What is open keeps the time when it was first seen."
        ),
        "complete",
        (("A quarter of a year", "kforensics fleet history history --keep 90d"),),
    ),
}
"""In the order of the help."""

WITHOUT_PATHS = frozenset({"simulate", "fleet-audit", "fleet-report", "fleet-trend", "fleet-history"})
"""Those that are asked about something else than paths of evidence."""

FUNCTIONS = tuple(name for name in COMMANDS if not name.startswith("fleet-"))
"""Those that are functions of the package, each with a module of its name in `commands/`."""
