"""Where versions load differently, as switches; `loading_rules` says which a version has."""

from dataclasses import dataclass

from kforensics.protocol.epochs import CURRENT_RULES, EpochRules
from kforensics.protocol.versions import KafkaVersion, epoch_rules_of

OLDEST_MODELLED = KafkaVersion(0, 10)
FIRST_NOT_MODELLED = KafkaVersion(4, 4)
NEWEST_MODELLED = KafkaVersion(4, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingRules:
    """The rules by which one version loads a log; the defaults are those of 4.1."""

    io_errors_empty_segments: bool = True
    """4.0 to 4.3.1: an IOException while a segment is recovered empties it (`LogLoader.recoverLog`)."""
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
    """Before 2.5: a segment without batches that is swapped in replaces the one before it where that one goes on (`Log.logSegments`)."""
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
    recovery_threads: int = 2
    """num.recovery.threads.per.data.dir (KIP-1030: 2 since 4.0)."""
    epochs: EpochRules = CURRENT_RULES


def loading_rules(version: KafkaVersion) -> LoadingRules:
    """Return the rules of a version, from 2.4 to 4.3.

    Raises:
        ValueError: another version, whose loader these rules do not model.
    """
    if version < OLDEST_MODELLED or version >= FIRST_NOT_MODELLED:
        message = f"the loader of Kafka {version} is not modelled, only those from {OLDEST_MODELLED} up to 4.3"
        raise ValueError(message)
    return LoadingRules(
        io_errors_empty_segments=version >= (4, 0),
        finds_by_base_offset=version >= (4, 1),
        short_markers_underflow=version >= (4, 1),
        stable_offset_is_of_batch=version >= (4, 0),
        accepts_unstable_offset_past_end=version >= (3, 8),
        accepts_later_topic_id_files=version >= (3, 7),
        bad_numbers_are_io=version < (3, 1),
        recovery_point_reaches_end=version < (2, 8),
        keeps_state_below_log_start=version < (2, 8),
        reads_topic_ids=version >= (2, 8),
        removes_stray_snapshots=version >= (2, 8),
        completes_unknown_transactions=version < (2, 8),
        checks_epoch_entries=version >= (2, 7),
        skips_epoch_zero=version < (2, 6, 1),
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
        renames_swaps=version >= (3, 0),
        enters_epochs_when_index_is_missing=version >= (3, 0),
        keeps_recovery_point_of_deleted=version < (3, 0),
        trims_epochs_to_first_segment=version < (3, 0),
        storage_exceptions_end_start=version < (3, 2, 1),
        ignores_remote_index_cache=version >= (3, 5),
        knows_strays=version >= (3, 6),
        renames_strays_before_load=version >= (3, 7, 1),
        default_producer_expiration_ms=86_400_000 if version >= (3, 4) else 604_800_000,
        recovery_threads=2 if version >= (4, 0) else 1,
        epochs=epoch_rules_of(version),
    )


def distinct_rules() -> tuple[KafkaVersion, ...]:
    """One version for each set of rules, oldest first: where these agree, all modelled versions do."""
    return (
        OLDEST_MODELLED,
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
        NEWEST_MODELLED,
    )
