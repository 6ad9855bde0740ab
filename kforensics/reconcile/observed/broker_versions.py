"""The versions of Kafka that brokers run, and what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.protocol.epochs import EpochRules
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import PROTOCOL_RULES, KafkaVersion, epoch_rules_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerVersions:
    """The versions of Kafka that the brokers run."""

    by_broker: Mapping[int, KafkaVersion] = field(default_factory=dict)
    """The version that a broker's log files name last."""
    at_least: KafkaVersion | None = None
    """The lowest version that the cluster's metadata.version requires of every broker."""

    def epoch_rules(self, broker: int | Absent, protocol: ProtocolName) -> EpochRules:
        """Return the rules of the broker's leader epoch cache; of the last release of the protocol if its version is not known."""
        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        return PROTOCOL_RULES[protocol].epoch_rules if version is None else epoch_rules_of(version)

    def keeps_epoch_of_election(self, broker: int) -> bool:
        """Whether the epoch of an election is in the directory of the new leader from then on, though it writes no record (KAFKA-7415, KAFKA-10706)."""
        version = self.by_broker.get(broker, self.at_least)
        rules = None if version is None else epoch_rules_of(version)
        return rules is not None and rules.enters_epoch_when_elected and rules.trims_at_log_end

    def confidence(self, broker: int | Absent, jira: str) -> str | None:
        """Return `likely` if the broker's version is known and has the bug, `possible` if it may have it, else None."""
        from kforensics.protocol.known_bugs import BUGS, is_affected  # noqa: PLC0415 - where a trace of a bug is found

        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        if version is not None:
            return "likely" if is_affected(version, jira) else None
        if self.at_least is None or not any(fixed > self.at_least for _, fixed in BUGS[jira].affected):
            return None
        return "possible"
