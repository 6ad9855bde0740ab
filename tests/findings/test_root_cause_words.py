"""The root cause is one sentence, which names no broker, time or certainty that the inputs do not show."""

from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.findings.rules.causes import RootCause, root_cause_sentence
from kforensics.reconcile.history.causes import CauseName
from kforensics.units import TopicPartition

ONE = RootCause(
    cause=CauseName.UNCLEAN_ELECTION,
    confidence="proven",
    brokers=(2,),
    first_ms=1_795_243_207_719,
    last_ms=1_795_243_207_719,
    isr=(1,),
    partitions=(TopicPartition("orders", 0),),
    other_causes=(),
    unexplained=0,
    citations=(),
)
AT = "2026-11-21T06:40:07.719Z"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, f"Broker 2 became leader of orders-0 by unclean election at {AT}, while the ISR was [1]."),
        ({"isr": ()}, f"Broker 2 became leader of orders-0 by unclean election at {AT}, while the ISR was empty."),
        (
            {"first_ms": Absent.UNKNOWN, "isr": Absent.UNKNOWN},
            "Broker 2 became leader of orders-0 by unclean election at a time that no input shows.",
        ),
        (
            {"brokers": Absent.UNKNOWN},
            "An unclean election took records of orders-0; by which election is not shown for all of them.",
        ),
        (
            {"brokers": (2, 3), "partitions": (TopicPartition("orders", 0), TopicPartition("orders", 1))},
            f"Brokers 2 and 3 became leaders of orders-0 and orders-1 by unclean election at {AT}, while the ISR was [1].",
        ),
        (
            {"last_ms": 1_795_243_208_000, "isr": Absent.UNKNOWN, "unexplained": 1},
            f"Broker 2 became leader of orders-0 by unclean election from {AT} to 2026-11-21T06:40:08.000Z; what took 1 other record is not shown.",
        ),
        (
            {"cause": CauseName.POWER_LOSS, "confidence": "likely", "other_causes": (CauseName.DAMAGE,)},
            f"Broker 2 lost the end of its log of orders-0 in a power loss or crash, as start-up recovery found at {AT} (likely, not proven). 1 other cause in the ledger.",
        ),
    ],
)
def test_the_sentence_says_who_and_when_as_far_as_it_is_known(changes, sentence):
    assert sentence == root_cause_sentence(replace(ONE, **changes))


@pytest.mark.parametrize("cause", [one for one in CauseName if one is not CauseName.UNKNOWN])
@pytest.mark.parametrize("brokers", [(2,), (2, 3), Absent.UNKNOWN])
def test_every_cause_has_one_sentence(cause, brokers):
    sentence = root_cause_sentence(replace(ONE, cause=cause, brokers=brokers))

    assert 1 == sentence.count(". ") + sentence.endswith(".")
    assert sentence[0].isupper()
    assert ("broker 2" in sentence.lower() or "brokers 2 and 3" in sentence.lower()) == (brokers is not Absent.UNKNOWN)
