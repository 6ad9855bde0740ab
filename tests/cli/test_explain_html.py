"""The page of a recorded incident."""

import hashlib
import re
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.exits import ExitCode
from tests.builders.pages import outline

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module", autouse=True)
def made():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1795316400")
        yield


@pytest.fixture(scope="module")
def recording(incident):
    return incident("unclean-election-4.x")


def explain(root, *options):
    arguments = ["--before", root / "snapshots/02-old-leader-killed", root / "snapshots/99-final", root / "logs"]
    return run(["explain", *map(str, [*arguments, *options])])


@pytest.fixture(scope="module")
def page(recording, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"

    code = explain(recording, "--format", "html", "-o", out)

    assert ExitCode.FINDINGS == code
    return out.read_text(encoding="utf-8")


def test_the_verdict_stands_first(page):
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page)

    assert heading is not None
    assert heading[1].startswith("56 records that were committed are lost from orders (3 partitions)")
    assert "Committed records are lost" in page


def test_ledger_truncations_and_pictures_are_there(page):
    for words in (
        "93..102",
        '<a href="#partition-orders-0">orders-0 on broker 1: 103 → 60</a>',
        "as the broker did",
        "43 records not in the leader",
        "it truncates to 60",
        "Brokers 2 and 3 became leaders of orders-0, orders-1 and orders-2 by unclean election at 2026-11-21T06:40:07.719Z, while the ISR was [1].",
    ):
        assert words in page
    # The fourth had an unclean election too, and lost nothing.
    assert 4 == page.count('<section class="partition" id="partition-')
    # Of each partition one log of the snapshot, three of now, and three brokers over time.
    assert 4 * (1 + 3 + 3) == page.count('role="img"')


def test_the_incident_is_named_at_the_top(page):
    terms = dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", page[: page.index("<h1")]))

    assert {
        "Cluster": "6It1kTHbTjKY3LNflMZizQ",
        "Kafka": "4.1.0 (nodes 1, 2, 3 and 100)",
        "Brokers": "1, 2 and 3",
        "Events": "2026-11-21T06:39:48.604Z to 2026-11-21T06:40:16.265Z",
        "Page made": "2026-11-22T03:00:00.000Z",
    } == terms


def test_every_partition_has_an_anchor_of_its_name_that_the_ledger_links_to(page):
    assert [f"partition-orders-{number}" for number in range(4)] == re.findall(
        r'<section class="partition" id="(partition-.*?)"', page
    )
    assert {"#partition-orders-0", "#partition-orders-1", "#partition-orders-2"} == set(
        re.findall(r'<th scope="row" class="name" role="rowheader"><a href="(.*?)">', page)
    )


def test_a_page_that_is_not_calm_has_no_tick_and_claims_no_zero(page):
    assert "✓" not in page
    assert '<dt>possibly committed, lost</dt><dd class="none">none shown</dd>' in page


def test_what_a_replica_in_use_still_holds_is_at_risk_and_not_lost(recording, tmp_path):
    out = tmp_path / "at-stake.html"

    run(["explain", str(recording / "snapshots/03-old-leader-down-live"), "--format", "html", "-o", str(out)])

    text = out.read_text(encoding="utf-8")
    assert "Committed records may be lost" in text
    assert "What not to do" in text
    assert "<dt>still held, at risk</dt><dd>56</dd>" in text
    assert '<dt>committed records lost</dt><dd class="none">none shown</dd>' in text
    assert "(in use)" in text


def test_files_cited_are_hashed(page, recording):
    found = re.findall(
        r'<tr id="file-\d+"><th scope="row" class="mono name">(.*?)</th><td class="number">([\d,]+)</td><td class="mono">(\w+)</td>',
        page,
    )

    assert len(found) == 9
    for name, length, digest in found:
        content = Path(name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) == int(length.replace(",", ""))


def test_the_same_evidence_gives_the_same_bytes(page, recording, tmp_path, untouched):
    with untouched(recording / "snapshots" / "99-final"):
        explain(recording, "--format", "html", "-o", tmp_path / "again.html", "--jobs", "2")

    assert page == (tmp_path / "again.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_recording_where_nothing_was_lost_comes_out_calm(incident, tmp_path):
    root = incident("benign-rolling-restart-4.x")
    out = tmp_path / "calm.html"

    code = run(["explain", str(root / "snapshots/99-final"), str(root / "logs"), "--format", "html", "-o", str(out)])

    text = out.read_text(encoding="utf-8")
    assert ExitCode.NOTHING_FOUND == code
    assert "tone-good" in text
    assert "<dt>committed records lost</dt><dd>0</dd>" in text
    assert "Ledger of losses" not in text


def test_hostile_names_on_disk_change_no_element(tmp_path):
    def tags(name):
        root = tmp_path / f"case-{len(name)}"
        folder = root / name
        folder.mkdir(parents=True)
        (folder / "server.log").write_text(
            f"[2026-11-21 06:40:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
            f"[2026-11-21 06:40:01,000] ERROR Error while loading log dir /{name} (kafka.log.LogManager)\n"
        )
        out = tmp_path / f"{len(name)}.html"
        run(["explain", str(folder), "--format", "html", "-o", str(out)])
        return outline(out.read_text(encoding="utf-8")).elements

    harmless, hostile = tags("plain"), tags('"><img src=x onerror=alert(1)><script>')

    assert harmless == hostile
    assert harmless


def test_redacted_it_says_so_and_names_no_group(incident, tmp_path, monkeypatch):
    monkeypatch.setenv("KFORENSICS_REDACT_KEY", KEY)
    root = incident("consumer-ahead-4.x")
    out = tmp_path / "redacted.html"

    run(
        [
            "explain",
            str(root / "snapshots/99-final"),
            str(root / "logs"),
            "--redact",
            "--format",
            "html",
            "-o",
            str(out),
        ]
    )

    text = out.read_text(encoding="utf-8")
    assert "billing-etl" not in text
    assert re.search(r"group-[0-9a-f]{24}", text)
    assert "pseudonyms" in text
    assert "billing-0" in text
