"""The options of all commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kforensics.ask.commands import COMMANDS, WITHOUT_PATHS
from kforensics.ask.option import (
    option,
    parse_base64,
    parse_brokers,
    parse_header,
    parse_offsets,
    parse_pairs,
    parse_path,
    parse_rate,
    parse_sha256,
    parse_text,
    parse_time,
    parse_times,
    switch,
)
from kforensics.units import Depth

TIMES = ": ISO 8601, words such as 2 hours ago or yesterday 14:00, both in UTC where they name no zone, or milliseconds"
"""How the help says what a time looks like."""

PASSPHRASE_VARIABLE = "KFORENSICS_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable
KEY_VARIABLE = "KFORENSICS_REDACT_KEY"
SIGNATURE_SUFFIX = ".sig"


class What(StrEnum):
    """The records that `salvage` is to write."""

    LOST = "lost"
    AT_RISK = "at-risk"
    ALL = "all"


PROTOCOLS = (
    "hw",
    "kip-101",
    "kip-279",
    "kip-595",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a command is asked; each takes the options that name it."""

    paths: tuple[Path, ...] = option(
        takes=" ".join(name for name in COMMANDS if name not in WITHOUT_PATHS),
        default=(),
        metavar={
            "": "PATH...",
            "logs": "[PATH]...",
            "salvage": "[PATH]...",
            "seal": "[PATH]...",
        },
        help={
            "": "Data directories, parents of several of them, partition directories, or single files.",
            "explain": "Data directories as they are now, parents of several, and broker logs, in any mixture: server.log, state-change.log, "
            "controller.log, rotated and compressed ones too.",
            "logs": "Log files, or directories of them.",
            "salvage": "Data directories as they are now, parents of several, captures, and broker logs, in any mixture.",
            "capture": "Data directories of one node, parents of some, and directories of its log files and server.properties.",
            "seal": "Directories or files to seal, whatever is in them. With --check: the same in the same order, or none to look where they were sealed.",
        },
    )
    out: Path | None = option(
        "--out",
        "-o",
        takes="salvage capture",
        metavar={"salvage": "OUT", "capture": "FILE"},
        help={
            "salvage": "The directory for the records: new or empty, outside of every input. Its files can be read by you alone.",
            "capture": "The capture: a new file, outside of the data. It gets its name when all of it is there.",
        },
    )
    before: tuple[Path, ...] = option(
        "--before",
        takes="triage explain salvage trace groups transactions",
        default=(),
        metavar="PATH",
        help="Data directories as they were at an earlier time; repeatable.",
    )

    steps: Path | None = option(
        "--steps",
        takes="triage",
        metavar="FILE",
        help="Also write what to do into a new shell script, each command with its reason, and beside it the files that elections take.",
    )

    what: What | None = option(
        "--what",
        takes="salvage",
        help="lost: what explain says is lost, whatever its certainty. at-risk: what diff says a truncation or an election will discard, or one replica alone holds. "
        "all: the best copy of each offset. Default: lost, and with --carve what the images hold and the PATHs do not.",
    )
    form: str = option(
        "--form",
        takes="salvage",
        default="jsonl",
        choices=("jsonl", "parquet", "segments", "kcat", "console"),
        help="jsonl: one object a record, with a script that puts them back. parquet: the same for analysis. segments: a log that a broker loads, byte "
        "for byte. kcat, console: text for these tools.",
    )
    images: tuple[Path, ...] = option(
        "--carve",
        takes="salvage",
        name="carve",
        default=(),
        metavar="IMAGE",
        help="Look for batches in a disk image or block device, whatever its file system says; repeatable. PATHs give logs their names. "
        "With --what lost or all, batches of the image fill what the PATHs lack; without --what, all is written that the PATHs do not hold.",
    )
    topics: frozenset[str] = option(
        "--topic",
        "-t",
        takes="triage ls verify diff explain logs predict salvage trace groups transactions metadata fleet-audit fleet-report fleet-trend",
        default=frozenset(),
        metavar="NAME",
        help={
            "": "Only this topic; repeatable.",
            "trace": "The topic.",
            "logs": "Only lines about this topic; repeatable.",
            "metadata": "The history of this topic; repeatable.",
        },
    )
    partitions: frozenset[int] = option(
        "--partition",
        "-p",
        takes="triage ls verify diff explain logs predict salvage trace groups transactions metadata fleet-audit fleet-report fleet-trend",
        default=frozenset(),
        metavar="N",
        help={
            "": "Only partitions of this number, or this one, as orders-0; repeatable.",
            "logs": "Only lines about partitions of this number, or this one, as orders-0; repeatable.",
        },
    )
    line: str | None = option(
        "--line", takes="logs", metavar="TEXT", help="Say what this one line means, and whether it is harmless."
    )
    broker: int | None = option("--broker", takes="metadata", metavar="ID", help="The history of this broker.")

    key: bytes | None = option("--key", takes="trace", metavar="TEXT", read=parse_text, help="The key, as UTF-8.")
    key_base64: bytes | None = option(
        "--key-base64", takes="trace", metavar="BASE64", read=parse_base64, help="The key, of any bytes."
    )
    key_sha256: bytes | None = option(
        "--key-sha256",
        takes="trace",
        metavar="HEX",
        read=parse_sha256,
        help="The SHA-256 of the key, so that the request does not show it.",
    )
    offset: int | None = option("--offset", takes="trace", metavar="N", least=0, help="The offset.")
    header: tuple[bytes, bytes | None] | None = option(
        "--header",
        takes="trace",
        metavar="NAME[=VALUE]",
        read=parse_header,
        help="A header, with this value if one is given.",
    )
    value: bytes | None = option(
        "--value", takes="trace", metavar="LITERAL", read=parse_text, help="What the value holds somewhere, as UTF-8."
    )
    value_regex: str | None = option(
        "--value-regex",
        takes="trace",
        metavar="RE",
        help="What the value matches somewhere, in the syntax of RE2, which is matched in linear time; it needs the extra named regex.",
    )
    all_partitions: bool = switch(
        "--all-partitions",
        takes="trace",
        help="Search every partition of the topic, as is done unless --partition names some: no hash of a key proves where it is not.",
    )
    erasure: bool = switch(
        "--erasure",
        takes="trace",
        help="Report whether any bytes of the key are left: every place, until when they stay there, and the hashes of all files that were searched.",
    )
    offsets: tuple[int, int] | None = option(
        "--offsets", takes="salvage", metavar="A..B", read=parse_offsets, help="Only these offsets, both ends included."
    )
    time_ms: tuple[int, int] | None = option(
        "--time",
        takes="salvage trace",
        metavar="A..B",
        read=parse_times,
        help=f"Only records of these timestamps, from A on and before B{TIMES}.",
    )
    with_aborted: bool = switch(
        "--with-aborted",
        takes="salvage",
        help="Also records of aborted transactions, which consumers were never given.",
    )
    topic_id: str | None = option(
        "--topic-id",
        takes="salvage",
        metavar="ID",
        help="With --form segments: the id of the topic in the cluster that is to load them; without it the one that the directories have.",
    )
    from_zero: bool = switch(
        "--from-zero", takes="salvage", help="With --form segments: let each log begin at offset 0."
    )

    groups: frozenset[str] = option(
        "--group",
        "-g",
        takes="groups",
        default=frozenset(),
        metavar="NAME",
        help="Only this consumer group; repeatable.",
    )
    transactional_ids: frozenset[str] = option(
        "--transactional-id",
        takes="transactions",
        default=frozenset(),
        metavar="ID",
        help="Only transactions of this id, with its history on disk; repeatable.",
    )
    producer_ids: frozenset[int] = option(
        "--producer-id",
        takes="transactions dump",
        default=frozenset(),
        metavar="N",
        least=0,
        help={"": "Only transactions of this producer; repeatable.", "dump": "Of this producer only."},
    )
    at_ms: int | None = option(
        "--at",
        takes="groups transactions metadata",
        metavar={"": "TIME", "metadata": "OFFSET|TIME"},
        read=parse_time,
        help={
            "groups": f"Positions and lag as of this time{TIMES}.",
            "transactions": f"Judge as of this time; what was written later is left out{TIMES}.",
            "metadata": f"The state once this metadata offset is applied, or as of this time{TIMES}; a number of up to 11 digits is an offset.",
        },
    )
    history: bool = switch("--history", takes="groups", help="List every commit, and who made it.")
    expired: bool = switch("--expired", takes="groups", help="List the positions that expired.")
    open: bool = switch(
        "--open",
        takes="transactions",
        help="List only replicas with open transactions. Where it is not given, those with torn ones, too.",
    )
    all: bool = switch("--all", takes="transactions", help="List every replica, with its last stable offset.")

    records: bool = switch("--records", takes="dump", help="Show records, not batches.")
    from_offset: int | None = option("--from-offset", takes="dump", metavar="OFFSET", help="From this offset on.")
    to_offset: int | None = option("--to-offset", takes="dump", metavar="OFFSET", help="Up to this offset.")
    leader_epoch: int | None = option("--epoch", takes="dump", metavar="EPOCH", help="Of this leader epoch only.")
    from_time_ms: int | None = option(
        "--since",
        "--from-time",
        takes="dump",
        name="from_time",
        metavar="TIME",
        read=parse_time,
        help=f"From this time on{TIMES}.",
    )
    to_time_ms: int | None = option(
        "--until",
        "--to-time",
        takes="dump",
        name="to_time",
        metavar="TIME",
        read=parse_time,
        help="Up to this time.",
    )

    since_ms: int | None = option(
        "--since",
        takes="triage explain logs metadata",
        metavar="TIME",
        read=parse_time,
        help={
            "": f"Timeline from this time on{TIMES}. With a metadata log among the inputs, log files that end a day before it are not read.",
            "logs": f"Lines from this time on{TIMES}.",
            "metadata": f"History from this time on{TIMES}.",
        },
    )
    until_ms: int | None = option(
        "--until",
        takes="triage explain logs metadata",
        metavar="TIME",
        read=parse_time,
        help={
            "": "Timeline up to this time. With a metadata log among the inputs, log files that begin a day after it are not read.",
            "logs": "Lines up to this time.",
            "metadata": "History up to this time.",
        },
    )
    log_timezone: str | None = option(
        "--log-timezone",
        takes="triage explain logs",
        metavar="ZONE",
        help="Zone of the times in the logs, as +02:00 or Europe/Berlin; where it is not given, the evidence decides.",
    )

    kafka: str | None = option(
        "--kafka",
        takes="triage predict",
        metavar="VERSION",
        help="The version that will be started, 0.10 to 4.4. Where it is not given, the one that a server log among the inputs or the node's registration names; else the start is computed for each version that the files allow, and compared.",
    )
    now_ms: int | None = option(
        "--now",
        takes="triage predict",
        metavar="TIME",
        read=parse_time,
        help=f"When it will be started, for retention and the expiry of producers{TIMES}. This machine's clock where it is not given.",
    )
    without: tuple[Path, ...] = option(
        "--without",
        takes="predict",
        default=(),
        metavar="FILE",
        help="Compute the start as if this file or directory were not there, such as an index, the epoch file or .kafka_cleanshutdown; repeatable. Nothing is changed.",
    )
    settings: Mapping[str, str] = option(
        "--set",
        takes="predict",
        name="set",
        default={},
        metavar="NAME=VALUE",
        read=parse_pairs,
        help="A setting that it will be started with, such as log.retention.ms; repeatable. Others are those of the metadata log, of a server.properties among the inputs, or Kafka's defaults.",
    )
    ways_out: bool = switch(
        "--ways-out",
        takes="predict",
        help="Also compute the start under changes, alone and in pairs, such as a file moved away, the marker, another version; rank them by what each loses. Nothing is changed.",
    )
    order: bool = switch(
        "--order",
        takes="predict",
        help="For a cluster that is stopped as a whole: say which broker to start first, which to wait for, and which elections that needs. Name the directories of all brokers.",
    )

    leader: int | None = option(
        "--leader",
        takes="diff salvage trace fleet-audit",
        metavar="ID",
        help="Take this broker as the leader of every partition it holds.",
    )
    protocol: str | None = option(
        "--protocol",
        takes="diff fleet-audit",
        choices=PROTOCOLS,
        help={
            "diff": "The truncation protocol of the followers: hw up to 0.10, kip-101 for 0.11 to 1.1, kip-279 for 2.0 to 2.7, kip-595 since 2.8. "
            "Without it, message formats and cluster metadata decide; else the likeliest protocol that the files of a broker allow is assumed.",
            "fleet-audit": "The truncation protocol of the followers, as in diff.",
        },
    )
    replicas: tuple[int, ...] = option(
        "--replicas",
        takes="diff fleet-audit",
        default=(),
        metavar="ID,ID,…",
        read=parse_brokers,
        many=False,
        help="The brokers that every partition is assigned to, such as 1,2,3, where no metadata log says it: without it, replicas that agree "
        "are not known to be all.",
    )
    is_stopped: bool = switch(
        "--stopped",
        takes="triage verify diff explain predict salvage trace groups transactions fleet-audit",
        help="No broker ran while its directories were copied: ends of logs that don't fit then are no effect of copying.",
    )
    cluster: str | None = option(
        "--cluster",
        takes="triage ls verify diff explain logs predict salvage trace groups transactions metadata fleet-report fleet-trend",
        metavar="ID",
        help={
            "": "Only what is of the cluster of this id, where the inputs are of several.",
            **dict.fromkeys(
                ("fleet-report", "fleet-trend"),
                "Only what is of the cluster of this id; `unknown` is what is of no known one.",
            ),
        },
    )

    level: str = option(
        "--level",
        takes="verify",
        default="records",
        choices=("headers", "crc", "records"),
        help="How deep batches are looked into: headers, checksums too, or every record.",
    )
    depth: Depth | None = option(
        "--depth",
        takes="triage ls diff explain predict capture fleet-audit",
        help={
            "": "How much of the logs is read. tails: checkpoints, the ends of logs, and where replicas part: fast at any size, and content below is not looked at. "
            "content: every batch.",
            "capture": "How much of the logs is read. tails: their ends, as diff --depth tails does: fast at any size, for commands with --depth tails. content, which is the default: every batch.",
        },
    )
    plan: bool = switch(
        "--plan",
        takes="capture salvage",
        help={
            "capture": "Only say how long it will take and how large it will be.",
            "salvage": "Only say which records would be written, and which are missing: OUT is not needed, and nothing is written.",
        },
    )
    all_batches: bool = switch(
        "--all-batches",
        takes="capture",
        help="Take a row a batch along everywhere, not only where a truncation can still happen: for truncations long ago.",
    )
    with_tail: bool = switch(
        "--with-tail",
        takes="capture",
        help="Take the batches that can still be truncated along byte for byte, with the records of users in them: FILE is then as private as the data.",
    )
    earlier_captures: tuple[Path, ...] = option(
        "--since",
        takes="capture",
        name="since",
        default=(),
        metavar="FILE.kfc",
        help="An earlier capture of the node: segments that did not change since are taken from it. The new capture is complete without it.",
    )
    normal_priority: bool = switch(
        "--normal-priority",
        takes="capture",
        help="Read at normal priority; without it the broker comes first for disk and processor.",
    )

    check: Path | None = option(
        "--check",
        takes="seal",
        metavar="MANIFEST",
        help="Compare with this manifest; a capture is checked by the one in it.",
    )
    case_id: str | None = option("--case-id", takes="seal", metavar="ID", help="Write this into the manifest.")
    operator: str | None = option("--operator", takes="seal", metavar="NAME", help="Write this into the manifest.")
    sign_with: Path | None = option(
        "--sign-with",
        takes="seal capture",
        metavar="KEY",
        help={
            "seal": f"Sign the manifest with this Ed25519 private key (PEM); the signature is written to FILE{SIGNATURE_SUFFIX}. "
            f"The passphrase of an encrypted key is taken from {PASSPHRASE_VARIABLE}, or asked for.",
            "capture": f"Sign FILE with this Ed25519 private key (PEM), into FILE{SIGNATURE_SUFFIX}; `kforensics seal --check FILE --public-key` checks it.",
        },
    )
    public_key: Path | None = option(
        "--public-key",
        takes="seal",
        metavar="KEY",
        help="With --check: the signature must be there and hold for this Ed25519 public key (PEM).",
    )
    signature: Path | None = option(
        "--signature",
        takes="seal",
        metavar="FILE",
        help=f"With --check: the signature; MANIFEST{SIGNATURE_SUFFIX} where it is not given.",
    )

    files: bool = switch(
        "--files", takes="ls", shown="files", help="List every file, not only counts by kind (json, jsonl)."
    )
    only_findings: bool = switch(
        "--only-findings", takes="diff", shown="only_findings", help="One line a finding, without the blocks."
    )
    explain_steps: bool = switch(
        "--explain-steps", takes="diff", shown="steps", help="Show each request and answer of the truncation protocol."
    )
    show_records: bool = switch(
        "--show-records",
        takes="diff",
        shown="show_records",
        help="List the offsets and keys of the records that would be discarded.",
    )
    show_payload: bool = switch(
        "--show-payload",
        takes="dump diff trace",
        shown="show_payload",
        help={
            "dump": "Show keys, values and headers of records; implies --records.",
            "diff": "With --show-records, their values too. Payloads are private: take care who gets to see this output.",
            "trace": "Show keys, values and headers of the records.",
        },
    )
    text: bool = switch("--text", takes="dump", shown="as_text", help="Show payloads as text where they are UTF-8.")

    redact: bool = switch(
        "--redact",
        takes="dump diff explain groups transactions capture",
        help={
            "": "Replace keys, values, groups, hosts and principals by pseudonyms under a key of yours; topics, offsets and times stay.",
            "capture": "Replace groups, hosts and principals by pseudonyms under a key of yours, the same in the captures of all nodes under one key.",
        },
    )
    redact_topics: bool = switch(
        "--redact-topics", takes="capture", help="Replace names of topics, too, but Kafka's own; implies --redact."
    )
    redact_key: Path | bytes | None = option(
        "--redact-key",
        takes="dump diff explain groups transactions capture",
        metavar="FILE",
        read=parse_path,
        help=f"The key for --redact, at least 16 bytes; else the environment variable {KEY_VARIABLE}. The same key gives the same pseudonyms.",
    )
    seal: Path | None = option(
        "--seal",
        takes="verify diff explain",
        metavar="MANIFEST",
        help="Check the inputs against this manifest of `kforensics seal` first, and say in the report what was sealed, by its sha256 and case.",
    )
    keep_going: bool = switch(
        "--keep-going",
        takes="triage ls dump verify diff explain logs predict salvage trace groups transactions metadata capture fleet-audit",
        help="Analyse the rest where a named path can't be used; the answer then says that it is incomplete.",
    )
    jobs: int | None = option(
        "--jobs",
        "-j",
        takes="triage dump verify diff explain logs predict salvage trace groups transactions capture seal",
        least=1,
        most=1024,
        metavar="N",
        help="Processes to work with; one for each core where it is not given.",
    )
    read_rate: int | None = option(
        "--read-rate",
        takes="triage ls dump verify diff explain logs predict salvage trace groups transactions metadata capture seal",
        metavar="RATE",
        read=parse_rate,
        help="Read no faster than this, such as 50MB/s, in one process: for the disks of a live broker.",
    )

    @property
    def inputs(self) -> tuple[Path, ...]:
        """All evidence that is named, which nothing may be written into."""
        return (*self.paths, *self.before, *self.images, *self.earlier_captures)

    @property
    def topic(self) -> str | None:
        """The topic of a command that takes one."""
        return next(iter(self.topics), None)

    @property
    def partition(self) -> int | None:
        """The partition of a command that takes one."""
        return next(iter(self.partitions), None)
