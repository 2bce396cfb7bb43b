"""Event times as messages and progress show them, also where no calendar reaches."""

from datetime import UTC, datetime, timedelta


def shown_time(time_us: int | None) -> str | None:
    """ISO 8601 in UTC; None where there is no time yet.

    >>> shown_time(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    if time_us is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)
    except OverflowError:  # outside the years 1 to 9999, where Spark's timestamps may still be
        return f"{time_us} µs"
    return moment.isoformat().replace("+00:00", "Z")
