"""A result of each kind that needs no Spark, made from the directories in `fixtures/`."""

import kforensics
from kforensics.ask.model import Ask
from kforensics.ask.simulate import SimulateAsk
from kforensics.commands import capture, groups, logs, predict, salvage, simulate, trace, transactions
from tests.conftest import FIXTURES

CLUSTER = FIXTURES / "unclean-election"
NODE = CLUSTER / "broker-2"


def _manifest(scratch):
    manifest = scratch / "manifest"
    if not manifest.exists():
        manifest.write_text("".join(kforensics.seal(NODE, jobs=1).body.pieces))
    return manifest


def _salvaged(scratch):
    count = len(list(scratch.iterdir()))
    return salvage.run(Ask(paths=(CLUSTER,), out=scratch / f"salvaged-{count}", jobs=1))


def _written(scratch):
    count = len(list(scratch.iterdir()))
    return simulate.run(SimulateAsk(write=scratch / f"written-{count}", scenario="hw-loss"), repr)


RESULTS = {
    "ls": lambda _: kforensics.ls(CLUSTER),
    "dump": lambda _: kforensics.dump(NODE / "orders-0"),
    "diff": lambda _: kforensics.diff(CLUSTER, jobs=1),
    "explain": lambda _: kforensics.explain(CLUSTER, jobs=1),
    "verify": lambda _: kforensics.verify(CLUSTER, jobs=1),
    "logs": lambda _: logs.run(Ask(line="Fencing broker 2 because its session has timed out.")),
    "metadata": lambda _: kforensics.metadata(CLUSTER),
    "capture": lambda _: capture.run(Ask(paths=(NODE,), out=None)),
    "predict": lambda _: predict.run(Ask(paths=(CLUSTER,))),
    "groups": lambda _: groups.run(Ask(paths=(NODE,), jobs=1)),
    "triage": lambda _: kforensics.triage(CLUSTER, jobs=1),
    "transactions": lambda _: transactions.run(Ask(paths=(CLUSTER,), jobs=1)),
    "salvage": _salvaged,
    "trace": lambda _: trace.run(Ask(paths=(CLUSTER,), topics=frozenset({"orders"}), offset=0, jobs=1)),
    "seal manifest": lambda _: kforensics.seal(NODE, jobs=1),
    "seal check": lambda scratch: kforensics.seal(NODE, check=_manifest(scratch), jobs=1),
    "simulate list": lambda _: simulate.run(SimulateAsk()),
    "simulate replay": lambda _: simulate.run(SimulateAsk(scenario="hw-loss")),
    "simulate explore": lambda _: simulate.run(SimulateAsk(model="hw")),
    "simulate write": _written,
}
"""By the kind of result: makes one, with a directory to write into."""
