"""Names, keys, log lines and file kinds that mean harm: nothing of them steers a terminal or leads out of the input."""

import json
import os
import shutil
import stat
import sys
from html.parser import HTMLParser

import pytest

from tests.fuzz.commands import INVOCATIONS, available, invoke, small_tree
from tests.hang import no_hang
from tests.steps import steps
from tests.trust.hostile import ESCAPES, sound_batch, write_partition
from tests.trust.measured import measured

TEXT_COMMANDS = (
    ["ls", "-v"],
    ["dump"],
    ["dump", "--records", "--show-payload", "--text"],
    ["dump", "--records", "--show-payload"],
    ["diff", "-v", "--show-records", "--show-payload", "--explain-steps"],
    ["verify"],
    ["explain", "-v"],
    ["metadata"],
    ["groups", "--history"],
    ["transactions", "--all"],
)
CHECKPOINT_LINES = 1_000_000


def steering(text):
    """Characters that do more than stand there."""
    return {character for character in text if character != "\n" and not character.isprintable()}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Two brokers with everything that a person could write into names, payloads, small files and logs."""
    root = tmp_path_factory.mktemp("hostile")
    everything = "".join(ESCAPES).encode("utf-8", "surrogateescape")
    for broker in ("broker-1", "broker-2"):
        log_dir = root / broker
        batch = sound_batch(0, key=everything, value=everything * (1 + (broker == "broker-2")))
        for number, escape in enumerate(ESCAPES):
            name = escape.replace("/", "").replace("\0", "")
            if name:
                write_partition(log_dir, f"t{number}{name}-0", batch)
        folder = write_partition(log_dir, "orders-0", batch + b"\x1b[2J" * 30, sound_batch(1000))
        for escape in ESCAPES:
            name = escape.replace("/", "").replace("\0", "")
            (folder / f"strange{name}").write_bytes(everything)
        (folder / "leader-epoch-checkpoint").write_bytes(b"0\n2\n0 0\n" + everything.replace(b"\n", b"") + b" 5\n")
        (folder / "partition.metadata").write_bytes(b"version: 0\ntopic_id: " + everything.replace(b"\n", b""))
        (log_dir / "meta.properties").write_bytes(
            b"version=1\nnode.id=1\ncluster.id="
            + everything.replace(b"\n", b"").replace(b"\r", b"")
            + b"\nx\x1b[2J=1\n"
        )
        (log_dir / "replication-offset-checkpoint").write_bytes(b"0\n2\norders\x1b[31m 0 5\n" + everything)
        logs = root / "logs" / broker
        logs.mkdir(parents=True)
        line = b"[2026-11-21 06:26:13,332] INFO [Log partition=%b-0, dir=/d%b] Truncating to offset 5 (kafka.log.Log)\n"
        one = everything.replace(b"\n", b"").replace(b" ", b"")
        (logs / "server.log").write_bytes(line % (one[:100], one) + line % (b"orders", b"") + everything)
    return root


@pytest.mark.parametrize("arguments", TEXT_COMMANDS, ids=" ".join)
@pytest.mark.some(3)
def test_no_text_output_steers_a_terminal(arguments, hostile, untouched):
    if arguments[0] not in available():
        pytest.skip("no such command")
    inputs = [str(hostile / "broker-1"), str(hostile / "broker-2")]
    inputs += [str(hostile / "logs")] if arguments[0] == "explain" else []

    with untouched(hostile):
        code, out, err = invoke([*arguments, *inputs])

    assert code in {0, 1, 3}, err
    assert out or err
    assert set() == steering(out)
    assert set() == steering(err)


@pytest.mark.parametrize("name", sorted(set(available()) - {"metadata"}))
@pytest.mark.some(3)
def test_json_is_ascii_and_can_be_read(name, hostile):
    arguments = {
        "dump": ["dump", "--records", "--show-payload", "--format", "jsonl"],
        "seal": ["seal"],
    }.get(name, [name, "--format", "json"])

    code, out, _ = invoke([*arguments, str(hostile / "broker-1"), str(hostile / "broker-2")])

    assert code in {0, 1, 3}
    assert out.isascii()
    assert set() == steering(out)
    for document in out.splitlines() if name == "dump" else [out]:
        json.loads(document)


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such\x1b[2J"],
        ["ls", "/no/such\x1b[2J\u202e"],
        ["ls", "--no\x1b[2J"],
        ["dump", "--from-time", "\x1b[2J", "."],
    ],
)
def test_words_about_wrong_usage_steer_no_terminal(arguments):
    code, out, err = invoke(arguments)

    assert code in {2, 3}
    assert set() == steering(out + err)


@pytest.fixture
def outside(tmp_path):
    """An input full of ways out of it, and what must not be read."""
    secret = tmp_path / "secret"
    secret.mkdir()
    write_partition(secret, "stolen-0", sound_batch(0, value=b"SECRET"))
    (secret / "passwd").write_text("SECRET")
    root = tmp_path / "input"
    folder = write_partition(root, "orders-0", sound_batch(0))
    (folder / f"{1000:020d}.log").symlink_to(secret / "stolen-0" / f"{0:020d}.log")
    (folder / "leader-epoch-checkpoint").symlink_to(secret / "passwd")
    (folder / f"{2000:020d}.log").symlink_to("/dev/zero")
    os.mkfifo(folder / f"{3000:020d}.log")
    os.mkfifo(root / "recovery-point-offset-checkpoint")
    (root / "stolen-0").symlink_to(secret / "stolen-0")
    (root / "loop-0").symlink_to(".")
    (root / "replication-offset-checkpoint").symlink_to("replication-offset-checkpoint")
    deep = root / "deep-0"
    for _ in range(60):
        deep /= "d"
    deep.mkdir(parents=True)
    (root / os.fsdecode(b"caf\xe9-0")).mkdir()
    os.mknod(folder / f"{4000:020d}.log", stat.S_IFSOCK | 0o600)  # binding one would limit the length of the path
    return root


@pytest.mark.parametrize("name", available())
@pytest.mark.some(3)
def test_no_link_is_followed_and_nothing_hangs(name, outside, untouched):
    for arguments in INVOCATIONS[name]:
        with no_hang(), untouched(outside):
            code, out, err = invoke([*arguments, str(outside)])

        assert code == (0 if name == "seal" else 3), err  # what is not followed is not looked at, and that is said
        assert "SECRET" not in out + err
        assert "U0VDUkVU" not in out


def test_a_file_swapped_for_a_link_between_listing_and_opening(tmp_path, monkeypatch):
    from kforensics.source import walk

    (tmp_path / "secret").write_text("SECRET")
    folder = write_partition(tmp_path / "input", "orders-0", sound_batch(0))
    victim = folder / "leader-epoch-checkpoint"
    victim.write_text("0\n0\n")
    real = walk.list_directory

    def swap(root, relative):
        listing = real(root, relative)
        if relative.endswith("orders-0") and not victim.is_symlink():
            victim.unlink()
            victim.symlink_to(tmp_path / "secret")
        return listing

    monkeypatch.setattr("kforensics.source.walk.list_directory", swap)

    code, out, err = invoke(["dump", str(tmp_path / "input"), "--format", "jsonl"])

    assert code == 3
    assert "SECRET" not in out + err
    assert "symbolic link" in err


def test_an_input_that_is_itself_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    for arguments in (["ls", str(tmp_path / "pipe")], ["dump", "/dev/zero"], ["verify", "/dev/null"]):
        with no_hang():
            code, _, err = invoke(arguments)

        assert code == 3, err


def checkpoints(log_dir, count):
    folder = write_partition(log_dir, "orders-0", sound_batch(0))
    lines = "".join(f"{number} {number}\n" for number in range(count))
    (folder / "leader-epoch-checkpoint").write_text(f"0\n{count}\n{lines}")
    offsets = "".join(f"t{number} 0 {number}\n" for number in range(count))
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n2147483647\n{offsets}")
    return log_dir


@pytest.mark.slow
def test_many_checkpoint_lines_are_linear(tmp_path):
    few, more = (
        ["verify", str(checkpoints(tmp_path / str(count), count)), "--format", "json", "--jobs", "1"]
        for count in (1_000, 4_000)
    )
    assert steps(lambda: invoke(more)) < 4.4 * steps(lambda: invoke(few))


@pytest.mark.slow
def test_many_checkpoint_lines_take_little_memory(tmp_path):
    many = measured("verify", checkpoints(tmp_path / "many", 80_000), "--format", "json")

    assert many.code in {1, 3}, many.err
    assert many.peak_mebibytes < 256


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "dump", "ls", "diff"])
def test_a_million_checkpoint_lines(tmp_path, command):
    run = measured(command, checkpoints(tmp_path / "input", CHECKPOINT_LINES), "--format", "json")

    sys.stderr.write(f"{command}: {run.seconds:.1f} s, {run.peak_mebibytes:.0f} MiB\n")
    assert run.code in {0, 1, 3}, run.err
    assert run.peak_mebibytes < 1536


def test_a_recording_with_hostile_neighbours_still_gives_its_records(tmp_path):
    tree = small_tree(tmp_path / "cluster")
    _, before, _ = invoke(["dump", str(tree / "broker-2"), "--records", "--format", "jsonl"])
    (tree / "broker-2" / "x\x1b[2J-0").mkdir()
    shutil.copy(tree / "broker-2" / "meta.properties", tree / "broker-2" / "x\x1b[2J-0" / "a\u202eb")

    _, after, _ = invoke(["dump", str(tree / "broker-2"), "--records", "--format", "jsonl"])

    records = [line for line in before.splitlines() if '"type": "record"' in line]
    assert records
    assert records == [line for line in after.splitlines() if '"type": "record"' in line]


class Elements(HTMLParser):
    """The elements and attributes of a page; text is not looked at."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attributes):
        self.found |= {tag, *(f"{tag} {name}" for name, _ in attributes)}
        self.found |= {
            "a javascript" for name, value in attributes if name in {"href", "src"} and "javascript" in (value or "")
        }


MARKUP = (
    "<script>alert(1)<",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "<style>*{}",
    "javascript:alert(1)",
    "&lt;b&gt;",
    "{{7*7}}",
    "{%x%}",
)


def page_of(tmp_path, names):
    line = b"[2026-11-21 06:26:13,%03d] INFO [Log partition=%b-0, dir=/d] Truncating to offset 5 (kafka.log.Log)\n"
    log_dir = tmp_path / "broker-1"
    for name in names:
        write_partition(log_dir, f"{name.replace('/', '')}-0", sound_batch(0) + b"\xff" * 90)
    (log_dir / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={''.join(names)}\n")
    logs = tmp_path / "logs" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "server.log").write_bytes(
        b"".join(line % (at, name.replace(" ", "").encode()) for at, name in enumerate(names))
    )
    code, out, err = invoke(["explain", "--format", "html", str(log_dir), str(tmp_path / "logs")])
    if code == 2 and "pip install" in err:
        pytest.skip("pages need an optional package")
    assert code in {0, 1, 3}, err
    elements = Elements()
    elements.feed(out)
    return elements.found, out


def test_names_are_no_markup_in_pages(tmp_path):
    plain, _ = page_of(tmp_path / "plain", [f"name{number}" for number in range(len(MARKUP))])
    hostile, text = page_of(tmp_path / "hostile", MARKUP)

    assert hostile <= plain
    assert "Content-Security-Policy" in text
