"""Facts about the cluster that stand beside the replicas: the metadata log and the consumer groups among the inputs."""

from kforensics.evidence.inputs import Inputs
from kforensics.reconcile.facts import ClusterFacts, NoFacts


def gather_facts(inputs: Inputs) -> ClusterFacts:
    """What the inputs say of leaders, in-sync replicas, topic ids and committed consumer offsets."""
    return NoFacts()
