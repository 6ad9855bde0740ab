"""Where versions load differently, as switches; `loading_rules` says which a version has."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from kforensics.protocol.epochs import CURRENT_RULES, EpochRules
from kforensics.protocol.versions import NEWEST_KNOWN, KafkaVersion, epoch_rules_of, renames_unnamed

OLDEST_MODELLED = KafkaVersion(0, 10)
FIRST_NOT_MODELLED = KafkaVersion(NEWEST_KNOWN.major, NEWEST_KNOWN.minor + 1)
NEWEST_MODELLED = NEWEST_KNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingRules:
    """The rules by which one version loads a log; the defaults are those of 4.4."""

    io_errors_empty_segments: bool = True
    """4.0: an IOException while a segment is recovered empties it (`LogLoader.recoverLog`)."""
    reads_whole_txn_versions: bool = True
    """4.4: both bytes of the version of an aborted transaction are read, and only 0 passes (`AbortedTxn`); before, the first byte, and negative ones pass, too."""
    finds_by_base_offset: bool = True
    """4.1: `FileRecords.searchForOffsetFromPosition` compares base offsets first; before, last offsets only."""
    short_markers_underflow: bool = True
    """4.1: the value of a marker that is too short throws BufferUnderflowException (`EndTransactionMarker.deserializeValue`); before, InvalidRecordException."""
    stable_offset_is_of_batch: bool = True
    """4.0: an offset that is looked up becomes the base offset of its batch (`LogSegment.read`); before, it stays as it is."""
    accepts_unstable_offset_past_end: bool = True
    """3.8: an open transaction that begins past the log end is no error (`maybeIncrementFirstUnstableOffset`); before, OffsetOutOfRangeException."""
    accepts_later_topic_id_files: bool = True
    """3.7: `partition.metadata` may have a version above 0 (`PartitionMetadataReadBuffer`); before, KafkaStorageException."""
    default_producer_expiration_ms: int = 86_400_000
    """3.4: producer.id.expiration.ms is 1 day; before, 7 days."""
    bad_numbers_are_io: bool = False
    """Before 3.1: a field of a checkpoint that is no number is a malformed line (`CheckpointFile.read`); since, a NumberFormatException."""
    recovery_point_reaches_end: bool = False
    """Before 2.8: the recovery point becomes the log end after recovery, too (KAFKA-10101)."""
    keeps_state_below_log_start: bool = False
    """Before 2.8: where a log ends below its log start, epochs are trimmed as ever and producers forgotten without deleting snapshots."""
    reads_topic_ids: bool = True
    """2.8: `partition.metadata` is read."""
    lists_snapshots_first: bool = False
    """2.8: producer snapshots are listed before the epoch file is opened or made (`Log.apply`)."""
    removes_stray_snapshots: bool = True
    """2.8: snapshots that are no segment's base are deleted (KAFKA-9393)."""
    completes_unknown_transactions: bool = False
    """Before 2.8: a marker without a transaction counts as one that begins and ends there."""
    checks_epoch_entries: bool = True
    """2.7: entries of the epoch file are entered one by one, and negative ones refused; before, they are taken as they are."""
    skips_epoch_zero: bool = False
    """Before 2.6.1: a scan does not enter epoch 0 into the cache (KAFKA-10432)."""
    deletes_snapshots_later: bool = True
    """3.0: snapshots of segments that recovery deletes are renamed to `.deleted` first (`removeAndMarkSnapshotForDeletion`)."""
    deletes_snapshots_below_start_later: bool = False
    """3.0: those of a log that ends below its log start, too."""
    keeps_deleted_quorum_snapshots: bool = True
    """3.3: `.checkpoint.deleted` is left to the metadata log."""
    forgets_producers_in_recovery: bool = False
    """Before 2.8: while a segment is recovered, producers of earlier segments are looked up in the state of the log, which is still empty (`Log.updateProducers`)."""
    empty_swap_replaces: bool = False
    """Before 2.5: a segment without batches that is swapped in replaces the one before it where that one continues (`Log.logSegments`)."""
    indexes_split_batches: bool = True
    """3.9.1, 4.0.1: the batches of a segment that is split are indexed one by one (`LogSegment.append`); before, those that were copied together as one."""
    evicts_producers_below_start: bool = False
    """Before 2.4: a producer without a record at or above the log start is forgotten, and markers do not renew it (KAFKA-7190)."""
    fences_markers: bool = False
    """Before 2.4: a marker with an older epoch than its producer's or coordinator's ends the load (KAFKA-8764)."""
    needs_unstable_offset: bool = False
    """Before 2.4: the first unstable offset is looked up in the segment that should hold it, NullPointerException where it does not (`updateFirstUnstableOffset`)."""
    reads_up_to_offset: bool = False
    """Before 2.4: producers are read up to the batch of an offset that each segment is searched for (`LogSegment.read`)."""
    keeps_offsets_below_start: bool = False
    """Before 2.4: recovery point and last stable offset may lie below the log start."""
    opens_indexes_at_once: bool = False
    """Before 2.3: indexes are opened with their segment, made empty where they are missing, and checked (KAFKA-7283)."""
    begins_empty_logs_at_zero: bool = False
    """Before 2.2: a directory without segments begins at 0, and a log that ends below its log start stays as it is (KAFKA-7897)."""
    counts_back_by_sequence: bool = False
    """Before 2.1: a transaction begins so many offsets before the end of its first batch as that has sequence numbers (`ProducerAppendInfo.append`)."""
    truncates_snapshots: bool = False
    """Before 2.1: a snapshot that is written over has the new length only, and a folder of its name is not found (`FileOutputStream`)."""
    indexes_base_offsets: bool = False
    """Before 2.0: an offset index names the first offset of a batch, and its last entry is above the segment's base (KAFKA-5857)."""
    completes_every_swap: bool = False
    """Before 2.0: a segment is swapped in whatever `.cleaned` files are beside it, and replaces all from its base on (KAFKA-6264)."""
    reads_whole_segments_for_recovery: bool = False
    """Before 2.0: the producers at a segment that is scanned are read from all before it, with a snapshot there, and none is written at the log end (KAFKA-7076)."""
    snapshots_before_scan: bool = True
    """1.0: a snapshot is written before a segment is scanned, too (`Log.recoverSegment`)."""
    scans_without_index: bool = True
    """0.10.1 to 1.0 and since 2.3: a segment without an offset index is scanned; in 0.10.0 and between, the index stays empty."""
    removes_corrupt_indexes: bool = False
    """Before 1.1: the indexes of a segment are removed where one is corrupt."""
    removes_swapped_indexes: bool = False
    """Before 1.1: an index to be swapped in is removed, and not those of its segment."""
    keeps_recovery_point: bool = False
    """Before 1.0: the recovery point stays as checkpointed after a recovery, and a `-delete` directory has its log end."""
    keeps_index_past_end: bool = False
    """Before 1.1: a segment without a record at its base offset is emptied of nothing (`LogSegment.truncateTo`)."""
    marker_is_last_record: bool = False
    """Before 1.0: a marker counts as the last record of its producer (`ProducerAppendInfo.appendEndTxnMarker`)."""
    knows_magic_2: bool = True
    """0.11: a log has producers, leader epochs, a checkpointed log start and indexes of transactions; before, their files are passed over, and a batch of magic 2 is a message that fails its checksum."""
    finds_messages_cut_short: bool = False
    """Before 0.10.2: an offset is looked for in offsets and lengths alone, a length below 14 there is an IllegalStateException, and elsewhere it ends the reading (`FileMessageSet`)."""
    compares_before_length: bool = False
    """Before 0.10.1: where an offset is looked for, a message's is compared before its length is looked at (`FileMessageSet.searchFor`)."""
    has_time_indexes: bool = True
    """0.10.1: segments have a time index (KIP-33); before, such a file is passed over, and retention goes by when a segment was changed."""
    empties_new_time_indexes: bool = True
    """0.10.2: a time index that is made because it is missing is emptied (`Log.loadSegments`); before, it keeps its full length."""
    knows_deletions: bool = True
    """0.10.2: the name of a directory may end in `-delete` (KAFKA-1911); before, it ends the start."""
    wraps_bad_partitions: bool = True
    """0.10.2: a directory whose name has no number behind the dash ends the start with a KafkaException; before, with a NumberFormatException (`Log.parseTopicPartitionName`)."""
    io_errors_end_start: bool = False
    """Before 1.0: an IOException ends the start, and a malformed checkpoint only counts as none (KIP-112)."""
    wraps_io_errors: bool = True
    """1.0: an IOException of an epoch file is a KafkaStorageException (KIP-112)."""
    knows_futures: bool = True
    """1.1: the name of a directory may end in `-future` (KIP-113); before, it ends the start."""
    needs_markers: bool = False
    """Before 2.0: a control batch whose records compaction removed ends the load (KAFKA-6739)."""
    renames_swaps: bool = True
    """3.0: segments that replace others are renamed (KAFKA-12520); before, they are recovered first (`Log.completeSwapOperations`)."""
    enters_epochs_when_index_is_missing: bool = True
    """3.0: a scan of a segment without index enters epochs; before, only recovery after an unclean stop does."""
    keeps_recovery_point_of_deleted: bool = False
    """Before 3.0: the recovery point of a `-delete` directory stays as it was checkpointed."""
    trims_epochs_to_first_segment: bool = False
    """Before 3.0: the epoch cache is trimmed to the log start that loading found; since, to the checkpointed one."""
    storage_exceptions_end_start: bool = False
    """Before 3.2.1: a KafkaStorageException while a log loads ends the start; since, it takes the log directory offline."""
    ignores_remote_index_cache: bool = True
    """3.5: the index cache of tiered storage is no log; before, its name ends the start."""
    knows_strays: bool = True
    """3.6: the name of a directory may end in `-stray`; before, it ends the start."""
    renames_strays_before_load: bool = True
    """3.7.1: a directory that the metadata do not assign is renamed before duplicates are looked for (KAFKA-16814); before, once all logs are loaded."""
    survives_metadata_dir: bool = False
    """Before 3.7: a node without ZooKeeper runs on when the log directory with its metadata log fails (`ReplicaManager.handleLogDirFailure`)."""
    epochs: EpochRules = CURRENT_RULES


T = TypeVar("T")


class Asked(Generic[T]):
    """A value that remembers which of its fields were asked for."""

    def __init__(self, value: T) -> None:
        self.__dict__["_value"] = value

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(self.__dict__["_value"], name)
        return found

    @property
    def fields(self) -> frozenset[str]:
        """The names of the fields that were asked for."""
        return frozenset(self.__dict__) - {"_value"}


class AskedVersion(KafkaVersion):
    """A version that remembers what was asked of it: another of which the same is so starts alike."""

    def __init__(self, *_: int) -> None:
        self._compared: dict[tuple[str, tuple[int, ...]], bool] = {}
        self._rules: Asked[LoadingRules] = Asked(_rules_of(KafkaVersion(*self)))

    def _note(self, comparison: str, other: tuple[int, ...]) -> bool:
        found = self._compared[comparison, tuple(other)] = getattr(KafkaVersion(*self), comparison)(other)
        return cast("bool", found)

    def __lt__(self, other: tuple[int, ...]) -> bool:
        return self._note("__lt__", other)

    def __le__(self, other: tuple[int, ...]) -> bool:
        return self._note("__le__", other)

    def __gt__(self, other: tuple[int, ...]) -> bool:
        return self._note("__gt__", other)

    def __ge__(self, other: tuple[int, ...]) -> bool:
        return self._note("__ge__", other)

    @property
    def rules(self) -> LoadingRules:
        """Its rules, which remember, too."""
        return cast("LoadingRules", self._rules)

    @property
    def fields(self) -> frozenset[str]:
        """The names of the rules that were asked for."""
        return self._rules.fields

    @property
    def key(self) -> object:
        """What was asked: of two versions that agree with it in one the other agrees too."""
        return frozenset(self._compared), self.fields

    def has_no_own(self, version: KafkaVersion, lowest: "AskedVersion") -> bool:
        """Whether of what was asked of this one and a lower one a version between them has nothing that neither of them has."""
        its, *ends = (_rules_of(KafkaVersion(*one)) for one in (version, self, lowest))
        return all(
            part in other
            for name in self.fields | lowest.fields
            for part, *other in zip(*(_parts(getattr(one, name)) for one in (its, *ends)), strict=True)
        )

    def agrees(self, other: KafkaVersion) -> bool:
        """Whether the same is so of another version, as far as it was asked."""
        mine, its = _rules_of(KafkaVersion(*self)), _rules_of(KafkaVersion(*other))
        is_alike = all(getattr(mine, one) == getattr(its, one) for one in self.fields)
        return is_alike and self.compares_alike(other)

    def compares_alike(self, other: KafkaVersion) -> bool:
        """Whether another version compares to others as this one was asked to, and knows time indexes if this one does."""
        return _rules_of(KafkaVersion(*self)).has_time_indexes is _rules_of(
            KafkaVersion(*other)
        ).has_time_indexes and all(
            getattr(KafkaVersion(*other), comparison)(than) is found
            for (comparison, than), found in self._compared.items()
        )


def _parts(rule: object) -> tuple[object, ...]:
    return tuple(rule) if isinstance(rule, tuple) else (rule,)


def loading_rules(version: KafkaVersion) -> LoadingRules:
    """Return the rules of a version, from 0.10 to 4.4.

    Raises:
        ValueError: another version, whose loader these rules do not model.
    """
    return version.rules if isinstance(version, AskedVersion) else _rules_of(version)


@lru_cache
def _rules_of(version: KafkaVersion) -> LoadingRules:
    if version < OLDEST_MODELLED or version >= FIRST_NOT_MODELLED:
        raise ValueError(
            f"the loader of Kafka {version} is not modelled, only those from {OLDEST_MODELLED} up to {NEWEST_MODELLED.major}.{NEWEST_MODELLED.minor}"
        )
    return LoadingRules(
        io_errors_empty_segments=version >= (4, 0),
        reads_whole_txn_versions=version >= (4, 4),
        finds_by_base_offset=version >= (4, 1),
        short_markers_underflow=version >= (4, 1),
        stable_offset_is_of_batch=version >= (4, 0),
        accepts_unstable_offset_past_end=version >= (3, 8),
        accepts_later_topic_id_files=version >= (3, 7),
        bad_numbers_are_io=version < (3, 1),
        recovery_point_reaches_end=version < (2, 8),
        keeps_state_below_log_start=version < (2, 8),
        reads_topic_ids=version >= (2, 8),
        lists_snapshots_first=(2, 8) <= version < (3, 0),
        removes_stray_snapshots=version >= (2, 8),
        completes_unknown_transactions=version < (2, 8),
        checks_epoch_entries=version >= (2, 7),
        skips_epoch_zero=(2, 1) <= version < (2, 6, 1),
        deletes_snapshots_later=version >= (3, 0),
        deletes_snapshots_below_start_later=(3, 0) <= version < (3, 1),
        keeps_deleted_quorum_snapshots=version >= (3, 3),
        forgets_producers_in_recovery=version < (2, 8),
        empty_swap_replaces=version < (2, 5),
        indexes_split_batches=(3, 9, 1) <= version < (4, 0) or version >= (4, 0, 1),
        evicts_producers_below_start=version < (2, 4),
        fences_markers=version < (2, 4),
        needs_unstable_offset=version < (2, 4),
        reads_up_to_offset=version < (2, 4),
        keeps_offsets_below_start=version < (2, 4),
        opens_indexes_at_once=version < (2, 3),
        begins_empty_logs_at_zero=version < (2, 2),
        counts_back_by_sequence=version < (2, 1),
        truncates_snapshots=version < (2, 1),
        indexes_base_offsets=version < (2, 0),
        completes_every_swap=version < (2, 0),
        reads_whole_segments_for_recovery=version < (2, 0),
        needs_markers=version < (2, 0),
        snapshots_before_scan=version >= (1, 0),
        scans_without_index=(0, 10, 1) <= version < (1, 1) or version >= (2, 3),
        removes_corrupt_indexes=version < (1, 1),
        removes_swapped_indexes=version < (1, 1),
        keeps_recovery_point=version < (1, 0),
        keeps_index_past_end=version < (1, 1),
        marker_is_last_record=version < (1, 0),
        knows_magic_2=version >= (0, 11),
        finds_messages_cut_short=version < (0, 10, 2),
        compares_before_length=version < (0, 10, 1),
        has_time_indexes=version >= (0, 10, 1),
        empties_new_time_indexes=version >= (0, 10, 2),
        knows_deletions=version >= (0, 10, 2),
        wraps_bad_partitions=version >= (0, 10, 2),
        io_errors_end_start=version < (1, 0),
        wraps_io_errors=version >= (1, 0),
        knows_futures=version >= (1, 1),
        renames_swaps=version >= (3, 0),
        enters_epochs_when_index_is_missing=version >= (3, 0),
        keeps_recovery_point_of_deleted=version < (3, 0),
        trims_epochs_to_first_segment=version < (3, 0),
        storage_exceptions_end_start=version < (3, 2, 1),
        ignores_remote_index_cache=version >= (3, 5),
        knows_strays=version >= (3, 6),
        renames_strays_before_load=renames_unnamed(version),
        default_producer_expiration_ms=86_400_000 if version >= (3, 4) else 604_800_000,
        survives_metadata_dir=version < (3, 7),
        epochs=epoch_rules_of(version),
    )


def distinct_rules() -> tuple[KafkaVersion, ...]:
    """Return one version for each set of rules, oldest first: where these agree, all modelled versions do."""
    return (
        OLDEST_MODELLED,
        KafkaVersion(0, 10, 1),
        KafkaVersion(0, 10, 2),
        KafkaVersion(0, 11),
        KafkaVersion(1, 0),
        KafkaVersion(1, 1),
        KafkaVersion(2, 0),
        KafkaVersion(2, 0, 1),
        KafkaVersion(2, 1),
        KafkaVersion(2, 2),
        KafkaVersion(2, 3),
        KafkaVersion(2, 4),
        KafkaVersion(2, 5),
        KafkaVersion(2, 6, 1),
        KafkaVersion(2, 7),
        KafkaVersion(2, 8),
        KafkaVersion(3, 0),
        KafkaVersion(3, 1),
        KafkaVersion(3, 2, 1),
        KafkaVersion(3, 3),
        KafkaVersion(3, 4),
        KafkaVersion(3, 5),
        KafkaVersion(3, 6),
        KafkaVersion(3, 7),
        KafkaVersion(3, 7, 1),
        KafkaVersion(3, 8),
        KafkaVersion(3, 9, 1),
        KafkaVersion(4, 0),
        KafkaVersion(4, 0, 1),
        KafkaVersion(4, 1),
        NEWEST_MODELLED,
    )
