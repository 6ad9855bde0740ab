"""Where versions load differently, as switches; `loading_rules` says which a version has."""

from dataclasses import dataclass

from kforensics.protocol.epochs import CURRENT_RULES, EpochRules
from kforensics.protocol.versions import KafkaVersion, epoch_rules_of

OLDEST_MODELLED = KafkaVersion(3, 3)
FIRST_NOT_MODELLED = KafkaVersion(4, 4)
NEWEST_MODELLED = KafkaVersion(4, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingRules:
    """How one version loads a log; the defaults are those of 4.1."""

    io_errors_empty_segments: bool = True
    """4.0 to 4.3.1: an IOException while a segment is recovered empties it (`LogLoader.recoverLog`)."""
    finds_by_base_offset: bool = True
    """4.1: `FileRecords.searchForOffsetFromPosition` compares base offsets first; before, last offsets only."""
    stable_offset_is_of_batch: bool = True
    """4.0: an offset that is looked up becomes the base offset of its batch (`LogSegment.read`); before, it stays as it is."""
    accepts_unstable_offset_past_end: bool = True
    """3.8: an open transaction that begins past the log end is no error (`maybeIncrementFirstUnstableOffset`); before, OffsetOutOfRangeException."""
    accepts_later_topic_id_files: bool = True
    """3.7: `partition.metadata` may have a version above 0 (`PartitionMetadataReadBuffer`); before, KafkaStorageException."""
    default_producer_expiration_ms: int = 86_400_000
    """3.4: producer.id.expiration.ms is 1 day; before, 7 days."""
    renames_strays_before_load: bool = True
    """3.7.1: a directory that the metadata do not assign is renamed before duplicates are looked for (KAFKA-16814); before, once all logs are loaded."""
    recovery_threads: int = 2
    """num.recovery.threads.per.data.dir (KIP-1030: 2 since 4.0)."""
    epochs: EpochRules = CURRENT_RULES


def loading_rules(version: KafkaVersion) -> LoadingRules:
    """The rules of a version, from 3.3 to 4.3.

    Raises:
        ValueError: another version, whose loader these rules do not model.
    """
    if version < OLDEST_MODELLED or version >= FIRST_NOT_MODELLED:
        message = f"the loader of Kafka {version} is not modelled, only those from {OLDEST_MODELLED} up to 4.3"
        raise ValueError(message)
    return LoadingRules(
        io_errors_empty_segments=version >= (4, 0),
        finds_by_base_offset=version >= (4, 1),
        stable_offset_is_of_batch=version >= (4, 0),
        accepts_unstable_offset_past_end=version >= (3, 8),
        accepts_later_topic_id_files=version >= (3, 7),
        renames_strays_before_load=version >= (3, 7, 1),
        default_producer_expiration_ms=86_400_000 if version >= (3, 4) else 604_800_000,
        recovery_threads=2 if version >= (4, 0) else 1,
        epochs=epoch_rules_of(version),
    )


def distinct_rules() -> tuple[KafkaVersion, ...]:
    """One version for each set of rules, oldest first: where these agree, all modelled versions do."""
    return (
        OLDEST_MODELLED,
        KafkaVersion(3, 4),
        KafkaVersion(3, 7),
        KafkaVersion(3, 7, 1),
        KafkaVersion(3, 8),
        KafkaVersion(4, 0),
        NEWEST_MODELLED,
    )
