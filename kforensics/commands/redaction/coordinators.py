"""Groups and transactional ids replaced before anything is said of them; hosts and principals in paths and sentences afterwards."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from kforensics.case.leaders import Leaders
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.commands.redaction.values import redacted
from kforensics.commands.result import Conclusion, Result
from kforensics.evidence.coordinators.group_log import Name
from kforensics.evidence.metadata.history import listening_hosts
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.views import GroupView
from kforensics.reconcile.transactions.partition import AbortedLate, PartitionTransactions
from kforensics.reconcile.transactions.verdicts import Coordinators

Body = TypeVar("Body")

GROUP, TRANSACTIONAL_ID = "group", "transactional-id"


class CoordinatorRedaction:
    """Redacts what `groups` and `transactions` say.

    Args:
        given: the inputs, which name hosts and topics.
    """

    def __init__(self, pseudonyms: Pseudonyms, given: Leaders) -> None:
        topics = {tp.topic for tp in given.places.by_partition}
        hosts = listening_hosts(given.cluster.histories)
        self._pseudonyms = pseudonyms.knowing(hosts=hosts, topics=topics)
        self._path = lru_cache(maxsize=4096)(self._pseudonyms.path)

    def name(self, kind: str, name: Name) -> str:
        """Return the pseudonym of a group or a transactional id."""
        return self._pseudonyms.name(kind, name)

    def view(self, view: GroupView) -> GroupView:
        """Return a group under its pseudonym."""
        positions = tuple(
            replace(
                one,
                position=one.position._replace(at=one.position.at._replace(path=self._path(one.position.at.path))),
                removal=redacted(one.removal, self._pseudonyms),
            )
            for one in view.positions
        )
        return replace(view, name=self.name(GROUP, view.name), positions=positions)

    def change(self, change: Change) -> Change:
        """Return a change of a position with its group under its pseudonym."""
        key = change.key._replace(group=self.name(GROUP, change.key.group))
        citations = tuple(replace(one, path=self._path(one.path)) for one in change.citations)
        return change._replace(key=key, citations=citations)

    def coordinators(self, known: Coordinators, asked: Iterable[str]) -> Coordinators:
        """Return what the coordinators know, transactional ids under their pseudonyms."""
        names: dict[str, Name] = {
            self.name(TRANSACTIONAL_ID, one): one for one in (*known.by_id, *known.history, *asked)
        }
        return replace(
            known,
            topic=replace(known.topic, renamed=names),
            by_id={self.name(TRANSACTIONAL_ID, one): self._state(state) for one, state in known.by_id.items()},
            by_producer={producer: self._state(state) for producer, state in known.by_producer.items()},
            history={
                self.name(TRANSACTIONAL_ID, one): [self._state(state) for state in states]
                for one, states in known.history.items()
            },
        )

    def _state(self, state: Any) -> Any:
        return state._replace(transactional_id=self.name(TRANSACTIONAL_ID, state.transactional_id))

    def aborted(self, one: AbortedLate) -> AbortedLate:
        """Return a transaction with its id under its pseudonym."""
        return AbortedLate(state=self._state(one.state), now=self._state(one.now))

    def partition(self, one: PartitionTransactions) -> PartitionTransactions:
        """Return a replica with the hosts in its paths replaced, and the ids of its transactions."""
        place = one.replica.place._replace(path=self._path(one.replica.place.path))
        return replace(
            one,
            replica=replace(one.replica, place=place),
            open=redacted(one.open, self._pseudonyms),
            torn=redacted(one.torn, self._pseudonyms),
        )

    def by_path(self, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return values by input and path, with the hosts in the paths replaced."""
        return {(key[0], self._path(key[1]), *key[2:]): value for key, value in values.items()}

    def result(self, result: Result[Body]) -> Result[Body]:
        """Return a result whose inputs, answer, findings and problems name no hosts and principals."""
        found = result.concluded
        assert isinstance(found, Conclusion)
        result.inputs = redacted(result.inputs, self._pseudonyms)
        result.concluded = redacted(found, self._pseudonyms)
        return result


def renaming(redaction: CoordinatorRedaction | None, kind: str) -> Callable[[Name], Name]:
    """Return what names of a kind are shown as."""
    return (lambda name: name) if redaction is None else lambda name: redaction.name(kind, name)
