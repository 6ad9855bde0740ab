"""How nodes ended, by their own lines: a start that failed, a process that ended itself, and starts that were killed."""

import pytest

from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.node_failures import failure_words, node_failures
from kforensics.units import TopicPartition
from tests.builders.history import log_file

HALT = "Shutdown broker because all log dirs in /d have failed (kafka.log.LogManager)"
STARTED = "[KafkaServer id=3] started (kafka.server.KafkaServer)"
LOADING = "Loading logs from log dirs ArrayBuffer(/d, /e) (kafka.log.LogManager)"
FATAL = "[KafkaServer id=3] Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)"


def failures(*lines: str, node: int = 3):
    text = "".join(
        line + "\n" if "Exception" in line.partition(" ")[0] else f"[2024-05-01 12:{at:02d}:00,000] ERROR {line}\n"
        for at, line in enumerate(lines)
    )
    file = log_file(text, node=node)
    return node_failures(LoggedEvent(event, node, event.time_ms, file) for event in file.events)


def test_the_exception_below_says_why_a_start_failed():
    (one,) = failures(FATAL, "java.io.IOException: Could not read file /d/t-0/00000000000000000000.log")

    assert one.is_start
    assert "Broker 3's last start failed at 2024-05-01 12:00:00 UTC" in one.words
    assert "IOException: Could not read file /d/t-0/00000000000000000000.log." in one.words
    assert one.topic_partition == TopicPartition("t", 0)


def test_what_a_start_waited_for_is_said_with_an_exception_that_says_nothing():
    (one,) = failures(
        "[BrokerServer id=3] Timed out while waiting for the broker to be unfenced (kafka.server.BrokerServer)",
        "java.util.concurrent.TimeoutException",
    )

    assert one.words.endswith("TimeoutException, waiting for the broker to be unfenced.")


def test_the_first_line_of_one_end_names_the_cause():
    (one,) = failures(
        "There was an error in one of the threads during logs loading: java.lang.IllegalStateException: Duplicate log directories found: /a/t-0, /b/t-0 (x)",
        FATAL,
        "java.lang.InterruptedException: no",
    )

    assert "Duplicate log directories found: /a/t-0, /b/t-0" in one.words
    assert "Interrupted" not in one.words


def test_a_halt_is_told_with_what_failed_first():
    (one,) = failures(
        "Error while flushing log for t-0 in dir /d with offset 7 (x)",
        "java.io.IOException: No space left on device",
        "Stopping serving logs in dir /d (x)",
        HALT,
    )

    assert not one.is_start
    assert "all log dirs in /d have failed: IOException: No space left on device (flushing log for t-0)." in one.words


@pytest.mark.parametrize(
    "after",
    [
        [STARTED],
        [
            "[Broker id=3] Leader t-0 starts at leader epoch 1 from offset 0 with high watermark 0 ISR [3] addingReplicas [] removingReplicas []. Previous leader epoch was -1. (x)"
        ],
    ],
)
def test_a_start_that_came_to_its_end_ends_the_failure(after):
    assert failures(FATAL, *after) == ()


def test_starts_that_are_killed_in_their_recovery_are_a_loop():
    once = [
        "Loading logs from log dirs ArraySeq(/d) (x)",
        "[Log partition=t-4, dir=/d] Recovering unflushed segment 700 (x)",
        "Terminating process due to signal SIGTERM (x)",
    ]
    (one,) = failures(*once * 3)

    assert one.words == (
        "Broker 3 did not finish its last 3 starts, killed by SIGTERM each time; the last was recovering t-4 and began again at segment 700."
    )
    assert failures(*once) == ()
    assert failures(*once * 3, STARTED) == ()


def test_of_many_nodes_the_first_are_told():
    one = failures(FATAL)

    assert failure_words(one * 4).endswith("2 other nodes failed too.")
    assert failure_words(()) == ""


def test_a_disk_that_failed_while_the_broker_went_on_is_told_until_the_next_start():
    lines = (
        STARTED,
        "Error while appending records to t-0 in dir /d (x)",
        "java.io.IOException: No space left on device",
        "Stopping serving replicas in dir /d (x)",
        "[Broker id=3] Follower t-1 starts at leader epoch 2 from offset 7 with high watermark 7. Previous leader epoch was 1. (state.change.logger)",
    )
    (one,) = failures(*lines)

    assert one.words == (
        "Broker 3's log directory /d failed at 2024-05-01 12:01:00 UTC: IOException: No space left on device (appending records to t-0)."
    )
    assert not one.is_start
    assert failures(*lines, "Loading logs from log dirs ArrayBuffer(/d) (kafka.log.LogManager)", STARTED) == ()


@pytest.mark.parametrize(
    "failed",
    [
        ("Failed to create or validate data directory /d (x)", "java.io.IOException: No such device", LOADING),
        (LOADING, "Error while loading log dir /d (x)", "java.io.IOException: No such device"),
    ],
)
def test_a_disk_that_failed_in_a_start_is_told_though_the_start_came_to_its_end(failed):
    (one,) = failures(STARTED, *failed, STARTED)

    assert one.words.startswith("Broker 3's log directory /d failed at 2024-05-01 12:0")
    assert "IOException: No such device" in one.words
    assert not one.is_start
    assert failures(STARTED, *failed, STARTED, LOADING, STARTED) == ()  # back again


def test_an_error_that_names_no_log_directory_is_no_failure_of_one():
    assert failures(STARTED, "Error flushing topic orders (kafka.log.LogManager)") == ()
