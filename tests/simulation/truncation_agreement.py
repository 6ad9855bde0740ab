"""Why a recompute from epochs is exact: the broker's look-up against what the models know, at every reachable cut.

A real follower has only its epochs and the leader's answers. At every state in which a replica can take a request to
follow, its cut by look-ups (`protocol.truncation`) is compared with the record match of the models and the longest
common prefix.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from kforensics.damage import Absent
from kforensics.protocol.epochs import CURRENT_RULES, EpochRules, Epochs, assign
from kforensics.protocol.truncation import LogState, ProtocolName, StepKind, follower_truncation, leader_after_election
from kforensics.simulation.explore import Transitions
from kforensics.simulation.models import MODELS, ModelRecord, ModelReplica, ModelSize, ModelState, Side, last_match


@dataclass(frozen=True, slots=True, kw_only=True)
class CutAgreement:
    """How often look-up, record match and common prefix are one."""

    pairs: int
    truncating: int
    """Pairs at which something is cut."""
    agreeing: int
    """Pairs at which look-up, record match and longest common prefix are the same offset."""
    below_high_watermark: int
    """Pairs at which the look-up cuts below the follower's own high watermark."""
    max_rounds: int
    """Questions that the longest look-up took."""


def log_state_of(replica: ModelReplica, rules: EpochRules = CURRENT_RULES) -> LogState:
    """A model's replica as the protocol sees it: epochs as they were assigned while the log grew."""
    return LogState(
        epochs=epochs_of(replica.log, rules),
        log_start_offset=0,
        log_end_offset=replica.log_end_offset,
        high_watermark=replica.high_watermark,
    )


def epochs_of(log: tuple[ModelRecord, ...], rules: EpochRules = CURRENT_RULES) -> Epochs:
    """The epoch cache that a log fills as it is appended."""
    epochs: Epochs = ()
    for offset, record in enumerate(log):
        epochs = assign(epochs, record.leader_epoch, offset, rules)
    return epochs


def reachable_states(model: str, size: ModelSize, max_states: int | None) -> Iterator[ModelState]:
    """Every reachable state, the nearest first; behind this number no further states are looked for."""
    transitions = Transitions(MODELS[model], size)
    start = transitions.encode(size.initial_state())
    seen, level = {start}, [start]
    while level:
        following: list[int] = []
        for code in level:
            yield transitions.decode(code)
            for delta in transitions.expand(code)[-1]:
                if code + delta not in seen:
                    seen.add(code + delta)
                    following.append(code + delta)
            if max_states is not None and len(seen) >= max_states:
                following.clear()
        level = following


def compare_truncations(model: str, size: ModelSize, *, max_states: int | None = None) -> CutAgreement:
    """Compare at every pair of a follower and a request that it can take in a reachable state."""
    rules = MODELS[model]
    known: dict[tuple[ModelReplica, ModelReplica, int], tuple[bool, bool, bool, int]] = {}
    pairs = truncating = agreeing = below = rounds = 0
    for state in reachable_states(model, size, max_states):
        for leader_epoch, request in enumerate(state.controller.requests):
            if request.leader < 0:
                continue
            leader = Side(request.leader, state.replicas[request.leader])
            if not rules.may_follow(leader, leader_epoch):
                continue
            for index, follower in enumerate(state.replicas):
                if index == leader.broker or leader_epoch <= follower.leader_epoch:
                    continue
                key = (follower, leader.replica, leader_epoch)
                found = known.get(key)
                if found is None:
                    found = known[key] = _compare(follower, leader.replica, leader_epoch)
                pairs += 1
                truncating += found[0]
                agreeing += found[1]
                below += found[2]
                rounds = max(rounds, found[3])
    return CutAgreement(
        pairs=pairs, truncating=truncating, agreeing=agreeing, below_high_watermark=below, max_rounds=rounds
    )


def _compare(follower: ModelReplica, leader: ModelReplica, leader_epoch: int) -> tuple[bool, bool, bool, int]:
    elected = leader_after_election(log_state_of(leader), leader_epoch)
    outcome = follower_truncation(log_state_of(follower), elected, protocol=ProtocolName.KIP_279)
    end = follower.log_end_offset if isinstance(outcome.offset, Absent) else outcome.offset
    agrees = end == last_match(follower, leader) == _common_prefix_length(follower.log, leader.log)
    rounds = sum(step.kind is StepKind.EPOCH_REQUEST for step in outcome.steps)
    return end < follower.log_end_offset, agrees, outcome.below_high_watermark, rounds


def _common_prefix_length(first: tuple[ModelRecord, ...], second: tuple[ModelRecord, ...]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
