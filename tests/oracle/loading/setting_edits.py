"""Settings of `server.properties` that are out of their range, contradict each other, or name what is not there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.oracle.loading.node_edits import Edit

if TYPE_CHECKING:
    from tests.oracle.loading.brokers import Node

_VALUES = """\
num.io.threads=0
num.network.threads=x
num.partitions=0
background.threads=-1
log.segment.bytes=13
log.segment.bytes=5000
log.retention.ms=0
log.retention.hours=many
log.roll.ms=0
log.roll.hours=0
log.roll.jitter.ms=-1
log.cleaner.threads=0
log.cleaner.threads=3
log.cleaner.dedupe.buffer.size=1
log.cleaner.io.buffer.load.factor=x
log.cleaner.min.cleanable.ratio=1.5
log.cleanup.policy=compact,delete,
log.cleanup.policy=none
log.flush.interval.messages=0
log.index.size.max.bytes=3
log.index.interval.bytes=-1
log.message.timestamp.type=never
log.message.timestamp.before.max.ms=-1
log.preallocate=maybe
log.local.retention.ms=-3
num.recovery.threads.per.data.dir=0
min.insync.replicas=0
compression.type=rar
compression.gzip.level=10
unclean.leader.election.enable=1
auto.create.topics.enable=yes
default.replication.factor=0
default.replication.factor=99999
replica.fetch.wait.max.ms=99999
replica.lag.time.max.ms=1
queued.max.request.bytes=5
queued.max.requests=0
socket.request.max.bytes=0
max.connections.per.ip=0
max.connections.per.ip.overrides=a
max.connections=-1
connections.max.idle.ms=1
connections.max.idle.ms=-1
message.max.bytes=-1
offsets.topic.num.partitions=0
offsets.topic.compression.codec=9
offsets.retention.minutes=0
offset.metadata.max.bytes=x
offsets.commit.required.acks=7
transaction.state.log.min.isr=0
transactional.id.expiration.ms=0
transaction.max.timeout.ms=0
producer.id.expiration.ms=0
group.consumer.session.timeout.ms=1
group.consumer.heartbeat.interval.ms=60000
group.consumer.migration.policy=up
group.coordinator.rebalance.protocols=consumer
group.coordinator.threads=0
group.min.session.timeout.ms=99999999
group.initial.rebalance.delay.ms=x
group.share.heartbeat.interval.ms=1
group.max.size=0
inter.broker.protocol.version=9.9
inter.broker.protocol.version=2.8
controller.quorum.election.timeout.ms=x
controller.quorum.fetch.timeout.ms=-1
controller.quorum.voters=
controller.quorum.voters=7@127.0.0.1:1
controller.quorum.voters=one@127.0.0.1:1
controller.quorum.voters=1@127.0.0.1
controller.listener.names=
controller.listener.names=NOBODY
inter.broker.listener.name=NOBODY
security.inter.broker.protocol=NONE
security.inter.broker.protocol=SSL
listener.security.protocol.map=PLAINTEXT:PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:NONE
listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
listeners=nothing
listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:1
advertised.listeners=NOBODY://a:1
advertised.listeners=PLAINTEXT://0.0.0.0:1
advertised.listeners=PLAINTEXT://a
early.start.listeners=NOBODY
process.roles=broker
process.roles=controller
process.roles=broker,observer
process.roles=
node.id=-1
node.id=x
node.id=7
broker.id=7
broker.id=1
broker.rack=
broker.heartbeat.interval.ms=0
broker.session.timeout.ms=x
initial.broker.registration.timeout.ms=x
log.dirs=
metadata.log.segment.bytes=5
metadata.log.max.record.bytes.between.snapshots=0
metadata.max.retention.ms=x
metadata.max.idle.interval.ms=-1
zookeeper.metadata.migration.enable=true
control.plane.listener.name=PLAINTEXT
sasl.enabled.mechanisms=
sasl.mechanism.inter.broker.protocol=NONE
ssl.client.auth=maybe
delegation.token.max.lifetime.ms=0
quota.window.num=0
metrics.num.samples=0
metrics.recording.level=LOUD
metric.reporters=no.such.Reporter
authorizer.class.name=no.such.Authorizer
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
principal.builder.class=no.such.Builder
create.topic.policy.class.name=Policy
remote.log.storage.system.enable=maybe
remote.log.manager.thread.pool.size=0
telemetry.max.bytes=0
no.such.setting=x
request.timeout.ms=-1
fetch.max.bytes=5
controlled.shutdown.max.retries=x
"""


def setting_edits() -> Mapping[str, Edit]:
    """Edits by name, which is the setting with its value."""

    def sets(name: str, value: str) -> Edit:
        def edit(node: "Node") -> None:
            node.settings[name] = value

        return edit

    def twice(node: "Node") -> None:
        node.settings["log.dirs"] = ",".join(map(str, (*node.log_dirs, f"{node.log_dirs[0]}/")))

    def elsewhere(place: str) -> Edit:
        def edit(node: "Node") -> None:
            node.settings["metadata.log.dir"] = node.home / place

        return edit

    return {
        **{line: sets(*line.split("=", 1)) for line in _VALUES.splitlines()},
        "log.dirs with one twice": twice,
        "metadata.log.dir in the other one": elsewhere("data-1"),
        "metadata.log.dir where nothing is": elsewhere("data-2"),
    }
