"""The skew that each scenario of the balance benchmark is said to have is in its files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skewless as sk
from skewless.kernels.hashing import xxhash64
from skewless.lab.bench.scenarios import (
    FULL,
    HOT_KEY,
    JUMP,
    PARTITIONS,
    QUICK,
    STRAGGLER,
    Contender,
    Scenario,
)

BY_NAME = {scenario.name: scenario for scenario in FULL}


def rows_by_instance(table: pa.Table, instances: int) -> list[int]:
    owners = sk.Hash(instances).table(cores=2).route(xxhash64(table["k"].to_numpy()))
    return np.bincount(owners, minlength=instances).tolist()


def written(scenario: Scenario, folder: Path) -> list[list[pa.Table]]:
    sides = scenario.generate(folder)
    return [[pq.read_table(file) for file in sorted(side.iterdir())] for side in sides]


def short(name: str) -> Scenario:
    jump = BY_NAME[name].jumps_at
    return replace(BY_NAME[name], rows_per_batch=20_000, batches=2, jumps_at=1 if jump else None)


def test_the_straggler_has_nearly_all_rows(tmp_path: Path) -> None:
    left, right = written(short(STRAGGLER), tmp_path)
    for table in (*left, *right):
        first, second = rows_by_instance(table, 2)
        assert first > 0.95 * table.num_rows > 20 * second
        _, counts = np.unique(table["k"].to_numpy(), return_counts=True)
        assert counts.max() < 0.01 * table.num_rows, "a key that would have to be split"


def test_the_hotspot_jumps_to_another_instance(tmp_path: Path) -> None:
    left, _ = written(short(JUMP), tmp_path)
    before, after = (rows_by_instance(table, 4) for table in left)
    assert before[0] > 0.9 * sum(before)
    assert after[1] > 0.9 * sum(after)


def test_one_key_has_sixty_percent(tmp_path: Path) -> None:
    left, right = written(short(HOT_KEY), tmp_path)
    for table in (*left, *right):
        _, counts = np.unique(table["k"].to_numpy(), return_counts=True)
        assert counts.max() / table.num_rows == pytest.approx(0.6, abs=0.02)


def test_every_contender_is_a_policy_with_the_partitions_that_hot_keys_are_chosen_by() -> None:
    for scenario in FULL:
        for contender in scenario.contenders:
            policy = getattr(sk, contender.policy)(**contender.options)
            assert policy.table(cores=2).partitions == PARTITIONS


def test_contenders_differ_in_policy_within_a_scenario() -> None:
    for scenario in FULL:
        policies = [contender.policy for contender in scenario.contenders]
        assert len(set(policies)) == len(policies)


def test_quick_has_the_same_scenarios() -> None:
    assert [s.name for s in QUICK] == [s.name for s in FULL]
    assert all(s.jumps_at is None or s.jumps_at < s.batches for s in QUICK)


def test_labels() -> None:
    assert Contender("Hash", {"instances": 2}).label == "Hash"
    assert Contender("Auto", {"instances": 2, "split": False}).label == "Auto(split=False)"
