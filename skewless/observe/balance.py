"""Tells a person how the load is spread, what was moved, and why."""

from collections.abc import Sequence
from typing import Any

_WIDTH = 30
_ROUNDS = 10


def explain_balance(records: Sequence[dict[str, Any]]) -> str:
    """The last records of progress, oldest first, as text.

    Takes what `query.recentProgress` has under "skewless".
    """
    if not records:
        return "No batch has been committed yet."
    lines: list[str] = []
    for join in records[-1]["operators"]:
        lines += _loads(join)
    lines += ["", f"Last {min(_ROUNDS, len(records))} rounds:"]
    for record in records[-_ROUNDS:]:
        lines += [_round(record["batchId"], join) for join in record["operators"]]
    return "\n".join(lines)


def _loads(join: dict[str, Any]) -> list[str]:
    options = join["balance"]
    cpu = join["load"]["cpuMs"]
    top = max([*cpu, 1e-9])
    lines = [
        f"{join['operator']} on {join['instances']} instances, policy {options['policy']}: "
        f"imbalance {join['imbalance']:.2f} (busiest ÷ mean CPU time)"
    ]
    rows, matches = join["load"]["rows"], join["load"]["matches"]
    for number, (ms, n, m) in enumerate(zip(cpu, rows, matches, strict=True)):
        bar = "█" * max(1, round(_WIDTH * ms / top))
        lines.append(f"  {number:>4}  {bar:<{_WIDTH}} {ms:9.1f} ms {n:>10,} rows {m:>12,} matches")
    for split in options.get("splits", []):
        members = ", ".join(map(str, split["members"]))
        lines.append(
            f"  key {split['hash']:#018x} is split over instances {members}; "
            f"its {split['replicated']} rows of a batch go to all of them"
        )
    return lines


def _round(batch: int, join: dict[str, Any]) -> str:
    balance = join["balance"]
    moves = balance.get("moves", [])
    moved = ", ".join(f"{p}: {a}→{b}" for p, a, b in moves[:6])
    more = f" and {len(moves) - 6} more" if len(moves) > 6 else ""
    told = f"; partitions {moved}{more}" if moves else ""
    return f"  batch {batch}: imbalance {join['imbalance']:.2f}; {balance.get('reason', '')}{told}"
