"""What took a broker down, by its lines and those of its machine: writes of a killed process stay in the page cache, a power loss takes them."""

import json
from dataclasses import replace

import pytest

from kforensics.evidence.broker_logs import WINDOW_LENGTH, LogFile, read_log_files
from kforensics.evidence.discovery.inputs import LogPlace
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.outages import Outage, Sign, Took, outage_between, outages_of
from tests.builders.metadata_logs import history_of, metadata_batch, metadata_record

RAN = "[Log partition=t-0, dir=/d] Truncating to offset 5 (kafka.log.Log)"
CONFIGURED = "KafkaConfig values: (kafka.server.KafkaConfig)"
UNCLEAN = "Attempting recovery for all logs in /d since no clean shutdown file was found (kafka.log.LogManager)"
STARTED = "[KafkaServer id=3] started (kafka.server.KafkaServer)"
LIFE = [(0, STARTED), (20, RAN), (60, CONFIGURED), (61, UNCLEAN), (65, STARTED)]
BOOT = "0123456789abcdef" * 2


def written(second: int, line: str) -> str:
    return f"[2024-05-01 12:{second // 60:02d}:{second % 60:02d},000] INFO {line}"


def outages(tmp_path, *texts: str, history=None, heartbeats=()):
    files = []
    for number, text in enumerate(texts):
        path = tmp_path / "broker-3" / f"server.log.{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        files.append(LogPlace(path, ".", 0))
    events = [
        LoggedEvent(event, 3, event.time_ms, file)
        for file in read_log_files(files)
        if isinstance(file, LogFile)
        for event in file.events
    ]
    events.sort(key=lambda one: one.time_ms)
    return outages_of(events, history, {3: heartbeats}).get(3, ())


def lines(*more):
    return "".join(written(second, line) + "\n" for second, line in sorted((*LIFE, *more)))


def test_a_start_after_a_clean_stop_is_none(tmp_path):
    assert outages(tmp_path, lines().replace(UNCLEAN, "")) == ()


def test_lines_of_a_start_alone_tell_nothing(tmp_path):
    (one,) = outages(tmp_path, lines())

    assert (one.likely, one.proven, one.signs) == (None, None, ())


@pytest.mark.parametrize(
    ("journal", "proven", "was_booted"),
    [
        ("{0}\n-- Boot " + BOOT + " --\n{1}", None, True),
        ("{0}\n-- Reboot --\n{1}", None, True),
        ("-- Boot " + BOOT + " --\n{0}\n{1}", Took.PROCESS, False),
        ("{0}\n{1}", None, False),
    ],
)
def test_a_journal_shows_whether_the_machine_ran_on(tmp_path, journal, proven, was_booted):
    before, after = lines().split(written(60, CONFIGURED))
    (one,) = outages(tmp_path, journal.format(before.rstrip(), written(60, CONFIGURED) + after))

    # A kill and a shutdown in order behind it lose nothing: that a boot follows makes no loss likely.
    assert (one.proven, one.likely, one.was_booted) == (proven, proven, was_booted)


def test_of_many_starts_each_line_is_looked_at_a_few_times(tmp_path):
    looked = []

    class Time(int):
        def __int__(self):
            looked.append(self)
            return super().__int__()

    path = tmp_path / "server.log"
    path.write_text("".join(written(second, line) + "\n" for _ in range(50) for second, line in LIFE))
    (file,) = read_log_files([LogPlace(path, ".", 0)])
    assert isinstance(file, LogFile)
    events = [LoggedEvent(one, 3, Time(at), file) for at, one in enumerate(file.events)]

    assert len(outages_of(events)[3]) == 50
    assert len(looked) <= 3 * len(events)


def test_a_mark_of_a_boot_is_seen_where_the_windows_of_a_file_part_it(tmp_path):
    before, after = lines().split(written(60, CONFIGURED))
    head = f"-- Boot {BOOT} --\n{before}"
    head += "x" * (WINDOW_LENGTH - 21 - len(head)) + "\n"
    (one,) = outages(tmp_path, f"{head}-- Boot {BOOT[::-1]} --\n{written(60, CONFIGURED)}{after}")

    assert one.was_booted
    assert f":{len(head.splitlines()) + 1}]" in one.signs[0].words


def test_a_boot_between_a_start_that_was_cut_short_and_the_next_one_is_no_kill(tmp_path):
    again = [written(*one) for one in ((600, CONFIGURED), (601, UNCLEAN), (605, STARTED))]
    cut_short = [f"-- Boot {BOOT} --", *(written(*one) for one in LIFE[:4])]
    (one,) = outages(tmp_path, "\n".join([*cut_short, f"-- Boot {BOOT[::-1]} --", *again]) + "\n")

    assert (one.proven, one.was_booted) == (None, True)


def test_a_boot_behind_the_start_is_none_before_it(tmp_path):
    kernel = written(3000, "kernel: Linux version 6.1.0-18-amd64 (debian) #1 SMP") + "\n"
    (one,) = outages(tmp_path, lines().replace(written(65, STARTED) + "\n", ""), kernel)

    assert (one.proven, one.signs) == (None, ())


@pytest.mark.parametrize(("later", "proven"), [(BOOT, Took.PROCESS), (BOOT[::-1], None)])
def test_boot_ids_of_a_journal_in_json_do(tmp_path, later, proven):
    rows = [
        json.dumps({"_BOOT_ID": BOOT if second < 60 else later, "MESSAGE": written(second, line)})
        for second, line in LIFE
    ]
    for text in ("\n".join(rows) + "\n", f"[{','.join(rows)}]"):
        (one,) = outages(tmp_path, text)
        assert (one.proven, one.was_booted) == (proven, later != BOOT)


def test_boot_ids_of_several_machines_in_one_file_tell_nothing(tmp_path):
    rows = [json.dumps({"_BOOT_ID": BOOT, "MESSAGE": written(second, line)}) for second, line in LIFE]
    other = json.dumps({"_BOOT_ID": BOOT[::-1], "MESSAGE": written(30, "of another machine")})
    (one,) = outages(tmp_path, "\n".join([*rows[:2], other, *rows[2:]]) + "\n")

    assert (one.proven, one.signs) == (None, ())


def test_lines_of_the_kernel_do(tmp_path):
    (one,) = outages(tmp_path, lines(), written(55, "kernel: Linux version 6.1.0-18-amd64 (debian) #1 SMP") + "\n")
    (ran_on,) = outages(tmp_path, lines(), written(10, "kernel: Linux version 6.1.0-18-amd64 (debian) #1 SMP") + "\n")

    assert (one.proven, one.was_booted) == (None, True)
    assert (ran_on.proven, ran_on.was_booted) == (None, False)


def test_a_boot_is_no_sign_by_itself_and_speaks_against_a_process_alone():
    boot = Sign(Took.MACHINE, "a", is_boot=True)

    assert Outage(3, 0, (boot,)).likely is None
    assert Outage(3, 0, (boot, Sign(Took.MACHINE, "b"))).likely is Took.MACHINE
    assert Outage(3, 0, (boot, Sign(Took.PROCESS, "b"))).likely is None


@pytest.mark.parametrize(
    ("place", "is_sign"), [("tail", True), ("middle", False), ("head", False), ("other file", False)]
)
def test_bytes_of_nul_before_a_start_alone_speak_for_the_machine(tmp_path, place, is_sign):
    """A file that copytruncate cut while its broker wrote on begins with a hole, and the copy may end with one."""
    before, after = lines().split(written(60, CONFIGURED))
    hole = "\0" * 40
    after = written(60, CONFIGURED) + after
    if place == "tail":
        texts = [f"{before}{hole}{after}"]
    elif place == "middle":
        texts = [before.replace(written(20, RAN), f"{hole}{written(20, RAN)}") + written(59, RAN) + "\n" + after]
    elif place == "head":
        texts = [hole + before + after]
    else:
        texts = [after, before + hole]
    (one,) = outages(tmp_path, *texts)

    assert (one.likely is Took.MACHINE) == is_sign
    assert any("NUL bytes" in sign.words for sign in one.signs) == is_sign


@pytest.mark.parametrize(
    ("reason", "likely"),
    [
        ("Record is corrupt (stored crc = 1, computed crc = 2)", Took.MACHINE),
        ("Found record size 0 smaller than minimum record overhead (14) in file /d/t-0/0.log.", Took.MACHINE),
        ("Found record size 100 smaller than minimum record overhead (14)", None),
    ],
)
def test_records_that_no_cut_write_leaves_speak_for_the_machine(tmp_path, reason, likely):
    found = f"Found invalid messages in log segment /d/t-0/00000000000000000000.log at byte offset 7: {reason} (kafka.log.LogSegment)"
    (one,) = outages(tmp_path, lines((62, found)))

    assert (one.likely, one.proven) == (likely, None)


def test_a_torn_end_is_left_by_both_and_lets_no_other_sign_decide(tmp_path):
    cut = "[LogLoader partition=t-0, dir=/d] Corruption found in segment 0, truncating to offset 90 (x)"
    (one,) = outages(tmp_path, lines((62, cut)))

    assert one.likely is None
    assert one._replace(signs=(*one.signs, Sign(Took.PROCESS, "a"))).likely is None


@pytest.mark.parametrize(
    ("kept", "is_voter", "likely"), [(40, False, Took.PROCESS), (12, False, Took.MACHINE), (40, True, None)]
)
def test_the_metadata_log_that_no_broker_flushes_shows_how_much_was_there_again(tmp_path, kept, is_voter, likely):
    """One record a second until the controller fences the broker, whose last heartbeat was in second 20."""
    begun = 1_714_564_800_000
    batches = [
        metadata_batch(second, [metadata_record("NoOpRecord", {})], times_ms=[begun + second * 500])
        for second in range(60)
    ]
    history = history_of(tmp_path, *batches)
    if is_voter:
        history = replace(history, current_voters=(3,))
    own = "partition=__cluster_metadata-0"
    (one,) = outages(
        tmp_path,
        lines(
            (
                60,
                f"[LogLoader {own}, dir=/d] Recovering unflushed segment 0. 0 recovered for __cluster_metadata-0. (x)",
            ),
            (
                60,
                f"[ProducerStateManager {own}] Wrote producer snapshot at offset {kept} with 0 producer ids in 7 ms. (x)",
            ),
        ),
        history=history,
        heartbeats=((begun + 29_000, begun + 20_000),),
    )

    assert (one.likely, one.proven) == (likely, None)


def test_of_several_ends_the_one_counts_that_nothing_excuses():
    killed = Outage(3, 2_000, (Sign(Took.PROCESS, "a", is_proof=True),))
    unknown = Outage(3, 1_000)

    assert outage_between(0, 5_000, 3, {3: (unknown, killed)}) is unknown
    assert outage_between(1_500, 5_000, 3, {3: (unknown, killed)}) is killed
    assert outage_between(3_000, 5_000, 3, {3: (unknown, killed)}) == Outage(3)


def test_signs_that_contradict_each_other_decide_nothing():
    both = Outage(3, 0, (Sign(Took.PROCESS, "a"), Sign(Took.MACHINE, "b")))

    assert both.likely is None
    assert both._replace(signs=(*both.signs, Sign(Took.MACHINE, "c", is_proof=True))).proven is Took.MACHINE
