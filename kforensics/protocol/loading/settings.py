"""What a node takes of its `server.properties`, and a broker of the settings of topics.

`settings.tsv` has the definitions of `KafkaConfig` and `LogConfig` as releases from 0.10.2 to 4.4 gave them: of brokers or topics, name, type, rule, default, the first
release and the last; `<=` and `<` are two settings, or a number and one, that `validateValues` holds against each other, from which value of the second on.
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
    TWICE_NAMED,
    Refusal,
    is_voter_id,
)
from kforensics.protocol.versions import KafkaVersion, parse_inter_broker_version, parse_version

_FIRST_THAT_TAKES_A_DIRECTORY_TWICE = KafkaVersion(4, 4)
_FIRST_THAT_IS_NO_PREVIEW = KafkaVersion(3, 3)
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
_REPLICAS = re.compile(r"\*|(\d+:\d+)?(\s*,\s*(\d+:\d+)?)*", re.ASCII)
_MOST_DIGITS = 64
"""Of a number that may be meant: Python refuses to read one of thousands of digits."""
_MOST_WORDS = 200
_LARGEST_PORT = 65_535
_LISTENERS = ("listeners", "advertised.listeners")
_WRONG, _ILLEGAL = "ConfigException", "IllegalArgumentException"
_HOST = re.compile(r"[\w.:\-\[\]]+", re.ASCII)
_FIRST_KRAFT_LEVEL = parse_inter_broker_version("3.0-IV1")
_PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_ADDRESS = re.compile(r"\[?[0-9a-zA-Z\-%._:]*\]?:[0-9]{1,5}", re.ASCII)
_END_POINT = re.compile(r"(?P<name>.*?)://(?P<host>\[?[0-9a-zA-Z\-%._:]*\]?):(?P<port>-?[0-9]{1,10})", re.ASCII)


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


def refuse_settings(version: KafkaVersion, *, has_roles: bool, has_zookeeper: bool) -> Refusal | None:
    """Return why a node does not start by what its `server.properties` names (`KafkaConfig`); nothing where the file has neither setting: it may be a part of one."""
    lacking = ""
    if version >= FIRST_WITHOUT_ZOOKEEPER and has_zookeeper and not has_roles:
        lacking = "process.roles"
    elif version < FIRST_KRAFT and has_roles and not has_zookeeper:
        lacking = "zookeeper.connect"
    words = f'Missing required configuration "{lacking}" which has no default value.'
    return Refusal("ConfigException", words) if lacking else None


def refuse_values(version: KafkaVersion, values: Mapping[str, str]) -> Refusal | None:
    """Return why a node does not start by the values of its `server.properties` (`KafkaConfig`); one that another place is to replace (`config.providers`, KIP-421) is taken as in order."""
    replaced = "config.providers" in values
    judged = {name: value for name, value in values.items() if not (replaced and "${" in value)}
    defined = _defined("broker", version)
    for name in sorted(judged.keys() & defined):
        if refusal := _refuse(judged[name], defined[name], version):
            return refusal
    numbers = {name: judged.get(name, one.default) for name, one in defined.items()}
    for sign in ("<=", "<"):
        for row in _rows().get(sign, ()):
            if row.is_of(version) and (refusal := _contradiction(sign, row, numbers)):
                return refusal
    time = next((name for name in _RETENTION_TIMES if name in values), "")
    buffer, threads = (_whole(numbers.get(f"log.cleaner.{one}", "")) for one in ("dedupe.buffer.size", "threads"))
    overrides = [one.rpartition(":")[::2] for one in _listed(judged, "max.connections.per.ip.overrides")]
    is_without_any = _whole(judged.get("max.connections.per.ip", "")) == 0 and not overrides
    protocols = "group.coordinator.rebalance.protocols"
    is_classic = protocols not in judged.keys() & defined or "classic" in _listed(judged, protocols)
    own = {*_listed(values, "log.dirs"), *_listed(values, "log.dir"), "*"}
    cordoned = {*_listed(judged, "cordoned.log.dirs")} if "cordoned.log.dirs" in defined else set()
    paths = [path.strip().rstrip("/") for path in judged.get("log.dirs", "").split(",")]
    takes_twice = version >= _FIRST_THAT_TAKES_A_DIRECTORY_TWICE or values.get("process.roles") == "controller"
    twice = next((path for at, path in enumerate(paths) if path and path in paths[:at] and not takes_twice), None)
    return _first(
        (
            _whole(judged.get(time, "")) == 0,
            "",
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        (
            not judged.get("log.dirs", judged.get("log.dir", "not given")).strip(" ,"),
            "",
            "At least one log directory must be defined via log.dirs or log.dir.",
        ),
        (threads == 0, "ArithmeticException", "/ by zero (log.cleaner.threads)"),
        (
            threads and buffer is not None and buffer // threads <= 1 << 20,
            "",
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread",
        ),
        (
            not all(_HOST.fullmatch(host.strip()) for host, _ in overrides),
            _ILLEGAL,
            "Error parsing 'max.connections.per.ip.overrides'",
        ),
        (
            any(_whole(number, 32) is None for _, number in overrides),
            "NumberFormatException",
            "max.connections.per.ip.overrides",
        ),
        (is_without_any, "", "max.connections.per.ip is zero without max.connections.per.ip.overrides"),
        (not is_classic, _WRONG, "Disabling the 'classic' protocol is not supported."),
        (cordoned - own, "", "All entries in cordoned.log.dirs must be present in log.dirs"),
        (twice is not None, "KafkaException", f"{TWICE_NAMED}: {twice}"),
    )


def _first(*found: tuple[object, str, str]) -> Refusal | None:
    """Return the first that is so: whether it is, the exception, and the words; of what `require` throws no exception is named."""
    thrown = ((exception, words) for is_so, exception, words in found if is_so)
    return next((Refusal(exception, words) if exception else _not_met(words) for exception, words in thrown), None)


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


def _not_met(words: str) -> Refusal:
    return Refusal(_ILLEGAL, f"{NOT_MET}{words}")


def _contradiction(sign: str, row: _Setting, numbers: Mapping[str, str]) -> Refusal | None:
    lesser, greater = (_whole(numbers.get(one, one)) for one in (row.name, row.kind))
    if lesser is None or greater is None or (row.default and greater < int(row.default)):
        return None
    if lesser < greater or (lesser == greater and sign == "<="):
        return None
    shown = (f"{one}={numbers[one]}" if one in numbers else one for one in (row.name, row.kind))
    return _not_met(f"it is not true that {f' {sign} '.join(shown)}")


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
        parts = re.split(r"\s*,\s*", text) if text else []
        first = next((part for part in parts if (problem := _not_one_of(part, one.rule))), None)
        value, problem = (value, "") if first is None else (first, problem)
        if one.rule.startswith("[partitionId]") and not _REPLICAS.fullmatch(text):
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


def is_migrating(values: Mapping[str, str]) -> bool:
    """Return whether the settings of a node take part in a migration from ZooKeeper (KIP-866, 3.4 to 3.9)."""
    return values.get("zookeeper.metadata.migration.enable", "").strip().lower() == "true"


def refuse_roles(version: KafkaVersion, node_id: int | Absent, values: Mapping[str, str]) -> Refusal | None:
    """Judge the roles, the voters, the listeners and the migration that a `server.properties` names, as a start without ZooKeeper does (`KafkaConfig`)."""
    roles = {*_listed(values, "process.roles")}
    configured = values.get("node.id", values.get("broker.id", "")).strip()
    node_id = int(configured) if configured.isdecimal() and len(configured) < 10 else node_id
    if not roles or isinstance(node_id, Absent):
        return None
    number, is_replaced = _whole(configured, 32), "config.providers" in values
    migrates = (3, 4) <= version < FIRST_WITHOUT_ZOOKEEPER and is_migrating(values)
    named, voters, servers = (
        configured_voters(values),
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
    )
    has_servers = version >= FIRST_WITH_VOTERS_IN_LOG and bool(values.get(servers))
    own = {_whole(one) for one in named}
    is_voter, is_controller = not named or node_id in own, "controller" in roles
    refusal = _first(
        (number is not None and number < 0, _WRONG, "Missing configuration `node.id` which is required"),
        (
            "broker.id" in values and values["broker.id"].strip() != configured,
            _WRONG,
            "`node.id` and `broker.id` differ",
        ),
        (
            version < _FIRST_THAT_CHECKS_LISTS and len(roles) < len(_listed(values, "process.roles")),
            _WRONG,
            "Duplicate role names found in `process.roles`",
        ),
        (
            migrates and not values.get("zookeeper.connect", "").strip(),
            _WRONG,
            "`zookeeper.metadata.migration.enable` without `zookeeper.connect`",
        ),
        (
            not values.get("controller.listener.names", "not given").strip(),
            "",
            "controller.listener.names must contain at least one value",
        ),
    )
    if refusal is None and not is_replaced:
        addresses = [(voters, one) for one in values.get(voters, "").split(",") if values.get(voters, "").strip()]
        addresses += [(servers, one) for one in values.get(servers, "").split(",") if has_servers]
        is_judged = _FIRST_THAT_IS_NO_PREVIEW <= version < FIRST_WITHOUT_ZOOKEEPER
        level = values.get("inter.broker.protocol.version", "").strip() if is_judged else ""
        refusal = _first(
            (
                not all(is_voter_id(one.removeprefix("-")) for one in named),
                _WRONG,
                f"Failed to parse voter ID as an integer from {', '.join(named)}"[:_MOST_WORDS],
            ),
            *((True, *wrong) for name, one in addresses if (wrong := _wrong_address(name, one.strip()))),
            (
                level and parse_inter_broker_version(level) < _FIRST_KRAFT_LEVEL,
                _WRONG,
                f"A non-KRaft version {level} given for inter.broker.protocol.version",
            ),
        ) or _refuse_listeners(values, roles, version)
    must = "must be" if is_controller else "must not be"
    role = "contains the 'controller' role" if is_controller else "contains just the 'broker' role"
    return refusal or _first(
        (
            not named and voters in values and not has_servers,
            _WRONG,
            f"If using process.roles, {voters} must contain a parseable set of voters, or since 3.9 {servers} the controllers.",
        ),
        (
            named and is_voter is not is_controller,
            "",
            f"If process.roles {role}, the node id {node_id} {must} included in the set of voters {voters}={', '.join(named)}",
        ),
    )


def _wrong_address(name: str, text: str) -> tuple[str, str] | None:
    """Return what is thrown on the address of a controller, and why; of voters it has an id before it."""
    address = text.rpartition("@")[2]
    if not _ADDRESS.fullmatch(address) or ("@" in text) is not name.endswith("voters"):
        return _WRONG, f"Invalid configuration value {text[:_MOST_DIGITS]} for {name}: it is no host and port"
    port = address.rpartition(":")[2]
    return (_ILLEGAL, f"port out of range:{port} ({name})") if int(port) > _LARGEST_PORT else None


def _refuse_listeners(values: Mapping[str, str], roles: Collection[str], version: KafkaVersion) -> Refusal | None:
    """Judge the listeners of a node by its roles and by the protocols that they are mapped to."""
    mapping = [one.rpartition(":") for one in _listed(values, "listener.security.protocol.map")]
    protocols = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in mapping}
    of_controller = {*_listed(values, "controller.listener.names")}
    mapped = protocols or dict.fromkeys(_PROTOCOLS | {one.upper() for one in of_controller}, "PLAINTEXT")
    places = [(key, one, _END_POINT.fullmatch(one)) for key in _LISTENERS for one in _listed(values, key)]
    ends = {key: [one for other, _, one in places if other == key and one] for key in _LISTENERS}
    named = {key: [one["name"].upper() for one in found] for key, found in ends.items()}
    listening, advertised = ({*named[key]} for key in _LISTENERS)
    hosts: dict[str, list[str]] = {}
    for one in ends["listeners"]:
        hosts.setdefault(one["port"], []).append(one["host"].strip("[]"))
    brokers, takes_two = listening - of_controller, version >= _FIRST_WITH_TWO_ON_A_PORT
    is_broker, is_controller = "broker" in roles, "controller" in roles
    early = {one.upper() for one in _listed(values, "early.start.listeners")} - listening - of_controller
    in_capitals = {one.upper() for one in of_controller}
    refusal = _first(
        (
            not all(colon for _, colon, _ in mapping),
            _ILLEGAL,
            "Error parsing configuration property 'listener.security.protocol.map'",
        ),
        (
            {*protocols.values()} - _PROTOCOLS,
            _WRONG,
            "Invalid security protocol defined in listener.security.protocol.map",
        ),
        *(
            (True, _ILLEGAL, f"Unable to parse {one} to a broker endpoint ({key})")
            for key, one, end in places
            if end is None
        ),
        *(
            (True, _ILLEGAL, f"No security protocol defined for listener {one}")
            for one in sorted((listening | advertised) - mapped.keys())
        ),
        (
            any(len({*found}) < len(found) for found in named.values()),
            _ILLEGAL,
            "Each listener must have a different name",
        ),
        (
            any(
                int(port)
                and len(found) > 1
                and not (takes_two and len(found) == len({":" in one for one in found}) and all(found))
                for port, found in hosts.items()
            ),
            _ILLEGAL,
            "Each listener must have a different port",
        ),
        (
            not is_broker and of_controller and listening - in_capitals,
            "",
            "listeners must only contain those of controller.listener.names",
        ),
        (
            is_controller and "listeners" in values and of_controller - listening,
            "",
            "controller.listener.names must only contain values appearing in listeners",
        ),
        (
            not is_controller and of_controller & listening,
            "",
            "controller.listener.names must not contain a value appearing in listeners",
        ),
        (
            not is_controller and in_capitals - mapped.keys(),
            _WRONG,
            "controller.listener.names is not in listener.security.protocol.map",
        ),
        (
            version < FIRST_WITH_VOTERS_IN_LOG and advertised and (not is_broker or advertised & of_controller),
            "",
            "advertised.listeners must not contain controller listeners",
        ),
        (
            early and version >= _FIRST_THAT_IS_NO_PREVIEW,
            _WRONG,
            "early.start.listeners contains what is not contained in listeners",
        ),
    )
    if refusal is not None or not listening:
        return refusal
    key, protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
    is_named, text = key in values, values.get(protocol, "PLAINTEXT").strip()
    own = values[key].strip().upper() if is_named else text
    plane = values.get("control.plane.listener.name", "").strip() if version < FIRST_WITHOUT_ZOOKEEPER else ""
    mechanisms = values.get("sasl.enabled.mechanisms", "GSSAPI")
    mechanisms = values.get(f"listener.name.{own.lower()}.sasl.enabled.mechanisms", mechanisms)
    mechanism = values.get("sasl.mechanism.inter.broker.protocol", "GSSAPI").strip()
    # Without the setting a node advertises what it listens on, but for controllers.
    shown = ends["advertised.listeners"] or [one for one in ends["listeners"] if one["name"].upper() in brokers]
    return _first(
        (is_named and not own, _WRONG, "The provided listener name is null or empty string"),
        (not is_named and own not in _PROTOCOLS, _WRONG, f"Invalid security protocol `{text}` defined in {protocol}"),
        (is_named and protocol in values, _WRONG, f"Only one of {key} and {protocol} should be set."),
        (
            is_named and own not in mapped,
            _WRONG,
            f"Listener with name {own} defined in {key} not found in listener.security.protocol.map.",
        ),
        (
            plane and plane.upper() not in mapped,
            _WRONG,
            "control.plane.listener.name is not in listener.security.protocol.map",
        ),
        (plane, "", "control.plane.listener.name is not supported in KRaft mode."),
        (
            is_broker and not values.get("advertised.listeners", "not given").strip(),
            "",
            "There must be at least one broker advertised listener",
        ),
        (
            is_broker and own not in (advertised or brokers),
            "",
            f"{key} must be a listener name defined in advertised.listeners",
        ),
        (is_broker and advertised - listening, "", "advertised.listeners must be a subset of listeners"),
        (
            is_broker and any(one["host"] == "0.0.0.0" for one in shown),  # noqa: S104 - what it refuses
            "",
            "advertised.listeners cannot use 0.0.0.0",
        ),
        (
            is_broker
            and mapped.get(own, own).startswith("SASL")
            and mechanism not in map(str.strip, mechanisms.split(",")),
            "",
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms",
        ),
    )
