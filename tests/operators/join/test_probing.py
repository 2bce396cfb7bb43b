"""A join that sheds gives true results only, each once, and says how many it has missed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skewless.engine.chunks import Limits
from skewless.engine.engine import Engine
from skewless.load.report import Report
from skewless.operators.join.bounds import Bounds
from skewless.operators.join.match import Overlap
from skewless.operators.join.near import Near
from skewless.operators.join.operator import JoinOperator
from skewless.planning.auto import Auto
from skewless.planning.hash import Hash
from skewless.planning.joinmatrix import JoinMatrix
from skewless.planning.policy import RoutingPolicy
from skewless.shedding.account import Account
from skewless.shedding.plan import Costs, ProbePlan
from skewless.shedding.policy import Shed
from skewless.state.commit import OperatorState
from skewless.state.faults import Fault
from skewless.state.storage import Storage
from skewless.state.watermark import Delays
from skewless.testing.local import LocalJoin

SECOND = 1_000_000
LEFT = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), ("a", pa.int64())])
RIGHT = pa.schema([("k", pa.int64()), ("u", pa.timestamp("us")), ("b", pa.int64())])
BOUNDS = Bounds(-4 * SECOND, 6 * SECOND)
# A comparison takes a microsecond and nothing else takes any time: budgets are comparisons.
COSTS = Costs(task=0.0, row=0.0, comparison=1e-3, match=0.0, batch=0.0, batch_row=0.0)

Batch = tuple[pa.Table, pa.Table]


@dataclass(frozen=True)
class Budgeted(JoinOperator):
    """A join whose tasks may make so many comparisons each."""

    comparisons: float = 1e9
    most_rows: float | None = None
    seed: int = 0
    in_order: bool = False  # of time, whatever was measured: the same in every run

    def _plan(self, state: OperatorState, batch: int) -> ProbePlan | None:
        plan = super()._plan(state, batch)
        assert plan is not None
        instances = state.route.instances
        return replace(
            plan,
            batch=batch + 1_000 * self.seed,
            order=tuple(range(len(plan.order))) if self.in_order else plan.order,
            costs=COSTS,
            time_ms=self.comparisons * 1e-3,
            parallel=(1.0,) * instances,
            most_rows=self.most_rows,
        )

    def advance(
        self, state: OperatorState, reports: Sequence[Report], elapsed_ms: float | None
    ) -> OperatorState:
        accounts = [Account.from_json(r.probing) for r in reports if r.probing is not None]
        ACCOUNTS.append(accounts)
        return super().advance(state, reports, elapsed_ms=1.0)


ACCOUNTS: list[list[Account]] = []


@dataclass
class BudgetedJoin(LocalJoin):
    comparisons: float = 1e9
    most_rows: float | None = None

    def _new_operator(self) -> JoinOperator:
        plain = super()._new_operator()
        fields = {name: getattr(plain, name) for name in JoinOperator.__dataclass_fields__}
        return Budgeted(**fields, comparisons=self.comparisons, most_rows=self.most_rows)


def stream(seed: int, batches: int = 4, rows: int = 300, keys: int = 8) -> list[Batch]:
    """Few keys, one of them hot, so that most rows have many matches."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(batches):
        sides = []
        for schema in (LEFT, RIGHT):
            times = rng.integers(number * 5 * SECOND, (number + 1) * 5 * SECOND, rows)
            keys_of = np.minimum(rng.integers(0, keys, rows), rng.integers(0, keys, rows))
            columns = [keys_of, pa.array(times, pa.timestamp("us")), rng.integers(0, 100, rows)]
            sides.append(pa.table(columns, schema=schema))
        made.append((sides[0], sides[1]))
    return made


def joined(
    directory: Path,
    batches: list[Batch],
    faults: Sequence[Fault] = (),
    policy: RoutingPolicy | None = None,
    shed: Shed | None = None,
    **options: Any,
) -> BudgetedJoin:
    directory.mkdir(parents=True)
    ACCOUNTS.clear()
    query = BudgetedJoin(
        str(directory),
        on=["k"],
        time=("t", "u"),
        bounds=BOUNDS,
        delays=Delays({"left": 5 * SECOND, "right": 5 * SECOND}),
        policy=policy or Hash(2),
        shed=shed or Shed("1 second"),
        **{"left_schema": LEFT, "right_schema": RIGHT, **options},
    )
    query.run(batches, faults)
    return query


def bag(table: pa.Table) -> Counter[Any]:
    return Counter(zip(*(c.to_pylist() for c in table.columns), strict=True))


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> BudgetedJoin:
    return joined(tmp_path_factory.mktemp("complete") / "state", stream(1))


@pytest.mark.parametrize("policy", [Hash(3), Auto(2), JoinMatrix(4)])
@pytest.mark.parametrize("run_bytes", [2**28, 4_000])
def test_every_result_is_true_and_comes_once(
    tmp_path: Path, complete: BudgetedJoin, policy: RoutingPolicy, run_bytes: int
) -> None:
    shed = joined(
        tmp_path / "state",
        stream(1),
        policy=policy,
        comparisons=3_000,
        limits=Limits(run_bytes=run_bytes),
    )
    found, all_of_them = bag(shed.rows()), bag(complete.rows())
    assert not found - all_of_them
    assert 0 < sum(found.values()) < 0.8 * sum(all_of_them.values())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), comparisons=st.floats(200, 20_000), rows=st.integers(0, 200))
def test_missed_results_of_equal_keys_are_counted_exactly(
    tmp_path_factory: pytest.TempPathFactory, seed: int, comparisons: float, rows: int
) -> None:
    folder = tmp_path_factory.mktemp("exact")
    batches = stream(seed, rows=rows, batches=3)
    full = joined(folder / "full", batches)
    shed = joined(folder / "shed", batches, comparisons=comparisons)
    for number, progress in enumerate(shed.progress):
        told = progress["operators"][0]["shed"]
        missing = full.sink[number].num_rows - shed.sink[number].num_rows
        assert told["missed"] == pytest.approx(missing)
        assert told["missedError"] == 0.0
        assert told["results"] == shed.sink[number].num_rows


def test_the_budget_holds_within_five_per_cent(tmp_path: Path) -> None:
    for part in (0.05, 0.3, 0.7):
        full = joined(tmp_path / f"full{part}", stream(2, rows=2_000, batches=3))
        budget = part * min(a.offered for accounts in ACCOUNTS[1:] for a in accounts)
        joined(tmp_path / f"shed{part}", stream(2, rows=2_000, batches=3), comparisons=budget)
        for accounts in ACCOUNTS[1:]:
            for account in accounts:
                assert account.comparisons == pytest.approx(budget, rel=0.05)
        assert full.progress[1]["operators"][0]["shed"]["fraction"] == 1.0


def test_a_kill_while_shedding_changes_nothing(tmp_path: Path) -> None:
    batches = stream(3)
    plain = joined(tmp_path / "plain", batches, comparisons=2_000)
    kills = [
        Fault("in_task", 1),
        Fault("after_sink", 2),
        Fault("before_commit", 2),
        Fault("after_commit", 3),
    ]
    killed = joined(tmp_path / "killed", batches, kills, comparisons=2_000)
    for number in range(len(batches)):
        assert bag(killed.sink[number]) == bag(plain.sink[number])
    assert plain.rows().num_rows > 0


def test_progress_tells_how_much_of_either_window_was_probed(tmp_path: Path) -> None:
    shed = joined(tmp_path / "state", stream(4), comparisons=3_000)
    told = shed.progress[-1]["operators"][0]["shed"]
    assert 0 < told["fraction"] < 1
    assert told["comparisons"] < told["offered"]
    assert told["droppedRows"] == {"left": 0, "right": 0}
    # r1·w1 + r2·w2 = r·(w1 + w2): six seconds of the left window, four of the right.
    wide = 0.6 * told["leftWindow"] + 0.4 * told["rightWindow"]
    assert wide == pytest.approx(told["fraction"], abs=0.1)
    assert sorted(told["ranking"])[0][0] == -4_000.0
    assert len(told["ranking"]) == 20


def test_what_is_worth_more_is_found_first(tmp_path: Path) -> None:
    batches = stream(5, batches=6)
    worth = {}
    for name, value in (("blind", None), ("by value", ("a", "b"))):
        shed = Shed("1 second", value=value)
        query = joined(tmp_path / name, batches, shed=shed, comparisons=4_000)
        late = pa.concat_tables([query.sink[n] for n in range(2, 6)])
        worth[name] = int(np.sum(late.column("a").to_numpy()) + np.sum(late.column("b").to_numpy()))
    assert worth["by value"] > 1.15 * worth["blind"]


def test_rows_are_dropped_by_value_and_counted_apart(tmp_path: Path) -> None:
    batches = stream(6)
    shed = Shed("1 second", value=("a", None))
    query = joined(tmp_path / "state", batches, shed=shed, most_rows=150.0)
    for progress in query.progress:
        told = progress["operators"][0]["shed"]
        assert told["droppedRows"]["left"] == pytest.approx(225, abs=25), "of 300 rows"
        assert told["droppedRows"]["right"] == pytest.approx(225, abs=25)
        assert told["fraction"] == 1.0
    values = query.rows().column("a").to_numpy()
    assert values.min() > 50, "the least valuable rows went first"


LISTS = pa.list_(pa.int64())
LEFT_SETS = pa.schema([("t", pa.timestamp("us")), ("items", LISTS), ("a", pa.int64())])
RIGHT_SETS = pa.schema([("u", pa.timestamp("us")), ("items", LISTS), ("b", pa.int64())])
LAG_US = 3 * SECOND


def sets_stream(seed: int, batches: int = 3, rows: int = 150) -> list[Batch]:
    """Sets of items that are popular in turn; on the right side three seconds later."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(batches):
        sides = []
        for schema, lag_us in ((LEFT_SETS, 0), (RIGHT_SETS, LAG_US)):
            times = rng.integers(number * 5 * SECOND, (number + 1) * 5 * SECOND, rows)
            popular = ((times - lag_us) // (SECOND // 5)) % 60
            drawn = (popular[:, None] + rng.geometric(0.25, (rows, 5))) % 60
            columns = [
                pa.array(times, pa.timestamp("us")),
                pa.array(list(drawn), LISTS),
                np.arange(rows) + number * rows,
            ]
            sides.append(pa.table(columns, schema=schema))
        made.append((sides[0], sides[1]))
    return made


def joined_sets(directory: Path, batches: list[Batch], **options: Any) -> BudgetedJoin:
    directory.mkdir(parents=True)
    ACCOUNTS.clear()
    faults = options.pop("faults", ())
    query = BudgetedJoin(
        str(directory),
        on=[],
        time=("t", "u"),
        bounds=BOUNDS,
        delays=Delays({"left": 5 * SECOND, "right": 5 * SECOND}),
        left_schema=LEFT_SETS,
        right_schema=RIGHT_SETS,
        match=Overlap("items", at_least=3),
        **{"policy": Hash(2), "shed": Shed("1 second"), **options},
    )
    query.run(batches, faults)
    return query


def test_the_ranking_finds_a_lag_between_the_streams(tmp_path: Path) -> None:
    query = joined_sets(tmp_path / "state", sets_stream(1, batches=5), comparisons=2_000)
    ranking = query.progress[-1]["operators"][0]["shed"]["ranking"]
    lower_ms, upper_ms = ranking[0]
    assert lower_ms <= LAG_US / 1e3 + 500
    assert upper_ms >= LAG_US / 1e3 - 500
    told = query.progress[-1]["operators"][0]["shed"]
    assert told["leftWindow"] > told["rightWindow"], "right rows come later: they probe"


def test_sets_that_shed_give_true_results_once_and_the_same_after_kills(tmp_path: Path) -> None:
    batches = sets_stream(2, batches=4)
    everything = joined_sets(tmp_path / "full", batches)
    budget = {"comparisons": 700}
    shed = joined_sets(tmp_path / "shed", batches, **budget, policy=Auto(2))
    assert not bag_of_ids(shed.rows()) - bag_of_ids(everything.rows())
    assert 0 < shed.rows().num_rows < everything.rows().num_rows
    plain = joined_sets(tmp_path / "plain", batches, **budget)
    kills = [Fault("in_task", 1), Fault("after_sink", 2), Fault("before_commit", 3)]
    killed = joined_sets(tmp_path / "killed", batches, **budget, faults=kills)
    for number in range(len(batches)):
        assert bag_of_ids(killed.sink[number]) == bag_of_ids(plain.sink[number])


def points_stream(seed: int, batches: int, rows: int = 120) -> list[Batch]:
    rng = np.random.default_rng(seed)
    made = []
    for number in range(batches):
        sides = []
        for schema in (LEFT_POINTS, RIGHT_POINTS):
            times = rng.integers(0, 4 * SECOND, rows) + 3 * SECOND * number
            columns = [times, *rng.uniform(0, 4, (2, rows)), 1_000 * number + np.arange(rows)]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            sides.append(pa.table(arrays, schema=schema))
        made.append((sides[0], sides[1]))
    return made


LEFT_POINTS, RIGHT_POINTS = (
    pa.schema([(t, pa.timestamp("us")), ("x", pa.float64()), ("y", pa.float64()), (v, pa.int64())])
    for t, v in (("t", "a"), ("u", "b"))
)


def joined_points(directory: Path, batches: list[Batch], **options: Any) -> BudgetedJoin:
    faults = options.pop("faults", ())
    query = BudgetedJoin(
        str(directory),
        on=[],
        time=("t", "u"),
        bounds=BOUNDS,
        delays=Delays({"left": 5 * SECOND, "right": 5 * SECOND}),
        left_schema=LEFT_POINTS,
        right_schema=RIGHT_POINTS,
        match=Near(radius=0.5, left=("x", "y")),
        **{"policy": Hash(2), "shed": Shed("1 second"), **options},
    )
    query.run(batches, faults)
    return query


def test_points_that_shed_give_true_results_once_and_the_same_after_kills(tmp_path: Path) -> None:
    batches = points_stream(2, batches=4)
    everything = joined_points(tmp_path / "full", batches)
    budget = {"comparisons": 1_500}
    plain = joined_points(tmp_path / "plain", batches, **budget)
    assert not bag_of_ids(plain.rows()) - bag_of_ids(everything.rows())
    assert 0 < plain.rows().num_rows < everything.rows().num_rows
    kills = [Fault("in_task", 1), Fault("after_sink", 2), Fault("before_commit", 3)]
    killed = joined_points(tmp_path / "killed", batches, **budget, faults=kills)
    for number in range(len(batches)):
        assert bag_of_ids(killed.sink[number]) == bag_of_ids(plain.sink[number])


def bag_of_ids(table: pa.Table) -> Counter[Any]:
    return bag(table.select(["a", "b"]))


def test_the_estimate_of_missed_results_is_right_on_the_average(tmp_path: Path) -> None:
    """Over many seeds the mean error is within two of its standard errors."""
    batches = sets_stream(3, batches=2, rows=250)
    joined_sets(tmp_path / "full", batches)
    matches = [sum(a.matches for a in accounts) for accounts in ACCOUNTS]
    query = joined_sets(tmp_path / "shed", batches[:1], shed=Shed("1 second", sample=0.5))
    errors, variances = [], []
    for seed in range(100):
        ACCOUNTS.clear()
        operator = replace(query.operator, comparisons=3_000.0, seed=seed, in_order=True)
        again = Engine(Storage(query.directory), (operator,), 2)
        query.operator, query.engine = operator, again
        again.open()
        query.step(1, batches[1])
        (accounts,) = ACCOUNTS
        found = sum(a.matches for a in accounts)
        errors.append(sum(a.missed.results for a in accounts) - (matches[1] - found))
        variances.append(sum(a.missed.variance for a in accounts))
        assert found < 0.8 * matches[1]
        Path(query.directory, "commits", "000000000001.json").unlink()
    assert abs(np.mean(errors)) < 2 * np.std(errors) / 10
    assert np.sqrt(np.mean(variances)) == pytest.approx(np.std(errors), rel=0.4)


def test_rows_of_one_key_and_time_are_probed_or_not_as_one(tmp_path: Path) -> None:
    """Whatever is drawn, and also if only rows that are probed in full have anything to probe."""
    rows = 60
    moment = pa.array([0] * rows, pa.timestamp("us"))
    batch = (
        pa.table([[1] * rows, moment, range(rows)], schema=LEFT),
        pa.table([[1] * rows, moment, range(rows)], schema=RIGHT),
    )
    for sample in (0.1, 1.0):
        for seed in range(8):
            query = joined(
                tmp_path / f"{sample}-{seed}",
                [stream(seed, rows=20, batches=1)[0], batch],
                shed=Shed("1 second", sample=sample),
                comparisons=500,
            )
            told = query.progress[1]["operators"][0]["shed"]
            assert told["offered"] >= rows * rows
            assert told["missed"] == told["offered"] - told["comparisons"]


def test_later_pieces_of_a_batch_have_time_too(tmp_path: Path) -> None:
    batches = stream(7, batches=2, rows=600)
    query = joined(tmp_path / "state", batches, comparisons=6_000, limits=Limits(run_bytes=12_000))
    times = query.sink[1].column("t").cast(pa.int64()).to_numpy()
    assert query.progress[1]["operators"][0]["shed"]["fraction"] < 0.5
    assert len(times) > 1_000


def test_huge_values_stay_finite(tmp_path: Path) -> None:
    left = LEFT.set(2, pa.field("a", pa.float64()))
    batches = [
        (one.set_column(2, "a", pa.array([1.7e308, float("inf"), None, float("nan")] * 75)), other)
        for one, other in stream(8, batches=3)
    ]
    shed = Shed("1 second", value=("a", None))
    query = joined(tmp_path / "state", batches, shed=shed, comparisons=2_000, left_schema=left)
    assert query.rows().num_rows > 0
