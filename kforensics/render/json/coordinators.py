"""The documents of `groups` and `transactions`: what coordinators wrote, and what logs show of it."""

from collections.abc import Iterator
from typing import NamedTuple

from kforensics.commands.groups import Groups
from kforensics.commands.transactions import EndedBy, Transactions
from kforensics.damage import Absent
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.evidence.model import Citation
from kforensics.reconcile.groups.replay import Change
from kforensics.reconcile.groups.state import DELIVERY_STATES
from kforensics.reconcile.groups.views import GroupPosition, GroupView
from kforensics.reconcile.history.log_starts import Removal, Remover
from kforensics.reconcile.transactions.partition import JudgedTransaction, PartitionTransactions, TornTransaction
from kforensics.reconcile.transactions.verdicts import status_name
from kforensics.render.json.shape import Document, Each, Field, Shape, own, shape


def _commits(body: Groups) -> Iterator[Change] | None:
    return body.changes() if body.request.history or body.request.expired else None


def _group_state(view: GroupView) -> str | Absent:
    if view.state is None:
        return "Empty" if view.is_known_empty else Absent.UNKNOWN
    return view.state.name


def _members(view: GroupView) -> int | Absent:
    if view.state is None:
        return 0 if view.is_known_empty else Absent.UNKNOWN
    return view.state.member_count


def _of_records(name: str) -> Field:
    return Field(
        lambda view: Absent.NOT_WRITTEN if view.state is None else getattr(view.state, name), "", f"GroupState.{name}"
    )


shape(
    GroupView,
    "A group, and its positions.",
    {
        "group": "name",
        "type": _of_records("type")._replace(words="Not written where only commits are there."),
        "state": (_group_state, "In the words of Kafka's tools."),
        "members": Field(_members),
        "generation": _of_records("generation")._replace(words="The group epoch of the newer types."),
        "positions": "",
    },
)
shape(
    Removal,
    "What deleted the beginning of a log.",
    {
        "by": Field("by", "", Remover),
        **own("confidence since_ms"),
        "reason": "words",
        "citations": "",
    },
)
shape(
    GroupPosition,
    "The position of a group in a partition. The end of the log and what depends on it are unknown where no log of the partition is among the inputs.",
    {
        **own("topic partition"),
        "offset": ("position.offset", "Of a share group, the start offset."),
        **own("log_end_offset lag"),
        "committed_at_ms": "position.committed_ms",
        "past_the_end": "is_past_the_end",
        "log_start_offset": "",
        "before_markers": "is_before_markers",
        "deleted_unread": ("", "Offsets between it and the log start, which were deleted before the group read them."),
        "records_left": "",
        "left_unread": ("", "Offsets that are left to be read; 0 where markers of transactions alone are."),
        "removal": "",
        "goes_on_at": (
            "",
            "Where a consumer goes on that checks the leader epoch of its position, where the log contradicts that: unknown where the log knows no such epoch.",
        ),
        "citations": Field(lambda one: [one.position.at.cite(one.position.place)], "", tuple[Citation, ...]),
        "state_epoch": Field("share.state_epoch", "Of a share group.", int, is_optional=True),
        "deliveries": Field(
            "share.deliveries",
            "Of a share group: runs of offsets that were delivered alike.",
            Each(
                {
                    **own("first_offset last_offset"),
                    "state": Field(lambda one: DELIVERY_STATES.get(one.state, f"state {one.state}"), "", str),
                    "count": "delivered",
                }
            ),
            is_optional=True,
        ),
    },
)
shape(
    Change,
    "A change of a position that took effect.",
    {
        **own("group topic partition", "key."),
        "offset": ("", "Null where the position was removed, or lost."),
        "previous_offset": ("previous", "Of a commit below a position that is not in force any more that position."),
        **own("time_ms by confidence reason"),
        "transactional": "is_transactional",
        "citations": "",
    },
)
GROUPS = Document(
    "groups",
    Groups,
    {
        "complete_since": (
            "complete_since_ms",
            "Milliseconds since 1970 from which on the history has every commit: the first record of `__consumer_offsets` that no cleaner went over; before it only the last commit of a key is there. Unknown where a partition of the topic is missing.",
        ),
        "skipped_records": ("", "Records of `__consumer_offsets` of unknown type or version."),
        "groups": "",
        "commits": Field(
            _commits,
            "Only with `--history`, or with `--expired` those that expired: every change of a position that took effect.",
            is_optional=True,
        ),
    },
    streamed=("groups", "commits"),
    lines={"commit": Field(lambda result: result.body.changes(), "", Change)},
)


class _Replica(NamedTuple):
    body: Transactions
    one: PartitionTransactions


class _Open(NamedTuple):
    one: JudgedTransaction
    ending: EndedBy


class _Written(NamedTuple):
    body: Transactions
    state: TransactionState


def _replicas(body: Transactions) -> Iterator[_Replica]:
    return (_Replica(body, one) for one in body.partitions)


def _history(body: Transactions) -> Iterator[_Written]:
    return (_Written(body, state) for state in body.history)


def _opened(row: _Replica) -> Iterator[_Open]:
    return (_Open(each, row.body.ending(row.one, each)) for each in row.one.open)


def _committed(one: TornTransaction) -> TornTransaction | None:
    return None if one.committed_in is None else one


def _after_start(row: _Replica) -> int | Absent:
    place = row.one.replica.place
    return row.body.after_start.get((place.state.input, place.path), Absent.NOT_APPLICABLE)


def _known_time(value: int) -> int | Absent:
    return value if value >= 0 else Absent.UNKNOWN


def _unless_removed(name: str) -> Field:
    return Field(lambda row: None if row.state.is_removed else getattr(row.state, name), "", int | None)


_CITATIONS = tuple[Citation, ...]
_OPEN = Shape(
    _Open,
    "A transaction without a marker in this replica.",
    {
        **own("producer_id producer_epoch first_offset last_offset records", "one.open."),
        "first_time_ms": Field(lambda row: _known_time(row.one.open.first_time_ms), "", int | Absent),
        "last_time_ms": Field(lambda row: _known_time(row.one.open.last_time_ms), "", int | Absent),
        **own("transactional_id coordinator_state verdict confidence reason", "one.judgement."),
        "to_end_it": ("ending.to_end_it", "Has a `kafka-transactions.sh abort` line only where no commit was decided."),
        "blocks": Field(
            "ending",
            "Offsets up to the log end, and groups with a position in front of it.",
            {"records": "blocked_records", "groups": "blocked_groups"},
        ),
        "citations": "one.judgement.citations",
    },
)
_REPLICA = Shape(
    _Replica,
    "A replica, with its open and torn transactions.",
    {
        **own("topic partition", "one.topic_partition."),
        **own("broker_id input", "one.replica.place.state."),
        "path": Field(lambda row: row.one.replica.place.path or ".", "", str),
        "leads": "one.leads",
        "log_end_offset": "one.replica.log_end_offset",
        "high_watermark": "one.replica.high_watermark.value",
        "last_stable_offset": "one.last_stable_offset",
        "last_stable_offset_after_start": (
            _after_start,
            "Of replicas with open transactions what a start of the broker makes of it, as `predict` plays it (Kafka 3.3 and later): higher where open transactions are forgotten.",
        ),
        "open": Field(_opened, "", Each(_OPEN)),
        "torn": "one.torn",
    },
)
shape(
    TornTransaction,
    "A marker whose records are lost, or an abort marker of a transaction that another partition commits.",
    {
        **own("producer_id producer_epoch first_offset last_offset records"),
        "marker": "marker.kind",
        "marker_offset": "marker.offset",
        "committed_in": Field(
            _committed,
            "Of the commit marker in another partition.",
            {**own("topic partition", "committed_in."), "offset": "commit_offset"},
        ),
        **own("transactional_id coordinator_state confidence reason citations"),
    },
)
TRANSACTIONS = Document(
    "transactions",
    Transactions,
    {
        "now_ms": Field(
            lambda body: _known_time(body.now_ms),
            "The time as of which transactions are judged: `--at`, else the newest that a broker or controller wrote.",
            int | Absent,
        ),
        "skipped_records": "",
        "history": Field(
            _history,
            "With `--transactional-id`: every state on disk, also in other replicas and earlier snapshots.",
            Each(
                {
                    "transactional_id": "state.transactional_id",
                    "partition": Field(
                        lambda row: row.body.coordinators.topic.partition_of(row.state.transactional_id),
                        "Of `__transaction_state`.",
                        int | Absent,
                    ),
                    **own("offset leader_epoch", "state."),
                    "time_ms": Field(lambda row: _known_time(row.state.time_ms), "", int | Absent),
                    "state": Field(
                        lambda row: None if row.state.is_removed else status_name(row.state.status), "", str | None
                    ),
                    "producer_id": _unless_removed("producer_id"),
                    "producer_epoch": _unless_removed("producer_epoch"),
                    "timeout_ms": _unless_removed("timeout_ms"),
                    "partitions": "state.partitions",
                    "citations": Field(
                        lambda row: () if row.state.citation is None else (row.state.citation,), "", _CITATIONS
                    ),
                }
            ),
        ),
        "partitions": Field(
            _replicas,
            "A replica each: those with open or torn transactions; with `--open` only those with open ones, with `--all` every replica.",
            Each(_REPLICA),
        ),
    },
    streamed=("partitions",),
    lines={"partition": "partitions"},
)
