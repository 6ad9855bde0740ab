"""Redacted captures: no name is left in any part of the file, and what commands conclude of them is what they conclude of the others."""

import bz2
import gzip
import io
import json
import tarfile
import zipfile
import zlib
from typing import Any

import pytest

from kforensics.cli.app import run
from kforensics.commands.capturing.container import CannotRedact
from kforensics.commands.capturing.redacting import CaptureRedaction
from kforensics.commands.redaction.names import Names
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.errors import EvidenceError, InputsRefused, Stopped, UsageError
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.log_lines.scan import scan_log
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.messages.coordinators import GROUP_TABLES
from kforensics.formats.messages.metadata import METADATA_TABLES, encode_metadata_record
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.capture import CapturePath, open_capture
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, parse_file_name
from tests.builders.directories import copied
from tests.builders.messages import encode_coordinator_record
from tests.captures import document, nodes_of, take
from tests.conftest import FIXTURES

RECORDINGS = sorted(path.name.removesuffix(".tar.xz") for path in (FIXTURES / "incidents").glob("*.tar.xz"))
KEY = b"a key of this test, 32 bytes long"
UUID = "AAAAAAAAAAAAAAAAAAAAAQ"
SECRETS = {
    "topics": ["orders", "payments"],
    "hosts": ["kafka-7.prod.acme.example", "loneworker", "10.20.30.40", "zk9.acme.example", "quorumhost"],
    "names": ["billing-app", "alice", "robert", "Acme-Quota", "tok-4711", "billing-client-1", "tx-settlement", "s3cr3t-salt", "hunter2", "acme-authorizer"],
}  # fmt: skip
TIME = 1_790_000_000_000

_METADATA: list[tuple[str, int, dict[str, Any]]] = [
    ("RegisterControllerRecord", 0, {"controller_id": 9, "incarnation_id": UUID, "end_points": [{"name": "C", "host": "loneworker", "port": 9093, "security_protocol": 0}]}),
    ("AccessControlEntryRecord", 0, {"id": UUID, "resource_type": 3, "resource_name": "billing-app", "pattern_type": 3, "principal": "User:alice", "host": "10.20.30.40"}),
    ("AccessControlEntryRecord", 0, {"id": UUID, "resource_type": 2, "resource_name": "payments", "pattern_type": 3, "principal": "User:alice", "host": "*"}),
    ("UserScramCredentialRecord", 0, {"name": "robert", "mechanism": 1, "salt": b"s3cr3t-salt", "stored_key": b"hunter2", "server_key": b"hunter2", "iterations": 4096}),
    ("ClientQuotaRecord", 0, {"entity": [{"entity_type": "user", "entity_name": "Acme-Quota"}], "key": "producer_byte_rate", "value": 1.0}),
    ("DelegationTokenRecord", 0, {"owner": "User:alice", "requester": "User:robert", "renewers": ["User:robert"], "token_id": "tok-4711"}),
    ("ConfigRecord", 0, {"resource_type": 4, "resource_name": "1", "name": "authorizer.class.name", "value": "acme-authorizer"}),
    ("ConfigRecord", 0, {"resource_type": 2, "resource_name": "orders", "name": "min.insync.replicas", "value": "2"}),
]  # fmt: skip
_LOG = """\
[2026-11-21 06:39:47,880] INFO [LogLoader partition=orders-0, dir=/var/lib/kafka-7.prod.acme.example/data] Loading producer state till offset 0 (kafka.log.UnifiedLog)
[2026-11-21 06:39:48,000] INFO [GroupCoordinator 1]: Preparing to rebalance group billing-app in state Empty with old generation 3 (__consumer_offsets-1) (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:39:48,100] INFO Principal = User:alice is Denied operation = Read from host = 10.20.30.40 on resource = Topic:LITERAL:payments (kafka.authorizer.logger)
[2026-11-21 06:39:48,200] INFO [GroupCoordinator 1]: Dynamic member with unknown member id joins group billing-app. Created a new member id billing-client-1-0f0f and request the member to rejoin (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:39:48,300] INFO Opening socket connection to server zk9.acme.example/10.20.30.40:2181 (org.apache.zookeeper.ClientCnxn)
[2026-11-21 06:39:48,400] INFO [TransactionCoordinator id=1] Initialized transactionalId tx-settlement with producerId 7 (kafka.coordinator.transaction.TransactionCoordinator)
[2026-11-21 06:39:48,500] INFO [ReplicaFetcherManager on broker 1] Removed fetcher for partitions Set(orders-0, payments-1) (kafka.server.ReplicaFetcherManager)
[2026-11-21 06:39:48,600] WARN Connection to node 9 (loneworker/10.20.30.40:9093) could not be established. (org.apache.kafka.clients.NetworkClient)
[2026-11-21 06:39:48,700] INFO KafkaConfig values:
\tadvertised.listeners = PLAINTEXT://kafka-7.prod.acme.example:9092
\tauthorizer.class.name = acme-authorizer
\tnode.id = 1
\tsasl.jaas.config = hunter2
"""
_SETTINGS = """\
# on kafka-7.prod.acme.example, ask alice
node.id=1
listeners=PLAINTEXT://kafka-7.prod.acme.example:9092
controller.quorum.voters=9@quorumhost:9093
zookeeper.connect=zk9.acme.example:2181/kafka
super.users=User:alice;User:robert
ssl.keystore.password=hunter2
min.insync.replicas=2
"""


@pytest.fixture
def node(tmp_path, small_cluster):
    """A recorded node with names of every kind in its metadata log, its logs, its settings and in the offsets of its groups."""
    target = tmp_path / "broker-1"
    copied(small_cluster / "broker-1", target)
    log = target / "__cluster_metadata-0" / f"{0:020}.log"
    end = max(
        int(window.batches["last_offset"][-1])
        for window in walk_segment(MemoryBytes(log.read_bytes()), level=Level.CRC)
        if len(window.batches)
    )
    keys = {table.name: key for key, table in METADATA_TABLES.items()}
    records = [(TIME, None, encode_metadata_record(keys[name], version, fields)) for name, version, fields in _METADATA]
    voters = {
        "version": 0,
        "voters": [{"voter_id": 9, "voter_directory_id": UUID, "endpoints": [{"name": "C", "host": "quorumhost", "port": 9093}]}],
    }  # fmt: skip
    control = encode_control_record(ControlType.KRAFT_VOTERS, voters)
    with log.open("ab") as file:
        file.write(encode_record_batch(build_record_batch(end + 1, records, partition_leader_epoch=1)))
        batch = build_record_batch(end + 1 + len(records), [(TIME, *control)], partition_leader_epoch=1, attributes=32)
        file.write(encode_record_batch(batch))
    offsets = target / "__consumer_offsets-1"
    offsets.mkdir()
    commit = encode_coordinator_record(
        GROUP_TABLES,
        1,
        {"group": "billing-app", "topic": "orders", "partition": 0},
        3,
        {"offset": 5, "leader_epoch": 0, "metadata": "", "commit_timestamp": TIME},
    )
    (offsets / f"{0:020}.log").write_bytes(encode_record_batch(build_record_batch(0, [(TIME, *commit)])))
    removed = target / "payments-7.0123456789abcdef0123456789abcdef-delete"
    removed.mkdir()
    (removed / f"{0:020}.log").write_bytes(b"")
    logs = tmp_path / "logs-of-kafka-7.prod.acme.example"
    logs.mkdir()
    (logs / "server.log").write_text(_LOG)
    (logs / "server.log.2026-11-20.gz").write_bytes(gzip.compress(_LOG.encode()))
    (logs / "server.log.2026-11-19.bz2").write_bytes(bz2.compress(_LOG.encode()))
    (logs / "server.properties").write_text(_SETTINGS)
    (logs / "core.loneworker.1234").write_bytes(b"\0")
    return [target, logs]


def _take(paths, out, **options):
    return take(paths, out, redact_key=KEY, **options)


def _everything(path):
    """Every byte that is in the file, inflated: names of members, their content, and what is in archives and gzip files in them."""
    with zipfile.ZipFile(path) as archive:
        yield "names", "\n".join(archive.namelist()).encode()
        for name in archive.namelist():
            data = archive.read(name)
            yield name, data
            if name.endswith(".tar"):
                with tarfile.open(fileobj=io.BytesIO(data)) as files:
                    for one in files:
                        file = files.extractfile(one)
                        content = file.read() if file else b""
                        yield one.name, one.name.encode() + b"\0" + content
                        if content.startswith(b"\x1f\x8b"):
                            yield f"{one.name} inflated", zlib.decompress(content, 31)


def test_no_secret_is_anywhere_in_it(node, tmp_path):
    plain = take(node, tmp_path / "plain.kfc")
    taken = _take(node, tmp_path / "redacted.kfc", redact_topics=True)
    secrets = [name.encode().lower() for names in SECRETS.values() for name in names]

    found = [(part, name) for part, data in _everything(taken) for name in secrets if name in data.lower()]
    assert [] == found
    there = b"".join(data.lower() for _, data in _everything(plain))
    assert [] == [name for name in secrets if name not in there]


def test_without_topics_their_names_stay(node, tmp_path):
    taken = _take(node, tmp_path / "redacted.kfc")
    secrets = [name.encode().lower() for kind in ("hosts", "names") for name in SECRETS[kind]]

    assert [] == [(part, name) for part, data in _everything(taken) for name in secrets if name in data.lower()]
    assert open_capture(taken).has_folder("broker-1/orders-0")


def test_every_record_is_written_again(node, tmp_path):
    taken = _take(node, tmp_path / "redacted.kfc", redact_topics=True)
    (files, *_) = find_metadata_logs(find_inputs([taken]))
    history = read_metadata_log(files)
    pseudonyms = Pseudonyms(key=KEY)

    assert {} == open_capture(taken).manifest["redaction"]["blanked_records"]
    assert [] == list(history.damage)
    hosts = {point.partition("//")[2].partition(":")[0] for one in history.controllers[9] for point in one.end_points}
    assert {pseudonyms.host("loneworker")} == hosts
    assert pseudonyms.name("topic", "orders") in history.topic_ids
    settings = {one.name: one.value for one in history.configs}
    assert ("2", pseudonyms.name("value", "acme-authorizer")) == (
        settings["min.insync.replicas"],
        settings["authorizer.class.name"],
    )


def test_records_that_are_not_known_and_damaged_bytes_are_blanked_and_counted(tmp_path, small_cluster):
    copied(small_cluster / "broker-1", tmp_path / "broker-1")
    log = tmp_path / "broker-1" / "__cluster_metadata-0" / f"{0:020}.log"
    with log.open("ab") as file:
        unknown = b"\x01\x7f\x00of acme"  # record type 127
        file.write(encode_record_batch(build_record_batch(10_000, [(TIME, None, unknown)], partition_leader_epoch=1)))
        file.write(b"\x01 torn, of acme, and not a batch at all")
    taken = _take([tmp_path / "broker-1"], tmp_path / "redacted.kfc")

    assert not any(b"acme" in data for _, data in _everything(taken))
    blanked = open_capture(taken).manifest["redaction"]["blanked_records"]
    assert {"a record that is not known": 1, "bytes of a metadata log that are no sound batch": 1} == blanked
    with open_evidence(CapturePath(taken) / "broker-1" / "__cluster_metadata-0" / log.name) as file:
        assert file.read_all(1 << 20).endswith(b"\xff" * 39)
    # Its type stays: what it changed is not known in the capture, either.
    (files, *_) = find_metadata_logs(find_inputs([taken]))
    assert ["record type 127 is newer than 29"] == [
        one.words.partition(": ")[2].partition(",")[0] for one in read_metadata_log(files).unread
    ]


@pytest.mark.parametrize("with_topics", [False, True])
@pytest.mark.some(1)
def test_commands_conclude_the_same(with_topics, tmp_path, small_cluster):
    nodes = nodes_of(small_cluster)
    plain = [take([node], tmp_path / f"{node.name}.kfc") for node in nodes]
    taken = [_take([node], tmp_path / f"r-{node.name}.kfc", redact_topics=with_topics) for node in nodes]
    for command in ("diff", "explain"):
        (one, code), (other, its_code) = document(command, plain), document(command, taken)
        assert code == its_code
        assert one["answer"]["state"] == other["answer"]["state"]
        assert sorted(finding["code"] for finding in one["findings"]) == sorted(
            finding["code"] for finding in other["findings"]
        )
        assert [] == other["problems"]


def test_redacted_captures_are_not_mixed_with_others(tmp_path, small_cluster):
    one = _take([small_cluster / "broker-1"], tmp_path / "one.kfc")
    for other in (
        small_cluster / "broker-2",
        take([small_cluster / "broker-2"], tmp_path / "plain.kfc"),
        take([small_cluster / "broker-2"], tmp_path / "other.kfc", redact_key=b"x" * 32),
        _take([small_cluster / "broker-2"], tmp_path / "topics.kfc", redact_topics=True),
    ):
        with pytest.raises(InputsRefused, match="redacted under the same key"):
            find_inputs([one, other], one_cluster=True)
        found, code = document("explain", [one], "--before", str(other))
        assert 3 == code, found


@pytest.mark.slow
def test_what_can_not_be_redacted_is_refused_or_left_out(node, tmp_path):
    with pytest.raises(UsageError, match="--with-tail"):
        _take(node, tmp_path / "out.kfc", with_tail=True)
    with pytest.raises(UsageError, match="--since"):
        _take(node, tmp_path / "out.kfc", earlier_captures=[take(node, tmp_path / "plain.kfc")])
    with pytest.raises(Stopped):
        _take(node, tmp_path / "out.kfc", is_asked_to_stop=lambda: True)
    assert [] == [path.name for path in tmp_path.iterdir() if "out.kfc" in path.name]
    (node[0] / "orders-0" / "remote_log_snapshot").write_bytes(b"of acme")
    taken = _take(node, tmp_path / "out.kfc")
    assert ["broker-1/orders-0/remote_log_snapshot"] == open_capture(taken).manifest["redaction"]["left_out"]


def test_the_command_needs_a_key(tmp_path, capsys, monkeypatch, small_cluster):
    monkeypatch.delenv("KFORENSICS_REDACT_KEY", raising=False)
    out = tmp_path / "out.kfc"

    assert 2 == run(
        ["capture", str(small_cluster / "broker-1"), "--out", str(out), "--redact-topics", "--normal-priority"]
    )
    assert "needs a key" in capsys.readouterr().err
    monkeypatch.setenv("KFORENSICS_REDACT_KEY", KEY.decode())
    assert 0 == run(
        ["capture", str(small_cluster / "broker-1"), "--out", str(out), "--redact-topics", "--normal-priority"]
    )
    manifest = open_capture(out).manifest
    assert manifest["redaction"]["topics"] is True
    assert KEY.decode() not in json.dumps(manifest)


def _events(data):
    return [(event.line, event.kind) for window in scan_log([data]) for event in window.events]


@pytest.mark.parametrize(
    "name",
    [
        one if one in {"hw-loss-0.10", "power-cut-2.8"} else pytest.param(one, marks=pytest.mark.slow)
        for one in RECORDINGS
    ],
)
@pytest.mark.some(1)
def test_the_lines_of_recorded_brokers_report_the_same_events(name, incident):
    recording = incident(name)
    partitions = {path.name.rpartition("-")[0] for path in recording.glob("snapshots/**/*-[0-9]*") if path.is_dir()}
    names = Names(
        pseudonyms=Pseudonyms(key=KEY),
        with_topics=True,
        topics=frozenset(partitions - {"broker", "controller"}),
    )
    for path in recording.glob("logs/*/*.log*"):
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            continue
        lines = data.decode(errors="surrogateescape").split("\n")
        redacted = "\n".join(map(names.line, lines)).encode(errors="surrogateescape")
        assert _events(data) == _events(redacted), path


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-21 06:39:47,880] INFO [Log partition=orders-0, dir=/data] Truncating to 5 has no effect (kafka.log.Log)",
        "[2026-11-21 06:39:47,880] INFO [Controller id=1] New topics: [Set(orders)], deleted topics: [HashSet()] (kafka.controller.KafkaController)",
        "[2026-11-21 06:39:47,880] TRACE [Controller id=1] All leaders = orders-0 -> (Leader:1,ISR:1,3,LeaderEpoch:1)",
        "[2026-11-21 06:39:47,880] INFO [Partition orders-0 broker=1] ISR updated to 1,3,2 and version updated to [2] (kafka.cluster.Partition)",
    ],
)
def test_nothing_but_the_name_changes_in_a_line(line):
    names = Names(pseudonyms=Pseudonyms(key=KEY), with_topics=True, topics=frozenset({"orders"}))

    assert line == names.line(line).replace(Pseudonyms(key=KEY).name("topic", "orders"), "orders")


SECRET = b"secret-host.corp.example payments customer-4711\n"
NAMES_OF_KINDS = {
    FileKind.SEGMENT: f"{0:020d}.log",
    FileKind.OFFSET_INDEX: f"{0:020d}.index",
    FileKind.TIME_INDEX: f"{0:020d}.timeindex",
    FileKind.TXN_INDEX: f"{0:020d}.txnindex",
    FileKind.PRODUCER_SNAPSHOT: f"{5:020d}.snapshot",
    FileKind.LEADER_EPOCH_CHECKPOINT: "leader-epoch-checkpoint",
    FileKind.OFFSET_CHECKPOINT: "replication-offset-checkpoint",
    FileKind.META_PROPERTIES: "meta.properties",
    FileKind.PARTITION_METADATA: "partition.metadata",
    FileKind.QUORUM_STATE: "quorum-state",
    FileKind.METADATA_SNAPSHOT: "bootstrap.checkpoint",
    FileKind.CLEAN_SHUTDOWN: ".kafka_cleanshutdown",
    FileKind.LOCK: ".lock",
    FileKind.REMOTE_LOG_STATE: "remote_log_snapshot",
    FileKind.LOG_FILE: "server.log",
    FileKind.SERVER_PROPERTIES: "server.properties",
    FileKind.SYMBOLIC_LINK: "customer-4711-link",
    FileKind.SPECIAL: "customer-4711-pipe",
    FileKind.UNKNOWN: "customer-4711.txt",
}
SOUND_BEGINNINGS = {
    FileKind.LEADER_EPOCH_CHECKPOINT: b"0\n1\n0 0\n",
    FileKind.OFFSET_CHECKPOINT: b"0\n1\norders 0 5\n",
    FileKind.META_PROPERTIES: b"#Sat Nov 21 06:26:13 UTC 2026\nnode.id=1\nversion=1\ncluster.id=AAAAAAAAQUKAAAAAAAAAAA\n",
    FileKind.PARTITION_METADATA: b"version: 0\ntopic_id: AAAAAAAAQUKAAAAAAAAAAA\n",
    FileKind.LOG_FILE: b"[2026-11-21 06:39:47,880] INFO [Log partition=orders-0, dir=/data] Truncating to 5 (kafka.log.Log)\n",
    FileKind.SERVER_PROPERTIES: b"node.id=1\n",
    FileKind.CLEAN_SHUTDOWN: b'{"version":0,"brokerEpoch":5}',
    FileKind.QUORUM_STATE: b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
}


def _redaction():
    pseudonyms = Pseudonyms(key=KEY)
    names = Names(pseudonyms=pseudonyms, with_topics=True, topics=frozenset({"payments"}))
    return CaptureRedaction(pseudonyms=pseudonyms, names=names)


def _redacted(path, *, is_metadata):
    with open_evidence(path) as file:
        try:
            return b"".join(_redaction().pieces(file, path.name, is_metadata=is_metadata))
        except (CannotRedact, EvidenceError):  # neither is taken along
            return None


@pytest.mark.parametrize("is_metadata", [False, True])
@pytest.mark.parametrize("kind", list(FileKind))
def test_of_no_kind_of_file_is_text_taken_along_that_is_not_understood(kind, is_metadata, tmp_path):
    name = NAMES_OF_KINDS[kind]
    for data in (SECRET, SOUND_BEGINNINGS.get(kind, b"") + SECRET, SECRET[:1] + b"\0\xff" + SECRET[3:], b"a=" + SECRET):
        (tmp_path / name).write_bytes(data)

        taken = _redacted(tmp_path / name, is_metadata=is_metadata)

        for word in (b"secret-host", b"ret-host", b"payments", b"customer-4711", b"customer"):
            assert word not in (taken or b"")
    assert "customer" not in _redaction().entry(name, is_directory=False, is_taken=False)


@pytest.mark.parametrize("kind", sorted(SOUND_BEGINNINGS))
def test_what_is_understood_is_taken_along(kind, tmp_path):
    path = tmp_path / NAMES_OF_KINDS[kind]
    path.write_bytes(SOUND_BEGINNINGS[kind])

    taken = _redacted(path, is_metadata=False)

    assert taken == SOUND_BEGINNINGS[kind].replace(b"orders", Pseudonyms(key=KEY).name("topic", "orders").encode()) or (
        kind is FileKind.LOG_FILE and b"Truncating to 5 (kafka.log.Log)" in taken
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("broker-customer.log", FileKind.LOG_FILE),
        ("kafka-customer.log.2026-01-01.gz", FileKind.LOG_FILE),
        ("server-customer.properties", FileKind.SERVER_PROPERTIES),
    ],
)
def test_names_of_files_with_a_word_of_their_own_are_replaced_and_keep_their_kind(name, kind):
    shown = _redaction().entry(name, is_directory=False, is_taken=True)

    assert "customer" not in shown
    assert parse_file_name(shown).kind is kind


@pytest.mark.parametrize(
    "name",
    ["customers-4", "customer-stuff", f"{'customer.' * 26}{'a' * 32}-delete", "topic-customer-0", "__customer_data-3"],
)
def test_names_of_directories_below_a_log_directory_are_replaced(name):
    assert "customer" not in _redaction().path(f"{name}/{0:020d}.log")
    assert _redaction().entry(name, is_directory=True, is_taken=False) == _redaction().path(name)


def test_a_lone_line_between_those_of_a_log_is_blanked(tmp_path):
    log = SOUND_BEGINNINGS[FileKind.LOG_FILE]
    stack = b"java.io.IOException: No room for customer\n\tat java.nio.Files.copy(Files.java:1)\n"
    (tmp_path / "server.log").write_bytes(log + stack + b"ours: customer\n" + log)

    taken = _redacted(tmp_path / "server.log", is_metadata=False)

    assert b"\n\tat java.nio.Files.copy(Files.java:1)\nxxxxxxxxxxxxxx\n[2026" in taken
    assert b"customer" not in taken


def test_nothing_of_damaged_files_is_anywhere_in_it(tmp_path, small_cluster):
    data = copied(small_cluster / "broker-1", tmp_path / "data")
    damaged = [
        *(data / "orders-0" / NAMES_OF_KINDS[kind] for kind in FileKind if kind is not FileKind.SYMBOLIC_LINK),
        *(data / "__cluster_metadata-0" / name for name in (f"{0:020d}.log", f"{0:020d}.index", "quorum-state")),
        *(data / f"{name}-checkpoint" for name in ("replication-offset", "recovery-point-offset", "log-start-offset")),
        data / "meta.properties",
        data / ".kafka_cleanshutdown",
        data / "customer-4711-0" / "customer-4711",
        data / "customer-4711-3.0123456789abcdef0123456789abcdef-delete" / "leader-epoch-checkpoint",
    ]
    for path in damaged:
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.write(SECRET)

    taken = _take([data], tmp_path / "redacted.kfc", redact_topics=True)

    words = (b"secret-host", b"customer", b"corp.example")
    assert [] == [(part, word) for part, content in _everything(taken) for word in words if word in content]
