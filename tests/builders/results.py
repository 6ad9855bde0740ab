"""A result of each kind, made from the directories in `fixtures/`; those of fleets by hand."""

from functools import cache

import kforensics
from kforensics.ask.model import Ask
from kforensics.ask.simulate import SimulateAsk
from kforensics.commands import capture, groups, logs, predict, salvage, simulate, trace, transactions
from kforensics.commands.result import Conclusion, Result
from kforensics.findings.answers.fleet import comparison_answer, fleet_answer, history_answer, trend_answer
from tests.builders.fleet import fleet_comparison, fleet_summary, fleet_trend, trimmed_history
from tests.conftest import FIXTURES

CLUSTER = FIXTURES / "unclean-election"
NODE = CLUSTER / "broker-2"


def _manifest(scratch):
    manifest = scratch / "manifest"
    if not manifest.exists():
        manifest.write_text(kforensics.seal(NODE, jobs=1).body.listed)
    return manifest


def _salvaged(scratch):
    count = len(list(scratch.iterdir()))
    return salvage.run(Ask(paths=(CLUSTER,), out=scratch / f"salvaged-{count}", jobs=1))


def _written(scratch):
    count = len(list(scratch.iterdir()))
    return simulate.run(SimulateAsk(write=scratch / f"written-{count}", scenario="hw-loss"), repr)


def _once(make):
    made = cache(make)
    return lambda _: made()


def _of_fleet(command, body, answer):
    found = Conclusion(answer(body), getattr(body, "findings", ()), getattr(body, "problems", ()))
    return Result(command=command, inputs=getattr(body, "inputs", ()), body=body, concluded=found)


RESULTS = {
    "ls": _once(lambda: kforensics.ls(CLUSTER)),
    "dump": lambda _: kforensics.dump(NODE / "orders-0"),
    "diff": _once(lambda: kforensics.diff(CLUSTER, jobs=1)),
    "explain": _once(lambda: kforensics.explain(CLUSTER, jobs=1)),
    "verify": _once(lambda: kforensics.verify(CLUSTER, jobs=1)),
    "logs": lambda _: logs.run(Ask(line="Fencing broker 2 because its session has timed out.")),
    "metadata": _once(lambda: kforensics.metadata(CLUSTER)),
    "capture": _once(
        lambda: capture.run(Ask(paths=(NODE,), out=None))
    ),  # how long it will take is another time each time
    "predict": _once(lambda: predict.run(Ask(paths=(CLUSTER,)))),
    "groups": _once(lambda: groups.run(Ask(paths=(NODE,), jobs=1))),
    "triage": _once(lambda: kforensics.triage(CLUSTER, jobs=1)),
    "transactions": _once(lambda: transactions.run(Ask(paths=(CLUSTER,), jobs=1))),
    "salvage": _salvaged,
    "trace": _once(lambda: trace.run(Ask(paths=(CLUSTER,), topics=frozenset({"orders"}), offset=0, jobs=1))),
    "seal manifest": lambda _: kforensics.seal(NODE, jobs=1),
    "seal check": lambda scratch: kforensics.seal(NODE, check=_manifest(scratch), jobs=1),
    "simulate list": lambda _: simulate.run(SimulateAsk()),
    "simulate replay": _once(lambda: simulate.run(SimulateAsk(scenario="hw-loss"))),
    "simulate explore": _once(lambda: simulate.run(SimulateAsk(model="hw"))),
    "simulate write": _written,
    "fleet audit": lambda _: _of_fleet("fleet audit", fleet_summary(), fleet_answer),
    "fleet report": lambda _: _of_fleet("fleet report", fleet_summary(), fleet_answer),
    "fleet comparison": lambda _: _of_fleet("fleet comparison", fleet_comparison(), comparison_answer),
    "fleet trend": lambda _: _of_fleet("fleet trend", fleet_trend(), trend_answer),
    "fleet history": lambda _: _of_fleet("fleet history", trimmed_history(), history_answer),
}
"""By the kind of result: makes one, with a directory to write into."""
