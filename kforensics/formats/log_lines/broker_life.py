"""Lines about a broker's life: start, stop, configuration, log directories, registration (server.log, controller.log).

Fields: `broker`, `broker_epoch`, `incarnation`, `previous_incarnation`, `records` (to clean up an earlier incarnation),
`version`, `directory`, `reason`, `cluster` (the id of the cluster that the node is of).
"""

from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.shape import Shape, shape

_DISK_WORK = rb"(?:append|roll|truncat|flush|load|read|writ|delet|renam|creat|clos|lock|check|clean|process|prepar|tak)"


BROKER_SHAPES: tuple[Shape, ...] = (
    shape(Kind.VERSION, b"Kafka version", rb" ?: ?(?P<version>\d[0-9A-Za-z.-]{0,40})"),
    shape(Kind.CONFIGURATION, b"KafkaConfig values:"),
    shape(Kind.CLUSTER_NAMED, b"Cluster ID = ", rb"{cluster}"),
    shape(Kind.CLUSTER_NAMED, b"Creating new QuorumController with clusterId ", rb"{cluster}"),
    shape(Kind.CLUSTER_NAMED, b"Incarnation ", rb"{incarnation} of broker {broker} in cluster {cluster}"),
    shape(Kind.NEW_LOG_DIR, b"No meta.properties file under dir ", rb"{directory}/meta\.properties(?: \(|\n|$)"),
    shape(Kind.BROKER_STARTED, b"started (kafka.server.KafkaServer)"),
    shape(Kind.BROKER_STARTED, b"started (kafka.server.KafkaServerStartable)"),
    shape(Kind.BROKER_STARTED, b"Kafka Server started"),
    shape(Kind.BROKER_STOPPED, b"shut down completed"),
    shape(Kind.STOP_REQUESTED, b"Terminating process due to signal ", rb"(?P<reason>SIG[A-Z]{2,8})"),
    shape(Kind.STOP_REQUESTED, b"Proceeding to do an unclean shutdown", reason="controlled shutdown failed"),
    shape(
        Kind.LOG_DIR_ERROR,
        b"Error while ",
        rb"(?P<reason>" + _DISK_WORK + rb"[^\n]{0,300}?) in dir {directory}(?: \(|\n|$)",
    ),
    shape(Kind.LOG_DIR_FAILED, b"Stopping serving replicas in dir ", rb"(?P<directory>[^\s]{1,4096})"),
    shape(Kind.LOG_DIR_FAILED, b"Stopping serving logs in dir ", rb"(?P<directory>[^\s]{1,4096})"),
    shape(Kind.BROKER_HALTED, b"Shutdown broker because ", rb"(?P<reason>[^\n]{1,400}?) ha(?:s|ve) failed"),
    shape(Kind.BROKER_HALTED, b"Halting due to unrecoverable I/O error ", rb"(?P<reason>[^\n]{0,200})"),
    shape(
        Kind.BROKER_REGISTERED,
        b"Registering a new incarnation of broker ",
        rb"{broker}\. Previous incarnation ID was {previous_incarnation}; new incarnation ID is {incarnation}\. "
        rb"+Generated {records} record\(s\)[^\n]{0,120}? (?:become|is) {broker_epoch}",
    ),
    shape(
        Kind.BROKER_REGISTERED,
        b"No previous registration found for broker ",
        rb"{broker}\. New incarnation ID is {incarnation}\.(?: +Generated {records} record\(s\)[^\n]{0,120}? is "
        rb"{broker_epoch})?",
    ),
    shape(
        Kind.BROKER_FENCED,
        b"Fencing broker ",
        rb"{broker}(?: at epoch {broker_epoch})? because (?P<reason>[^\n(]{1,200}?)\.? *(?:\(|$)",
    ),
    shape(Kind.CONTROLLER_UNREGISTERED, b"Replayed UnregisterControllerRecord(controllerId=", rb"{broker}\)"),
    shape(Kind.OFFSETS_EXPIRED, b"Removed ", rb"(?P<records>[1-9]\d{0,9}) expired offsets in "),
    shape(
        Kind.OFFSETS_EXPIRED,
        b"Generated ",
        rb"(?P<records>[1-9]\d{0,9}) tombstone records while cleaning up group metadata",
    ),
    shape(Kind.BROKER_UNFENCED, b"The request from broker ", rb"{broker} to unfence has been granted"),
)
