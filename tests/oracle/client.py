"""The three requests the oracle needs, in versions that every release from 0.10.2 to 4.1 answers (`clients/src/main/resources/common/message`)."""

import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from kforensics.formats.log.batches import Message, build_record_batch, encode_message_set, encode_record_batch

TIMEOUT_SECONDS = 10
_PRODUCE = 0
_METADATA = 3
_CREATE_TOPICS = 19
_ALL_IN_SYNC = -1


class RefusedError(Exception):
    """A broker answered with an error code."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """One broker's view of one topic of one partition; -1 stands for none."""

    controller: int
    leader: int
    in_sync: frozenset[int]


class _Answer:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(">" + layout, self._data, self._at)
        self._at += struct.calcsize(">" + layout)
        return int(value)

    def skip_string(self) -> None:
        length = self.take("h")
        self._at += max(length, 0)

    def numbers(self) -> list[int]:
        return [self.take("i") for _ in range(self.take("i"))]

    def require_success(self) -> None:
        code = self.take("h")
        if code:
            message = f"error code {code}"
            raise RefusedError(message)


def ask_metadata(port: int, topic: str) -> Metadata:
    """Metadata v1.

    Raises:
        RefusedError: the broker does not know the topic.
        OSError: no answer.
    """
    answer = _ask(port, _METADATA, 1, struct.pack(">i", 1) + _string(topic))
    for _ in range(answer.take("i")):
        answer.take("i")
        answer.skip_string()
        answer.take("i")
        answer.skip_string()
    controller = answer.take("i")
    answer.take("i")
    answer.require_success()
    answer.skip_string()
    answer.take("b")
    if answer.take("i") != 1:
        message = "not one partition"
        raise RefusedError(message)
    answer.take("h")
    answer.take("i")
    leader = answer.take("i")
    answer.numbers()
    return Metadata(controller, leader, frozenset(answer.numbers()))


def ask_controller(port: int) -> int:
    """Metadata v1 of no topic, for the controller; any broker where there is a quorum."""
    answer = _ask(port, _METADATA, 1, struct.pack(">i", 0))
    for _ in range(answer.take("i")):
        answer.take("i")
        answer.skip_string()
        answer.take("i")
        answer.skip_string()
    return answer.take("i")


def create_topic(port: int, topic: str, replicas: Sequence[int], configs: dict[str, str], *, has_v2: bool) -> None:
    """CreateTopics v1 or v2, which differ in the answer only: one partition on the named brokers.

    Raises:
        RefusedError: the controller does not create it.
        OSError: no answer.
    """
    body = struct.pack(">i", 1) + _string(topic) + struct.pack(">ih", -1, -1)
    body += struct.pack(">iii", 1, 0, len(replicas)) + b"".join(struct.pack(">i", node) for node in replicas)
    body += struct.pack(">i", len(configs)) + b"".join(_string(n) + _string(v) for n, v in configs.items())
    body += struct.pack(">i?", TIMEOUT_SECONDS * 1_000, False)
    answer = _ask(port, _CREATE_TOPICS, 2 if has_v2 else 1, body)
    if has_v2:
        answer.take("i")
    answer.take("i")
    answer.skip_string()
    answer.require_success()


def produce(
    port: int, topic: str, records: Sequence[tuple[bytes, bytes | None]], *, has_v3: bool, behind_ms: int = 0
) -> None:
    """Produce v2 with messages of magic 1, or v3 with one batch of magic 2, acknowledged by all in sync, with a time so long ago.

    Raises:
        RefusedError: the broker does not take them.
        OSError: no answer.
    """
    now_ms = time.time_ns() // 1_000_000 - behind_ms
    if has_v3:
        data = encode_record_batch(
            build_record_batch(0, [(now_ms, key, value) for key, value in records], partition_leader_epoch=-1)
        )
    else:
        data = encode_message_set(Message(at, 1, 0, now_ms, key, value) for at, (key, value) in enumerate(records))
    error, _ = produce_batch(port, topic, data, has_v3=has_v3)
    if error:
        message = f"error code {error}"
        raise RefusedError(message)


def produce_batch(port: int, topic: str, data: bytes, *, has_v3: bool = True) -> tuple[int, int]:
    """Produce v2 or v3 with bytes as they are, and return the error code and the offset that the broker answers.

    Raises:
        OSError: no answer.
    """
    body = struct.pack(">h", -1) if has_v3 else b""
    body += struct.pack(">hii", _ALL_IN_SYNC, TIMEOUT_SECONDS * 1_000, 1) + _string(topic)
    body += struct.pack(">iii", 1, 0, len(data)) + data
    answer = _ask(port, _PRODUCE, 3 if has_v3 else 2, body)
    answer.take("i")
    answer.skip_string()
    answer.take("i")
    answer.take("i")
    return answer.take("h"), answer.take("q")


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _ask(port: int, kind: int, version: int, body: bytes) -> _Answer:
    request = struct.pack(">hhi", kind, version, 1) + _string("oracle") + body
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
        connection.settimeout(2 * TIMEOUT_SECONDS)
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            head = stream.read(4)
            data = stream.read(int.from_bytes(head)) if len(head) == 4 else b""
    if len(data) < 4:
        message = "the broker hung up"
        raise ConnectionResetError(message)
    return _Answer(data[4:])
