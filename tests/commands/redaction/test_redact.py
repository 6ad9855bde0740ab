"""Pseudonyms: stable under one key, other under another, and nothing of what they stand for is left."""

import hashlib
import hmac
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.cli.app import run
from kforensics.commands.redaction.names import redact_item
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.commands.redaction.values import redact_explanation
from kforensics.evidence.content import MemberBlob, RecordItem, RecordMeaning
from kforensics.exits import ExitCode
from kforensics.formats.log.records import Record
from kforensics.formats.messages.schema import Decoded, Undecoded
from kforensics.render.json.document import json_line
from tests.builders.incidents import explanation

KEY = "0123456789abcdef0123456789abcdef"
NAMES = Pseudonyms(key=KEY.encode())


def digest(value):
    return hmac.new(KEY.encode(), value, hashlib.sha256).hexdigest()[:24]


def redacted_meaning(key: Decoded | Undecoded | None, value: Decoded | Undecoded | None) -> Any:
    item = redact_item(RecordItem(record(), None, RecordMeaning(key, value)), NAMES)
    assert isinstance(item, RecordItem)
    assert b"customer-17" not in (item.record.key or b"")
    return item.meaning


def record(key=b"customer-17", value=b"secret", headers=((b"trace", b"t-1"),)):
    return Record(
        offset=5,
        timestamp_ms=1,
        key=key,
        value=value,
        headers=headers,
        sequence=-1,
        batch_position=0,
        batch_base_offset=0,
        partition_leader_epoch=0,
        producer_id=-1,
        producer_epoch=-1,
        magic=2,
        is_transactional=False,
        is_control=False,
    )


def test_a_pseudonym_is_the_hmac_of_the_value():
    assert f"group-{digest(b'billing')}" == NAMES.group("billing")
    assert NAMES.name("key", b"x")[4:] == NAMES.name("value", "x")[6:]
    assert NAMES.group("billing") != Pseudonyms(key=b"another key of 24 bytes.").group("billing")
    assert KEY not in repr(NAMES)


def test_records_join_and_null_stays_null():
    one, other = NAMES.record(record()), NAMES.record(record(value=None, headers=()))

    assert f"key-{digest(b'customer-17')}".encode() == one.key == other.key
    assert f"value-{digest(b'secret')}".encode() == one.value
    assert None is other.value
    assert ((b"trace", f"value-{digest(b't-1')}".encode()),) == one.headers
    assert b"" == NAMES.record(record(key=b"")).key
    assert (5, 1, 0) == (one.offset, one.timestamp_ms, one.batch_position)


def test_decoded_fields_keep_topics_and_numbers_only():
    member = {
        "member_id": "app-1-uuid",
        "client_id": "app-1",
        "client_host": "/10.1.2.3",
        "subscription": MemberBlob(
            b"\x00blob", Decoded("Subscription", 1, {"topics": ("orders",), "user_data": b"mine"})
        ),
        "assignment": b"bytes",
        "session_timeout": 45_000,
    }
    value = Decoded(
        "GroupMetadataValue",
        3,
        {"protocol_type": "consumer", "leader": "app-1-uuid", "members": (member,), "new_field": "who knows"},
    )
    key = Decoded("GroupMetadataKey", 2, {"group": "billing"})

    meaning = redacted_meaning(key, value)

    assert {"group": NAMES.group("billing")} == meaning.key.fields
    fields = meaning.value.fields
    hidden = fields["members"][0]
    assert "consumer" == fields["protocol_type"]
    assert hidden["member_id"] == fields["leader"] == f"member-{digest(b'app-1-uuid')}"
    assert f"host-{digest(b'10.1.2.3')}" == hidden["client_host"] == NAMES.host("10.1.2.3")
    assert 45_000 == hidden["session_timeout"]
    assert ("orders",) == hidden["subscription"].message.fields["topics"]
    assert f"value-{digest(b'who knows')}" == fields["new_field"]
    shown = repr(meaning)
    assert not [word for word in ("billing", "app-1", "10.1.2.3", "x00blob", "mine", "who knows") if word in shown]


@pytest.mark.parametrize(
    ("message", "fields", "expected"),
    [
        ("ConfigRecord", {"resource_type": 2, "resource_name": "orders", "name": "retention.ms", "value": "1000"}, {}),
        ("ConfigRecord", {"resource_type": 4, "resource_name": "1", "name": "cleanup.policy", "value": "compact"}, {}),
        (
            "ConfigRecord",
            {"resource_type": 32, "resource_name": "billing", "name": "sasl.jaas.config", "value": "password=x"},
            {"resource_name": f"group-{digest(b'billing')}", "value": f"value-{digest(b'password=x')}"},
        ),
        ("TopicRecord", {"name": "orders", "topic_id": "MMMMMMMMMMMMMMMMMMMMMA"}, {}),
        ("UserScramCredentialRecord", {"name": "alice", "iterations": 4096}, {"name": f"principal-{digest(b'alice')}"}),
        (
            "AccessControlEntryRecord",
            {"resource_type": 2, "resource_name": "orders", "principal": "User:alice", "host": "*"},
            {"principal": f"User:principal-{digest(b'alice')}"},
        ),
        (
            "ClientQuotaRecord",
            {"entity": ({"entity_type": "user", "entity_name": None},), "key": "producer_byte_rate"},
            {},
        ),
        (
            "RegisterBrokerRecord",
            {"end_points": [{"name": "INTERNAL", "host": "k1", "port": 9092}]},
            {"end_points": [{"name": "INTERNAL", "host": NAMES.host("K1"), "port": 9092}]},
        ),
    ],
)
def test_metadata_records_keep_what_names_no_one(message, fields, expected):
    meaning = redacted_meaning(None, Decoded(message, 0, fields))

    assert {**fields, **expected} == meaning.value.fields


def test_what_was_not_understood_says_no_more():
    meaning = redacted_meaning(None, Undecoded("from 10.0.0.1"))

    assert f"from {NAMES.host('10.0.0.1')}" == meaning.value.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fetch from kafka-01.example.com:9092 failed", "fetch from {kafka-01.example.com}:9092 failed"),
        ("PLAINTEXT://kafka-01.example.com:9092", "PLAINTEXT://{kafka-01.example.com}:9092"),
        ("client /10.1.2.3:51234 (id: 1)", "client /{10.1.2.3}:51234 (id: 1)"),
        ("[fe80::1]:9092", "[{fe80::1}]:9092"),
        ("ip-10-0-0-7.ec2.internal is gone", "{ip-10-0-0-7.ec2.internal} is gone"),
        ("K1 and k1x", "{k1} and k1x"),
        ("due to retention.ms at 06:26:13.332 in 00000000000000000040.log", None),
        ("org.apache.kafka.common.errors.OffsetOutOfRangeException: 4.1.0", None),
        ("orders.v1.events-3 at kafka.log", None),
    ],
)
def test_hosts_are_found_in_words(text, expected):
    names = NAMES.knowing(hosts=["k1"], topics=["orders.v1.events"])
    wanted = text if expected is None else re.sub(r"\{(.*?)\}", lambda found: NAMES.host(found[1]), expected)

    assert wanted == names.text(text)
    assert wanted == names.text(names.text(text))


@pytest.mark.parametrize(
    "text", ["User:alice", "User:CN=alice,OU=x", "alice@example.com", "clientId=alice", 'client.id "alice"']
)
def test_principals_and_clients_are_found_in_words(text):
    assert "alice" not in NAMES.text(f"by {text}, then")
    assert "example" not in NAMES.text(text)


def test_wildcards_of_principals_stay():
    assert "User:*" == NAMES.principal("User:*")
    assert "User:ANONYMOUS" == NAMES.principal("User:ANONYMOUS")


def test_paths_keep_what_kafka_names():
    names = NAMES.knowing(hosts=[], topics=["web.clicks.io"])
    path = "cases/kafka-01.example.com/web.clicks.io-12/00000000000000000000.log"

    assert path.replace("kafka-01.example.com", NAMES.host("kafka-01.example.com")) == names.path(path)


@given(st.text())
def test_any_text_can_be_redacted(text):
    NAMES.text(text)
    NAMES.path(text)
    NAMES.name("key", text)


def test_long_hostile_words_take_no_time():
    for unit in ("a.", "a-", "1.", ":a", "User:", "a@", "-", "ip-1"):
        NAMES.text(unit * 20_000)


def test_an_explanation_keeps_no_host():
    word = " kafka-01.example.com:9092 by User:alice "

    redacted = redact_explanation(explanation(word), NAMES)

    details = [entry.detail for entry in redacted.timeline]
    incident = redacted.incidents[0]
    shown = json_line(
        [
            details,
            redacted.problems,
            [one.path for one in redacted.inputs],
            incident.losses[0].held_by,
            incident.truncations[0].citations,
        ]
    )
    assert "alice" not in shown
    assert "kafka-01" not in shown
    assert "alice" not in "".join(
        (*redacted.conclusion, *redacted.advice, incident.losses[0].reason, *incident.truncations[0].steps)
    )
    assert explanation(word).incidents[0].losses[0].offsets == redacted.incidents[0].losses[0].offsets


def test_dump_under_redaction_decodes_and_joins(incident, tmp_path, capsys):
    root = incident("consumer-ahead-4.x") / "snapshots/99-final"
    key = tmp_path / "redact.key"
    key.write_text(KEY + "\n")

    for broker in ("broker-1", "broker-2"):
        code = run(
            [
                "dump",
                "--records",
                "--redact-key",
                str(key),
                "--format",
                "jsonl",
                *map(str, sorted((root / broker).glob("__consumer_offsets-*/*.log"))),
            ]
        )
        assert ExitCode.NOTHING_FOUND == code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [line["decoded"]["key"]["fields"] for line in lines if (line.get("decoded") or {}).get("key")]
    keys = [fields["group"] for fields in found if "group" in fields]

    assert len(keys) > 20
    assert {f"group-{digest(b'billing-etl')}", f"group-{digest(b'billing-audit')}"} <= set(keys)
    assert all(re.fullmatch("group-[0-9a-f]{24}", key) for key in keys)


def test_records_that_would_go_are_shown_redacted(fixtures, capsys, monkeypatch):
    monkeypatch.setenv("KFORENSICS_REDACT_KEY", KEY)

    run(
        [
            "diff",
            str(fixtures / "unclean-election"),
            "--show-records",
            "--show-payload",
            "--redact",
            "--topic",
            "orders",
        ]
    )

    lines = [line for line in capsys.readouterr().out.splitlines() if re.match(r"  \d+  (key-|null)", line)]
    assert len(lines) > 40
    assert all(re.fullmatch(r"  \d+  (key-[0-9a-f]{24}|null)(  value-[0-9a-f]{24}|  null)?", line) for line in lines)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "needs a key"), ("short", "could be guessed"), ("x" * 70_000, "that is no key")]
)
def test_without_a_good_key_nothing_is_written(content, words, fixtures, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("KFORENSICS_REDACT_KEY", raising=False)
    options = ["--redact"]
    if content is not None:
        (tmp_path / "key").write_text(content)
        options = ["--redact-key", str(tmp_path / "key")]

    code = run(["dump", str(fixtures / "unclean-election" / "broker-1"), *options])

    out, err = capsys.readouterr()
    assert ExitCode.USAGE == code
    assert words in err
    assert "" == out
    assert "short" not in err


def test_a_key_that_cannot_be_read_is_a_usage_error(fixtures, tmp_path, capsys):
    code = run(["dump", str(fixtures / "unclean-election"), "--redact-key", str(tmp_path / "missing")])

    assert ExitCode.USAGE == code
    assert "can't be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("leader-epoch-checkpoint", "0\n1\ncustomer-17 at host9\n"),
        ("replication-offset-checkpoint", "0\n1\ncustomer-17 host9 5\n"),
        ("meta.properties", "version=1\nnode.id=1\ncluster.id=c\ncustomer-17=host9\n"),
        ("quorum-state", "customer-17 host9"),
        (".kafka_cleanshutdown", "customer-17 host9"),
        ("partition.metadata", "version: 0\ncustomer-17: host9\n"),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_not_understood_of_a_small_file_is_not_shown(name, text, form, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KFORENSICS_REDACT_KEY", KEY)
    (tmp_path / name).write_text(text)

    run(["dump", str(tmp_path / name), "--format", form])
    plain = "".join(capsys.readouterr())
    run(["dump", str(tmp_path / name), "--redact", "--format", form])
    shown = "".join(capsys.readouterr())

    assert "customer-17" in plain
    assert "customer-17" not in shown
    assert "host9" not in shown
    assert "value-" in shown
