"""The questions of docs/howto/questions.md, asked of recordings of real brokers: the command of the page, and the first line that it gives."""

from typing import NamedTuple

import pytest

from kforensics.cli.app import run
from tests.conftest import ROOT

PAGE = (ROOT / "docs/howto/questions.md").read_text()
FINAL = "snapshots/99-final"


class Asked(NamedTuple):
    question: str
    """As the page has it, or how its row begins."""
    recording: str
    """In fixtures."""
    words: str
    """The command; paths are relative to the recording."""
    first_line: str


TABLE = (
    Asked(
        '"Offset out of range"',
        "coordinators/retention-3.9",
        "groups snapshots/20-deleted logs -g slow",
        "SLOW IS BELOW THE LOG START of timed-0: it committed 3, and the log starts at 20: 17 offsets were deleted before it read them, 0 are left.",
    ),
    Asked(
        "Who set our consumers back, and when?",
        "coordinators/groups-4.1",
        f"groups {FINAL} -g billing --history",
        "BILLING WAS SET BACK: orders-0 from 91 to 0 at 2026-11-22 11:01:40 UTC, while the group was empty: a reset, not a member.",
    ),
    Asked(
        "The group began from the beginning though nobody reset it.",
        "coordinators/retention-3.9",
        "groups snapshots/20-deleted logs -g etl --history",
        "ETL WAS SET BACK: kept-0 from 15 to 2 at 2026-11-26 21:52:09 UTC, after it began anew: the position before had expired",
    ),
    Asked(
        "The positions of a group are gone since the disk was exchanged.",
        "coordinators/retention-3.9",
        "groups snapshots/30-wiped --before snapshots/10-before -g slow",
        "SLOW HAS LOST ITS POSITION in asked-0: 3, which an earlier copy holds; the cause is unknown.",
    ),
    Asked(
        "A share group reads again what it had read.",
        "coordinators/share-reset-4.3",
        f"groups {FINAL}",
        "WORKERS WAS SET BACK: jobs-0 from 60 to 0 at 2026-11-22 21:19:11 UTC, while the group was empty: a reset by an administrator.",
    ),
    Asked(
        "A streams application counts everything again.",
        "coordinators/streams-4.4",
        "groups snapshots/20-reset",
        "TALLY WAS SET BACK: words-0 from 12 to 0 at 2026-11-27 11:35:30 UTC, while the group was empty: a reset, not a member.",
    ),
    Asked(
        "Which tool reset our groups, or did a member do it?",
        "coordinators/resets-4.4",
        "groups snapshots/20-reset logs -g tally --history",
        "TALLY WAS SET BACK: words-0 from 6 to 0 at 2026-11-27 14:26:11 UTC, while the group was empty: a reset, not a member.",
    ),
    Asked(
        "A group was reset to the latest offset: what did it never read?",
        "coordinators/resets-4.4",
        "groups snapshots/20-reset logs -g to-latest",
        "TO-LATEST WAS SET FORWARD: orders-0 from 15 to 20 at 2026-11-27 14:25:43 UTC, while the group was empty: a reset, not a member. Nothing shows that it read the 5 offsets between.",
    ),
    Asked(
        "Our group has no position any more.",
        "coordinators/kinds-4.4",
        "groups snapshots/30-expired -g static",
        "The position of static in orders-0, 14, is gone since 2026-11-27 18:23:41 UTC: it had expired",
    ),
    Asked(
        "The committed position is larger than the log.",
        "incidents/consumer-ahead-4.x",
        f"groups {FINAL} logs",
        "BILLING-AUDIT IS PAST THE END of billing-0: it committed 120, and the log ends at 90;",
    ),
    Asked(
        "Consumers with read_committed get nothing any more.",
        "coordinators/transactions-3.9",
        "transactions snapshots/02-hanging-live",
        "2 HANGING TRANSACTIONS hold back read_committed consumers of orders-1 and orders-2",
    ),
    Asked(
        "Records that are minutes old have vanished.",
        "coordinators/retention-3.9",
        "explain snapshots/20-deleted logs --before snapshots/10-before",
        "If broker 1, the last leader on record, still leads, 16 records of zeroed-0 that were possibly committed are lost: retention that took them for older than they were.",
    ),
    Asked(
        "Which rule deleted the offsets below the log start, and when?",
        "coordinators/retention-3.9",
        "trace snapshots/20-deleted logs -t timed --offset 3",
        "DELETED ON PURPOSE: 1 matching record of timed-0; no input holds a copy. The log starts at offset 20 now: it was removed at 2026-11-26 21:52:22 UTC by retention by time (retention.ms 1 second).",
    ),
    Asked(
        "Give me back what was deleted too early.",
        "coordinators/retention-3.9",
        "salvage snapshots/20-deleted logs --before snapshots/10-before --what lost -t zeroed -o {out}",
        "16 of 16 records of zeroed-0 that may be lost are saved",
    ),
    Asked(
        "A tiered topic: is this record in remote storage, or gone?",
        "coordinators/tiers-3.9",
        "trace snapshots/20-cut-off -t archive --offset 3",
        "IN REMOTE STORAGE, NOT ON THESE DISKS: offset 3 of archive-0; the copy of offsets 0 to 3 was finished (",
    ),
    Asked(
        "How many records did the unclean election cost, and were they acknowledged?",
        "incidents/unclean-election-4.x",
        f"explain {FINAL} logs --before snapshots/02-old-leader-killed",
        "56 records that were committed are lost from orders (3 partitions): an unclean election.",
    ),
    Asked(
        '"Truncating to offset N": normal, or loss?',
        "incidents/epoch-truncate-3.9",
        f"explain {FINAL} logs",
        "Nothing that was committed is lost since 2026-11-21 06:27:46 UTC",
    ),
    Asked(
        "Two replicas, the same offset, different records: which is right?",
        "incidents/silent-divergence-4.x",
        f"diff {FINAL} logs",
        "REPLICAS HAVE DIVERGED and will stay so: those of 2 of 7 partitions hold different content at the same offset, and replication will not repair it. The odd one out in audit-0: broker 2 (its log can't give offsets 58 to 63). Of audit-1 no checksum and no majority tells which is right.",
    ),
    Asked(
        "A consumer stops at an offset with a CRC error: what is there, and who holds it?",
        "incidents/damage-unread-2.8",
        f"verify {FINAL}",
        "1 of 81 files is damaged: 5 offsets (35..39) of audit-0 can't be read.",
    ),
    Asked(
        "The disk of a broker was exchanged: may it be started?",
        "incidents/disk-replaced-4.x",
        "diff snapshots/03-all-down-disk-replaced",
        "STARTING BROKER 1 DESTROYS 5 PARTITIONS: its disk is empty, its directory.id is not the registered one and the ISR is [1].",
    ),
    Asked(
        "The leader was killed and led again: was anything lost?",
        "incidents/last-standing-3.3",
        f"explain {FINAL} logs",
        "At least 5 records that were committed are lost from ledger-0: the last replica standing, which had lost its own tail and led again.",
    ),
    Asked(
        "A controller came back with an empty or older disk.",
        "quorums/only-controller-emptied",
        "metadata before",
        "Controller 100, the only voter, lacks metadata that was committed.",
    ),
    Asked(
        "Prove that nothing of this key is left.",
        "incidents/unclean-election-4.x",
        f"trace {FINAL} --erasure --key nobody -t orders",
        "NO BYTES LEFT in the files that were searched: 12 files of orders-0, orders-1, orders-2 and orders-3 were read whole, and no record has the key.",
    ),
    Asked(
        "A topic was deleted by mistake: what is left of it?",
        "incidents/recreated-topic-4.x",
        f"salvage {FINAL} --what all -t oldstuff -o {{out}}",
        "40 of 40 records of oldstuff-0 and oldstuff-1 saved.",
    ),
    Asked(
        "What does a cleaning leave that was cut off?",
        "compaction/killed-cleaner-4.1",
        "verify .",
        "Sound: ",
    ),
)


@pytest.mark.parametrize("asked", TABLE, ids=lambda one: one.question)
def test_the_first_line_answers_the_question(asked, request, tmp_path, capsys, monkeypatch):
    (row,) = [one for one in PAGE.splitlines() if one.startswith(f"| {asked.question}")]
    assert f"| `kforensics {asked.words.split()[0]} " in row
    folder, name = asked.recording.split("/")
    unpack = request.getfixturevalue({"incidents": "incident"}.get(folder, folder))
    monkeypatch.chdir(unpack(name))
    monkeypatch.setenv("COLUMNS", "400")

    words = asked.words.format(out=tmp_path / "out").split()
    run(words)

    assert " ".join(capsys.readouterr().out.split()).startswith(asked.first_line)
