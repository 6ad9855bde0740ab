# Generated of the options in kforensics/ask: python -m kforensics.cli.manpage

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from kforensics.commands.capture import CaptureReport
from kforensics.commands.comparing import DiffResult
from kforensics.commands.dump import DumpContent
from kforensics.commands.explanation import Explanation
from kforensics.commands.groups import Groups
from kforensics.commands.logs import LogsView
from kforensics.commands.ls import Listing
from kforensics.commands.metadata import MetadataView
from kforensics.commands.predict import Prediction
from kforensics.commands.salvage import SalvageReport
from kforensics.commands.seal import NewSeal
from kforensics.commands.trace import TraceReport
from kforensics.commands.transactions import Transactions
from kforensics.commands.triage import Triage
from kforensics.commands.verify import VerifyResult
from kforensics.errors import EvidenceError as EvidenceError, EvidenceNotFound as EvidenceNotFound, EvidenceUnreadable as EvidenceUnreadable, InputsRefused as InputsRefused, KforensicsError as KforensicsError, MissingExtra as MissingExtra, NotADataDir as NotADataDir, UsageError as UsageError
from kforensics.library import Answered

__version__: str
__all__: list[str]

AnyPath = str | PathLike[str]
AnyPaths = AnyPath | Iterable[AnyPath]

def capture(
    *paths: AnyPaths,
    out: AnyPath | None = ...,
    depth: str | None = ...,
    plan: bool = ...,
    all_batches: bool = ...,
    with_tail: bool = ...,
    since: AnyPath | Iterable[AnyPath] = ...,
    normal_priority: bool = ...,
    sign_with: AnyPath | None = ...,
    redact: bool = ...,
    redact_topics: bool = ...,
    redact_key: Any | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[CaptureReport]:
    """Save a node's evidence in one file; every command accepts it in place of directories."""
def diff(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    leader: int | None = ...,
    protocol: str | None = ...,
    replicas: Any | None = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    depth: str | None = ...,
    only_findings: bool = ...,
    explain_steps: bool = ...,
    show_records: bool = ...,
    show_payload: bool = ...,
    redact: bool = ...,
    redact_key: Any | None = ...,
    seal: AnyPath | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[DiffResult]:
    """Compare the replicas of every partition: where each will truncate, what differs, and what each possible leader would lose."""
def dump(
    *paths: AnyPaths,
    producer_ids: int | Iterable[int] = ...,
    records: bool = ...,
    from_offset: int | None = ...,
    to_offset: int | None = ...,
    epoch: int | None = ...,
    from_time: Any | None = ...,
    to_time: Any | None = ...,
    show_payload: bool = ...,
    text: bool = ...,
    redact: bool = ...,
    redact_key: Any | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[DumpContent]:
    """Decode any file of a data directory: batches or records, indexes, snapshots, checkpoints."""
def explain(
    *paths: AnyPaths,
    before: AnyPath | Iterable[AnyPath] = ...,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    since: Any | None = ...,
    until: Any | None = ...,
    log_timezone: str | None = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    depth: str | None = ...,
    redact: bool = ...,
    redact_key: Any | None = ...,
    seal: AnyPath | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[Explanation]:
    """Explain what happened in an incident: every truncation with its cause, and every lost record."""
def groups(
    *paths: AnyPaths,
    before: AnyPath | Iterable[AnyPath] = ...,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    groups: str | Iterable[str] = ...,
    at: Any | None = ...,
    history: bool = ...,
    expired: bool = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    redact: bool = ...,
    redact_key: Any | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[Groups]:
    """Show the positions of consumer groups, how far behind they are, and who set them back."""
def logs(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    line: str | None = ...,
    since: Any | None = ...,
    until: Any | None = ...,
    log_timezone: str | None = ...,
    cluster: str | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[LogsView]:
    """Say what the logs of brokers mean: every known line by its kind, harmless, a symptom or a cause, and all nodes on one clock."""
def ls(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    cluster: str | None = ...,
    depth: str | None = ...,
    files: bool = ...,
    keep_going: bool = ...,
    read_rate: Any | None = ...,
) -> Answered[Listing]:
    """List what is here: nodes, log directories, partitions with their offsets, every file by its kind."""
def metadata(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    broker: int | None = ...,
    at: Any | None = ...,
    since: Any | None = ...,
    until: Any | None = ...,
    cluster: str | None = ...,
    keep_going: bool = ...,
    read_rate: Any | None = ...,
) -> Answered[MetadataView]:
    """Show the history of partitions, topics and brokers from the KRaft metadata log and its snapshots."""
def predict(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    kafka: str | None = ...,
    now: Any | None = ...,
    without: AnyPath | Iterable[AnyPath] = ...,
    set: Mapping[str, str] = ...,
    ways_out: bool = ...,
    order: bool = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    depth: str | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[Prediction]:
    """Say what a broker will do to its logs when it is started: scanned, truncated, deleted, rebuilt, or refused, file by file."""
def salvage(
    *paths: AnyPaths,
    out: AnyPath | None = ...,
    before: AnyPath | Iterable[AnyPath] = ...,
    what: str | None = ...,
    form: str | None = ...,
    carve: AnyPath | Iterable[AnyPath] = ...,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    offsets: Any | None = ...,
    time: Any | None = ...,
    with_aborted: bool = ...,
    topic_id: str | None = ...,
    from_zero: bool = ...,
    leader: int | None = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    plan: bool = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[SalvageReport]:
    """Get records back: the best copy of what is lost, at risk, or of everything, with a list of gaps."""
def seal(
    *paths: AnyPaths,
    check: AnyPath | None = ...,
    case_id: str | None = ...,
    operator: str | None = ...,
    sign_with: AnyPath | None = ...,
    public_key: AnyPath | None = ...,
    signature: AnyPath | None = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[Any]:
    """Seal evidence: a manifest with size, times and sha256 of everything below the paths, to show later that nothing changed."""
def simulate(
    *paths: AnyPaths,
    list: bool = ...,
    protocol: str | None = ...,
    explore: str | None = ...,
    replicas: int | None = ...,
    max_log: int | None = ...,
    max_records: int | None = ...,
    max_epoch: int | None = ...,
    invariant: str | None = ...,
    max_states: int | None = ...,
    write: AnyPath | None = ...,
    steps: int | None = ...,
    stop: bool = ...,
    random: bool = ...,
    seed: int | None = ...,
    brokers: int | None = ...,
    partitions: int | None = ...,
    racks: int | None = ...,
    bytes: Any | None = ...,
) -> Answered[Any]:
    """Replay how replicas lose and diverge, explore every interleaving, or write a history as data directories."""
def trace(
    *paths: AnyPaths,
    before: AnyPath | Iterable[AnyPath] = ...,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    key: Any | None = ...,
    key_base64: Any | None = ...,
    key_sha256: Any | None = ...,
    offset: int | None = ...,
    header: Any | None = ...,
    value: Any | None = ...,
    value_regex: str | None = ...,
    all_partitions: bool = ...,
    erasure: bool = ...,
    time: Any | None = ...,
    leader: int | None = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    show_payload: bool = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[TraceReport]:
    """Trace a record: every copy of it and what became of it, or what was searched without finding it."""
def transactions(
    *paths: AnyPaths,
    before: AnyPath | Iterable[AnyPath] = ...,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    transactional_ids: str | Iterable[str] = ...,
    producer_ids: int | Iterable[int] = ...,
    at: Any | None = ...,
    open: bool = ...,
    all: bool = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    redact: bool = ...,
    redact_key: Any | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[Transactions]:
    """Show open transactions, whether they hang, and what ends them."""
def triage(
    *paths: AnyPaths,
    before: AnyPath | Iterable[AnyPath] = ...,
    steps: AnyPath | None = ...,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    since: Any | None = ...,
    until: Any | None = ...,
    log_timezone: str | None = ...,
    kafka: str | None = ...,
    now: Any | None = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    depth: str | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[Triage]:
    """Answer first what was lost, what is at risk, where it is saved, and what to do."""
def verify(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    stopped: bool = ...,
    cluster: str | None = ...,
    level: str | None = ...,
    seal: AnyPath | None = ...,
    keep_going: bool = ...,
    jobs: int | None = ...,
    read_rate: Any | None = ...,
) -> Answered[VerifyResult]:
    """Check every file against its format and against its neighbours."""
