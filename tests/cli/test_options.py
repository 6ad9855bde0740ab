"""Sizes, rates and times mean the same in every command that takes them."""

import pytest

from kforensics.ask.values import parse_rate, parse_size, parse_time
from kforensics.cli.app import run
from kforensics.errors import UsageError
from kforensics.source.mapped import limit_read_rate


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("800000", 800_000),
        ("10k", 10_000),
        ("20G", 20 * 10**9),
        ("1.5MB", 1_500_000),
        ("1.5GiB", 1_610_612_736),
        ("64 KiB", 65_536),
        (" 3T ", 3 * 10**12),
    ],
)
def test_sizes(text, size):
    assert size == parse_size(text, "--bytes")


@pytest.mark.parametrize("text", ["", "much", "-5MB", "5iB", "1,5M", "5MB/s", "1.5.5M", "٣M", "9" * 400])
def test_no_sizes(text):
    with pytest.raises(UsageError, match="--bytes"):
        parse_size(text, "--bytes")


@pytest.mark.parametrize(
    ("text", "rate"), [("50MB/s", 50_000_000), ("1.5MB/s", 1_500_000), ("1.5GiB/s", 1_610_612_736), ("800000", 800_000)]
)
def test_rates(text, rate):
    assert rate == parse_rate(text, "--read-rate")


@pytest.mark.parametrize("text", ["", "fast", "-5MB/s", "0", "0.5", "5 TB/h", "/s", "5/s/s"])
def test_no_rates(text):
    with pytest.raises(UsageError, match="--read-rate"):
        parse_rate(text, "--read-rate")


@pytest.mark.parametrize("command", ["verify", "diff", "seal", "fleet scan"])
def test_every_command_takes_the_same_rates(command, fixtures, tmp_path, capsys):
    out = ("--normal-priority", "--out", str(tmp_path / "evidence")) if command == "fleet scan" else ()
    node = str(fixtures / "unclean-election" / "broker-2" / "orders-3")
    try:
        for rate in ("1.5GB/s", "800000000", "1 TiB/s"):
            assert run([*command.split(), node, "--read-rate", rate, *out]) in {0, 1, 3}, capsys.readouterr().err
        assert run([*command.split(), node, "--read-rate", "1.5 loaves", *out]) == 2
    finally:
        limit_read_rate(None)
    assert "--read-rate 1.5 loaves: expected bytes a second" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-02", 86_400_000),
        ("-5", -5),
        ("1763706373332", 1_763_706_373_332),
        ("1700000000000000", 1_700_000_000_000_000),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000),
    ],
)
def test_times(text, milliseconds):
    assert milliseconds == parse_time(text, "--since")


@pytest.mark.parametrize("text", ["", "soon", "20261121", "9" * 19, "2026-13-01", "١٢٣"])
def test_no_times(text):
    with pytest.raises(UsageError, match="--since"):
        parse_time(text, "--since")


@pytest.mark.parametrize("options", [("explain", "--since"), ("explain", "--until"), ("dump", "--from-time")])
@pytest.mark.parametrize("moment", ["1763706373332", "2025-11-21T06:26:13.332Z", "2025-11-21T07:26:13.332+01:00"])
def test_every_command_takes_the_same_times(options, moment, fixtures, capsys):
    command, option = options
    node = str(fixtures / "unclean-election" / "broker-2" / "orders-3")
    evidence = node + "/00000000000000000000.log" if command == "dump" else node

    assert run([command, evidence, option, moment]) in {0, 1, 3}, capsys.readouterr().err
    assert run([command, evidence, option, "tomorrow"]) == 2
    assert f"{option} tomorrow is neither ISO 8601" in capsys.readouterr().err
