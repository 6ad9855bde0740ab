"""What the logs of brokers and the metadata log say of versions, against recordings."""

from kforensics.case.broker_logs import logged_evidence, read_logs
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.metadata.files import find_metadata_logs
from kforensics.evidence.metadata.log import read_metadata_log
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import METADATA_VERSION_LEVELS


def test_the_metadata_version_of_every_recording_is_known(incident):
    newest = incident("all-codecs-4.x") / "snapshots" / "99-final"
    history = read_metadata_log(find_metadata_logs(find_inputs([newest]))[0])
    levels = [change.level for change in history.features if change.name == "metadata.version"]

    assert "4.3-IV0" == METADATA_VERSION_LEVELS[levels[-1]]


def test_a_broker_speaks_the_protocol_of_its_inter_broker_version(tmp_path):
    log = tmp_path / "server.log"
    lines = (
        "[2026-11-21 06:00:00,000] INFO KafkaConfig values: \n\tbroker.id = {id}\n\tinter.broker.protocol.version = {level}\n",
        "[2026-11-21 06:00:01,000] INFO Kafka version: 2.8.1 (org.apache.kafka.common.utils.AppInfoParser)\n",
        "[2026-11-21 06:00:02,000] INFO [KafkaServer id={id}] started (kafka.server.KafkaServer)\n",
    )
    for level, protocol in (("2.6-IV0", ProtocolName.KIP_279), ("2.8-IV1", ProtocolName.KIP_595), ("?", None)):
        log.write_text("".join(lines).format(id=3, level=level))
        files, problems = read_logs(find_inputs([tmp_path], with_server_logs=True))

        assert [] == problems
        assert {3: protocol or ProtocolName.KIP_595} == logged_evidence(files, ()).protocol_hints
