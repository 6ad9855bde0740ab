"""`groups` and `transactions` with pseudonyms: the same as everywhere, and no name is left."""

import json

import pytest

from kforensics.cli.app import run
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.protocol.coordinators import TransactionStatus
from tests.builders.coordinators import NOW, batch, commit, group_metadata, transaction_state
from tests.builders.directories import log_dir

KEY = "0123456789abcdef0123456789abcdef"
NAMES = Pseudonyms(key=KEY.encode())
SEGMENT = f"{0:020d}.log"


@pytest.fixture
def broker(tmp_path):
    """A broker whose group was set back and holds a position before an open transaction of `payments-app`."""
    root = log_dir(
        tmp_path / "kafka-1.shop.example.com", partitions=("orders-0", "__consumer_offsets-0", "__transaction_state-0")
    )
    (root / "orders-0" / SEGMENT).write_bytes(batch(0, [(b"k", b"v")] * 9, producer=7, transactional=True))
    commits = [
        group_metadata("billing-app", 1),
        commit("billing-app", "orders", 0, 9),
        group_metadata("billing-app", 0),
    ]
    commits += [commit("billing-app", "orders", 0, 0, time_ms=NOW + 1)]
    (root / "__consumer_offsets-0" / SEGMENT).write_bytes(batch(0, commits))
    ongoing = transaction_state("payments-app", TransactionStatus.ONGOING, partitions=[("orders", [0])])
    (root / "__transaction_state-0" / SEGMENT).write_bytes(batch(0, [ongoing]))
    return root


@pytest.mark.parametrize(
    "command",
    [
        ("groups", "--history"),
        ("groups", "--group", "billing-app", "--history"),
        ("transactions", "--all"),
        ("transactions", "--transactional-id", "payments-app"),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
@pytest.mark.some(4)
def test_no_name_is_left_and_pseudonyms_are_those_of_other_commands(command, form, broker, capsys, monkeypatch):
    monkeypatch.setenv("KFORENSICS_REDACT_KEY", KEY)
    monkeypatch.chdir(broker.parent)
    name, *options = command
    plain_code = run([name, str(broker), *options, "--format", form])
    plain = capsys.readouterr().out
    code = run([name, str(broker), *options, "--format", form, "--redact"])
    out = capsys.readouterr().out

    assert code == plain_code
    assert ("billing-app" in plain.lower()) or ("payments-app" in plain)
    for private in ("billing-app", "payments-app", "shop.example.com"):
        assert private not in out.lower()
    expected = NAMES.group("billing-app") if name == "groups" else NAMES.name("transactional-id", "payments-app")
    assert expected in out.replace("\n", "").replace(" ", "")
    if form == "json":
        document, whole = json.loads(out), json.loads(plain)
        assert document["answer"]["state"] == whole["answer"]["state"]
        assert len(document["findings"]) == len(whole["findings"])
        if name == "transactions":
            [partition] = [one for one in document["partitions"] if one["open"]]
            assert partition["open"][0]["blocks"]["groups"] == [NAMES.group("billing-app")]
