"""The id of a finding: the same in every audit that finds the same thing, whatever the offsets and numbers of its statement are by then."""

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from kforensics.damage import Absent, Span
from kforensics.findings.model import Finding
from kforensics.findings.rule import ToldApartBy, rule_of

_NONE = "-"


def finding_ids(findings: Sequence[Finding], cluster: str | None, roots: Sequence[object]) -> tuple[str, ...]:
    """Return the ids of findings: code, cluster, partition, broker, and where one replica can have several, what each is about.

    `KF206/MkU3OEVBNTcwNTJENDM2Qg/orders-3/2/orders-3/00000000000000000000.log@4096`. Parts that do not apply are `-`. Findings that nothing sets
    apart are numbered in the order of their offsets.

    Args:
        roots: the place of each input, which stands for a broker whose id is not known.
    """
    ids = [_id(one, cluster, roots) for one in findings]
    order = sorted(range(len(ids)), key=lambda at: (ids[at], _order(findings[at])))
    seen: Counter[str] = Counter()
    out = list(ids)
    for at in order:
        seen[ids[at]] += 1
        if seen[ids[at]] > 1:
            out[at] = f"{ids[at]}#{seen[ids[at]]}"
    return tuple(out)


def _id(item: Finding, cluster: str | None, roots: Sequence[object]) -> str:
    partition = _NONE if isinstance(item.topic, Absent) else f"{quote(item.topic, safe='')}-{item.partition}"
    parts = [item.code, quote(cluster, safe="") if cluster else _NONE, partition, _broker(item, roots)]
    about = _about(item)
    return "/".join([*parts, about] if about else parts)


def _broker(item: Finding, roots: Sequence[object]) -> str:
    if not isinstance(item.broker_id, Absent):
        return str(item.broker_id)
    if item.broker_id is Absent.NOT_APPLICABLE or not item.citations:
        return _NONE
    return _quoted(str(roots[item.citations[0].input]), safe="")


def _about(item: Finding) -> str:
    told_apart_by = rule_of(item.code).told_apart_by
    if told_apart_by is ToldApartBy.NOTHING or not item.citations:
        return ""
    cited = item.citations[0]
    parts = cited.path.split("/")
    # How far above the partition's directory an input begins, is up to who names it.
    own = [
        at for at, part in enumerate(parts) if not isinstance(item.topic, Absent) and part.startswith(f"{item.topic}-")
    ]
    path = _quoted("/".join(parts[own[-1] if own else -1 :]), safe="/")
    if told_apart_by is ToldApartBy.PLACE and isinstance(cited.span, Span):
        return f"{path}@{cited.span.position}"
    return path


def _quoted(text: str, safe: str) -> str:
    return quote(text.encode("utf-8", "surrogateescape"), safe=safe)


def _order(item: Finding) -> tuple[int, str, str]:
    first = -1 if isinstance(item.offsets, Absent) else item.offsets.first
    return (first, item.citations[0].path if item.citations else "", item.statement)
