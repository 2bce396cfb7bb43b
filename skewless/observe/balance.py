"""Tells a person how the load is spread, what was moved, and why."""

from collections.abc import Sequence
from typing import Any

from skewless.observe.dropped import explain_dropped
from skewless.observe.shedding import explain_shedding

_WIDTH = 30
_ROUNDS = 10


def explain_balance(records: Sequence[dict[str, Any]]) -> str:
    """The last records of progress, oldest first, as text.

    Takes what `query.recentProgress` has under "skewless".
    """
    if not records:
        return "No batch has been committed yet."
    lines: list[str] = []
    is_chain = len(records[-1]["operators"]) > 1
    for number, operator in enumerate(records[-1]["operators"], start=1):
        number_told = f"{number}. " if is_chain else ""
        loads = _map_loads(operator) if operator["operator"] == "map" else _loads(operator)
        lines += [number_told + loads[0], *loads[1:]]
        if "shed" in operator:
            lines.append(f"  {explain_shedding(operator['shed'])}")
    lines += ["", f"Last {min(_ROUNDS, len(records))} rounds:"]
    for record in records[-_ROUNDS:]:
        if "damaged" in record:
            lines.append(f"  batch {record['batchId']}: {record['damaged']}")
        for number, operator in enumerate(record["operators"], start=1):
            which = f", {number}. {_name(operator)}" if is_chain else ""
            lines.append(_round(f"batch {record['batchId']}{which}", operator))
    lines += explain_dropped(records[-_ROUNDS:])
    return "\n".join(lines)


def _name(operator: dict[str, Any]) -> str:
    """What the operator does; records of earlier versions have its kind alone."""
    return str(operator.get("name", operator["operator"]))


def _headline(operator: dict[str, Any], of: str) -> str:
    return (
        f"{_name(operator)} on {operator['instances']} instances, policy "
        f"{operator['balance']['policy']}: imbalance {operator['imbalance']:.2f} "
        f"(busiest ÷ mean {of})"
    )


def _bars(times_ms: Sequence[float]) -> list[str]:
    top = max([*times_ms, 1e-9])
    return [
        f"  {number:>4}  {'█' * max(1, round(_WIDTH * ms / top)):<{_WIDTH}} {ms:9.1f} ms"
        for number, ms in enumerate(times_ms)
    ]


def _map_loads(operator: dict[str, Any]) -> list[str]:
    load, learned = operator["load"], operator["balance"]
    lines = [_headline(operator, "time in the function")]
    lines += [
        f"{bar} {rows:>10,} rows"
        for bar, rows in zip(_bars(load["busyMs"]), load["rows"], strict=True)
    ]
    for key in (learned.get("costliest") or [])[:3]:
        lines.append(
            f"  key {key['hash']:#018x} takes {key['costMs']:.3g} ms a row, "
            f"{key['share']:.0%} of all work"
        )
    return lines


def _loads(operator: dict[str, Any]) -> list[str]:
    load, options = operator["load"], operator["balance"]
    lines = [_headline(operator, "CPU time")]
    lines += [
        f"{bar} {rows:>10,} rows {matches:>12,} matches"
        for bar, rows, matches in zip(
            _bars(load["cpuMs"]), load["rows"], load["matches"], strict=True
        )
    ]
    if options.get("keyTable"):
        lines.append(f"  {options['keyTable']:,} keys have an instance of their own")
    for split in options.get("splits", []):
        members = ", ".join(map(str, split["members"]))
        down, along = split["lines"], len(split["members"]) // split["lines"]
        lines.append(
            f"  key {split['hash']:#018x} is split over instances {members}; "
            f"a left row of a batch goes to {along} of them, a right row to {down}"
        )
    return lines


def _round(which: str, operator: dict[str, Any]) -> str:
    balance = operator["balance"]
    moves = balance.get("moves", [])
    moved = ", ".join(f"{p}: {a}→{b}" for p, a, b in moves[:6])
    more = f" and {len(moves) - 6} more" if len(moves) > 6 else ""
    told = f"; partitions {moved}{more}" if moves else ""
    if "movedCells" in balance:
        # Rectangles of a map are told by how large they are: a shared one may keep its owner.
        cells = balance["movedCells"]
        told = f"; {cells:,} cell{'s' if cells != 1 else ''} on other instances" if moves else ""
    if balance.get("movedKeys"):
        told += f"; {balance['movedKeys']:,} keys"
    reason = f"; {balance['reason']}" if balance.get("reason") else ""
    return f"  {which}: imbalance {operator['imbalance']:.2f}{reason}{told}"
