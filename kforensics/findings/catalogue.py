"""The codes of all findings: stable, never reused.

KF1xx files and formats, KF2xx replicas and truncation, KF3xx incidents and losses, KF4xx fleet and
placement, KF5xx identity and inventory, KF6xx transactions and consumer groups.
"""

from dataclasses import dataclass
from enum import Enum


class ToldApartBy(Enum):
    """What distinguishes findings of one code about one replica."""

    NOTHING = "nothing"
    """There is one at most, however its offsets move."""
    FILE = "file"
    """The file or directory that is cited first."""
    PLACE = "place"
    """The file that is cited first, and the position in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingKind:
    """The meaning of a code, and the text of a finding that has no more precise words."""

    title: str
    meaning: str
    advice: str
    references: tuple[str, ...] = ()
    told_apart_by: ToldApartBy = ToldApartBy.NOTHING


CATALOGUE: dict[str, FindingKind] = {
    "KF101": FindingKind(
        title="bytes of a log that can't be read",
        meaning="Brokers do not look at closed segments: a fetch that reaches this place fails or, without check.crcs, hands out wrong bytes.",
        advice="Copy this directory before anything else. A restart repairs nothing here; replace the replica only from one that holds all of it intact.",
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF102": FindingKind(
        title="batches that do not follow each other",
        meaning="Each batch is sound by its checksum, which does not cover base offset and leader epoch; lookups and truncation go wrong here.",
        advice="Compare with another replica before this one leads; do not rename or edit segments in place.",
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF103": FindingKind(
        title="an index that contradicts its log",
        meaning="Lookups by offset or time start at a wrong place; brokers since 2.3 do not notice it when they load the log.",
        advice="An index may be set aside, with the broker stopped, only where every batch of its segment is sound: at any start, after a clean stop too, the broker scans a segment without an offset index, truncates it at the first batch that fails and keeps the segments behind it, which leaves a hole and hardly a word in the log. A time index that is set aside stays empty until its segment is recovered.",
        references=("KAFKA-7283",),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF104": FindingKind(
        title="a transaction index that contradicts its log",
        meaning="Consumers with read_committed see records of aborted transactions, or miss committed ones.",
        advice="Do not set it aside alone: a missing transaction index counts as one without aborted transactions. It is rebuilt where its segment is recovered, which is safe only where every batch of the segment is sound; a replica that copies the log again is safer.",
        references=("KIP-98",),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF105": FindingKind(
        title="a producer snapshot that contradicts its log",
        meaning="The broker judges duplicates and open transactions by it after a start.",
        advice="It may be set aside, with the broker stopped, only where another snapshot is there or the stop was unclean: after a clean stop a broker without any snapshot does not read the log for it, and forgets open transactions and the sequences of idempotent producers.",
        references=("KIP-98", "KAFKA-9892"),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF106": FindingKind(
        title="a leader epoch checkpoint that is wrong",
        meaning="The broker truncates by this file: a wrong line can make it discard committed records, a malformed one takes the log directory offline.",
        advice="Do not start the broker on it before the directory is copied; compare it with the epochs of the batches.",
        references=("KIP-101", "KAFKA-16541"),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF107": FindingKind(
        title="an offset checkpoint that is wrong",
        meaning="A malformed line makes the broker drop the file or take the log directory offline; an offset above the log end shows that records were lost.",
        advice="Look at the other replicas before the broker is started: they may hold what is missing here.",
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF108": FindingKind(
        title="a small file of a node that is malformed",
        meaning="The broker refuses to start, or takes the partition's directory offline.",
        advice="Compare with the same file of a healthy directory; keep the original.",
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF109": FindingKind(
        title="a metadata snapshot that is not whole",
        meaning="A controller can't load it; without an older one and the log behind it the node has to fetch it again.",
        advice="Keep the snapshots and logs of the other controllers.",
        references=("KIP-630",),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF110": FindingKind(
        title="the unfinished end of a log",
        meaning="The broker was running or was killed: without a clean-shutdown marker recovery truncates the log here at the next start, and nothing before it is touched. With the marker nothing is truncated: half a batch stays, and takes along what is appended behind it at the next unclean start; zeros stop the broker.",
        advice="Without the marker nothing has to be done; what was behind is on the other replicas if it was committed. With it, copy the directory before the broker starts.",
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF111": FindingKind(
        title="derived files that the broker rebuilds",
        meaning="After a crash indexes and snapshots lag behind or run ahead of the log; a start recomputes them.",
        advice="Nothing has to be done.",
    ),
    "KF112": FindingKind(
        title="files that are stale by design",
        meaning="Checkpoints are written now and then, or not before a clean stop; loading repairs them.",
        advice="Nothing has to be done. Numbers above the log end can be a sign of lost records: `kforensics diff` compares the replicas.",
        references=("KAFKA-16541",),
    ),
    "KF113": FindingKind(
        title="leader epochs that fall within a log",
        meaning="One log holds two histories: a truncation stopped at the wrong place, and this replica differs from others for good.",
        advice="Compare the replicas with `kforensics diff`, and decide which history counts before any of them is deleted.",
        references=("KIP-279",),
    ),
    "KF114": FindingKind(
        title="indexes that are not there",
        meaning="At any start, after a clean stop too, the broker scans a segment without an offset index and rebuilds it. That loses nothing where every batch of the segment is sound; else the segment is truncated at the first batch that fails while the segments behind it stay: a hole. A missing time index stays empty until its segment is recovered.",
        advice="Check these segments with `kforensics verify --level crc` or deeper before the broker starts. Where a batch fails, put the index back from a copy, or replace the replica.",
    ),
    "KF115": FindingKind(
        title="one topic, several topic ids on a node",
        meaning="Some of its partitions are left from a topic that was deleted and created again under its name.",
        advice="The id in the cluster metadata says which are current; keep the others until it is clear that nothing of them is needed.",
        references=("KIP-516",),
    ),
    "KF116": FindingKind(
        title="a missing segment",
        meaning="Its index, a checkpoint or the segments around it show that it was there: a broker deletes them together, so it was removed, or the copy left it out. "
        "A start without it does not bring it back: the broker begins an empty log, or serves the log with a hole.",
        advice="Look for the file on the broker's disk, in lost+found, in other copies of the directory and on the other replicas before this broker starts.",
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF117": FindingKind(
        title="a log that may have lost its beginning",
        meaning="With the segments at the beginning of a log a broker deletes the leader epochs below, and by a clean stop has written where the log begins. So these were taken away by something else, "
        "unless the broker was killed or copied while it deleted them, or the topic has remote storage.",
        advice="Look for the segments in lost+found, in other copies of the directory and on the other replicas. Where remote storage holds them, nothing has to be done.",
        references=("KIP-405",),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF201": FindingKind(
        title="a replica will discard committed records",
        meaning="Consumers could read these records and producers with acks=all got acknowledgements for them. After the truncation no replica of the comparison holds them.",
        advice="Do not start this broker before its directory is copied. Export the records from the copy, or choose a leader that loses less.",
        references=("KIP-101", "KIP-279", "KIP-595"),
    ),
    "KF202": FindingKind(
        title="a replica will discard records that may have been committed",
        meaning="These disks do not prove that committed records will be discarded, and nothing contradicts it.",
        advice="Copy the directory before the broker is started; client logs or another replica can show more.",
        references=("KIP-101", "KIP-279", "KIP-595"),
    ),
    "KF203": FindingKind(
        title="a replica will truncate its log, and discards nothing committed",
        meaning="The ordinary end of a fail-over: the tail was never committed, or the leader holds it and it is copied again.",
        advice="Nothing to do. Keep a copy if acks=1 records of the tail matter.",
        references=("KIP-101", "KIP-279", "KIP-595"),
    ),
    "KF204": FindingKind(
        title="replicas hold different content at the same offset, and no rule will repair it",
        meaning="Consumers read different records depending on which replica leads. The brokers notice nothing.",
        advice="Find out which content is right (other replicas, producers), then let the wrong replica copy its log again into an empty directory, only from one that holds all of it intact; keep the old directory.",
        references=("KIP-101", "KIP-279"),
    ),
    "KF205": FindingKind(
        title="a truncation below the replica's own high watermark",
        meaning="This never happens in a fenced history with clean elections: there was an unclean election, a lost disk tail, or a bug.",
        advice="Copy this replica before it starts: below its high watermark it holds committed records.",
        references=("KIP-320", "KIP-966"),
    ),
    "KF206": FindingKind(
        title="a replica holds a range that can't be read",
        meaning="Consumers that check checksums stop there, and the broker does not repair it.",
        advice="See `kforensics verify` for the bytes and for replicas that hold the range intact.",
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF207": FindingKind(
        title="committed records are on no disk of the comparison",
        meaning="A replica recorded a high watermark past the end of every log here: what was below it was committed and is not on these disks.",
        advice="Look for a replica or a snapshot that is not among the inputs before anything is started.",
        references=("KIP-966",),
    ),
    "KF208": FindingKind(
        title="a log whose offsets do not always rise",
        meaning="The log holds some offsets twice, as old brokers could write it after a truncation to the high watermark.",
        advice="Do not trust offsets alone here: compare records before one copy is taken.",
        references=("KAFKA-3919", "KIP-101"),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF209": FindingKind(
        title="a truncation that never ends",
        meaning="The follower asks the same question for ever and stays out of the ISR.",
        advice="Upgrade the broker; removing the last line of its leader-epoch-checkpoint while it is stopped ends the loop.",
        references=("KAFKA-10706",),
    ),
    "KF210": FindingKind(
        title="start-up recovery will discard sound records behind a damaged batch",
        meaning="The broker truncates the log at the first batch that fails and deletes the segments behind it, however sound they are.",
        advice="Copy the directory before the broker is started; the records behind the damage can be read from the copy.",
    ),
    "KF211": FindingKind(
        title="start-up recovery will discard an unfinished tail",
        meaning="Normal after a kill or a power loss: the last write did not get to the end.",
        advice="Nothing to do.",
    ),
    "KF212": FindingKind(
        title="no usable leader-epoch-checkpoint",
        meaning="The comparison uses the epochs of the batches. A broker that finds no file falls back to its high watermark; one that finds a malformed file takes the log dir offline.",
        advice="Keep the file as it is for evidence; it can be written again from the epochs shown.",
        references=("KIP-101", "KAFKA-16541"),
    ),
    "KF213": FindingKind(
        title="replicas of a partition are not among the inputs",
        meaning="What they hold can change every conclusion: they may be longer, or hold what is called lost here.",
        advice="Add their data directories.",
    ),
    "KF214": FindingKind(
        title="a directory on its way to deletion",
        meaning="The broker renamed it when the topic was deleted or the replica moved away, and removes it a minute later.",
        advice="Copy it if its records may be needed.",
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF215": FindingKind(
        title="a replica without a topic id",
        meaning="partition.metadata is written with the first flush, and not at all before 2.8.",
        advice="Nothing to do.",
        references=("KIP-516",),
    ),
    "KF216": FindingKind(
        title="no member of the ISR holds the partition any more",
        meaning="Disks of these brokers are among the inputs and lack the partition: a disk was replaced, emptied, is not mounted or was not given. Only members of the ISR are known to hold every committed record; what the other replicas lack may be lost.",
        advice="Give all log directories of these brokers. Else find the old disk or a snapshot of it before these brokers are started: one that starts with an empty log leads, and the others truncate their logs to it.",
        references=("KIP-858", "KIP-966"),
    ),
    "KF217": FindingKind(
        title="bytes behind the last batch of a log that was stopped cleanly",
        meaning="A start recovers nothing beside the marker of a clean stop. Zeros are read as a batch of size 0: the broker stops with a CorruptRecordException. "
        "Other bytes stay, and new records are appended behind them.",
        advice="Copy the directory before the broker starts; `kforensics predict` shows what its start does, and `kforensics verify` where the bytes are.",
    ),
    "KF218": FindingKind(
        title="the broker of a replica halts rather than truncate it",
        meaning="Up to 1.0 a broker with unclean.leader.election.enable=false halts when it fetches above the end of its leader's log, and so at each start.",
        advice="Keep its directory: it may alone hold the records. Let it lead again, or accept their loss and set unclean.leader.election.enable=true for the topic.",
    ),
    "KF219": FindingKind(
        title="a broker that does not start as it is",
        meaning="A file of its log directories is one that Kafka refuses. Until that is mended its logs are neither served nor truncated, and it is no replica that others can follow.",
        advice="See `kforensics predict` for what each start does, and `kforensics predict --ways-out` for what to change. Copy the directories before anything is changed or started.",
    ),
    "KF301": FindingKind(
        title="committed records are lost",
        meaning="Producers with acks=all got acknowledgements for these records; the final leader does not hold them.",
        advice="Keep every snapshot and every stopped replica that still holds them; inform the producers which offsets were lost.",
    ),
    "KF302": FindingKind(
        title="records that may have been committed are lost",
        meaning="Nothing proves that they were below the high watermark, and nothing that they were not.",
        advice="Logs of the clients, the metadata log or another snapshot can settle it.",
    ),
    "KF303": FindingKind(
        title="records that were never committed are lost",
        meaning="They had not reached every in-sync replica, so no producer with acks=all got an acknowledgement for them.",
        advice="Producers with acks=1 or 0 may want to send them again.",
    ),
    "KF304": FindingKind(
        title="a truncation that the protocol would not have made",
        meaning="Recomputed from the logs as they were, the truncation should have ended at another offset.",
        advice="Compare the broker's version with the known truncation bugs, and the replicas with diff.",
        references=("KIP-101", "KIP-279"),
    ),
    "KF305": FindingKind(
        title="a consumer group whose committed offset refers to lost records",
        meaning="It will be reset by auto.offset.reset, or go on behind records that it has never read.",
        advice="Set the group's offset by hand once the partition is settled.",
    ),
    "KF306": FindingKind(
        title="a truncation without loss of committed records",
        meaning="Followers truncate what their new leader never had; this is how replicas become equal again.",
        advice="Nothing to do.",
        references=("KIP-101",),
    ),
    "KF307": FindingKind(
        title="unclean elections without loss",
        meaning="The leader was not in the recorded ISR but held everything that any input shows.",
        advice="Nothing to do; the setting that allowed it may lose records next time.",
        references=("KIP-966",),
    ),
    "KF308": FindingKind(
        title="a torn or hanging transaction",
        meaning="A loss separated the data of a transaction from its end marker, or no coordinator will write that marker: read_committed consumers wait, or see less than was committed.",
        advice="Look at the producer's application: what it committed in one transaction may not be complete. kafka-transactions can abort what hangs; `kforensics transactions` prints the command.",
        references=("KIP-98", "KIP-664"),
    ),
    "KF309": FindingKind(
        title="an idempotent producer that is ahead of the sequence the leader knows",
        meaning="Its next batch will be refused as out of order, unless the producer restarts.",
        advice="Restart the producer where it reports OutOfOrderSequenceException.",
        references=("KIP-98",),
    ),
    "KF310": FindingKind(
        title="a key in a partition that no default partitioner chooses",
        meaning="Java clients choose the partition of a key by murmur2, librdkafka by CRC-32, both by the number of partitions of that time: the producer named the partition, has a partitioner of its own, or wrote before partitions were added.",
        advice="Look for other records of the key in all partitions; their order across partitions is not that of their offsets.",
    ),
    "KF401": FindingKind(
        title="a partition without a leader",
        meaning="No client can produce to it or consume from it until a replica is elected.",
        advice="See `kforensics diff` for what each possible leader would lose, before an unclean election is allowed.",
        references=("KIP-966",),
    ),
    "KF402": FindingKind(
        title="an under-replicated partition",
        meaning="Fewer replicas are in sync than the topic should have: one more failure may make it unavailable or lose records.",
        advice="Find out why the others are not in sync before anything else is restarted.",
    ),
    "KF403": FindingKind(
        title="an assigned replica that is not on the broker's disks",
        meaning="The cluster counts on a copy that is not there: it was deleted, is on a disk that is not mounted, or was never made.",
        advice="Look for an offline or unmounted log directory first; a broker that starts without it copies the partition again.",
        references=("KIP-858",),
    ),
    "KF404": FindingKind(
        title="a replica that the metadata does not assign to the broker",
        meaning="Left behind by a reassignment or by a topic that was deleted while the broker was away; it takes space and may hold records that no other replica has.",
        advice="Compare it with the assigned replicas before it is removed.",
        references=("KAFKA-15605",),
    ),
    "KF405": FindingKind(
        title="replicas of a partition share a rack",
        meaning="The loss of one rack takes more than one copy, though there are racks enough to spread them.",
        advice="Reassign one of the replicas to a broker of another rack.",
        references=("KIP-36",),
    ),
    "KF406": FindingKind(
        title="leaders are spread unevenly",
        meaning="One broker serves far more than its share of producers and consumers.",
        advice="A preferred leader election moves leaders back to the first replica of each assignment.",
    ),
    "KF407": FindingKind(
        title="the inventory and a directory disagree about who it is",
        meaning="A volume is mounted on, or listed for, another node than the one that wrote it.",
        advice="Trust meta.properties; correct the inventory, or find out which volume was swapped.",
    ),
    "KF408": FindingKind(
        title="logs that the evidence of a scan can't compare",
        meaning="A scan with --digests-only proves equality per 65,536 offsets: where one log holds a part of such a run only, its digest proves nothing. Where a cleaner worked on one log, and the scan of the other node did not know of it, the records that would show it were not carried.",
        advice="Scan without --digests-only, or run `kforensics diff` or `fleet audit` where the bytes of these replicas can be read.",
    ),
    "KF502": FindingKind(
        title="one partition is in two log directories of a node",
        meaning="A broker refuses to start when two of its log directories hold one partition, but for a move. In KRaft, since 3.7.1, one of them that the metadata does not assign, or that is of another topic id, is renamed to -stray first, and the broker starts.",
        advice="Compare both directories; keep copies of both before one is taken away.",
        references=("KIP-113",),
    ),
    "KF503": FindingKind(
        title="a directory that is neither a partition nor anything else a broker writes",
        meaning="A broker of any version aborts at start on a directory whose name is not of the form topic-partition. Since 2.8 that start has removed the clean-shutdown marker by then, so the next one recovers every log of the directory.",
        advice="Move it out of the log directory of the broker, not of the evidence, before the broker is started.",
    ),
    "KF504": FindingKind(
        title="replicas under one name belong to different topics",
        meaning="The topic was deleted and created again under its name: these logs have nothing to do with each other.",
        advice="Do not compare or copy data between them; the id in the cluster metadata says which one is current.",
        references=("KIP-516",),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF505": FindingKind(
        title="stray replica",
        meaning="The cluster no longer assigns this replica to the broker, which set it aside.",
        advice="Keep it until it is clear that no current replica lacks its records.",
        references=("KAFKA-15605",),
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF506": FindingKind(
        title="a name that a broker does not write",
        meaning="The file is listed and was not read as Kafka data.",
        advice="Check where it comes from; brokers ignore most such files.",
        told_apart_by=ToldApartBy.FILE,
    ),
    "KF507": FindingKind(
        title="the inputs belong to several clusters",
        meaning="Partitions of the same name in different clusters have nothing to do with each other.",
        advice="Give the directories of one cluster at a time.",
    ),
    "KF508": FindingKind(
        title="one node is given more than once",
        meaning="Two states of one node, or a restored volume under a wrong id: they are not two replicas.",
        advice="Give one state of each node; earlier states belong to `explain --before`.",
    ),
    "KF511": FindingKind(
        title="content differs from the seal",
        meaning="The evidence was altered after it was sealed, or the seal is of something else.",
        advice="Conclude nothing from these files; take a copy that still agrees with the seal.",
    ),
    "KF512": FindingKind(
        title="something sealed is missing",
        meaning="It was deleted, renamed or left out of the copy.",
        advice="Look for the original or another copy before anything is concluded from what is left.",
    ),
    "KF513": FindingKind(
        title="something is here that was not sealed",
        meaning="It was added after the evidence was sealed; nothing vouches for it.",
        advice="Find out where it comes from, and leave it out of conclusions.",
    ),
    "KF514": FindingKind(
        title="times or permissions differ from the seal, the content does not",
        meaning="Usual after a copy that did not keep them.",
        advice="Nothing to do; rely on the sealed times, not on those of the copy.",
    ),
    "KF515": FindingKind(
        title="the signature of a seal does not hold",
        meaning="The manifest or its signature was altered, or another key signed it.",
        advice="Do not rely on the manifest; get it and the public key again from who sealed the evidence.",
    ),
    "KF601": FindingKind(
        title="a transaction that no coordinator ends",
        meaning="Consumers with read_committed get nothing from its first offset on, and a cleaner does not get past it.",
        advice="End it with the abort line that `kforensics transactions` shows, once no producer of it writes any more.",
        references=("KIP-664", "KIP-890"),
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF602": FindingKind(
        title="a transaction whose marker is lost",
        meaning="It was ended, and its records are open here: consumers with read_committed get nothing from its first offset on.",
        advice="Where it was committed, copy its records before anybody ends it: an abort marker hides what was acknowledged.",
        references=("KIP-98",),
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF603": FindingKind(
        title="a transaction whose records are lost and whose marker is kept",
        meaning="A truncation took records of a transaction that was ended; of a committed one they were acknowledged.",
        advice="Look for them in the copies that are cited before these are started or deleted.",
        references=("KIP-98",),
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF604": FindingKind(
        title="a decided transaction whose marker is still to be written",
        meaning="Its coordinator writes the marker as soon as it and the leader of the partition run; until then consumers with read_committed wait.",
        advice="Start the brokers that lead both partitions, and end the transaction by no other way.",
        references=("KIP-98",),
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF605": FindingKind(
        title="a transaction that was committed in one partition and aborted in another",
        meaning="Its coordinator lost the decision to commit in an unclean election and aborted the rest: consumers with read_committed never get records that were acknowledged.",
        advice="Copy the aborted records (`kforensics dump`) before retention takes them, and produce them again.",
        references=("KIP-98",),
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF611": FindingKind(
        title="a consumer group past the end of a log",
        meaning="It has read records that are not in the log any more, and auto.offset.reset decides what it reads next.",
        advice="Set its position by hand before it consumes again.",
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF612": FindingKind(
        title="a consumer group that was set back",
        meaning="The records between the two positions are read again.",
        advice="Find out who set it back, and whether its consumers tolerate records that are read twice.",
        told_apart_by=ToldApartBy.PLACE,
    ),
    "KF613": FindingKind(
        title="a consumer group below a log start",
        meaning="The records between its position and the log start were deleted before it read them.",
        advice="auto.offset.reset decides what it reads next; find out what deleted the records, and whether another copy holds them.",
        told_apart_by=ToldApartBy.PLACE,
    ),
}
