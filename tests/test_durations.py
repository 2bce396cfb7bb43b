"""Durations as Spark users write them."""

import contextlib
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from skewless.durations import parse_duration_us, shown_duration
from skewless.errors import SkewlessError

MS, S, MIN = 1_000, 1_000_000, 60_000_000
HOUR, DAY = 60 * MIN, 24 * 60 * MIN


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        ("10 seconds", 10 * S),
        ("1 second", S),
        ("0 seconds", 0),
        ("interval 1 minute", MIN),
        ("INTERVAL 1 MINUTE", MIN),
        ("  interval   2 hours ", 2 * HOUR),
        ("1 hour 30 minutes", 90 * MIN),
        ("1 hour, 30 minutes", 90 * MIN),
        ("1 day 1 hour 1 minute 1 second", DAY + HOUR + MIN + S),
        ("1 week", 7 * DAY),
        ("-10 seconds", -10 * S),
        ("- 10 seconds", -10 * S),
        ("-\t10 seconds", -10 * S),
        ("+ 5 sec", 5 * S),
        ("1 minute -30 seconds", 30 * S),
        ("1.5 seconds", 1_500 * MS),
        ("0.000001 seconds", 1),
        ("-0.5 ms", -500),
        ("100ms", 100 * MS),
        ("100 milliseconds", 100 * MS),
        ("7 us", 7),
        ("7 microseconds", 7),
        ("3 m", 3 * MIN),
        ("3 mins", 3 * MIN),
        ("3s", 3 * S),
        ("2h", 2 * HOUR),
        ("2 hrs", 2 * HOUR),
        ("1d", DAY),
        ("1h30m", 90 * MIN),
        ("10\nseconds", 10 * S),
        ("1000000000000000 us", 10**15),
        ("'10 seconds'", 10 * S),
        ("interval '10 seconds'", 10 * S),
        ("interval '10' second", 10 * S),
        ("INTERVAL '1.5' SECONDS", 1_500 * MS),
        ("interval -'10' second", -10 * S),
        ("interval '-10' second", -10 * S),
        ("interval -'-10' second", 10 * S),
        ("interval '2' days '3' hours", 51 * HOUR),
        ("'1 2:3:4' day to second", DAY + 2 * HOUR + 3 * MIN + 4 * S),
        ("INTERVAL '1 2:3:4.000005' DAY TO SECOND", DAY + 2 * HOUR + 3 * MIN + 4 * S + 5),
        ("INTERVAL '1:30' HOUR TO MINUTE", 90 * MIN),
        ("interval '26:30' hour to minute", 26 * HOUR + 30 * MIN),
        ("interval '1 2' day to hour", 26 * HOUR),
        ("interval '61:3.25' minute to second", 61 * MIN + 3_250 * MS),
        ("interval -'1:30' hours to minutes", -90 * MIN),
        ("interval '-1 0:30' day to minute", -DAY - 30 * MIN),
        ("interval '+1 2' day to hour", 26 * HOUR),
        (timedelta(seconds=10), 10 * S),
        (timedelta(days=-1, microseconds=1), 1 - DAY),
        (timedelta(), 0),
    ],
)
def test_durations(value: Any, microseconds: int) -> None:
    assert parse_duration_us("within", value) == microseconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "   ",
        "interval",
        "abc",
        "10",
        "seconds",
        "seconds 10",
        "10 parsecs",
        "10 seconds foo",
        "10 seconds 5",
        "10 seconds; 5 minutes",
        "1e3 seconds",
        "1.2.3 seconds",
        ".5 seconds",
        "--5 seconds",
        "10 mss",
        "10 ss",
        "interval10 seconds",
        "interval '10'",
        "interval ''",
        "''",
        "'10 seconds",
        "interval '10' parsec",
        "interval '10 seconds' day",
        "interval '1:60' hour to minute",
        "interval '1 24:00' day to minute",
        "interval '1:30' minute to hour",
        "interval '1:30' hour to hour",
        "interval '1:30.5' hour to minute",
        "interval '1 2:3' day to second",
        "interval '10' second to week",
        "interval '' day to second",
        "nan seconds",
        None,
        5,
        5.0,
        b"10 seconds",
        ["10 seconds"],
    ],
)
def test_what_is_no_duration_is_refused_by_name(value: Any) -> None:
    with pytest.raises(SkewlessError) as refusal:
        parse_duration_us("watermark", value)
    assert str(refusal.value).startswith(f"watermark: got {value!r}; takes a duration such as")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1 month", "months and years differ in length"),
        ("2 years", "months and years differ in length: say it in days"),
        ("interval '2' years", "months and years differ in length"),
        ("interval '1-2' year to month", "months and years differ in length"),
        ("interval '1 month 2 days'", "months and years differ in length"),
        ("1 day 1 MONTH", "months and years differ in length"),
        ("0.5 us", "a whole number of microseconds"),
        ("1.0000001 seconds", "a whole number of microseconds"),
        ("1001 years", "months and years differ in length"),
        ("400000 days", "at most 1000 years"),
        ("-400000 days", "at most 1000 years"),
        (f"{'9' * 400} seconds", "at most 1000 years"),
        (timedelta.max, "at most 1000 years"),
        (timedelta.min, "at most 1000 years"),
    ],
)
def test_refusals_say_why(value: Any, why: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        parse_duration_us("within", value)
    assert why in str(refusal.value)


@given(st.timedeltas(timedelta(days=-300_000), timedelta(days=300_000)))
def test_a_timedelta_is_exact_in_any_spelling(value: timedelta) -> None:
    exact = (value.days * 86_400 + value.seconds) * S + value.microseconds
    assert parse_duration_us("within", value) == exact
    text = f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    assert parse_duration_us("within", text) == exact
    assert parse_duration_us("within", f"interval {exact} us") == exact
    assert parse_duration_us("within", shown_duration(exact)) == exact


def test_intervals_mean_what_they_mean_in_spark(spark: SparkSession) -> None:
    """Random values in every form that Spark's SQL has, in one query."""
    rng = random.Random(5)
    texts = []
    for _ in range(8):
        d, h, m, s, us = (rng.randrange(n) for n in (4_000, 24, 60, 60, 1_000_000))
        sign, inner = rng.choice(["", "-", "+"]), rng.choice(["", "-", "+"])
        values = {
            "day": f"{d}",
            "week": f"{d}",
            "second": f"{s}.{us:06d}",
            "hour": f"{d}",
            "day to hour": f"{d} {h}",
            "day to minute": f"{d} {h}:{m}",
            "day to second": f"{d} {h:02d}:{m:02d}:{s:02d}.{us:06d}",
            "hour to minute": f"{d}:{m}",
            "hour to second": f"{d}:{m}:{s}",
            "minute to second": f"{d}:{s}.{us:06d}",
        }
        texts += [f"interval {sign}'{inner}{value}' {unit}" for unit, value in values.items()]
        texts += [f"interval '{d} days {h} hours'", f"interval {sign}{d} days {m} minutes"]
    (row,) = spark.sql("select " + ", ".join(texts)).collect()
    ours = [timedelta(microseconds=parse_duration_us("within", text)) for text in texts]
    assert dict(zip(texts, ours, strict=True)) == dict(zip(texts, row, strict=True))


@given(st.text(max_size=20) | st.text("0123456789.+-' smhdaintervsuo,:\t", max_size=20))
def test_any_text_is_a_whole_number_or_refused(text: str) -> None:
    # Any other exception would be a text that the pattern takes and the arithmetic does not.
    with contextlib.suppress(SkewlessError):
        assert isinstance(parse_duration_us("within", text), int)
