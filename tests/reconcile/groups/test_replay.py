"""Positions by playing made logs, held against a model of a few lines; who made a commit; what can't be decoded."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.evidence.coordinators import group_log
from kforensics.evidence.coordinators.group_log import GroupLogReader, outline
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.reconcile.groups.replay import MINUTE_MS, Replay, Retention, infer_retention
from kforensics.reconcile.history.log_starts import LogStart, LogStartMove, Remover
from tests.builders.coordinators import NOW, batch, commit, group_metadata, marker, write_log

NEVER = Retention(retention_ms=None, removed_topics=lambda _topic, _since, _time: False)

KEYS = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["t", "u"]), st.integers(0, 1))
STEPS = st.one_of(
    st.tuples(st.just("commit"), KEYS, st.integers(0, 9), st.sampled_from([-1, 5, 6]), st.integers(0, 4)),
    st.tuples(st.just("remove"), KEYS),
    st.tuples(st.just("end"), st.sampled_from([5, 6]), st.booleans()),
)


def play(place, *, known_from=0, retention=NEVER, until_ms=None):
    replay = Replay(place=place, known_from=known_from, retention=retention, until_ms=until_ms)
    reader = GroupLogReader(list_log(place))
    return replay, list(replay.play(reader.events())), reader


def log_of(tmp_path, *records, name="__consumer_offsets-0"):
    content = b"".join(batch(at, [one]) if isinstance(one, tuple) else one for at, one in enumerate(records))
    return write_log(tmp_path, name, (0, content))


LEFT = (group_metadata("g", 1), commit("g", "t", 0, 5), group_metadata("g", 0, generation=2))
"""A group whose members read up to 5, and left."""


@pytest.mark.parametrize(
    ("later", "moves"),
    [
        ((9,), [(5, 9, None)]),
        ((9, 11), []),
        ((2, 9), []),
        ((9, 5), []),
        ((None, group_metadata("g", 1, generation=3), 9, 12), [(5, 9, "deletion")]),
        ((None, 3), []),
        ((group_metadata("g", 1, generation=3), 9), []),
    ],
    ids=["by hand", "a consumer that reads", "put back", "undone", "deleted before", "began earlier", "by a member"],
)
def test_a_position_that_goes_past_what_nothing_shows_to_be_read(tmp_path, later, moves):
    records = [one if isinstance(one, tuple) else commit("g", "t", 0, one) for one in later]
    place = log_of(tmp_path, *LEFT, *records)
    replay, _, _ = play(place)
    settled = Replay(place=place, known_from=0, retention=NEVER)
    list(settled.settle(GroupLogReader(list_log(place)).parts()))

    assert moves == [(one.previous, one.offset, one.removed_by) for one in replay.ahead.values()]
    assert settled.ahead == replay.ahead


BACK = group_metadata("g", 1, generation=3)


@pytest.mark.parametrize(
    ("moved_at", "later", "noted"),
    [
        ([(20, 3)], (BACK, 24), [(5, 24, 20, "proven")]),
        ([(20, 3)], (BACK, 21, 22, 25), [(5, 21, 20, "proven")]),
        ([(20, 4)], (BACK, 24), [(5, 24, 20, "possible")]),
        ([(20, 9)], (BACK, 24), []),
        ([(20, 9, 0, 12)], (BACK, 24), [(5, 24, 20, "possible")]),
        ([(20, 3, 3_600_000)], (BACK, 24), [(5, 24, 20, "possible")]),
        ([(20, 4)], (BACK, 6, 7, 24), [(7, 24, 20, "likely")]),
        ([(20, 6)], (BACK, 21, 30), []),
        ([(8, 4), (20, 9)], (BACK, 6, 24), [(6, 24, 8, "likely")]),
        ([(8, 3), (20, 6)], (BACK, 9, 10, 24), [(5, 9, 8, "proven")]),
        ([], (BACK, 24), [(5, 24, 20, "possible")]),
        ([], (BACK, 12, 24), []),
        ([(20, 3)], (None, BACK, 24), [(5, 24, 20, "proven")]),
        ([(20, 3)], (24,), [(5, 24, 20, "likely")]),
        ([(20, 3)], (BACK, 24, 9), []),
    ],
    ids=[
        "back behind the deletion",
        "and read on",
        "deleted while it may have read",
        "deleted later",
        "deleted later, and no line says when what was before it",
        "no input shows the zone of the line",
        "a member too slow",
        "had read them",
        "in two steps",
        "again, as it may have read",
        "no line says when",
        "no line, and nothing lost at its return",
        "its position removed, too",
        "put forward by hand",
        "set back since",
    ],
)
def test_a_group_that_goes_on_behind_what_was_deleted_before_it_read_it(tmp_path, moved_at, later, noted):
    times = [NOW + at * 1_000 for at in range(len(LEFT) + len(later))]
    records = [
        one if isinstance(one, tuple) else commit("g", "t", 0, one, time_ms=time)
        for one, time in zip((*LEFT, *later), times, strict=True)
    ]
    content = b"".join(batch(at, [one], time_ms=times[at]) for at, one in enumerate(records))
    place = write_log(tmp_path, "__consumer_offsets-0", (0, content))
    moves = [
        LogStartMove(at, Remover.SIZE, 4_000, NOW + second * 1_000 - 500, 1, (), slack_ms=slack, first_offset=first)
        for at, second, slack, first in ((*one, 0, 0)[:4] for one in moved_at)
    ]

    found = []
    for run in ("play", "settle"):
        replay = Replay(
            place=place, known_from=0, retention=NEVER, start_of=lambda _key: LogStart(offset=20, moves=moves)
        )
        reader = GroupLogReader(list_log(place))
        list(replay.play(reader.events()) if run == "play" else replay.settle(reader.parts()))
        found.append(list(replay.ahead.values()))

    assert found[0] == found[1]
    assert [(one.previous, one.offset, one.log_start, one.confidence) for one in found[0]] == noted


@given(steps=st.lists(STEPS, max_size=25), longest=st.sampled_from([1, 5, group_log.LONGEST_RUN]))
def test_positions_are_those_of_the_rules(tmp_path_factory, steps, longest):
    segments: list[tuple[int, bytes]] = []
    known: dict = {}
    pending: dict = {}
    for at, (what, *rest) in enumerate(steps):
        content = b""
        if what == "commit":
            key, offset, producer, version = rest
            content += batch(
                at,
                [commit(key[0], key[1], key[2], offset, version=version)],
                producer=producer,
                transactional=producer >= 0,
            )
            if producer >= 0:
                pending.setdefault(producer, {})[key] = (offset, at)
            else:
                known[key] = (offset, at)
        elif what == "remove":
            content += batch(at, [commit(rest[0][0], rest[0][1], rest[0][2], None)])
            known.pop(rest[0], None)
        else:
            producer, commits = rest
            content += marker(at, producer, commits=commits)
            for key, one in pending.pop(producer, {}).items():
                if commits and (key not in known or known[key][1] < one[1]):
                    known[key] = one
        if at % 4:
            content = segments.pop()[1] + content
        segments.append((at - at % 4, content))

    place = write_log(tmp_path_factory.mktemp("log"), "__consumer_offsets-0", *(segments or [(0, b"")]))
    replay, changes, reader = play(place)

    assert {tuple(key): (one.offset, one.at.offset) for key, one in replay.positions.items()} == known
    assert reader.skipped == 0
    # Played for its end alone, in runs of commits, it ends alike and has the same set-backs.
    settled = Replay(place=replay.place, known_from=0, retention=NEVER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_log, "LONGEST_RUN", longest)
        setbacks = list(settled.settle(GroupLogReader(list_log(replay.place)).parts()))
    assert settled.positions == replay.positions
    assert settled.ahead == replay.ahead
    assert {(one.key, one.previous, one.offset, one.time_ms, one.by) for one in setbacks} == {
        (one.key, one.previous, one.offset, one.time_ms, one.by) for one in changes if one.set_back
    }
    # Each change begins where the one before it ended.
    last: dict = {}
    for change in changes:
        assert change.previous == last.get(change.key)
        last[change.key] = change.offset


@given(
    records=st.lists(
        st.tuples(st.integers(0, 25), st.binary(max_size=24), st.integers(0, 6), st.none() | st.binary(max_size=40)),
        max_size=12,
    )
)
def test_bytes_that_mean_nothing_are_skipped(tmp_path_factory, records):
    """Every type of record with any content, and a sound commit behind it."""
    made = [
        (kind.to_bytes(2) + key, None if value is None else version.to_bytes(2) + value)
        for kind, key, version, value in records
    ]
    content = batch(0, [*made, commit("g", "t", 0, 7)])

    replay, changes, reader = play(write_log(tmp_path_factory.mktemp("log"), "__consumer_offsets-0", (0, content)))

    assert changes[-1].offset == 7
    assert reader.skipped <= len(records)
    settled = Replay(place=replay.place, known_from=0, retention=NEVER)
    assert all(one.set_back for one in settled.settle(GroupLogReader(list_log(replay.place)).parts()))
    assert settled.positions == replay.positions
    for group in replay.groups.values():
        assert group.name in {"Empty", "Stable", "Assigning", "Reconciling"}


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_tells_its_members(tmp_path, version):
    place = log_of(
        tmp_path,
        group_metadata("g", 2, version=version),
        commit("g", "t", 0, 7),
        group_metadata("g", 0, version=version, generation=2),
        commit("g", "t", 0, 3),
        group_metadata("g", None, version=version),
        commit("g", "t", 0, 4),
    )

    replay, changes, _ = play(place)

    assert [(one.by, one.confidence, one.set_back) for one in changes] == [
        ("member", "possible", 0),
        ("administrator", "proven", 4),
        ("administrator", "proven", 0),
    ]
    assert [one.had_members for one in changes] == [True, True, False]
    assert replay.groups == {}


@pytest.mark.parametrize("record_type", [0, 1])
def test_both_types_of_keys_name_the_same_position(tmp_path, record_type):
    place = log_of(tmp_path, commit("g", "t", 0, 7, record_type=record_type, version=0), commit("g", "t", 0, None))

    replay, changes, _ = play(place)

    assert [one.offset for one in changes] == [7, None]
    assert replay.positions == {}


def test_what_is_not_known_is_counted_and_skipped(tmp_path):
    key, value = commit("g", "t", 0, 7)
    place = log_of(
        tmp_path,
        (b"\x00\x63" + key[2:], value),  # a type of record that is to come
        (key, b"\x00\x09" + value[2:]),  # a version that is to come
        (key, value[:9]),  # cut off
        (b"\x00", value),
        (None, value),
        (key, value),
    )

    replay, changes, reader = play(place)

    assert reader.skipped == 5
    assert [one.offset for one in changes] == [7]
    assert len(replay.positions) == 1


def test_names_that_are_no_text_are_kept_as_bytes(tmp_path):
    key, value = commit("gg", "tt", 0, 7)
    place = log_of(tmp_path, (key.replace(b"gg", b"\xff\xfe"), value))

    _, changes, reader = play(place)

    assert [(one.key.group, one.key.topic) for one in changes] == [(b"\xff\xfe", "tt")]
    assert reader.skipped == 0


def test_who_made_a_commit_below_the_cleaner_is_unknown(tmp_path):
    content = (
        batch(3, [commit("g", "t", 0, 9)]) + batch(5, [group_metadata("g", 0)]) + batch(6, [commit("g", "t", 0, 4)])
    )
    place = write_log(tmp_path, "__consumer_offsets-0", (0, content))

    found = outline(list_log(place), 0)
    _, changes, _ = play(place, known_from=found.cleaned_until if found.is_whole else None)

    assert found.cleaned_until == 5
    assert [(one.by, one.offset) for one in changes] == [("unknown", 9), ("administrator", 4)]


def test_what_came_later_is_left_out(tmp_path):
    content = batch(0, [commit("g", "t", 0, 9)]) + batch(1, [commit("g", "t", 0, 4)], time_ms=NOW + 10)
    place = write_log(tmp_path, "__consumer_offsets-0", (0, content))

    assert [one.offset for one in play(place, until_ms=NOW + 9)[1]] == [9]
    assert [one.offset for one in play(place, until_ms=NOW + 10)[1]] == [9, 4]


@pytest.mark.parametrize(
    ("after_ms", "retention_ms", "by", "confidence"),
    [
        (59_999, None, "deletion", "proven"),
        (60_000, None, "unknown", "possible"),
        (60_000, MINUTE_MS, "expiry", "likely"),
        (10 * MINUTE_MS, 11 * MINUTE_MS, "deletion", "proven"),
        (10_080 * MINUTE_MS, None, "expiry", "likely"),
        (10_100 * MINUTE_MS, None, "unknown", "possible"),
    ],
)
def test_who_removed_a_position_follows_from_its_age(tmp_path, after_ms, retention_ms, by, confidence):
    content = batch(0, [group_metadata("g", 0)]) + batch(1, [commit("g", "t", 0, 9)])
    content += batch(2, [commit("g", "t", 0, None)], time_ms=NOW + after_ms)
    place = write_log(tmp_path, "__consumer_offsets-0", (0, content))

    retention = Retention(retention_ms=retention_ms, removed_topics=lambda _topic, _since, _time: False)
    (*_, last) = play(place, retention=retention)[1]

    assert (last.offset, last.by, last.confidence) == (None, by, confidence)


def test_a_retention_is_inferred_only_from_several_groups_that_agree():
    assert infer_retention([("a", 62_000), ("b", 61_000), ("b", 65_000)]) == MINUTE_MS
    assert infer_retention([("a", 62_000)]) is None
    assert infer_retention([("a", 62_000), ("b", 130_000)]) is None
    assert infer_retention([("a", 62_000), ("b", 119_000)]) is None


def test_memory_grows_with_positions_not_with_commits(tmp_path):
    content = b"".join(
        batch(at * 1000, [commit("g", "t", n % 5, at * 1000 + n) for n in range(1000)]) for at in range(5)
    )
    place = write_log(tmp_path, "__consumer_offsets-0", (0, content))
    replay = Replay(place=place, known_from=0, retention=NEVER)
    tracemalloc.start()
    assert sum(1 for _ in replay.play(GroupLogReader(list_log(place)).events())) == 5_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(replay.positions) == 5
    assert peak < 12 << 20


def removed(tmp_path, *, version, topic_is_deleted=False, again=40):
    hour = 60 * MINUTE_MS
    place = log_of(
        tmp_path,
        group_metadata("g", 1),
        commit("g", "t", 0, 90, version=version),
        batch(2, [commit("g", "t", 0, None)], time_ms=NOW + 3 * hour),
        batch(3, [commit("g", "t", 0, again, time_ms=NOW + 4 * hour)], time_ms=NOW + 4 * hour),
    )
    retention = Retention(retention_ms=None, removed_topics=lambda _topic, _since, _time: topic_is_deleted)
    replay, changes, reader = play(place, retention=retention)
    settled = Replay(place=place, known_from=0, retention=retention)
    setbacks = list(settled.settle(GroupLogReader(list_log(place)).parts()))
    assert [one for one in changes if one.set_back] == setbacks
    assert (0, 40 if again == 40 else again) == (reader.skipped, next(iter(replay.positions.values())).offset)
    return changes, setbacks


def test_a_group_that_began_again_below_its_former_position_was_set_back(tmp_path):
    changes, setbacks = removed(tmp_path, version=3)

    assert [(90, 40, "deletion")] == [(one.previous, one.offset, one.removed_by) for one in setbacks]
    assert "deletion" == changes[-2].by


@pytest.mark.parametrize(("topic_is_deleted", "again"), [(True, 40), (False, 90), (False, 200)])
def test_neither_a_new_topic_nor_a_position_as_high_as_before_is_a_set_back(tmp_path, topic_is_deleted, again):
    _, setbacks = removed(tmp_path, version=3, topic_is_deleted=topic_is_deleted, again=again)

    assert [] == setbacks


@pytest.mark.parametrize("version", [0, 1])
def test_what_expires_while_a_group_has_members_is_not_called_a_deletion(tmp_path, version):
    changes, _ = removed(tmp_path, version=version)

    assert "unknown" == changes[-2].by
    assert "expired or deleted" in changes[-2].reason


def began_anew(tmp_path, *records):
    place = log_of(tmp_path, *records)
    _, changes, _ = play(place)
    (back,) = [one for one in changes if one.set_back]
    return back


def test_a_group_that_was_removed_and_created_again_is_told_with_the_record(tmp_path):
    back = began_anew(
        tmp_path,
        group_metadata("g", 1, generation=7),
        commit("g", "t", 0, 90),
        commit("g", "t", 0, None),
        group_metadata("g", None),
        group_metadata("g", 1, generation=1),
        commit("g", "t", 0, 40),
    )

    assert (90, 40) == (back.previous, back.offset)
    assert "the group itself was removed at" in back.recreated
    assert back.recreated in back.reason
    assert 2 == len(back.citations)


def test_a_generation_that_went_back_leaves_a_choice(tmp_path):
    back = began_anew(
        tmp_path,
        group_metadata("g", 1, generation=7),
        commit("g", "t", 0, 90),
        group_metadata("g", 1, generation=1),
        commit("g", "t", 0, 40),
    )

    assert "from 7 to 1" in back.recreated
    assert "created again, or its coordinator went on from an older state" in back.recreated


def test_what_began_anew_before_the_position_did_not_set_it_back(tmp_path):
    back = began_anew(
        tmp_path,
        group_metadata("g", 1, generation=7),
        group_metadata("g", None),
        group_metadata("g", 1, generation=1),
        commit("g", "t", 0, 90),
        group_metadata("g", 2, generation=2),
        commit("g", "t", 0, 40),
    )

    assert "" == back.recreated
    assert "created again" not in back.reason
