"""What a node takes of its `server.properties`, and a broker of the settings of topics.

`settings.tsv` has the definitions of `KafkaConfig` and `LogConfig` as releases from 0.10.2 to 4.4 gave them: of brokers or topics, name, type, rule, default, the first
release and the last; `<=` and `<` are two settings, or a number and one, that `validateValues` holds against each other, from which
value of the second on; `refusal` is what is judged here, with the exception and its words.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.checkpoint.properties import configured_voters
from kforensics.protocol.loading.node import (
    FIRST_KRAFT,
    FIRST_WITH_VOTERS_IN_LOG,
    FIRST_WITHOUT_ZOOKEEPER,
    NOT_MET,
    Refusal,
    is_voter_id,
)
from kforensics.protocol.versions import KafkaVersion, parse_inter_broker_version, parse_version

_FIRST_THAT_TAKES_A_DIRECTORY_TWICE = KafkaVersion(4, 4)
_FIRST_THAT_IS_NO_PREVIEW = KafkaVersion(3, 3)
_FIRST_WITH_CONTROL_PLANE = KafkaVersion(2, 2)
_FIRST_WITH_TWO_ON_A_PORT = KafkaVersion(3, 6)
"""Two listeners may have one port, with an address of IPv4 and one of IPv6."""
_FIRST_THAT_CHECKS_LISTS = KafkaVersion(4, 2)
_RETENTION_TIMES = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
"""The first that is there counts."""
_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|Infinity)", re.ASCII)
_RANGE = re.compile(r"\[(?P<least>-?[0-9.]+?),\.\.\.(,(?P<most>[0-9.]+))?\]( or (?P<other>-1))?", re.ASCII)
_ONE_OF = re.compile(r"(?P<folded>\(case insensitive\) )?\[(?P<names>[^\]]+)\](?! *:)")
_REPLICA = re.compile(r"(\d+:\d+)?", re.ASCII)
_MOST_DIGITS = 64
"""Of a number that may be meant: Python refuses to read one of thousands of digits."""
_MOST_WORDS = 200
_OF_ZOOKEEPER = "kafka.security.authorizer.AclAuthorizer"
_RECORDING_LEVELS = frozenset({"INFO", "DEBUG", "TRACE"})
_HIDDEN = re.compile(r"\*+|value-[0-9a-f]{24}", re.ASCII)
"""What a capture has in the place of a value: a secret, or one that may name somebody."""
_LARGEST_PORT = 65_535
_LISTENERS = ("listeners", "advertised.listeners")
_HOST = re.compile(r"[\w.:\-\[\]]+", re.ASCII)
_FIRST_KRAFT_LEVEL = parse_inter_broker_version("3.0-IV1")
_PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_ADDRESS = re.compile(r"\[?[0-9a-zA-Z\-%._:]*\]?:[0-9]{1,5}", re.ASCII)
_END_POINT = re.compile(r"(?P<name>.+?)://(?P<host>\[?[0-9a-zA-Z\-%._:]*\]?):(?P<port>-?[0-9]{1,10})", re.ASCII)


class _Setting(NamedTuple):
    """A definition: the type and the rule of `ConfigDef`, and the releases that have it."""

    name: str
    kind: str
    rule: str
    default: str
    since: KafkaVersion
    until: KafkaVersion | None

    def is_of(self, version: KafkaVersion) -> bool:
        until = self.until
        return version >= self.since and (until is None or version[:2] <= until[:2])


@cache
def _rows() -> Mapping[str, Sequence[_Setting]]:
    """Return the table by scope, each ordered by name."""
    found: dict[str, list[_Setting]] = {}
    for line in (files(__package__) / "settings.tsv").read_text(encoding="utf-8").splitlines():
        scope, name, kind, rule, default, since, until = line.split("\t")
        row = _Setting(name, kind, rule, default, parse_version(since), parse_version(until) if until else None)
        found.setdefault(scope, []).append(row)
    return found


@cache
def _defined(scope: str, version: KafkaVersion) -> Mapping[str, _Setting]:
    return {one.name: one for one in _rows()[scope] if one.is_of(version)}


def refuse_values(
    version: KafkaVersion, values: Mapping[str, str], node_id: int | Absent = Absent.UNKNOWN
) -> Refusal | None:
    """Return why a node does not start by its `server.properties` (`KafkaConfig`), of several reasons the first.

    A value that another place is to replace (`config.providers`, KIP-421), or that a capture hides, is taken as in order.

    Args:
        node_id: the id by its log directories, which counts where the settings have none that can be read.
    """
    if not values:
        return None
    replaced = "config.providers" in values
    judged = {
        name: one for name, one in values.items() if not (replaced and "${" in one) and not _HIDDEN.fullmatch(one)
    }
    defined = _defined("broker", version)
    for name in sorted(judged.keys() & defined):
        if refusal := _refuse(judged[name], defined[name], version):
            return refusal
    numbers = {name: values.get(name, one.default) for name, one in defined.items()}
    found = {**_wrong_values(version, values, judged), **_wrong_roles(version, node_id, values)}
    for row in _rows()["refusal"]:
        if not row.is_of(version):
            continue
        if row.name == "limits":
            limits = ((sign, one) for sign in ("<=", "<") for one in _rows()[sign] if one.is_of(version))
            related = (
                _contradiction(*one, numbers) for one in limits if re.match(row.rule, f"{one[1].name} {one[1].kind}")
            )
            if refusal := next(filter(None, related), None):
                return refusal
        elif found.get(row.name):
            about = f": {found[row.name]}"[:_MOST_WORDS] if isinstance(found[row.name], str) else ""
            return Refusal(row.kind, f"{row.rule}{about}")
    return None


def _wrong_values(version: KafkaVersion, values: Mapping[str, str], judged: Mapping[str, str]) -> Mapping[str, object]:
    """Return what is wrong with values apart from roles and listeners, by the name of its row in the table; a text is what it is about."""
    defined = _defined("broker", version)
    time = next((name for name in _RETENTION_TIMES if name in values), "")
    of_cleaner = (f"log.cleaner.{one}" for one in ("dedupe.buffer.size", "threads"))
    buffer, threads = (_whole(values.get(name, defined[name].default)) for name in of_cleaner)
    overrides = [one.rpartition(":") for one in _listed(judged, "max.connections.per.ip.overrides")]
    is_without_any = _whole(judged.get("max.connections.per.ip", "")) == 0 and not overrides
    protocols = "group.coordinator.rebalance.protocols"
    is_classic = protocols not in judged.keys() & defined or "classic" in _listed(judged, protocols)
    own = {*_listed(values, "log.dirs"), *_listed(values, "log.dir"), "*"}
    cordoned = {*_listed(judged, "cordoned.log.dirs")} if "cordoned.log.dirs" in defined else set()
    # Since 3.7 two names of one directory are a matter of its id (KIP-858).
    paths = [path.rstrip("/") if version < (3, 7) else path for path in _listed(judged, "log.dirs")]
    takes_twice = version >= _FIRST_THAT_TAKES_A_DIRECTORY_TWICE or values.get("process.roles") == "controller"
    twice = next((path for at, path in enumerate(paths) if path in paths[:at] and not takes_twice), None)
    has_zookeeper = bool(values.get("zookeeper.connect", "").strip())
    has_no_roles = not has_zookeeper and "process.roles" in values and not _listed(values, "process.roles")
    with_zookeeper = values.get("authorizer.class.name", "").strip() == _OF_ZOOKEEPER and "process.roles" in values
    level = values.get("metrics.recording.level", "INFO").strip().upper()
    fetch_timeout = _whole(judged.get("controller.quorum.fetch.timeout.ms", "")) or 0
    addresses_are_right = all(_HOST.fullmatch(host.strip()) for host, _, _ in overrides)
    named = judged.get("log.dirs", judged.get("log.dir", "not given")).strip(" ,")
    has_roles = bool(values.get("process.roles"))
    return {
        "no-roles": version >= FIRST_WITHOUT_ZOOKEEPER and has_zookeeper and not has_roles,
        "no-zookeeper": version < FIRST_KRAFT and has_roles and not has_zookeeper,
        "roles-or-zookeeper": has_no_roles,
        "retention": _whole(judged.get(time, "")) == 0,
        "log-dirs": not named,
        "cleaner-threads": threads == 0,
        "dedupe-buffer": threads and buffer is not None and buffer // threads <= 1 << 20,
        "connections-map": not all(colon for _, colon, _ in overrides),
        "connections-overrides": not addresses_are_right,
        "connections-numbers": any(_whole(number, 32) is None for _, _, number in overrides),
        "connections-zero": is_without_any,
        "classic": not is_classic,
        "cordoned": ", ".join(sorted(cordoned - own)),
        "directory-twice": twice,
        "recording-level": level if level not in _RECORDING_LEVELS and "metrics.recording.level" in judged else "",
        "negative-timeout": fetch_timeout < 0,
        "old-authorizer": with_zookeeper and not has_zookeeper and version < FIRST_WITHOUT_ZOOKEEPER,
        "no-authorizer": with_zookeeper and not has_zookeeper,
    }


def refuse_topic_settings(version: KafkaVersion, of_topics: Mapping[str, Mapping[str, str]]) -> Refusal | None:
    """Judge the settings that topics have of their own: a broker without ZooKeeper reads those of every topic before it loads a log."""
    defined = _defined("topic", version)
    found = {
        topic: refusal
        for topic, own in of_topics.items()
        for name in own.keys() & defined
        if (refusal := _refuse(own[name], defined[name], version))
    }
    if not found:
        return None
    first, more = min(found), f" and {len(found) - 1} more" if len(found) > 1 else ""
    return found[first]._replace(reason=f"{found[first].reason} (a setting of topic {first}{more})")


def _listed(values: Mapping[str, str], name: str) -> list[str]:
    return [part for one in values.get(name, "").split(",") if (part := one.strip())]


def _contradiction(sign: str, row: _Setting, numbers: Mapping[str, str]) -> Refusal | None:
    lesser, greater = (_whole(numbers.get(one, one)) for one in (row.name, row.kind))
    if lesser is None or greater is None or (row.default and greater < int(row.default)):
        return None
    if lesser < greater or (lesser == greater and sign == "<="):
        return None
    shown = (f"{one}={numbers[one]}" if one in numbers else one for one in (row.name, row.kind))
    return Refusal("IllegalArgumentException", f"{NOT_MET}it is not true that {f' {sign} '.join(shown)}")


def _refuse(value: str, one: _Setting, version: KafkaVersion) -> Refusal | None:
    """Return why `ConfigDef.parseType` or the rule of a setting does not take a value."""
    words = problem = ""
    text = value.strip()
    if one.kind == "BOOLEAN":
        problem = "" if text.lower() in {"true", "false"} else "Expected value to be either true or false"
    elif one.kind in _BITS:
        number = _whole(text, _BITS[one.kind])
        problem = f"Not a number of type {one.kind}" if number is None else _outside(number, one.rule)
    elif one.kind == "DOUBLE":
        is_number = len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text) is not None
        problem = _outside(float(text.rstrip("dDfF")), one.rule) if is_number else "Not a number of type DOUBLE"
    elif one.kind == "STRING":
        problem = _not_one_of(text, one.rule, is_release=one.name.endswith(".version"))
        if one.rule == "non-empty string" and not text:
            problem = "String must be non-empty"
    elif one.kind == "CLASS":
        # Which classes a node has beside Kafka's is not known; each is in a package.
        problem = "" if "." in text else f"Class {text} could not be found."
    elif one.kind == "LIST":
        parts = [part.strip() for part in text.split(",")] if text else []
        first = next((part for part in parts if (problem := _not_one_of(part, one.rule))), None)
        value, problem = (value, "") if first is None else (first, problem)
        if one.rule.startswith("[partitionId]") and not (text == "*" or all(map(_REPLICA.fullmatch, parts))):
            problem = "must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        elif not parts and "not-empty" in one.rule:
            words = f"Configuration '{one.name}' must not be empty."
        elif "" in parts and "no-blanks" in one.rule and version >= _FIRST_THAT_CHECKS_LISTS:
            words = f"Configuration '{one.name}' values must not be empty."
    if words or problem:
        shown = value if len(value) <= _MOST_DIGITS else f"{value[:_MOST_DIGITS]}…"
        return Refusal("ConfigException", words or f"Invalid value {shown} for configuration {one.name}: {problem}")
    return None


def _whole(text: str, bits: int = 64) -> int | None:
    text = text.strip()
    if len(text) > _MOST_DIGITS or not _WHOLE_NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if -1 << bits - 1 <= number < 1 << bits - 1 else None


def _outside(number: float, rule: str) -> str:
    """Return in words that a number is not in the range of a rule; nothing where it is."""
    limits = _RANGE.fullmatch(rule)
    if limits is None or (limits["other"] and number == int(limits["other"])):
        return ""
    least, most = float(limits["least"]), float(limits["most"] or "inf")
    if limits["other"] and not least <= number <= most:
        return f"Value must be between {limits['least']} and {limits['most']} or equal to {limits['other']}"
    if number < least:
        return f"Value must be at least {limits['least']}"
    return f"Value must be no more than {limits['most']}" if number > most else ""


def _not_one_of(text: str, rule: str, *, is_release: bool = False) -> str:
    """Return in words that a text is none of those that a rule names; nothing where it is, or the rule names none."""
    named = _ONE_OF.match(rule)
    if named is None:
        return ""
    names = named["names"].split(", ")
    if is_release:
        parts = text.split(".")
        text = ".".join(parts[: 3 if text.startswith("0.") else 2])
        is_taken = any(one == text or one.startswith(f"{text}-IV") for one in names)
        return "" if is_taken else "the release knows no such version"
    if named["folded"]:
        return "" if text.upper() in names else f"String must be one of (case insensitive): {named['names']}"
    return "" if text in names else f"String must be one of: {named['names']}"


def never_ready(values: Mapping[str, str]) -> str:
    """Return the setting and its value with which a broker does not get ready, and ends at no certain point; empty where there is none."""
    known = (("broker.heartbeat.interval.ms", 0), ("request.timeout.ms", -1))
    found = (f"{name}={values[name]}" for name, most in known if (_whole(values.get(name, "1")) or 0) <= most)
    return next(found, "")


def is_migrating(values: Mapping[str, str]) -> bool:
    """Return whether the settings of a node take part in a migration from ZooKeeper (KIP-866, 3.4 to 3.9)."""
    return values.get("zookeeper.metadata.migration.enable", "").strip().lower() == "true"


def _wrong_roles(version: KafkaVersion, node_id: int | Absent, values: Mapping[str, str]) -> Mapping[str, object]:
    """Return likewise what is wrong with ids, roles, voters, listeners and the migration; of a file with neither roles nor ZooKeeper, which may be a part, nothing."""
    roles = {*_listed(values, "process.roles")}
    configured = values.get("node.id", values.get("broker.id", "")).strip()
    node_id = int(configured) if configured.isdecimal() and len(configured) < 10 else node_id
    is_later = bool(roles) or version >= _FIRST_THAT_IS_NO_PREVIEW
    is_kraft, zookeeper = bool(roles), values.get("zookeeper.connect", "").strip()
    if isinstance(node_id, Absent) and configured if is_kraft else version >= FIRST_WITHOUT_ZOOKEEPER or not zookeeper:
        return {}
    number = _whole(configured, 32)
    reserved = _whole(values.get("reserved.broker.max.id", "1000"), 32) or 0
    is_made = values.get("broker.id.generation.enable", "true").strip().lower() == "true"
    is_of_zookeeper = (is_made and -1 <= (number or 0) <= reserved) or (not is_made and (number is None or number >= 0))
    migrates = (3, 4) <= version < FIRST_WITHOUT_ZOOKEEPER and is_migrating(values)
    named = configured_voters(values)
    voters, servers = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
    has_servers = version >= FIRST_WITH_VOTERS_IN_LOG and bool(values.get(servers))
    own = {_whole(one) for one in named}
    is_controller = "controller" in roles
    about = f"node id {node_id}, {voters}={', '.join(named)}"
    is_wrong = is_kraft and bool(named) and (node_id in own) is not is_controller
    found: dict[str, object] = {
        "node-id": is_kraft and (not configured or (number is not None and number < 0)),
        "two-ids": is_later and "broker.id" in values and values["broker.id"].strip() != configured,
        "role-twice": version < _FIRST_THAT_CHECKS_LISTS and len(roles) < len(_listed(values, "process.roles")),
        "migration": migrates and not zookeeper,
        "controllers-with-zookeeper": is_later
        and not (is_kraft or migrates)
        and _listed(values, "controller.listener.names"),
        "migration-voters": migrates and not is_kraft and not named and not has_servers,
        "no-controller-listener": is_kraft and not values.get("controller.listener.names", "not given").strip(),
        "broker-id": not is_kraft and not is_of_zookeeper,
        "no-voters": is_kraft and not named and voters in values and not has_servers,
        "controller-no-voter": about if is_wrong and is_controller else "",
        "broker-voter": about if is_wrong and not is_controller else "",
    }
    is_whole = "config.providers" not in values and not any(map(_HIDDEN.fullmatch, values.values()))
    if is_whole:
        addresses = [(voters, one) for one in values.get(voters, "").split(",") if values.get(voters, "").strip()]
        addresses = addresses if version >= FIRST_KRAFT else []
        addresses += [(servers, one) for one in values.get(servers, "").split(",") if has_servers]
        wrong = [(name, one.strip()) for name, one in addresses if not _is_address(name, one.strip())]
        ports = (
            [one.strip() for _, one in addresses if not int(one.rpartition(":")[2]) <= _LARGEST_PORT]
            if not wrong
            else []
        )
        is_judged = is_kraft and _FIRST_THAT_IS_NO_PREVIEW <= version < FIRST_WITHOUT_ZOOKEEPER
        level = values.get("inter.broker.protocol.version", "").strip() if is_judged else ""
        found |= {
            "voter-id": next((one for one in named if addresses and not is_voter_id(one.removeprefix("-"))), ""),
            "address": next((f"{name}={one}" for name, one in wrong), ""),
            "port": next(iter(ports), ""),
            "level": level if level and parse_inter_broker_version(level) < _FIRST_KRAFT_LEVEL else "",
        }
        found |= _wrong_listeners(values if is_kraft else {"listeners": "PLAINTEXT://:9092", **values}, roles, version)
    return found


def _is_address(name: str, text: str) -> bool:
    """Whether a text is the address of a controller; of voters it has an id before it."""
    voter, _, address = text.rpartition("@")
    return _ADDRESS.fullmatch(address) is not None and bool(voter) is name.endswith("voters")


def _wrong_listeners(values: Mapping[str, str], roles: Collection[str], version: KafkaVersion) -> Mapping[str, object]:
    """Return likewise what is wrong with the listeners of a node by its roles, none with ZooKeeper, and by the protocols that they are mapped to."""
    mapping = [one.rpartition(":") for one in _listed(values, "listener.security.protocol.map")]
    protocols = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in mapping}
    names_controllers = roles or version >= _FIRST_THAT_IS_NO_PREVIEW
    of_controller = {*_listed(values, "controller.listener.names")} if names_controllers else set()
    every = dict.fromkeys(_PROTOCOLS | {one.upper() for one in of_controller}, "PLAINTEXT")
    mapped = protocols if "listener.security.protocol.map" in values else every
    places = [(key, one, _END_POINT.fullmatch(one)) for key in _LISTENERS for one in _listed(values, key)]
    ends = {key: [one for other, _, one in places if other == key and one] for key in _LISTENERS}
    named = {key: [one["name"].upper() for one in found] for key, found in ends.items()}
    listening, advertised = ({*named[key]} for key in _LISTENERS)
    hosts: dict[str, list[str]] = {}
    for one in ends["listeners"]:
        hosts.setdefault(one["port"], []).append(one["host"].strip("[]"))
    brokers, takes_two = listening - of_controller, version >= _FIRST_WITH_TWO_ON_A_PORT
    is_broker, is_controller = not roles or "broker" in roles, "controller" in roles
    early = {one.upper() for one in _listed(values, "early.start.listeners")} - listening - of_controller
    in_capitals = {one.upper() for one in of_controller}
    shared = [
        port
        for port, found in hosts.items()
        if int(port) and len(found) > 1
        if not (takes_two and len(found) == len({":" in one for one in found}) and all(found))
    ]
    found: dict[str, object] = {
        "map": not all(colon for _, colon, _ in mapping),
        "protocol": ", ".join({*protocols.values()} - _PROTOCOLS),
        "end-point": next((f"{key}={one}" for key, one, end in places if end is None), ""),
        "unmapped": ", ".join(sorted((listening | advertised) - mapped.keys())),
        "name-twice": any(len({*found}) < len(found) for found in named.values()),
        "port-twice": next(iter(shared), ""),
        "controllers-listeners": not is_broker and of_controller and listening - in_capitals,
        "not-listening": is_controller and "listeners" in values and of_controller - listening,
        "brokers-listeners": not is_controller and of_controller & listening,
        "unmapped-controller": not is_controller and in_capitals - mapped.keys(),
        "advertised-controller": version < FIRST_WITH_VOTERS_IN_LOG
        and advertised
        and (not is_broker or advertised & of_controller),
        "early": early and version >= _FIRST_THAT_IS_NO_PREVIEW,
    }
    if roles and not listening:
        return found
    key, protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
    is_named, text = key in values, values.get(protocol, "PLAINTEXT").strip()
    own = values[key].strip().upper() if is_named else text
    has_plane = _FIRST_WITH_CONTROL_PLANE <= version < FIRST_WITHOUT_ZOOKEEPER
    plane = values.get("control.plane.listener.name", "").strip() if has_plane else ""
    mechanisms = values.get("sasl.enabled.mechanisms", "GSSAPI")
    mechanisms = values.get(f"listener.name.{own.lower()}.sasl.enabled.mechanisms", mechanisms)
    mechanism = values.get("sasl.mechanism.inter.broker.protocol", "GSSAPI").strip()
    # Without the setting a node advertises what it listens on, but for controllers.
    shown = ends["advertised.listeners"] or [one for one in ends["listeners"] if one["name"].upper() in brokers]
    is_sasl = mapped.get(own, own).startswith("SASL")
    return found | {
        "empty-name": (is_named and not own)
        or (not roles and has_plane and not values.get("control.plane.listener.name", "-").strip()),
        "own-protocol": own or " " if not is_named and own not in _PROTOCOLS else "",
        "name-and-protocol": is_named and protocol in values,
        "own-unmapped": own if is_named and own not in mapped else "",
        "plane-unmapped": plane and plane.upper() not in mapped,
        "plane": roles and plane,
        "plane-own": plane and plane.upper() == own,
        "nothing-advertised": is_broker
        and not (values.get("advertised.listeners", "not given").strip() and (advertised or listening) - of_controller),
        "own-not-advertised": own if is_broker and own not in (advertised or brokers) else "",
        "advertised-not-listening": is_broker and advertised - listening,
        "meta-address": is_broker and any(one["host"] == "0.0.0.0" for one in shown),  # noqa: S104 - what it refuses
        "mechanism": is_broker and is_sasl and mechanism not in map(str.strip, mechanisms.split(",")),
    }
