"""Slots: columns that rows of either input travel in, where their types are equal."""


def assign_slots(left_types: list[str], right_types: list[str]) -> tuple[list[int], list[int]]:
    """A slot for every payload column, shared between the sides where the types are equal.

    >>> assign_slots(["bigint", "string"], ["string", "string", "bigint"])
    ([0, 1], [1, 2, 0])
    """
    left = list(range(len(left_types)))
    free: dict[str, list[int]] = {}
    for slot, kind in enumerate(left_types):
        free.setdefault(kind, []).append(slot)
    right = []
    slots = len(left_types)
    for kind in right_types:
        if free.get(kind):
            right.append(free[kind].pop(0))
        else:
            right.append(slots)
            slots += 1
    return left, right
