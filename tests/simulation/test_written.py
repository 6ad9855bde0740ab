"""Directories that the simulator writes: sound by every check of the tool, and as their truth says."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.commands.comparing import compare
from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.broker_files import write_cluster
from kforensics.simulation.cluster import SimulatedCluster, random_cluster, stable_id
from kforensics.simulation.fleet_files import FleetFault, write_fleet
from kforensics.simulation.replica import ImpossibleEventError, Settings
from tests.builders.cases import case_of


@pytest.mark.parametrize("protocol", list(ProtocolName))
def test_written_directories_are_sound(protocol, tmp_path, capsys):
    write_cluster(
        random_cluster(3, protocol=protocol, brokers=4, partitions=3), tmp_path / "cluster", segment_length=400
    )
    for broker in sorted((tmp_path / "cluster").glob("broker-*")):
        assert run(["verify", str(broker)]) == 0
        assert capsys.readouterr().out.startswith("Sound: ")


def test_nothing_is_overwritten(tmp_path):
    with pytest.raises(UsageError, match="overwrites nothing"):
        write_cluster(random_cluster(1), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't be made"):
        write_cluster(random_cluster(1), tmp_path / "file" / "below")


def test_a_scenario_in_the_middle(tmp_path, capsys):
    target = tmp_path / "written"
    assert run(["simulate", "unclean-election", "--steps", "9", "--write", str(target)]) == 0
    assert "truth.json" in capsys.readouterr().out
    truth = json.loads((target / "truth.json").read_text())["partitions"][0]
    assert (truth["leader"], truth["leader_epoch"], truth["unclean_elections"]) == (2, 1, 1)
    assert truth["lost_committed"] == [{"offset": 1, "record": "m1"}]
    first = truth["replicas"][0]
    assert (first["broker_id"], first["truncate_to"], first["first_divergence"]) == (1, 1, 1)
    assert run(["diff", str(target), "--format", "json"]) == 1
    partition = next(one for one in json.loads(capsys.readouterr().out)["partitions"] if one["topic"] == "orders")
    assert partition["leader"]["source"] == "metadata"
    assert partition["replicas"][0]["expected_truncation"]["offset"] == 1


def test_all_brokers_stopped_cleanly(tmp_path, capsys):
    target = tmp_path / "written"
    assert run(["simulate", "unclean-election", "--steps", "9", "--stop", "--write", str(target)]) == 0
    assert [(target / f"broker-{broker}" / ".kafka_cleanshutdown").is_file() for broker in (1, 2)] == [True, True]
    for broker in (1, 2):
        assert run(["verify", str(target / f"broker-{broker}")]) == 0
        assert "Sound: " in capsys.readouterr().out


def test_random_and_fleet_from_the_command_line(tmp_path, capsys):
    assert run(["simulate", "--random", "--seed", "5", "--write", str(tmp_path / "random"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"]["truth"] == "truth.json"
    assert (tmp_path / "random" / "logs" / "broker-1" / "server.log").read_text().count("Kafka version: 4.1.0") >= 1
    assert run(["simulate", "--bytes", "3MiB", "--partitions", "4", "--write", str(tmp_path / "fleet")]) == 0
    assert "2.9 MB of segments written" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--random",), "--random and --bytes go with --write DIR"),
        (("--bytes", "1G"), "--random and --bytes go with --write DIR"),
        (("--list", "--write", "DIR"), "--write needs NAME, --random or --bytes"),
        (("--bytes", "much", "--write", "DIR"), "--bytes much: expected bytes, such as 20G, 1.5MB or 64KiB"),
        (("--bytes", "1M", "--stop", "--write", "DIR"), "--stop needs --write and NAME or --random"),
        (("--random", "--partitions", "5000", "--write", "DIR"), "at most 1000 partitions"),
        (("--random", "--brokers", "5000", "--write", "DIR"), "at most 100 brokers"),
        (("--random", "--brokers", "2", "--racks", "1", "--steps", "3", "--write", "DIR"), "--steps needs NAME"),
        (("--bytes", "900000T", "--write", "DIR"), "has room for"),
        (("--bytes", "1", "--write", "DIR"), "6 replicas of 8 batches need 769008 bytes, given are 1"),
        (("hw-loss", "--steps", "3"), "--steps needs NAME and --write"),
        (("hw-loss", "--stop"), "--stop needs --write and NAME or --random"),
        (("hw-loss", "--seed", "7"), "--seed needs --random"),
        (("hw-loss", "--brokers", "4"), "--brokers needs --random or --bytes"),
        (("hw-loss", "--max-states", "9"), "--max-states needs --explore"),
        (("--explore", "hw", "--protocol", "hw"), "--protocol needs NAME or --random"),
        (("--explore", "hw", "--write", "DIR"), "--write needs NAME, --random or --bytes"),
        (("hw-loss", "--list"), "one of NAME, --list, --explore, --random and --bytes is needed"),
        ((), "one of NAME, --list, --explore, --random and --bytes is needed"),
    ],
)
def test_usage(arguments, words, tmp_path, capsys):
    given = [str(tmp_path / "new") if argument == "DIR" else argument for argument in arguments]
    assert run(["simulate", *given]) == 2
    assert words in capsys.readouterr().err


def test_a_refusal_writes_nothing(tmp_path):
    for given in (("--bytes", "1"), ("--bytes", "900000T"), ("--random", "--partitions", "5000")):
        assert run(["simulate", *given, "--write", str(tmp_path / "new")]) == 2
        assert not (tmp_path / "new").exists()


def test_racks_are_kept_apart_and_registered(tmp_path):
    target = tmp_path / "new"
    assert run(["simulate", "--random", "--seed", "4", "--brokers", "6", "--racks", "3", "--write", str(target)]) == 0
    cluster = random_cluster(4, brokers=6, partitions=12, racks=3)
    for partition in cluster.partitions.values():
        assert len({cluster.racks[broker] for broker in partition.brokers}) == len(partition.brokers)
    log = (target / "controller-100" / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    assert all(name in log for name in (b"rack-1", b"rack-2", b"rack-3"))


def test_a_fleet_is_as_its_truth_says(tmp_path):
    truth = write_fleet(tmp_path / "fleet", brokers=4, partitions=40, total_length=24_000_000)
    assert truth.replicas == 120
    assert abs(truth.bytes - 24_000_000) < 4_000_000
    faults = [partition.fault for partition in truth.partitions]
    assert {fault: faults.count(fault) for fault in FleetFault} == {
        FleetFault.NONE: 36,
        FleetFault.BEHIND: 2,
        FleetFault.DIVERGED: 1,
        FleetFault.SILENT: 1,
    }
    result = compare(case_of(find_inputs([tmp_path / "fleet"])), keep_quiet=True)
    assert result.problems == ()
    for expected, found in zip(truth.partitions, result.partitions, strict=True):
        assert found.report is not None
        truncations = [one.truncation.offset for one in found.report.replicas if one.truncation]
        differing = {one.divergence.offset for one in found.report.replicas if one.divergence}
        nothing = Absent.NOT_APPLICABLE
        assert truncations == ([] if expected.expected_truncation is nothing else [expected.expected_truncation])
        assert differing == (set() if expected.first_divergence is nothing else {expected.first_divergence})


def test_batches_of_two_partitions_differ_so_that_exchanged_directories_do(tmp_path):
    write_fleet(tmp_path / "fleet", brokers=3, partitions=2, total_length=800_000)
    one, two = sorted(path.parent for path in (tmp_path / "fleet" / "broker-1").glob("*/*.log"))
    spare = one.with_name("spare")
    for source, target in ((one, spare), (two, one), (spare, two)):
        source.rename(target)

    result = compare(case_of(find_inputs([tmp_path / "fleet"])), keep_quiet=True)

    for found in result.partitions:
        assert found.report is not None
        assert {0} == {part.divergence.offset for part in found.report.replicas if part.divergence}, found.partition


def test_a_cluster_refuses_what_cannot_be():
    cluster = SimulatedCluster.of_topic(
        (1, 2), partitions=1, replication_factor=2, protocol=ProtocolName.KIP_595, settings=Settings()
    )
    with pytest.raises(ImpossibleEventError, match="already running"):
        cluster.start(1)
    cluster.stop([1], "stop")
    with pytest.raises(ImpossibleEventError, match="not running"):
        cluster.stop([1], "crash")


def test_ids_are_stable_and_do_not_begin_with_a_dash():
    assert stable_id("a") == stable_id("a") != stable_id("b")
    assert not any(stable_id(str(number)).startswith("-") for number in range(300))
