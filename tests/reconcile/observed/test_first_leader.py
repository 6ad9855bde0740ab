"""A partition that comes into being is told of twice: by its controller, with the ISR, and by its first leader."""

import pytest

from kforensics.reconcile.observed.clocks import choose_clocks
from kforensics.reconcile.observed.logged_events import order_events
from kforensics.reconcile.observed.logged_leaderships import logged_leaderships
from kforensics.units import TopicPartition
from tests.builders.history import read_logs

BY_CONTROLLER = (
    "[2026-11-21 13:24:49,380] TRACE [Controller id=3 epoch=1] Changed partition tail-0 from NewPartition to OnlinePartition"
    " with state LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1, 2), zkVersion=0) (state.change.logger)\n"
)
BY_LEADER = (
    "[2026-11-21 13:{time}] INFO [Partition tail-0 broker=1] tail-0 starts at Leader Epoch 0 from offset 0."
    " Previous Leader Epoch was: -1 (kafka.cluster.Partition)\n"
)


@pytest.mark.parametrize(("time", "known"), [("24:49,446", frozenset({1, 2})), ("59:00,000", None)])
def test_the_leaders_line_soon_after_takes_no_knowledge_away(time, known, tmp_path):
    for broker, name, text in ((3, "state-change.log", BY_CONTROLLER), (1, "server.log", BY_LEADER.format(time=time))):
        (tmp_path / "logs" / f"broker-{broker}").mkdir(parents=True)
        (tmp_path / "logs" / f"broker-{broker}" / name).write_text(text)
    files = read_logs(tmp_path)
    (state,) = logged_leaderships(order_events(files, choose_clocks(files, {})))[TopicPartition("tail", 0)]

    assert (1, 0) == (state.leader, state.leader_epoch)
    assert known == (state.isr if isinstance(state.isr, frozenset) else None)
