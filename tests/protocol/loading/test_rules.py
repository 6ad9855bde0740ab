"""Rules of loading on values alone: what a made directory on disk does not bring about, and how a node's start ends."""

from typing import Any

import pytest

from kforensics.damage import Absent
from kforensics.formats.index import TimeEnds
from kforensics.formats.log.loader_values import (
    AbortedEntry,
    Batches,
    Content,
    LoadedBatch,
    LoadFailure,
    Need,
    ProducerState,
    TopicIdFile,
    TransactionEnd,
)
from kforensics.protocol.loading.disk import (
    Disk,
    FileAction,
    LoadedDirectory,
    LoadedState,
    LoadingError,
    LoadOutcome,
    LoadSettings,
    NotModelledError,
    Unpredictable,
    offset_of,
    padded,
    partition_of_directory,
)
from kforensics.protocol.loading.indexes import OffsetIndex, TimeIndex, TxnIndex
from kforensics.protocol.loading.load import load_partition
from kforensics.protocol.loading.log_state import CompletedTransaction, EpochCache, Producers
from kforensics.protocol.loading.segments import Segment
from kforensics.protocol.loading.starts import (
    LoadedLogDir,
    LogLoad,
    Start,
    StartResult,
    is_loaded,
    start_of,
    start_word_by_name,
)
from kforensics.protocol.loading.versions import LoadingRules, distinct_rules, loading_rules
from kforensics.protocol.versions import KafkaVersion
from kforensics.units import EpochEntry

LOG, INDEX = f"{0:020d}.log", f"{0:020d}.index"
TIME_INDEX, TXN_INDEX = f"{0:020d}.timeindex", f"{0:020d}.txnindex"
EPOCHS = "leader-epoch-checkpoint"


def batch(position=0, base=0, last=None, **given):
    return LoadedBatch(
        **{
            "position": position,
            "length": 100,
            "base_offset": base,
            "last_offset": base if last is None else last,
            "magic": 2,
            "leader_epoch": 0,
            "max_timestamp": 5,
            "producer_id": -1,
            "producer_epoch": -1,
            "record_count": 1,
            "is_transactional": False,
            "is_control": False,
            "is_valid": True,
            **given,
        }
    )


def directory(files, contents=(), **given):
    return LoadedDirectory(name=given.pop("name", "orders-0"), files=files, contents=dict(contents), **given)


def log_of(*batches, content=Content.BATCHES, end=None, corrupt=False):
    found = Batches(batches=batches, end=100 * len(batches) if end is None else end, end_is_corrupt=corrupt)
    return {Need(LOG, content): found}


def loaded(files, contents, *, clean=True, rules=None, settings=None, recovery_point=0, **given):
    contents = {Need(EPOCHS, Content.EPOCHS): (), Need(INDEX, Content.OFFSET_INDEX): ()} | contents
    return load_partition(
        directory({EPOCHS: 0} | files, contents, **given),
        clean_shutdown=clean,
        recovery_point=recovery_point,
        settings=settings,
        rules=rules or LoadingRules(),
    )


def test_what_a_rule_was_not_given_it_asks_for_and_no_more():
    files = {LOG: 100, INDEX: 0}

    assert load_partition(directory(files), clean_shutdown=True) == Need(LOG, Content.BATCHES)
    assert load_partition(directory(files), clean_shutdown=False) == Need(LOG, Content.CHECKED_BATCHES)
    assert isinstance(loaded(files, log_of(batch())), LoadOutcome)


def test_a_file_that_can_not_be_read_is_an_io_exception():
    outcome = loaded({LOG: 100, INDEX: 0}, {}, unreadable=frozenset({LOG}))
    assert isinstance(outcome, LoadOutcome)
    assert outcome.failure == LoadFailure("IOException", f"Could not read file {LOG}", is_io=True)
    assert outcome.changes == ()

    outcome = loaded({LOG: 100, INDEX: 0}, {}, unreadable=frozenset({EPOCHS}))
    assert isinstance(outcome, LoadOutcome)
    assert isinstance(outcome.failure, LoadFailure)
    assert outcome.failure.exception == "KafkaStorageException"
    disk = Disk(directory({LOG: 5}, unreadable=frozenset({LOG})))
    with pytest.raises(LoadingError, match="IOException"):
        disk.content(LOG, Content.BATCHES)


def test_an_io_error_in_recovery_empties_the_segment_since_4_0_and_ends_the_load_before():
    marker = batch(producer_id=7, is_control=True, end=LoadFailure("IOException", "no space left", is_io=True))
    contents = log_of(marker, content=Content.CHECKED_BATCHES) | log_of(marker)

    emptied = loaded({LOG: 100, INDEX: 0}, contents, clean=False)
    ended = loaded({LOG: 100, INDEX: 0}, contents, clean=False, rules=loading_rules(KafkaVersion(3, 9, 1)))

    assert (emptied.failure, emptied.state.log_end_offset, emptied.tree[LOG]) == (Absent.NOT_APPLICABLE, 0, 0)
    assert (ended.failure.exception, ended.tree[LOG]) == ("IOException", 100)


def test_a_segment_that_spans_too_many_offsets_is_split_and_one_with_lower_offsets_ends_the_start():
    near, far = batch(), batch(position=100, base=1 << 40)
    moved = [
        {Need(LOG, content, 100): Batches(batches=(far,), end=200)}
        for content in (Content.BATCHES, Content.CHECKED_BATCHES)
    ]
    contents = log_of(near, far) | log_of(near, far, content=Content.CHECKED_BATCHES) | moved[0] | moved[1]
    outcome = loaded({LOG: 200, INDEX: 0}, contents, clean=False)
    assert outcome.state.log_end_offset == (1 << 40) + 1
    assert {name: length for name, length in outcome.tree.items() if ".log" in name} == {
        LOG: 100,
        f"{1 << 40:020d}.log": 100,
        f"{LOG}.deleted": 200,
    }

    alone = loaded({LOG: 207, INDEX: 0}, contents, clean=False)
    assert alone.failure.exception == "NoSuchElementException"
    wide = batch(base=1, last=1 << 40)
    contents = log_of(wide) | log_of(wide, content=Content.CHECKED_BATCHES)
    assert loaded({LOG: 100, INDEX: 0}, contents, clean=False).failure.exception == "IllegalStateException"

    below = batch(base=-5)
    contents = log_of(below) | log_of(below, content=Content.CHECKED_BATCHES)
    outcome = loaded({LOG: 100, INDEX: 0}, contents, clean=False)
    assert outcome.failure.exception == "IllegalArgumentException"


def spanning(*offsets):
    """What is read of a segment of batches of 100 bytes, from each of them on."""
    batches = [batch(position=100 * at, base=offset, magic=2) for at, offset in enumerate(offsets)]
    return {
        Need(LOG, content, 100 * at): Batches(batches=tuple(batches[at:]), end=100 * len(batches))
        for content in (Content.BATCHES, Content.CHECKED_BATCHES)
        for at in range(len(batches))
    }


@pytest.mark.parametrize(("version", "entries"), [(KafkaVersion(4, 1), 2), (KafkaVersion(4, 0), 0)])
def test_batches_of_a_segment_that_is_split_are_indexed_one_by_one_since_3_9_1(version, entries):
    far = 1 << 40
    outcome = loaded(
        {LOG: 400, INDEX: 0},
        spanning(0, far, far + 1, far + 2),
        clean=False,
        rules=loading_rules(version),
        settings=LoadSettings(index_interval=50, index_length=64),
    )

    assert outcome.tree[f"{far:020d}.log"] == 300
    last = next(one for one in outcome.scanned if one.base_offset == far)
    assert (last.length, last.kept_length, outcome.state.log_end_offset) == (300, 300, far + 3)
    split = loaded(
        {LOG: 500, INDEX: 0},
        spanning(0, 1, 2, far, far << 1),
        clean=False,
        rules=loading_rules(version),
        settings=LoadSettings(index_interval=50, index_length=64),
        recovery_point=far << 2,
    )
    assert (split.tree[LOG], split.tree[INDEX]) == (300, 8 * entries)


def test_what_is_copied_at_a_time_by_splitting_has_an_index_entry_before_3_9_1():
    mib = [batch(position=at << 20, base=base, length=1 << 20) for at, base in enumerate((0, 1, 1 << 40))]
    contents = {
        Need(LOG, content, one.position): Batches(batches=tuple(mib[at:]), end=3 << 20)
        for content in (Content.BATCHES, Content.CHECKED_BATCHES)
        for at, one in enumerate(mib)
    }
    outcome = loaded({LOG: 3 << 20, INDEX: 0}, contents, clean=False, rules=loading_rules(KafkaVersion(4, 0)))
    assert outcome.tree[LOG] == 2 << 20


def test_a_segment_that_begins_above_its_name_is_replaced_with_its_snapshot_when_it_is_split():
    snapshot = f"{0:020d}.snapshot"
    left = {f"{1 << 40:020d}.index.swap": 0}
    old = loaded({LOG: 200} | left, spanning(1 << 40, 1 << 41), rules=loading_rules(KafkaVersion(2, 8)))
    assert not any(name.endswith(".swap") for name in old.tree), "a part has that name on its way"
    outcome = loaded({LOG: 200, INDEX: 0, snapshot: 0}, spanning(1 << 40, 1 << 41), clean=False)
    assert (LOG in outcome.tree, f"{LOG}.deleted" in outcome.tree) == (False, True)
    compressed = batch(position=100, base=1, magic=1, is_compressed_message=True)
    batches = batch(), compressed, batch(position=200, base=1 << 40)
    contents = log_of(*batches) | log_of(*batches, content=Content.CHECKED_BATCHES)
    assert isinstance(loaded({LOG: 300, INDEX: 0}, contents, clean=False), Unpredictable)


def test_a_segment_that_is_scanned_for_want_of_an_index_stays_beside_those_that_it_is_split_into():
    outcome = loaded({LOG: 200}, spanning(1 << 40, 1 << 41))
    assert {name: length for name, length in outcome.tree.items() if ".log" in name} == {
        LOG: 200,
        f"{1 << 40:020d}.log": 100,
        f"{1 << 41:020d}.log": 100,
    }
    disk = Disk(directory({}, folders=frozenset({LOG})))
    with pytest.raises(LoadingError, match="FileSystemException"):
        disk.create(LOG, 0, "segment-created")


def test_what_is_put_in_place_over_a_folder_or_in_no_known_order_is_not_modelled():
    swap = {f"{LOG}.swap": 100, f"{INDEX}.swap": 0, f"{0:020d}.timeindex.swap": 0}
    found: dict[Need, Any] = {Need(f"{LOG}.swap", content): Batches(batches=(batch(),), end=100) for content in Content}
    found |= {Need(f"{INDEX}.swap", Content.OFFSET_INDEX): ()}
    assert isinstance(loaded(swap, found, folders=frozenset({LOG})), Unpredictable)
    old = loading_rules(KafkaVersion(2, 8))
    assert isinstance(loaded(swap | {f"{5:020d}.log.swap": 0}, found, rules=old), Unpredictable)
    assert isinstance(loaded(swap, found, rules=old, folders=frozenset({f"{0:020d}.txnindex"})), Unpredictable)
    found[Need(f"{LOG}.swap", Content.CHECKED_BATCHES)] = Batches(batches=(batch(base=1 << 40),), end=100)
    assert isinstance(loaded(swap, found, rules=old), Unpredictable)
    found[Need(f"{LOG}.swap", Content.CHECKED_BATCHES)] = Batches(
        batches=(batch(producer_id=7, is_control=True, end=LoadFailure("NullPointerException", "no key")),), end=100
    )
    assert loaded(swap, found, rules=old).failure.exception == "NullPointerException"


def test_an_epoch_file_out_of_order_is_not_modelled_before_2_7():
    disk = directory(
        {LOG: 0, INDEX: 0, EPOCHS: 9}, {Need(EPOCHS, Content.EPOCHS): (EpochEntry(1, 6), EpochEntry(0, 0))}
    )
    outcome = load_partition(disk, clean_shutdown=True, rules=loading_rules(KafkaVersion(2, 6, 1)))
    assert isinstance(outcome, Unpredictable)


def test_a_marker_that_is_too_short_is_an_invalid_record_before_4_1():
    short = batch(producer_id=7, is_control=True, end=LoadFailure("BufferUnderflowException", "too short"))
    contents = log_of(short) | log_of(short, content=Content.CHECKED_BATCHES)
    files = {LOG: 100, INDEX: 0, f"{0:020d}.snapshot": 0}
    thrown = [
        loaded(files, contents, clean=False, rules=loading_rules(version)).failure.exception
        for version in (KafkaVersion(4, 1), KafkaVersion(4, 0, 1))
    ]
    assert thrown == ["BufferUnderflowException", "InvalidRecordException"]


def test_indexes_and_messages_that_lead_nowhere_are_not_modelled():
    entry = {Need(INDEX, Content.OFFSET_INDEX): ((0, -8),)}
    assert isinstance(loaded({LOG: 100, INDEX: 8}, entry), Unpredictable)
    compressed = batch(magic=1, is_compressed_message=True)
    assert isinstance(loaded({LOG: 100, INDEX: 0}, log_of(compressed)), Unpredictable)


def test_a_header_that_the_file_ends_in_is_thrown_where_it_is_read():
    short = batch(header_failure=LoadFailure("KafkaException", "Failed to load record batch"))

    assert loaded({LOG: 100, INDEX: 0}, log_of(short)).failure.exception == "KafkaException"
    disk = Disk(directory({}))
    with pytest.raises(LoadingError, match="KafkaException"):
        Producers(disk, LoadSettings()).load([short])


def test_a_version_of_the_topic_id_file_above_0_is_refused_up_to_3_6():
    files = {LOG: 0, INDEX: 0, "partition.metadata": 40}
    contents = {Need("partition.metadata", Content.PARTITION_METADATA): TopicIdFile(1, "A")}

    assert loaded(files, contents).failure is Absent.NOT_APPLICABLE
    before = loaded(files, contents, rules=loading_rules(KafkaVersion(3, 6, 2)))
    assert before.failure.exception == "KafkaStorageException"


def test_an_open_transaction_past_the_log_end_is_refused_up_to_3_7():
    snapshot = f"{1:020d}.snapshot"
    files = {LOG: 100, INDEX: 0, snapshot: 56}
    contents = log_of(batch()) | {Need(snapshot, Content.SNAPSHOT): (ProducerState(7, 0, -1, 0, 900),)}

    assert loaded(files, contents).state.last_stable_offset == 1
    before = loaded(files, contents, rules=loading_rules(KafkaVersion(3, 7, 1)))
    assert before.failure.exception == "OffsetOutOfRangeException"


def test_an_index_that_is_longer_than_its_largest_length_ends_the_start():
    disk = Disk(directory({"a": 80, "b": 120}))

    for index in (OffsetIndex(disk, "a", 0, 40, "r"), TimeIndex(disk, "b", 0, 40, "r")):
        with pytest.raises(LoadingError, match="IllegalArgumentException"):
            index.resize(40)


def test_a_full_index_takes_no_entry():
    disk = Disk(directory({}))
    offsets, times = OffsetIndex(disk, "a", 0, 8, "r"), TimeIndex(disk, "b", 0, 24, "r")
    offsets.reset()
    offsets.append(3, 5)
    times.append(5, 9)

    with pytest.raises(LoadingError, match="IllegalArgumentException"):
        offsets.append(4, 9)
    with pytest.raises(LoadingError, match="IllegalArgumentException"):
        times.append(6, 10)
    with pytest.raises(LoadingError, match="InvalidOffsetException"):
        times.append(6, 1, skips_full_check=True)
    assert (offsets.count, times.count) == (1, 1)


def test_an_offset_index_is_truncated_at_an_offset():
    given = directory({"a": 24}, {Need("a", Content.OFFSET_INDEX): ((2, 10), (4, 20), (6, 30))})

    for offset, kept in ((4, 1), (5, 2), (1, 0), (9, 3)):
        index = OffsetIndex(Disk(given), "a", 0, 80, "r")
        index.truncate(offset)
        assert index.count == kept, offset


def test_lookups_look_in_the_warm_end_first():
    entries = tuple((at * 2, at * 10) for at in range(3000))
    disk = Disk(directory({"a": 24_000}, {Need("a", Content.OFFSET_INDEX): entries}))
    index = OffsetIndex(disk, "a", 0, 24_000, "r")

    assert [index.lookup(at) for at in (-1, 0, 1, 7, 4000, 5999, 99_999)] == [0, 0, 0, 30, 20_000, 29_990, 29_990]


def test_a_segment_without_batches_has_nothing_to_truncate_and_no_read_ends_before_it_begins():
    empty = Segment(Disk(directory({LOG: 0, INDEX: 0})), 0, LoadSettings(), LoadingRules())
    assert empty.truncate_to_base() == 0
    contents = log_of(batch(), batch(100, 1)) | {Need(INDEX, Content.OFFSET_INDEX): ()}
    two = Segment(Disk(directory({LOG: 200, INDEX: 0}, contents)), 0, LoadSettings(), LoadingRules())
    with pytest.raises(LoadingError, match="IllegalArgumentException"):
        two.read(1, 0)


def test_messages_of_magic_1_bring_no_epoch():
    contents = log_of(batch(magic=1), content=Content.CHECKED_BATCHES) | log_of(batch(magic=1))

    assert loaded({LOG: 100, INDEX: 0}, contents, clean=False).state.epochs == ()


def test_an_open_transaction_in_a_gap_is_found_in_the_next_segment():
    later, snapshot = f"{8:020d}", f"{9:020d}.snapshot"
    files = {LOG: 100, INDEX: 0, f"{later}.log": 100, f"{later}.index": 0, snapshot: 56}
    contents = log_of(batch()) | {
        Need(f"{later}.log", Content.BATCHES): Batches(batches=(batch(base=8),), end=100),
        Need(f"{later}.index", Content.OFFSET_INDEX): (),
        Need(snapshot, Content.SNAPSHOT): (ProducerState(7, 0, -1, 0, 4),),
    }

    assert loaded(files, contents).state.last_stable_offset == 8


@pytest.mark.parametrize(
    ("version", "on_4_3", "on_4_4"),
    [(0, None, None), (1, None, "version 1 "), (256, "version 1", "version 256 "), (-256, None, "version -256 ")],
)
def test_the_version_of_an_aborted_transaction(version, on_4_3, on_4_4):
    for reads_whole, wanted in ((False, on_4_3), (True, on_4_4)):
        disk = Disk(directory({"t": 34}, {Need("t", Content.TXN_INDEX): (AbortedEntry(version, 19),)}))
        index = TxnIndex(disk, "t", 10, reads_whole_versions=reads_whole)
        if wanted is None:
            assert not index.is_corrupt()
            continue
        with pytest.raises(LoadingError) as thrown:
            index.is_corrupt()
        assert thrown.value.failure.exception == "KafkaException"
        assert f"aborted transaction {wanted}" in thrown.value.failure.message + " "
    assert loading_rules(KafkaVersion(4, 4)).reads_whole_txn_versions
    assert not loading_rules(KafkaVersion(4, 3, 1)).reads_whole_txn_versions


def test_aborted_transactions_must_rise():
    index = TxnIndex(Disk(directory({})), "t", 0)
    index.reset()
    index.append(5)

    with pytest.raises(LoadingError, match="IllegalArgumentException"):
        index.append(5)
    known = TxnIndex(Disk(directory({"t": 34}, {Need("t", Content.TXN_INDEX): (AbortedEntry(0, 9),)})), "t", 10)
    assert known.is_corrupt()


def test_a_transaction_index_under_a_new_name_is_not_opened_before_its_first_entry():
    disk = Disk(LoadedDirectory(name="t-0", files={TXN_INDEX: 34}))
    index = TxnIndex(disk, TXN_INDEX + ".swap", 0)
    index.rename(TXN_INDEX)

    index.reset()

    assert disk.files[TXN_INDEX].length == 34
    with pytest.raises(NotModelledError, match="another segment left"):
        index.append(9)


def test_producers_refuse_what_their_log_can_not_hold():
    producers = Producers(Disk(directory({})), LoadSettings())
    with pytest.raises(LoadingError, match="IllegalArgumentException"):
        producers.complete(CompletedTransaction(7, 0, 1, is_aborted=True))
    marker = {"producer_id": 7, "is_control": True}
    with pytest.raises(LoadingError, match="InvalidRecordException"):
        producers.take_in(batch(**marker, end=LoadFailure("InvalidRecordException", "no marker")))
    assert producers.take_in(batch(**marker)) is None
    assert (
        producers.take_in(batch(**marker, end=TransactionEnd(is_abort=True, coordinator_epoch=3, timestamp=9))) is None
    )
    assert producers.by_id[7].coordinator_epoch == 3


@pytest.mark.parametrize(("version", "is_truncated"), [(KafkaVersion(2, 0, 1), True), (KafkaVersion(2, 1), False)])
def test_a_snapshot_over_a_longer_file_breaks_its_checksum_since_2_1(version, is_truncated):
    disk = Disk(directory({f"{5:020d}.snapshot": 400}))
    producers = Producers(disk, LoadSettings(), loading_rules(version))
    producers.map_end = 5
    producers.take_snapshot()

    content = disk.content(f"{5:020d}.snapshot", Content.SNAPSHOT)
    assert (disk.length(f"{5:020d}.snapshot") < 400, content == ()) == (is_truncated, is_truncated)
    assert isinstance(content, LoadFailure) != is_truncated


def test_of_two_snapshots_of_one_offset_the_file_system_chooses():
    outcome = loaded({LOG: 0, INDEX: 0, "5.snapshot": 10, f"{5:020d}.snapshot": 10}, log_of())
    assert isinstance(outcome, Unpredictable)
    assert "the order of the file system" in outcome.reason


def test_epoch_entries_can_not_be_negative():
    cache = EpochCache(Disk(directory({})), LoadingRules())
    cache.found(-1, -5)
    with pytest.raises(LoadingError, match="IllegalArgumentException"):
        cache.found(0, -5)
    cache.found(2, 7)
    assert cache.epochs == (EpochEntry(2, 7),)


def test_what_happened_to_a_file_that_went_and_came_back():
    disk = Disk(directory({"a": 5, "b": 6}))
    disk.delete("a", "gone")
    disk.create("a", 7, "again")
    disk.rename("b", "c", "moved")
    disk.rename("a", "c", "over it")

    told = {(change.name, change.action, change.to_name) for change in disk.changes()}
    assert told == {
        ("a", FileAction.DELETE, Absent.NOT_APPLICABLE),
        ("b", FileAction.DELETE, Absent.NOT_APPLICABLE),
        ("c", FileAction.CREATE, Absent.NOT_APPLICABLE),
    }


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b-12", ("a-b", 12)),
        ("orders-1.0a-delete", ("orders", 1)),
        ("orders-1-delete", None),
        ("lost+found", None),
        ("-1", None),
        ("orders-", None),
        ("orders-99999999999", None),
        ("orders-\u0661", ("orders", 1)),
        ("orders-0.0a-stray.0b-delete", None),
        ("orders-0.0a-delete.0b-stray", None),
    ],
)
def test_names_of_directories(name, partition):
    assert partition_of_directory(name) == partition


def test_names_of_files():
    assert (padded(5), padded(-5)) == (f"{5:020d}", f"-{5:020d}")
    assert (offset_of("+7.log"), offset_of("0008.index")) == (7, 8)
    for wrong in ("x.log", ".log", "9223372036854775808.log"):
        with pytest.raises(LoadingError, match="NumberFormatException"):
            offset_of(wrong)


def test_versions_that_are_not_modelled_are_refused():
    for version in (KafkaVersion(0, 9, 0, 1), KafkaVersion(4, 5)):
        with pytest.raises(ValueError, match="not modelled"):
            loading_rules(version)
    assert len({loading_rules(version) for version in distinct_rules()}) == len(distinct_rules())


STATE = LoadedState(log_start_offset=0, log_end_offset=9, recovery_point=9, last_stable_offset=9, epochs=())
OPEN = LoadedState(log_start_offset=0, log_end_offset=9, recovery_point=9, last_stable_offset=4, epochs=())
STORAGE = LoadFailure("KafkaStorageException", "malformed", is_io=True)
CORRUPT = LoadFailure("CorruptRecordException", "record size 0")


def load(name, *, log_dir="a", state=STATE, failure=Absent.NOT_APPLICABLE):
    outcome = LoadOutcome(
        state=state if failure is Absent.NOT_APPLICABLE else Absent.NOT_APPLICABLE,
        failure=failure,
        tree={},
        changes=(),
        scanned=(),
        deleted_segments=(),
        written={},
        origins={},
    )
    return LogLoad(log_dir, name, outcome)


DIRS = (LoadedLogDir("a", clean=True), LoadedLogDir("b", clean=True))
MALFORMED = (LoadedLogDir("a", clean=True, malformed_checkpoint=STORAGE), LoadedLogDir("b", clean=True))


@pytest.mark.parametrize(
    ("log_dirs", "loads", "result", "exception", "offline"),
    [
        (DIRS, [load("t-0"), load("t-1", log_dir="b")], StartResult.STARTS, Absent.NOT_APPLICABLE, ()),
        (DIRS, [load("t-0", failure=CORRUPT)], StartResult.EXITS, "CorruptRecordException", ()),
        (DIRS, [load("t-0", failure=STORAGE)], StartResult.DIRECTORY_OFFLINE, "KafkaStorageException", ("a",)),
        (DIRS[:1], [load("t-0", failure=STORAGE)], StartResult.EXITS, "KafkaStorageException", ("a",)),
        (DIRS, [load("t-0"), load("t-0", log_dir="b")], StartResult.EXITS, "IllegalStateException", ()),
        (DIRS, [load("t-0"), load("t-0.x-future", log_dir="b")], StartResult.STARTS, Absent.NOT_APPLICABLE, ()),
        (MALFORMED, [load("t-0")], StartResult.DIRECTORY_OFFLINE, "KafkaStorageException", ("a",)),
        (MALFORMED, [load("t-0", state=OPEN)], StartResult.EXITS, "KafkaStorageException", ()),
        (MALFORMED, [load("t-0", failure=STORAGE)], StartResult.DIRECTORY_OFFLINE, "KafkaStorageException", ("a",)),
        (
            MALFORMED,
            [load("t-0", log_dir="b", state=OPEN)],
            StartResult.DIRECTORY_OFFLINE,
            "KafkaStorageException",
            ("a",),
        ),
    ],
)
def test_how_a_start_ends(log_dirs, loads, result, exception, offline):
    start = start_of(log_dirs, loads)

    assert isinstance(start, Start)
    assert (start.result, start.exception, start.offline) == (result, exception, offline)


def test_what_can_not_be_told_of_one_log_can_not_be_told_of_the_start_but_an_exit_is_certain():
    unknown = LogLoad("a", "t-1", Unpredictable("split"))

    assert start_of(DIRS, [unknown, load("t-0")]) == Unpredictable("split")
    certain = start_of(DIRS, [unknown, load("t-0", failure=CORRUPT)])
    assert isinstance(certain, Start)
    assert certain.result is StartResult.EXITS
    assert start_of(MALFORMED, [unknown]) == Unpredictable("split")


def test_which_directories_are_loaded():
    assert [
        is_loaded(name)
        for name in ("t-0", "t-0.x-delete", "lost+found", "__cluster_metadata-0", "remote-log-index-cache")
    ] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_before_3_2_1_a_storage_exception_ends_the_start():
    start = start_of(DIRS, [load("t-0", failure=STORAGE)], rules=loading_rules(KafkaVersion(3, 2)))
    assert isinstance(start, Start)
    assert (start.result, start.exception) == (StartResult.EXITS, "KafkaStorageException")


@pytest.mark.parametrize(("version", "result"), [((0, 11), StartResult.EXITS), ((1, 0), StartResult.DIRECTORY_OFFLINE)])
def test_before_1_0_an_io_error_ends_the_start(version, result):
    failure = LoadFailure("IOException", "Could not read file", is_io=True)
    start = start_of(DIRS, [load("t-0", failure=failure)], rules=loading_rules(KafkaVersion(*version)))
    assert isinstance(start, Start)
    assert (start.result, start.exception) == (result, "IOException")


def test_before_0_11_a_batch_of_magic_2_fails_its_checksum_and_ends_at_its_first_offset():
    contents = {
        Need(LOG, content): Batches(batches=(batch(base=4, last=6),), end=100)
        for content in (Content.BATCHES, Content.CHECKED_BATCHES)
    }
    files = directory({LOG: 100, INDEX: 0, TIME_INDEX: 0}, contents | {Need(INDEX, Content.OFFSET_INDEX): ()})
    rules = loading_rules(KafkaVersion(0, 10, 2))

    clean = load_partition(files, clean_shutdown=True, rules=rules, log_start_offset=5)
    unclean = load_partition(files, clean_shutdown=False, rules=rules)

    assert isinstance(clean, LoadOutcome)
    assert isinstance(unclean, LoadOutcome)
    assert isinstance(clean.state, LoadedState)
    assert (clean.state.log_start_offset, clean.state.log_end_offset, clean.state.epochs) == (0, 5, ())
    assert clean.state.last_stable_offset is Absent.NOT_APPLICABLE
    assert unclean.tree[LOG] == 0
    assert EPOCHS not in unclean.tree


@pytest.mark.parametrize(
    ("length", "end", "header", "reason"),
    [
        (1_000_025, 1_000_025, None, "max.message.bytes"),
        (100, 115, None, "a length at the end"),
        (0, 15, None, "a length at the end"),
        (0, 15, (0, 2**31 - 12), "past 2"),
    ],
)
def test_before_0_11_what_hangs_on_settings_or_on_bytes_that_are_not_there_is_not_modelled(length, end, header, reason):
    batches = (batch(magic=1)._replace(length=length),) if length else ()
    found = Batches(batches=batches, end=length, header_at_end=header)
    contents = {Need(LOG, content): found for content in (Content.BATCHES, Content.CHECKED_BATCHES)}
    segment = Segment(Disk(directory({LOG: end}, contents)), 0, LoadSettings(), loading_rules(KafkaVersion(0, 10, 2)))

    with pytest.raises(NotModelledError, match=reason):
        list(segment.batches(0, checked=length > 100))


@pytest.mark.parametrize(
    ("version", "header", "outcome"),
    [
        ((0, 10, 2), (7, 13), "CorruptRecordException"),
        ((0, 10, 1), (7, 13), "IllegalStateException"),
        ((0, 10, 0), (7, 13), 100),
        ((0, 10, 0), (4, 13), "IllegalStateException"),
        ((0, 10, 1), (7, 14), 100),
        ((0, 10, 1), (4, 14), None),
        ((0, 10, 2), (7, 14), None),
    ],
)
def test_what_is_found_in_a_message_that_is_cut_short_depends_on_the_version(version, header, outcome):
    found = Batches(batches=(batch(base=3, magic=1),), end=100, header_at_end=header)
    contents = {Need(LOG, Content.BATCHES): found, Need(INDEX, Content.OFFSET_INDEX): ()}
    disk = Disk(directory({LOG: 115, INDEX: 0, TIME_INDEX: 0}, contents))
    segment = Segment(disk, 0, LoadSettings(), loading_rules(KafkaVersion(*version)))

    assert segment.position_of(3) == 0
    if isinstance(outcome, str):
        with pytest.raises(LoadingError) as thrown:
            segment.position_of(5)
        assert thrown.value.failure.exception == outcome
    else:
        assert segment.position_of(5) == outcome


def test_before_0_10_2_nothing_is_found_behind_what_a_scan_has_truncated():
    found = Batches(batches=(batch(base=3, magic=1), batch(position=100, base=5, magic=1)), end=200)
    contents = {Need(LOG, Content.BATCHES): found, Need(INDEX, Content.OFFSET_INDEX): ()}
    disk = Disk(directory({LOG: 200, INDEX: 0}, contents))
    segment = Segment(disk, 0, LoadSettings(), loading_rules(KafkaVersion(0, 10)))

    assert segment.position_of(5) == 100
    assert segment.position_of(9) is None
    disk.resize(LOG, 100, "corruption-found")
    assert segment.position_of(5) is None


def test_before_0_10_2_no_name_of_a_directory_ends_in_delete():
    name = "orders-0.0a1b2c3d4e5f60718293a4b5c6d7e8f9-delete"
    outcomes = {
        version: load_partition(
            directory({}, name=name), clean_shutdown=True, rules=loading_rules(KafkaVersion(*version))
        )
        for version in ((0, 10, 1), (0, 10, 2))
    }

    failures = {version: one.failure for version, one in outcomes.items() if isinstance(one, LoadOutcome)}
    assert failures[0, 10, 1] == LoadFailure("NumberFormatException", 'For input string: "delete"')
    assert failures[0, 10, 2] is Absent.NOT_APPLICABLE
    assert is_loaded(name, loading_rules(KafkaVersion(0, 10, 1)))


@pytest.mark.parametrize(
    ("version", "name", "exception"),
    [
        ((0, 10, 1), "lost+found", "KafkaException"),
        ((0, 10, 1), "orders-x", "NumberFormatException"),
        ((0, 10, 2), "orders-x", "KafkaException"),
    ],
)
def test_a_name_that_does_not_parse_throws_what_its_version_throws(version, name, exception):
    outcome = load_partition(directory({}, name=name), clean_shutdown=True, rules=loading_rules(KafkaVersion(*version)))

    assert isinstance(outcome, LoadOutcome)
    assert isinstance(outcome.failure, LoadFailure)
    assert outcome.failure.exception == exception
    assert outcome.changes == ()


def test_before_3_5_the_index_cache_of_tiered_storage_ends_the_start():
    assert is_loaded("remote-log-index-cache", loading_rules(KafkaVersion(3, 4)))
    assert not is_loaded("remote-log-index-cache", loading_rules(KafkaVersion(3, 5)))


def test_not_modelled_is_no_exception_of_kafka():
    assert not issubclass(NotModelledError, LoadingError)


OLD = loading_rules(KafkaVersion(2, 8))


def test_before_3_0_a_segment_that_is_swapped_in_replaces_those_that_it_covers():
    later, swap = f"{1:020d}", f"{LOG}.swap"
    both = Batches(batches=(batch(), batch(100, 1)), end=200)
    one = Batches(batches=(batch(base=1),), end=100)
    contents = log_of(batch()) | {
        Need(swap, Content.CHECKED_BATCHES): both,
        Need(swap, Content.BATCHES): both,
        Need(f"{later}.log", Content.BATCHES): one,
        Need(f"{later}.index", Content.OFFSET_INDEX): (),
        Need(LOG, Content.CHECKED_BATCHES): Batches(batches=(batch(),), end=100),
    }
    files = {LOG: 100, INDEX: 0, f"{later}.log": 100, f"{later}.index": 0, swap: 200, f"{later}.index.swap": 0}
    contents[Need(f"{later}.log", Content.CHECKED_BATCHES)] = one

    outcome = loaded(files, contents, rules=OLD)

    assert isinstance(outcome, LoadOutcome)
    assert not isinstance(outcome.state, Absent)
    assert outcome.state.log_end_offset == 2
    assert outcome.tree[LOG] == 200
    assert {f"{LOG}.deleted", f"{later}.log.deleted"} <= outcome.tree.keys()


def test_before_3_0_what_a_split_left_behind_is_deleted():
    swap = f"{8:020d}"
    files = {LOG: 0, INDEX: 0, f"{7:020d}.log.cleaned": 5, f"{swap}.log.swap": 9, f"{swap}.index.swap": 1}

    outcome = loaded(files | {f"{0:020d}.log.deleted": 4}, log_of(), rules=OLD)

    assert isinstance(outcome, LoadOutcome)
    assert not any(name.endswith((".swap", ".cleaned", ".deleted")) for name in outcome.tree)


def test_before_3_0_a_number_that_is_none_is_a_malformed_line():
    wrong = {Need(EPOCHS, Content.EPOCHS): LoadFailure("NumberFormatException", "x")}
    contents = log_of() | {Need(INDEX, Content.OFFSET_INDEX): ()} | wrong
    files = {EPOCHS: 5, LOG: 0, INDEX: 0}

    old = load_partition(directory(files, contents), clean_shutdown=True, rules=OLD)
    new = load_partition(directory(files, contents), clean_shutdown=True)

    assert isinstance(old, LoadOutcome)
    assert isinstance(new, LoadOutcome)
    assert not isinstance(old.failure, Absent)
    assert not isinstance(new.failure, Absent)
    assert (old.failure.exception, old.failure.is_io) == ("KafkaStorageException", True)
    assert (new.failure.exception, new.failure.is_io) == ("NumberFormatException", False)


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [
        ("t-0", {}, "kept"),
        ("t-0", {"is_clean": False}, "scanned"),
        ("t-0", {"is_clean": False, "has_segments": False}, "kept"),
        ("t-0", {"lacks_index": True}, "scanned"),
        ("t-0", {"is_twice": True}, "exits"),
        ("lost+found", {}, "exits"),
        ("__cluster_metadata-0", {}, "scanned"),
        ("t-0.0a-stray", {}, "stray"),
        ("t-0.0a-delete", {"is_clean": False}, "deleted"),
    ],
)
def test_a_start_in_one_word_by_names_alone(name, given, word):
    plain = {"is_clean": True, "has_segments": True, "lacks_index": False, "is_twice": False}
    assert start_word_by_name(name, **(plain | given)) == word


def test_a_node_ends_where_the_directory_of_its_metadata_log_fails_since_3_7():
    log_dirs = (LoadedLogDir("a", clean=True, has_metadata_log=True), LoadedLogDir("b", clean=True))

    start = start_of(log_dirs, [load("t-0", failure=STORAGE)], rules=loading_rules(KafkaVersion(3, 7)))
    before = start_of(log_dirs, [load("t-0", failure=STORAGE)], rules=loading_rules(KafkaVersion(3, 6)))
    other = start_of(log_dirs, [load("t-0", log_dir="b", failure=STORAGE)])

    assert [one.result for one in (start, before, other) if isinstance(one, Start)] == [
        StartResult.EXITS,
        StartResult.DIRECTORY_OFFLINE,
        StartResult.DIRECTORY_OFFLINE,
    ]


def test_before_2_2_a_log_without_segments_begins_at_0_whatever_its_log_start_is():
    outcome = load_partition(
        directory({EPOCHS: 0}, {Need(EPOCHS, Content.EPOCHS): ()}),
        clean_shutdown=True,
        log_start_offset=7,
        rules=loading_rules(KafkaVersion(2, 1)),
    )

    assert isinstance(outcome, LoadOutcome)
    assert isinstance(outcome.state, LoadedState)
    assert (outcome.state.log_start_offset, outcome.state.log_end_offset) == (7, 0)
    assert LOG in outcome.tree


def test_before_2_0_a_log_start_above_a_segment_that_is_scanned_ends_the_load():
    second, index = f"{1:020d}.log", f"{1:020d}.index"
    contents = log_of(batch(), content=Content.CHECKED_BATCHES) | log_of(batch())
    for content in (Content.BATCHES, Content.CHECKED_BATCHES):
        contents |= {Need(second, content): Batches(batches=(batch(base=1),), end=100)}
    files = {EPOCHS: 0, LOG: 100, INDEX: 0, second: 100, index: 0}
    for name in (LOG, second):
        files[name.replace(".log", ".timeindex")] = 0
    given = {Need(EPOCHS, Content.EPOCHS): (), Need(INDEX, Content.OFFSET_INDEX): ()}
    outcome = load_partition(
        directory(files, contents | given | {Need(index, Content.OFFSET_INDEX): ()}),
        clean_shutdown=False,
        log_start_offset=9,
        rules=loading_rules(KafkaVersion(1, 1)),
    )

    assert isinstance(outcome, LoadOutcome)
    assert isinstance(outcome.failure, LoadFailure)
    assert outcome.failure == LoadFailure("IllegalArgumentException", "inconsistent range")


def segment_of(*entries, version, time=None):
    """A segment of two batches whose indexes hold some entries."""
    disk = Disk(
        directory(
            {LOG: 200, INDEX: 8 * len(entries), LOG.replace(".log", ".timeindex"): 12 * (time is not None)},
            log_of(batch(base=4, last=5), batch(position=100, base=6, last=7))
            | {Need(LOG, Content.BATCHES, 100): Batches(batches=(batch(position=100, base=6, last=7),), end=200)}
            | {Need(INDEX, Content.OFFSET_INDEX): entries}
            | {Need(LOG.replace(".log", ".timeindex"), Content.TIME_INDEX): time},
        )
    )
    return Segment(disk, 0, LoadSettings(), loading_rules(version))


def test_before_2_4_a_segment_is_read_up_to_the_batch_of_an_offset():
    segment = segment_of(version=KafkaVersion(2, 3))

    assert [one.base_offset for one in segment.read_up_to(4, 6)] == [4]
    assert [one.base_offset for one in segment.read_up_to(4, 9)] == [4, 6]
    assert list(segment.read_up_to(6, 4)) == []
    assert segment.read_up_to(8, 9) is None


def test_before_1_1_a_segment_that_ends_below_its_base_is_left_as_it_is():
    segment = segment_of(version=KafkaVersion(1, 0))
    segment.base_offset = 9

    assert segment.truncate_to_base() == 0
    assert segment.offset_index.count == 0


@pytest.mark.parametrize(
    ("time", "is_sound"), [(TimeEnds(5, 6, 1), True), (TimeEnds(5, 4, 1), False), (TimeEnds(5, 6, -1), False)]
)
def test_before_2_3_a_time_index_that_falls_is_corrupt(time, is_sound):
    segment = segment_of(version=KafkaVersion(2, 2), time=time)

    assert segment.sanity_check(has_index=True, has_time_index=True) is is_sound


@pytest.mark.parametrize(
    ("version", "sequence", "start"),
    [((2, 0), 7, 10), ((2, 0), -1, 14), ((2, 0), 2**31 - 2, 14 + 2**31 - 4), ((2, 1), 2**31 - 2, 10)],
)
def test_before_2_1_the_start_of_a_transaction_is_counted_back_by_sequence_numbers(version, sequence, start):
    producers = Producers(Disk(directory({})), LoadSettings(), loading_rules(KafkaVersion(*version)))

    producers.take_in(batch(base=10, last=14, producer_id=5, is_transactional=True, base_sequence=sequence))

    assert producers.first_unstable() == start


def test_before_2_4_a_marker_of_an_older_coordinator_ends_the_load():
    first, second = (
        batch(
            position=100 * at,
            base=at,
            producer_id=7,
            producer_epoch=1,
            is_control=True,
            end=TransactionEnd(is_abort=False, coordinator_epoch=epoch, timestamp=5),
        )
        for at, epoch in enumerate((3, 2))
    )
    contents = log_of(first, second, content=Content.CHECKED_BATCHES) | log_of(first, second)

    outcome = loaded({LOG: 200, INDEX: 0}, contents, clean=False, rules=loading_rules(KafkaVersion(2, 3)))

    assert outcome.failure.exception == "TransactionCoordinatorFencedException"
