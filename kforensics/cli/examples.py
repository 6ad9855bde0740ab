"""Examples of each command, for `--help` and for the manual pages."""

import inspect
from collections.abc import Callable

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "triage": (
        ("After an incident, with all that there is", "kforensics triage broker-1 broker-2 broker-3 logs"),
        ("With an earlier copy of the same disks", "kforensics triage evidence logs --before earlier"),
        ("For a chat", "kforensics triage evidence --brief"),
    ),
    "ls": (
        ("What is in a copy, node by node", "kforensics ls evidence"),
        ("Every file as JSON", "kforensics ls evidence --files --format jsonl"),
    ),
    "dump": (
        ("The batches of a segment", "kforensics dump broker-1/orders-0/00000000000000000000.log"),
        (
            "Records from an offset on, with their payloads",
            "kforensics dump broker-1/orders-0 --from-offset 4711 --show-payload --text",
        ),
        ("A checkpoint of high watermarks", "kforensics dump broker-1/replication-offset-checkpoint"),
    ),
    "capture": (
        ("How long will it take, and how large will it be?", "kforensics capture --plan /var/lib/kafka"),
        ("On each broker, with its logs", "kforensics capture /var/lib/kafka /opt/kafka/logs --out broker-1.kfc"),
        ("Gently, on a busy broker", "kforensics capture /var/lib/kafka --read-rate 50MB/s --out broker-1.kfc"),
    ),
    "diff": (
        ("Before a restart: what would each broker discard?", "kforensics diff broker-1 broker-2 broker-3"),
        (
            "One partition, with every request of the protocol",
            "kforensics diff evidence -t orders -p 0 --explain-steps",
        ),
        ("The answer for a chat", "kforensics diff evidence --brief"),
    ),
    "explain": (
        ("After an incident, with the logs of the brokers", "kforensics explain evidence logs"),
        (
            "Compared with an earlier copy, as a page",
            "kforensics explain evidence --before earlier --format html -o report.html",
        ),
        ("The events for Timesketch", "kforensics explain evidence logs --format timesketch -o events.jsonl"),
    ),
    "logs": (
        ("What do these logs say?", "kforensics logs server.log controller.log"),
        ("Is this line harmless?", 'kforensics logs --line "Fencing broker 2 because its session has timed out."'),
    ),
    "verify": (
        ("Is anything damaged?", "kforensics verify evidence"),
        ("Only checksums, gently, on a live broker", "kforensics verify --level crc --read-rate 50MB/s /var/lib/kafka"),
        ("For the viewers of CI results", "kforensics verify evidence --format sarif -o verify.sarif"),
    ),
    "predict": (
        ("What does the start of a stopped broker do?", "kforensics predict /mnt/broker-3 --kafka 4.1.0"),
        ("Who else holds what it discards?", "kforensics predict broker-1 broker-2 broker-3 --kafka 3.9.1"),
        (
            "The same without the marker of a clean stop",
            "kforensics predict broker-3 --kafka 4.1.0 --without broker-3/.kafka_cleanshutdown",
        ),
    ),
    "salvage": (
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
    "trace": (
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
    "metadata": (
        ("The history of a partition", "kforensics metadata evidence --topic orders --partition 0"),
        ("What changed since a time", 'kforensics metadata evidence --since "yesterday 14:00"'),
        ("The state at an offset of the metadata log", "kforensics metadata controller-100 --at 82"),
    ),
    "groups": (
        ("Who was set back, and by whom?", "kforensics groups broker-1 broker-2 broker-3"),
        ("Every commit of a group", "kforensics groups evidence --group billing --history"),
        ("All groups with their lag as of a time", "kforensics groups evidence --at 2026-11-21T06:33:10Z"),
    ),
    "transactions": (
        ("What holds the last stable offset?", "kforensics transactions broker-1 broker-2 broker-3"),
        ("The history of one id on disk", "kforensics transactions evidence --transactional-id pay-17"),
    ),
    "seal": (
        ("Seal a copy", "kforensics seal evidence --case-id 2026-17 --out evidence.manifest"),
        ("Is it still the same?", "kforensics seal --check evidence.manifest"),
    ),
    "simulate": (
        ("The built-in scenarios", "kforensics simulate --list"),
        ("One of them under one protocol", "kforensics simulate hw-loss --protocol hw"),
        ("Data directories of a random history", "kforensics simulate --random --seed 7 --write history"),
    ),
    "fleet audit": (
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
    "fleet report": (
        ("What changed last night", "kforensics fleet report history --since previous"),
        ("The gravest findings of a topic", "kforensics fleet report audit-1 -t orders --severity error"),
        ("What changed since", "kforensics fleet report audit-2 --since audit-1"),
    ),
    "fleet trend": (("The last week", "kforensics fleet trend history --last 7"),),
    "fleet history": (("A quarter of a year", "kforensics fleet history history --keep 90d"),),
    "fleet scan": (("On a broker", "kforensics fleet scan /var/lib/kafka --out evidence-of-1 --read-rate 50MB/s"),),
    "help": (
        ("What a word means", "kforensics help high-watermark"),
        ("What a finding means", "kforensics help KF201"),
        ("What exit codes say", "kforensics help exit-codes"),
    ),
}


def described(words: str) -> str:
    """Return the purpose of an example, as the line before it says."""
    return words if words.endswith("?") else f"{words}:"


def epilog_of(name: str) -> str:
    """Return the examples of a command as the end of its help: paragraphs, as typer lays them out."""
    return "\n\n".join(("Examples:", *(f"{described(words)}\n\n  $ {line}" for words, line in EXAMPLES[name])))


def help_of(command: Callable[..., None]) -> str:
    """Return the paragraphs of a command's docstring, each on one line: typer would break lines where the source does."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
