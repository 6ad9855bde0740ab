"""Lines of several brokers in one file, as compose, kubectl and collectors of lines write them: each event is its node's."""

import csv
import datetime as dt
import io
import json

import pytest

from tests.builders.history import read_log

TEXTS = (
    "Recovering 7 logs from /srv/kf since no clean shutdown file was found",
    "[UnifiedLog partition=t-0, dir=/srv/kf] Truncating to offset 60{node}",
    "[Partition t-0 broker={node}] Shrinking ISR from 1,2,3 to {node}. Leader: (highWatermark: 90, endOffset: 99). Out of sync replicas: (brokerId: 9, endOffset: 90).",
    "Error while appending records to t-0 in dir /srv/kf",
    "[UnifiedLog partition=t-1, dir=/srv/kf] Truncating to offset 70{node}",
)
WANTED = ["isr-shrink", "log-dir-error", "recovery-start", "truncation", "truncation"]
RAW = "[{local}] INFO {text} (kafka.log.Log)"


def row(*values: str) -> str:
    """A line of a table of which every value stands in quotes."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="").writerow(values)
    return out.getvalue()


def thing(**values: object) -> str:
    """A line that is an object."""
    return json.dumps(values)


LAYOUTS = {
    "compose": lambda of: "kafka-{node}  | {raw}".format(**of),
    "compose-times": lambda of: "kafka-{node}  | {utc} {raw}".format(**of),
    "compose-colours": lambda of: "\x1b[3{node}mkafka-{node}-1  | \x1b[0m{raw}".format(**of),
    "swarm": lambda of: "kafka_kafka.{node}.x1y2z3@host{node}    | {raw}".format(**of),
    "docker-tag": lambda of: thing(
        log=of["raw"] + "\n", stream="stdout", attrs={"tag": "kafka-{node}".format(**of)}, time=of["utc"]
    ),
    "kubectl": lambda of: "[pod/my-cluster-kafka-{node}/kafka] {raw}".format(**of),
    "kubectl-strimzi": lambda of: "[pod/kafka-{node}/kafka] {second} INFO  [main] Log:42 - {text}".format(**of),
    "kubectl-times": lambda of: "[pod/kafka-{node}/kafka] {utc} {raw}".format(**of),
    "stern": lambda of: "kafka-{node} kafka {raw}".format(**of),
    "stern-json": lambda of: thing(message=of["raw"], nodeName="n", podName="kafka-{node}".format(**of)),
    "fluentd": lambda of: thing(
        log=of["raw"], kubernetes={"host": "one", "pod_name": "kafka-{node}".format(**of), "container_name": "kafka"}
    ),
    "containers-of-a-host": lambda of: thing(
        message=of["raw"], host={"name": "one"}, container={"name": "kafka-{node}".format(**of)}
    ),
    "loki": lambda of: '{utc} {{container="kafka", pod="kafka-{node}"}} {raw}'.format(**of),
    "loki-json": lambda of: thing(
        labels={"container": "kafka", "pod": "kafka-{node}".format(**of)}, line=of["raw"], timestamp=of["utc"]
    ),
    "splunk": lambda of: row(of["utc"], "broker{node}".format(**of), "/var/log/server.log", of["raw"]),
    "splunk-text-first": lambda of: row(of["raw"], of["utc"], "broker{node}".format(**of)),
    "kibana": lambda of: row("Mar 1, 2026 @ {clock}.123".format(**of), "INFO", "kafka-{node}".format(**of), of["text"]),
    "datadog": lambda of: row(of["utc"], "broker{node}".format(**of), "kafka", of["raw"]),
    "cloudwatch": lambda of: "{utc} kafka/broker-{node} {raw}".format(**of),
    "cloudwatch-json": lambda of: thing(
        logStreamName="broker-{node}".format(**of), timestamp=of["utc"], message=of["raw"]
    ),
    "cloudwatch-insights": lambda of: row(
        "2026-03-01 {clock}.123".format(**of), of["raw"], "broker-{node}".format(**of), "12345:/aws/msk"
    ),
    "gcp": lambda of: thing(
        resource={"labels": {"pod_name": "kafka-{node}".format(**of)}}, textPayload=of["raw"], timestamp=of["utc"]
    ),
    "journald": lambda of: thing(_HOSTNAME="broker{node}".format(**of), MESSAGE=of["raw"]),
    "syslog": lambda of: "Mar  1 {clock} broker{node} kafka[99]: {raw}".format(**of),
    "syslog-5424": lambda of: "<14>1 {utc} broker{node} kafka 99 - - {raw}".format(**of),
    "ecs": lambda of: thing(**{"@timestamp": of["utc"], "message": of["text"], "host.name": f"kafka-{of['node']}"}),
    "gelf": lambda of: thing(host=f"kafka-{of['node']}", short_message=of["text"], timestamp=of["seconds"]),
    "grep": lambda of: "broker-{node}/server.log:{raw}".format(**of),
    "grep-with-numbers": lambda of: "broker-{node}/server.log:{number}:{raw}".format(**of),
    "ansible": lambda of: "broker{node} | {raw}".format(**of),
}


def mixed(layout: str) -> str:
    """The same story of three brokers, a line of each in turn."""
    lines = []
    for number in range(3 * len(TEXTS)):
        time = dt.datetime(2026, 3, 1, 9, 0, number, tzinfo=dt.UTC)
        node = number % 3 + 1
        text = TEXTS[number // 3].format(node=node)
        of = {
            "node": node,
            "number": 100 + number,
            "text": text,
            "raw": RAW.format(local=f"{time:%Y-%m-%d %H:%M:%S},123", text=text),
            "utc": f"{time:%Y-%m-%dT%H:%M:%S}.123Z",
            "second": f"{time:%Y-%m-%d %H:%M:%S}",
            "clock": f"{time:%H:%M:%S}",
            "seconds": time.timestamp(),
        }
        lines.append(LAYOUTS[layout](of) + "\n")
    return "".join(lines)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_event_is_of_the_node_that_its_line_begins_with(layout, tmp_path):
    (tmp_path / "all.log").write_text(mixed(layout))
    file = read_log(tmp_path, "all.log")
    assert file is not None

    by_node: dict[object, list[str]] = {}
    for event in file.events:
        by_node.setdefault(event.broker_id, []).append(event.kind.value)
    assert {node: sorted(kinds) for node, kinds in by_node.items()} == dict.fromkeys((1, 2, 3), WANTED)
    for event in file.events:
        if event.kind.value == "truncation":
            assert isinstance(event.broker_id, int)
            assert event.number("offset") in {600 + event.broker_id, 700 + event.broker_id}
    assert not file.problems
    assert not file.unowned


def test_no_event_is_a_node_s_where_lines_of_several_begin_alike(tmp_path):
    (tmp_path / "all.log").write_text(mixed("ansible").replace("broker1 |", "all |").replace("broker2 |", "all |"))
    file = read_log(tmp_path, "all.log")

    assert file is not None
    assert not file.events
    assert file.unowned
