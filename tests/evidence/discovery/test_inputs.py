import errno
import os
import shutil
import tarfile
import zipfile

import pytest

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceNotFound, EvidenceUnreadable, InputsRefused, NotADataDir
from kforensics.evidence.discovery import log_spans
from kforensics.evidence.discovery.inputs import find_inputs, find_logs, has_log_files, why_not_compared
from kforensics.evidence.discovery.log_dirs import quorum_voters
from kforensics.evidence.model import Input
from kforensics.source.discover import Shape
from kforensics.source.mapped import scan_directory
from kforensics.source.walk import FoundFile, Listings, Obstacle
from tests.builders.directories import CLUSTER, copied, log_dir
from tests.opened import opened_path


def described(*paths, **options):
    return [(one.path, one.kind, one.broker_id) for one in find_inputs(paths, **options).described]


def test_a_parent_of_nodes_is_one_input_a_node(fixtures):
    tree = fixtures / "unclean-election"

    found = find_inputs([tree])

    assert found.problems == ()
    assert found.described[0] == Input(
        path=f"{tree}/broker-1",
        kind="broker",
        broker_id=1,
        cluster_id=CLUSTER,
        kafka_version_hint="3.7 or later (directory.id)",
    )
    assert [(one.kind, one.broker_id) for one in found.described] == [
        ("broker", 1),
        ("broker", 2),
        ("broker", 3),
        ("controller", 100),
    ]
    assert [one.log_dir_paths for one in found.found] == [("",)] * 4


@pytest.mark.parametrize(
    ("name", "snapshot", "kinds", "log_dirs", "version"),
    [
        ("hw-loss-0.10", "99-final", "broker broker", ("kafka-logs",), "0.10.1"),
        ("kip101-saves-0.11", "99-final", "broker broker", ("kafka-logs",), "0.11"),
        ("reassignment-jbod-2.8", "99-final", "broker broker broker", ("disk-a", "disk-b"), "2.8"),
        ("epoch-truncate-2.8", "99-final", "broker broker broker controller", ("",), "2.8"),
        ("all-codecs-4.x", "99-final", "combined", ("broker-1",), "3.7"),
    ],
)
def test_recordings(incident, name, snapshot, kinds, log_dirs, version):
    found = find_inputs([incident(name) / "snapshots" / snapshot])

    assert " ".join(one.kind for one in found.described) == kinds
    assert {one.log_dir_paths for one in found.found} == {log_dirs}
    hint = found.described[0].kafka_version_hint
    assert not isinstance(hint, Absent)
    assert hint.startswith(f"{version} or later")


def test_snapshots_of_one_node_are_not_its_disks(incident):
    root = incident("kraft-quorum-3x") / "snapshots"

    found = find_inputs([root])

    assert len(found.found) == len(list(root.glob("*/*")))
    assert {one.path for one in found.described} == {str(path) for path in root.glob("*/*")}


def test_copies_are_distinguished_from_disks(tmp_path):
    log_dir(tmp_path / "copies" / "monday", partitions=("a-0", "b-0", "c-0"))
    log_dir(tmp_path / "copies" / "tuesday", partitions=("a-0", "b-0", "d-0"))
    log_dir(tmp_path / "disks" / "disk-a", partitions=("a-0", "b-0", "c-0"))
    log_dir(tmp_path / "disks" / "disk-b", partitions=("a-0", "d-0", "e-0"))
    log_dir(tmp_path / "same" / "one", directory_id="vQJh2GyhL3rVa4H9GeSaWQ", partitions=())
    log_dir(tmp_path / "same" / "two", directory_id="vQJh2GyhL3rVa4H9GeSaWQ", partitions=())

    assert [path for path, _, _ in described(tmp_path / "copies")] == [
        f"{tmp_path}/copies/monday",
        f"{tmp_path}/copies/tuesday",
    ]
    assert described(tmp_path / "disks") == [(f"{tmp_path}/disks", "broker", 1)]
    assert len(described(tmp_path / "same")) == 2


def test_disks_of_several_nodes_side_by_side(tmp_path):
    for node in (1, 2):
        for disk in "ab":
            log_dir(tmp_path / f"b{node}-{disk}", node, partitions=(f"{disk}-0",))

    found = find_inputs([tmp_path]).found

    assert [(one.described.broker_id, one.log_dir_paths) for one in found] == [
        (1, ("b1-a", "b1-b")),
        (2, ("b2-a", "b2-b")),
    ]


def test_directories_that_say_nothing_stay_apart(tmp_path):
    for name in ("x", "y"):
        log_dir(tmp_path / name)
        (tmp_path / name / "meta.properties").write_bytes(b"\xff\x00")

    found = find_inputs([tmp_path]).found

    assert len(found) == 2
    assert found[0].described.broker_id is Absent.UNKNOWN


def test_single_things(fixtures):
    broker = fixtures / "unclean-election" / "broker-1"
    names = (
        "orders-0",
        "orders-0/00000000000000000000.log",
        "orders-0/leader-epoch-checkpoint",
        "replication-offset-checkpoint",
        "meta.properties",
    )

    kinds = [one.kind for one in find_inputs([broker / name for name in names]).described]

    assert kinds == ["partition", "segment", "checkpoint", "checkpoint", "meta-properties"]


def test_a_text_log_of_any_name_is_a_server_log(tmp_path):
    (tmp_path / "kubectl-output.txt").write_text("")
    (tmp_path / "picture").write_text("")

    assert [kind for _, kind, _ in described(tmp_path / "kubectl-output.txt", tmp_path / "picture")] == [
        "log-file",
        "unknown",
    ]


def test_a_link_to_a_file_keeps_the_name_that_tells(fixtures, tmp_path):
    segment = fixtures / "unclean-election" / "broker-1" / "orders-0" / "00000000000000000000.log"
    (tmp_path / "00000000000000000007.log").symlink_to(segment)
    (tmp_path / "current").symlink_to(segment)

    (by_name,) = find_inputs([tmp_path / "00000000000000000007.log"]).found[0].walk()
    (by_target,) = find_inputs([tmp_path / "current"]).found[0].walk()

    assert isinstance(by_name, FoundFile)
    assert isinstance(by_target, FoundFile)
    assert (by_name.path, by_name.name.base_offset, by_name.length) == (".", 7, segment.stat().st_size)
    assert by_target.name.base_offset == 0


def test_server_logs_are_inputs_where_they_are_asked_for(incident):
    root = incident("hw-loss-0.10")

    without = described(root)
    with_logs = described(root, with_server_logs=True)

    assert {kind for _, kind, _ in without} == {"broker"}
    assert {path for path, kind, _ in with_logs if kind == "log-files"} == {f"{root}/logs/broker-{n}" for n in (1, 2)}


def test_a_named_file_that_cannot_be_opened_is_no_input(fixtures, tmp_path, monkeypatch):
    named = tmp_path / "00000000000000000000.log"
    named.touch()
    real = os.open

    def refuse(path, *arguments, **options):
        if opened_path(path, options.get("dir_fd")) == str(named):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(InputsRefused, match="no permission to read it"):
        find_inputs([named, fixtures / "unclean-election" / "broker-1"])

    found = find_inputs([named, fixtures / "unclean-election" / "broker-1"], keep_going=True)

    assert [one.kind for one in found.described] == ["unreadable", "broker"]
    assert [one.message.partition(";")[0] for one in found.problems] == ["no permission to read it"]
    with pytest.raises(EvidenceUnreadable):
        find_inputs([named])


def test_one_bad_path_stops_the_run_unless_the_rest_is_asked_for(fixtures, tmp_path):
    good = fixtures / "unclean-election" / "broker-1"

    with pytest.raises(InputsRefused) as refused:
        find_inputs([tmp_path / "gone", good])
    found = find_inputs([tmp_path / "gone", good], keep_going=True)

    assert [str(tmp_path / "gone")] == [one.path for one in refused.value.errors]
    assert "--keep-going" in " ".join(refused.value.advice)
    assert [one.described.path for one in found.found if one.shape is Absent.UNREADABLE] == [str(tmp_path / "gone")]

    assert [one.kind for one in found.described] == ["unreadable", "broker"]
    assert [(one.input, one.message.partition(";")[0]) for one in found.problems] == [
        (0, "there is no such file or directory")
    ]
    assert list(found.found[0].walk()) == []
    with pytest.raises(InputsRefused) as refused:
        find_inputs([tmp_path / "gone", tmp_path / "gone too"], keep_going=True)
    assert 2 == len(refused.value.errors)
    assert not refused.value.advice
    with pytest.raises(EvidenceNotFound):
        find_inputs([tmp_path / "gone"], keep_going=True)


def test_an_emptied_disk_beside_a_log_directory_is_a_problem_and_no_refusal(tmp_path):
    one, emptied, other = log_dir(tmp_path / "a" / "one", node_id=1), tmp_path / "a" / "two", tmp_path / "b" / "two"
    emptied.mkdir()
    other.mkdir(parents=True)

    found = find_inputs([one, emptied])

    assert [str(emptied)] == [one.described.path for one in found.found if one.shape is Absent.UNREADABLE]
    assert [(1, True)] == [(problem.input, "an empty directory" in problem.message) for problem in found.problems]
    for asked, with_emptied in (([one, other], True), ([one, emptied], False), ([one.parent, emptied], True)):
        with pytest.raises(InputsRefused, match="an empty directory"):
            find_inputs(asked, with_emptied=with_emptied)


def test_the_same_thing_twice_is_one_input(fixtures, tmp_path):
    good = fixtures / "unclean-election" / "broker-1"
    (tmp_path / "link").symlink_to(good)

    assert len(find_inputs([good, good / ".", tmp_path / "link"]).found) == 1


def test_problems_on_the_way_are_reported(tmp_path, monkeypatch):
    log_dir(tmp_path / "deep" / "broker-1", 1)
    log_dir(tmp_path / "deep" / "broker-2", 2)
    (tmp_path / "deep" / "zzz").mkdir()
    real = scan_directory

    def refuse(path):
        if str(path).endswith("zzz"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("kforensics.source.walk.scan_directory", refuse)

    met = [one for one in find_inputs([tmp_path]).found[0].walk() if isinstance(one, Obstacle)]

    assert [(one.path, one.message) for one in met] == [
        ("../../deep/zzz", "the directory can't be listed: Permission denied")
    ]


def test_a_file_that_goes_after_it_was_named(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"")
    found = find_inputs([path]).found[0]
    path.unlink()

    (met,) = found.walk()

    assert isinstance(met, Obstacle)


@pytest.mark.parametrize("node", [101, 102, 103])
def test_voters_with_broker_files_are_combined_nodes(incident, tmp_path, node):
    copy = tmp_path / "node"
    copied(incident("kraft-quorum-3x") / "snapshots" / "99-final" / f"controller-{node}", copy)
    assert described(copy) == [(str(copy), "controller", node)]

    (copy / "replication-offset-checkpoint").write_text("0\n0\n")
    assert described(copy) == [(str(copy), "combined", node)]

    for snapshot in (copy / "__cluster_metadata-0").glob("*.checkpoint"):
        snapshot.write_bytes(snapshot.read_bytes()[:40])
    assert described(copy)[0][1] == ("broker" if node == 101 else "combined")  # 101 neither led nor voted last


def test_the_newest_snapshot_names_the_voters(incident):
    root = incident("kraft-quorum-3x") / "snapshots" / "99-final"

    assert quorum_voters(Listings(root / "broker-1"), "__cluster_metadata-0") == frozenset({101, 102, 103})
    assert quorum_voters(Listings(root / "broker-1"), "nowhere") is Absent.NOT_WRITTEN


def test_a_capture_in_a_log_directory_that_can_not_be_used_is_a_file_that_can_not_be_read(tmp_path):
    root = log_dir(tmp_path / "broker-1")
    (root / "broken.kfc").write_bytes(b"not one")

    (found,) = find_inputs([root]).found

    assert [Shape.LOG_DIR, ["broken.kfc"]] == [found.shape, [one.path for one in found.obstacles]]
    with pytest.raises(EvidenceError):
        find_inputs([root / "broken.kfc"])
    (tmp_path / "beside.kfc").write_bytes(b"not one")
    with pytest.raises(EvidenceError):
        find_inputs([tmp_path])


def test_a_folder_of_segments_alone_is_a_partition_of_no_node(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / f"{0:020}.log").write_bytes(bytes(range(256)))

    assert described(tmp_path) == [(f"{tmp_path}/x", "partition", Absent.UNKNOWN)]


LINE = "[2026-01-01 12:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"


def test_logs_beside_and_inside_of_data_directories_are_found_whatever_they_are_called(fixtures, tmp_path):
    node = tmp_path / "data-0-my-cluster-kafka-1" / "kafka-log1"
    shutil.copytree(fixtures / "unclean-election" / "broker-1", node)
    (tmp_path / "pods").mkdir()
    for path in (
        tmp_path / "my-cluster-kafka-1.log",
        tmp_path / "pods" / "kafka-1 (previous).txt",
        node / "server.log",
    ):
        path.write_text(LINE)
    (node / "logs").mkdir()
    (node / "logs" / "server.log").write_text(LINE)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("call the customer\n")

    inputs = find_inputs([tmp_path], with_server_logs=True)
    found = sorted({str(one.location.relative_to(tmp_path)) for one in find_logs(inputs)})

    inside = "data-0-my-cluster-kafka-1/kafka-log1"
    assert [
        f"{inside}/logs/server.log",
        f"{inside}/server.log",
        "my-cluster-kafka-1.log",
        "pods/kafka-1 (previous).txt",
    ] == [one for one in found if not one.startswith("notes/")]  # of which only the content tells
    assert has_log_files(inputs)


def test_an_archive_of_a_data_directory_is_named_and_no_log(fixtures, tmp_path):
    node = fixtures / "unclean-election" / "broker-1"
    for name in ("disk.tar.gz", "disk.tar"):
        with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as archive:
            archive.add(node, "broker-1")

    with pytest.raises(NotADataDir) as refused:
        find_inputs([tmp_path], with_server_logs=True)
    assert ["disk.tar", "disk.tar.gz"] == [cause.partition(":")[0] for cause in refused.value.causes]
    assert all("unpack it, and name what comes out" in cause for cause in refused.value.causes)
    with pytest.raises(EvidenceUnreadable, match="unpack it, and name what comes out"):
        find_inputs([tmp_path / "disk.tar.gz"], with_server_logs=True, why_not=why_not_compared)

    (tmp_path / "server.log").write_text(LINE)
    (logs,) = find_inputs([tmp_path], with_server_logs=True).found
    assert ["disk.tar", "disk.tar.gz"] == [one.path for one in logs.obstacles]
    shutil.copytree(node, tmp_path / "broker-2")
    first = find_inputs([tmp_path], with_server_logs=True).found[0]
    assert 2 == len(first.obstacles)


def test_of_an_archive_with_logs_among_other_files_the_logs_are_found(tmp_path):
    report = tmp_path / "report.zip"
    with zipfile.ZipFile(report, "w") as archive:
        for number in range(30):
            archive.writestr(f"report/configs/{number}.yaml", "kind: ConfigMap\n")
        archive.writestr("report/logs/my-cluster-kafka-0.log", LINE)
    assert 1 == len(find_inputs([report], with_server_logs=True, why_not=why_not_compared).found)

    with zipfile.ZipFile(tmp_path / "node.zip", "w") as archive:
        archive.writestr("node/server.log", LINE)
        archive.writestr(f"node/orders-0/{0:020}.log", bytes(100))
    node = find_inputs([tmp_path / "node.zip"], with_server_logs=True)
    assert ["node/server.log"] == [one.member for one in find_logs(node)]

    with zipfile.ZipFile(tmp_path / "server.log.zip", "w") as archive:
        for name in ("server.properties", "log4j.properties"):
            archive.writestr(name, "a=b\n")
    settings = find_inputs([tmp_path / "server.log.zip"], with_server_logs=True)
    assert [""] == [one.member for one in find_logs(settings)]


def test_of_an_archive_of_many_files_those_are_read_that_begin_with_lines_of_kafka(fixtures, tmp_path, monkeypatch):
    opened, real = [], log_spans.log_head

    def counted(*args):
        opened.append(args)
        return real(*args)

    monkeypatch.setattr(log_spans, "log_head", counted)
    with tarfile.open(tmp_path / "sosreport.tar.xz", "w:xz") as archive:
        for name, text in (
            *((f"var/log/app-{number}.txt", "2026-01-01 12:00:00,000 INFO hello\n") for number in range(60)),
            ("var/log/pod-of-kafka.txt", LINE),
            ("opt/kafka/logs/server.log", "nothing that is known\n"),
        ):
            (tmp_path / "one").write_text(text)
            archive.add(tmp_path / "one", name)
    (tmp_path / "one").unlink()

    found = find_logs(find_inputs([tmp_path / "sosreport.tar.xz"], with_server_logs=True, why_not=why_not_compared))

    assert ["opt/kafka/logs/server.log", "var/log/pod-of-kafka.txt"] == sorted(one.member for one in found)
    assert len(opened) <= 2 * log_spans.MOST_CANDIDATES


def test_what_a_named_archive_holds_beside_its_logs_is_said(fixtures, tmp_path):
    (tmp_path / "server.log").write_text(LINE)
    with tarfile.open(tmp_path / "all.tgz", "w:gz") as archive:
        archive.add(tmp_path / "server.log", "logs/server.log")
        archive.add(fixtures / "unclean-election" / "broker-1", "broker-1")

    (one,) = find_inputs([tmp_path / "all.tgz"], with_server_logs=True, why_not=why_not_compared).found

    assert "log-file" == one.described.kind
    assert ["unpack it" in obstacle.message for obstacle in one.walk() if isinstance(obstacle, Obstacle)] == [True]
