"""`kforensics predict` and `diff` where a start depends on a file that is not here, or not read here."""

import errno
import json
import shutil

import pytest

from kforensics.cli.app import run
from kforensics.source import mapped
from tests.builders.directories import copied
from tests.schemas import reason

LOG = "00000000000000000000.log"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 10485760\n"


@pytest.fixture
def cluster(fixtures, tmp_path):
    """Recorded brokers that were stopped cleanly, without the controller."""
    root = tmp_path / "cluster"
    for number in (1, 2, 3):
        copied(fixtures / "unclean-election" / f"broker-{number}", root / f"broker-{number}")
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for number in (1, 2, 3):
        (root / f"broker-{number}" / ".kafka_cleanshutdown").write_text("")
    return root


def answered(capsys, *arguments):
    code = run([*map(str, arguments), "--format", "json"])
    return json.loads(capsys.readouterr().out), code


@pytest.mark.parametrize("topic", ["orders", "payments"])
def test_a_clean_start_is_unknown_where_a_pointer_lies_in_the_place_of_the_log(cluster, capsys, topic):
    broker = cluster / "broker-2"
    for directory in broker.glob(f"{topic}-*"):
        (directory / LOG).write_text(POINTER)

    document, code = answered(capsys, "predict", broker)

    assert (document["answer"]["state"], code) == ("unknown", 3)
    becomes = {log["topic"]: log["outcome"] for log in document["logs"]}
    assert (becomes[topic], becomes["payments" if topic == "orders" else "orders"]) == ("unknown", "loads")
    assert "loading discards no record" not in document["answer"]["headline"]


@pytest.mark.parametrize("is_pointer", [True, False])
def test_an_identity_that_is_not_read_here_does_not_keep_a_broker_from_starting(
    cluster, capsys, is_pointer, monkeypatch
):
    broker = cluster / "broker-3"
    if is_pointer:
        (broker / "meta.properties").write_text(POINTER)
    else:
        opened = mapped._open

        def refusing(path, *arguments):
            if str(path).endswith("meta.properties"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return opened(path, *arguments)

        monkeypatch.setattr(mapped, "_open", refusing)

    document, code = answered(capsys, "predict", broker)

    assert (document["answer"]["state"], code) == ("unknown", 3)
    assert not any("Mend the identity" in step for step in document["answer"]["now"])
    assert not any("release of kforensics" in one for one in document["answer"]["unknown"])
    assert [reason(start, "outcome") for start in document["starts"]] == ["unknown"]


def test_an_identity_that_says_nothing_keeps_it_from_starting(cluster, capsys):
    (cluster / "broker-3" / "meta.properties").write_text("nothing of a broker\n")

    document, code = answered(capsys, "predict", cluster / "broker-3")

    assert (document["answer"]["state"], code) == ("will-not-start", 1)


@pytest.mark.parametrize("was_stopped", [True, False])
def test_a_log_emptied_after_a_clean_stop_is_not_called_a_copy_of_a_running_broker(cluster, capsys, was_stopped):
    for broker in cluster.iterdir():
        shutil.rmtree(broker / "__cluster_metadata-0")
        if not was_stopped:
            (broker / ".kafka_cleanshutdown").unlink()
        for file in (broker / "orders-3").iterdir():
            file.write_bytes(b"") if file.name == LOG else file.unlink()

    document, _ = answered(capsys, "diff", cluster, "--topic", "orders", "--partition", 3)

    assert document["answer"]["state"] == "maybe-at-risk"
    said = document["answer"]["headline"] + " ".join(document["answer"]["unknown"])
    assert ("copied while the broker ran" in said, "--stopped" in said) == (not was_stopped, not was_stopped)
