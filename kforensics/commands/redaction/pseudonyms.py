"""Stable pseudonyms for names and payloads that must not be shared, under a key that is not shared either."""

import hmac
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from kforensics.ask.model import KEY_VARIABLE, Ask
from kforensics.errors import UsageError
from kforensics.formats.log.records import Record
from kforensics.protocol.versions import NEWEST_FEATURE_LEVELS

DIGEST_LENGTH = 24
"""Hexadecimal digits: 96 bits, so that among a thousand million values no two are likely to share one."""

LEAST_KEY_LENGTH = 16
"""Bytes."""

# Dotted words that are no hosts: parts of Java names, files of Kafka and of this tool, and settings.
_PACKAGES = ("org.apache.", "java.", "javax.", "jdk.", "kafka.", "scala.", "sun.")
_FILE_SUFFIXES = frozenset(
    [
        "checkpoint",
        "checkpoints",
        "cleaned",
        "clean_shutdown",
        "conf",
        "deleted",
        "gz",
        "index",
        "json",
        "kafka_cleanshutdown",
        "log",
        "meta",
        "metadata",
        "properties",
        "scala",
        "java",
        "snapshot",
        "swap",
        "timeindex",
        "txnindex",
        "txt",
        "zst",
    ]
)
_SETTINGS = frozenset(
    [
        "unclean.leader.election.enable",
        "min.insync.replicas",
        "retention.ms",
        "retention.bytes",
        "cleanup.policy",
        "inter.broker.protocol.version",
        "log.message.format.version",
        "broker.id",
        "node.id",
        "cluster.id",
    ]
)
_PRINCIPAL = (
    r"(?P<type>\b(?:User|Group)):(?P<principal>[A-Z]{1,9}=[^\s;()\[\]{}'\"]+|[^\s,;()\[\]{}'\"]+)"
    r"|(?P<mail>(?<![\w.+-])[\w.+-]{1,64}@\w[\w.-]{0,252})"
)
_CLIENT = r"(?P<before>\bclient[ ._-]?id[=: ]+\"?)(?P<client>[^\s,;()\[\]{}'\"]+)"
_ADDRESS = (
    r"(?P<address>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\w)"
    r"|(?<![\w:.])(?:[0-9A-F]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-F]{0,4})(?![\w:]))"
)
_CLOUD = r"(?P<cloud>\bip(?:-\d{1,3}){4}\b(?:\.[\w-]{1,63}){0,8})"
_LABEL = r"[A-Z0-9_](?:[\w-]{0,62}\w)?"
_DOTTED = rf"(?P<dotted>(?<![\w.-]){_LABEL}(?:\.{_LABEL}){{0,20}}\.[A-Z][A-Z-]{{1,62}}(?![\w-]|\.\w))"
_WITH_PORT = r"(?P<host>(?<![\w.-])[A-Z0-9](?:[\w.-]{0,251}\w)?):(?P<port>\d{3,5})(?![\d:]|\.\d)"
_PSEUDONYM = re.compile(rf"[a-z-]+-[0-9a-f]{{{DIGEST_LENGTH}}}")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_WILDCARDS = frozenset({"*", "ANONYMOUS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pseudonyms:
    """Gives every value its pseudonym: HMAC-SHA256 under the key, the same in every run, not to be turned back without the key."""

    key: bytes = field(repr=False)
    hosts: frozenset[str] = frozenset()
    """Names that are known to be hosts, in small letters."""
    topics: frozenset[str] = frozenset()
    """Names that are known to be topics or directories of partitions, and stay."""

    def knowing(self, *, hosts: Iterable[str], topics: Iterable[str]) -> Self:
        """Return pseudonyms that also know the hosts and topics that the evidence names."""
        return replace(
            self,
            hosts=self.hosts | {host.lower() for host in hosts if host},
            topics=self.topics | frozenset(topics),
        )

    def name(self, kind: str, value: str | bytes) -> str:
        """Return the pseudonym of a value: what sort of thing it is, and its digest, which does not depend on the sort."""
        raw = value if isinstance(value, bytes) else value.encode("utf-8", errors="surrogatepass")
        return f"{kind}-{hmac.digest(self.key, raw, 'sha256').hex()[:DIGEST_LENGTH]}"

    def group(self, group: str) -> str:
        """Return the pseudonym of a consumer group."""
        return self.name("group", group)

    def payload(self, kind: str, payload: bytes | None) -> bytes | None:
        """Return the pseudonym of a payload; null and empty stay what they are."""
        return self.name(kind, bytes(payload)).encode() if payload else payload

    def record(self, record: Record) -> Record:
        """Return the record with key, value and values of headers as pseudonyms."""
        return record._replace(
            key=self.payload("key", record.key),
            value=self.payload("value", record.value),
            headers=tuple((name, self.payload("value", value)) for name, value in record.headers),
        )

    def without_quoted(self, words: str) -> str:
        """Return words of damage or a problem with what they quote replaced: it was not understood, and may be a name."""
        return _QUOTED.sub(lambda found: self.name("value", found[0][1:-1]), words)

    def host(self, host: str) -> str:
        """Return the pseudonym of a host, whichever way it is written: `/10.0.0.1` and `10.0.0.1` are one; wildcards such as `0.0.0.0` stay."""
        plain = host.strip().removeprefix("/").strip("[]").rstrip(".").lower()
        return self.name("host", plain) if plain and plain not in _WILDCARDS else host

    def principal(self, principal: str) -> str:
        """Return the pseudonym of `User:name` or of a bare name; the type stays, and so do wildcards."""
        kind, colon, name = principal.rpartition(":")
        if name in _WILDCARDS or not name:
            return principal
        return f"{kind}{colon}{self.name('principal', name)}"

    def sentence(self, text: str) -> str:
        """Return a sentence of this tool's own, whose other words are no names, with known hosts, addresses and principals replaced."""
        return _OWN_WORDS.sub(self._replacement, self._without_known(text))

    def text(self, text: str) -> str:
        """Return words out of evidence, of which any may be a name, with everything that looks like a host, an address, a principal or a client replaced."""
        return _FOREIGN_WORDS.sub(self._replacement, self._without_known(text))

    def path(self, path: str) -> str:
        """Return a path with the hosts in it replaced; directories of partitions and Kafka's own files stay."""
        return "/".join(part if _is_partition(part, self.topics) else self.text(part) for part in path.split("/"))

    def _without_known(self, text: str) -> str:
        lowered = text.lower()
        for host in sorted(self.hosts, key=len, reverse=True):
            if host in lowered:
                text = re.sub(
                    rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)",
                    lambda found: self.host(found[0]),
                    text,
                    flags=re.IGNORECASE,
                )
        return text

    def _replacement(self, found: re.Match[str]) -> str:
        groups = found.groupdict()
        if groups.get("principal"):
            return self.principal(f"{groups['type']}:{groups['principal']}")
        if groups.get("mail"):
            return self.principal(groups["mail"])
        if groups.get("client"):
            return groups["before"] + self.name("client", groups["client"])
        if groups.get("address"):
            return self.host(found[0]) if _is_address(found[0]) else found[0]
        if groups.get("cloud"):
            return self.host(found[0])
        if groups.get("dotted"):
            return found[0] if self._is_no_host(found[0]) else self.host(found[0])
        host = groups["host"]
        return found[0] if self._is_no_host(host) or host.isdecimal() else f"{self.host(host)}:{groups['port']}"

    def _is_no_host(self, word: str) -> bool:
        return (
            word in self.topics
            or word in _SETTINGS
            or word in NEWEST_FEATURE_LEVELS
            or word.startswith(_PACKAGES)
            or _PSEUDONYM.fullmatch(word) is not None
            or word.rpartition(".")[2] in _FILE_SUFFIXES
        )


_OWN_WORDS = re.compile(f"{_PRINCIPAL}|{_ADDRESS}|{_CLOUD}", re.IGNORECASE | re.ASCII)
_FOREIGN_WORDS = re.compile(
    f"{_PRINCIPAL}|{_CLIENT}|{_CLOUD}|{_ADDRESS}|{_WITH_PORT}|{_DOTTED}", re.IGNORECASE | re.ASCII
)


def _is_address(word: str) -> bool:
    try:
        ip_address(word)
    except ValueError:
        return False
    return True


def _is_partition(name: str, topics: frozenset[str]) -> bool:
    if name in topics:
        return True
    topic, dash, rest = name.rpartition("-")
    if dash and rest in {"delete", "future", "stray"}:
        topic, dash, rest = topic.rpartition(".")[0].rpartition("-")
    return bool(dash) and rest.isdecimal() and topic in topics


MOST_KEY_LENGTH = 1 << 16
"""Bytes: whoever names a larger file has named the wrong one."""

HOW_TO_MAKE_ONE = "openssl rand -hex 32 > redact.key makes one"


def pseudonyms_of(ask: Ask) -> "Pseudonyms | None":
    """Return the pseudonyms that are asked for; None where nothing is to be redacted."""
    if not ask.redact and not ask.redact_topics and ask.redact_key is None:
        return None
    key = ask.redact_key if isinstance(ask.redact_key, bytes) else _key(ask.redact_key)
    if len(key) < LEAST_KEY_LENGTH:
        raise UsageError(
            f"the key for --redact has {len(key)} bytes; below {LEAST_KEY_LENGTH} it could be guessed: {HOW_TO_MAKE_ONE}"
        )
    return Pseudonyms(key=key)


def _key(key_file: Path | None) -> bytes:
    if key_file is None:
        named = os.environ.get(KEY_VARIABLE, "")
        if not named:
            raise UsageError(f"--redact needs a key: --redact-key FILE, or {KEY_VARIABLE} ({HOW_TO_MAKE_ONE})")
        return os.fsencode(named).strip()
    try:
        with key_file.open("rb") as file:
            content = file.read(MOST_KEY_LENGTH + 1)
    except OSError as error:
        raise UsageError(f"--redact-key {key_file} can't be read: {error.strerror}") from error
    if len(content) > MOST_KEY_LENGTH:
        raise UsageError(f"--redact-key {key_file} has more than {MOST_KEY_LENGTH:,} bytes; that is no key")
    # An editor's line break at the end must not make another key of it.
    return content.rstrip(b"\r\n")
