"""What the order in which a stopped cluster is started adds to the answer of `predict`."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.reconcile.logs.predicted_load import StartOrder
from kforensics.words import counted, form

_BY_LEADER = (
    "Run it once the broker of that replica is running and before the brokers of the others start: kafka-leader-election.sh --election-type unclean "
    "--path-to-json-file elections.json, where the file holds `elections_json` of that broker in `order.elections_by_leader` of --format json."
)


def discarded_by_leaders(order: StartOrder | None) -> tuple[int, int]:
    """Return how many records, certainly and possibly committed, others discard where each partition gets the leader that costs least.

    Args:
        order: in which to start the brokers; none where it was not asked for.
    """
    elections = () if order is None else order.elections
    return sum(one.lost_certain for one in elections), sum(one.lost_possible for one in elections)


def order_steps(order: StartOrder) -> Iterator[str]:
    """Yield which broker to start first, which to wait for, and which elections are needed.

    Args:
        order: in which to start the brokers.
    """
    if not order.brokers:
        return
    first, *others = order.brokers
    then = f", then {', '.join(map(str, others))}" if others else ""
    if order.missing:
        yield (
            f"Give the directories of {name_brokers(order.missing)} before any broker is started: {form(len(order.missing), 'it', 'one of them')} may hold "
            "committed records that a leader among these discards."
        )
    of_given = "Of the brokers given: start" if order.missing else "Start"
    yield f"{of_given} broker {first} first{then}, one at a time, each after the one before has loaded its logs."
    if order.wait_for:
        yield (
            f"Elect no leader before {name_brokers(order.wait_for)} {form(len(order.wait_for), 'is', 'are')} running: others would discard "
            "records that no other broker holds."
        )
    unclean = [one for one in order.elections if one.is_unclean is True]
    unsure = [one for one in order.elections if isinstance(one.is_unclean, Absent)]
    if unclean:
        yield f"{counted(len(unclean), 'partition')} {form(len(unclean), 'needs', 'need')} an unclean election of the replica that discards least. {_BY_LEADER}"
    if unsure:
        yield (
            f"{counted(len(unsure), 'partition')} may need an unclean election of the replica that discards least: those without a leader once its broker runs. "
            f"{_BY_LEADER} Of a partition with a leader the tool says that no election is needed."
        )


def unknown_of_order(order: StartOrder) -> Iterator[str]:
    """Yield what is not known of an order.

    Args:
        order: in which to start the brokers.
    """
    if order.missing:
        yield f"What {name_brokers(order.missing)} {form(len(order.missing), 'holds', 'hold')}, whose directories were not given: the order may change."
    unsure = sum(isinstance(one.is_unclean, Absent) for one in order.elections)
    if unsure:
        yield f"Which replicas of {counted(unsure, 'partition')} may be elected without an unclean election: no metadata among the inputs shows it."


def name_brokers(ids: Sequence[int]) -> str:
    """Return brokers by their ids, in words."""
    return f"{form(len(ids), 'broker')} {', '.join(map(str, ids))}"
