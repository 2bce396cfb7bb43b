"""The command line: options arrive where they belong, errors are one line, JSON is written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from skewless import cli, doctor
from skewless.doctor import Check
from skewless.errors import bad_argument
from skewless.lab.bench.balance import SCENARIOS
from skewless.lab.bench.engines import ENGINES
from skewless.lab.bench.shed import SCENARIOS as SHED_SCENARIOS
from skewless.lab.bench.spatial import PARTS as SPATIAL_PARTS
from skewless.lab.bench.workloads import FULL

Calls = list[dict[str, Any]]


def invoke(*arguments: str) -> Any:
    # Wide, so that no message is wrapped where a test looks for it.
    return CliRunner(env={"COLUMNS": "300", "TERM": "dumb"}).invoke(cli.app, arguments)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Calls]:
    """Replace a module by one whose `run` only notes what it was called with."""

    def replace(name: str) -> Calls:
        calls: Calls = []
        module = ModuleType(name)

        def run(**options: Any) -> dict[str, Any]:
            calls.append(options)
            return {"errors": []}

        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        return calls

    return replace


def test_version() -> None:
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output == f"skewless {version('skewless')}\n"


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("doctor",),
        ("demo",),
        ("bench",),
        ("bench", "join"),
        ("bench", "balance"),
        ("bench", "shed"),
        ("bench", "spatial"),
        ("reproduce",),
        ("reproduce", "ls-stream"),
    ],
    ids=" ".join,
)
def test_every_command_has_help(command: tuple[str, ...]) -> None:
    result = invoke(*command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


@pytest.mark.parametrize(
    "command",
    [("doctor",), ("demo",), ("bench", "join"), ("bench", "balance"), ("reproduce", "ls-stream")],
    ids=" ".join,
)
def test_every_command_takes_json(command: tuple[str, ...]) -> None:
    assert "--json" in invoke(*command, "--help").output


def test_demo_defaults(stand_in: Callable[[str], Calls]) -> None:
    calls = stand_in("skewless.lab.demo")
    assert invoke("demo").exit_code == 0
    assert calls == [
        {
            "seconds": 60,
            "out": None,
            "instances": 8,
            "seed": 7,
            "json_path": None,
            "plain": False,
        }
    ]


def test_the_spatial_demo_is_one_of_its_own(stand_in: Callable[[str], Calls]) -> None:
    calls, others = stand_in("skewless.lab.demo.spatial"), stand_in("skewless.lab.demo")
    assert invoke("demo", "--spatial", "--seconds", "9", "--plain").exit_code == 0
    assert not others
    assert calls[0] | {"seconds": 9, "plain": True} == calls[0]
    assert calls[0].keys() == {"seconds", "out", "instances", "seed", "json_path", "plain"}


def test_demo_options(stand_in: Callable[[str], Calls], tmp_path: Path) -> None:
    calls = stand_in("skewless.lab.demo")
    result = invoke(
        *("demo", "--seconds", "5", "--out", str(tmp_path), "--instances", "3", "--seed", "1"),
        *("--plain", "--json", str(tmp_path / "r.json")),
    )
    assert result.exit_code == 0
    assert calls == [
        {
            "seconds": 5,
            "out": tmp_path,
            "instances": 3,
            "seed": 1,
            "json_path": tmp_path / "r.json",
            "plain": True,
        }
    ]


def test_bench_join_defaults_mean_everything(stand_in: Callable[[str], Calls]) -> None:
    calls = stand_in("skewless.lab.bench.join")
    assert invoke("bench", "join").exit_code == 0
    nothing = {"workloads": None, "engines": None, "json_path": None, "quick": False}
    assert calls == [{**nothing, "how": "inner", "rounds": 1}]


def test_bench_join_options_may_be_repeated(
    stand_in: Callable[[str], Calls], tmp_path: Path
) -> None:
    calls = stand_in("skewless.lab.bench.join")
    out = tmp_path / "r.json"
    result = invoke(
        *("bench", "join", "--workload", "a", "--workload", "b", "--engine", "floor"),
        *("--quick", "--json", str(out), "--how", "left", "--rounds", "3"),
    )
    assert result.exit_code == 0
    chosen = {"workloads": ["a", "b"], "engines": ["floor"], "json_path": out, "quick": True}
    assert calls == [{**chosen, "how": "left", "rounds": 3}]


def test_bench_join_help_names_what_there_is() -> None:
    text = invoke("bench", "join", "--help").output
    for name in (*ENGINES, *(workload.name for workload in FULL)):
        assert name in text


def test_bench_join_with_errors_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("skewless.lab.bench.join")
    module.run = lambda **options: {"errors": ["one"]}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "skewless.lab.bench.join", module)
    assert invoke("bench", "join").exit_code == 1


def test_reproduce_options(stand_in: Callable[[str], Calls], tmp_path: Path) -> None:
    calls = stand_in("skewless.lab.reproduce.ls_stream")
    assert invoke("reproduce", "ls-stream").exit_code == 0
    options = ("--out", str(tmp_path), "--quick", "--seed", "4", "--json", str(tmp_path / "r.json"))
    assert invoke("reproduce", "ls-stream", *options).exit_code == 0
    assert calls == [
        {"out": Path("reproduce-ls-stream"), "json_path": None, "quick": False, "seed": 1},
        {"out": tmp_path, "json_path": tmp_path / "r.json", "quick": True, "seed": 4},
    ]


@pytest.mark.parametrize("name", ["balance", "shed"])
def test_bench_by_scenarios(stand_in: Callable[[str], Calls], tmp_path: Path, name: str) -> None:
    calls = stand_in(f"skewless.lab.bench.{name}")
    out = tmp_path / "r.json"
    assert invoke("bench", name).exit_code == 0
    result = invoke(
        *("bench", name, "--scenario", "a", "--scenario", "b", "--quick", "--json", str(out))
    )
    assert result.exit_code == 0
    assert calls == [
        {"scenarios": None, "json_path": None, "quick": False},
        {"scenarios": ["a", "b"], "json_path": out, "quick": True},
    ]


@pytest.mark.parametrize(
    ("name", "scenarios"),
    [("balance", SCENARIOS), ("shed", SHED_SCENARIOS), ("spatial", SPATIAL_PARTS)],
)
def test_bench_help_names_the_scenarios(name: str, scenarios: tuple[str, ...]) -> None:
    text = invoke("bench", name, "--help").output
    for scenario in scenarios:
        assert scenario in text


@pytest.mark.parametrize("name", ["balance", "shed", "spatial"])
def test_bench_with_errors_fails(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = ModuleType(f"skewless.lab.bench.{name}")
    module.run = lambda **options: {"errors": ["one"]}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, f"skewless.lab.bench.{name}", module)
    assert invoke("bench", name).exit_code == 1


def test_json_without_a_folder_is_refused_before_the_work(
    stand_in: Callable[[str], Calls], tmp_path: Path
) -> None:
    calls = stand_in("skewless.lab.demo")
    result = invoke("demo", "--json", str(tmp_path / "missing" / "r.json"))
    assert result.exit_code == 2
    assert "there is no folder" in result.output
    assert calls == []


def test_doctor_healthy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def examine(state: str, starting: Callable[[str], None]) -> list[Check]:
        asked.append(state)
        starting("Java")
        return [Check("Java", True, "17")]

    monkeypatch.setattr(doctor, "examine", examine)
    out = tmp_path / "r.json"
    result = invoke("doctor", "--state", str(tmp_path), "--json", str(out))
    assert result.exit_code == 0
    assert asked == [str(tmp_path)]
    assert json.loads(out.read_text()) == {
        "ok": True,
        "checks": [{"name": "Java", "ok": True, "found": "17", "advice": ""}],
    }


def test_doctor_sick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checks = [Check("Java", False, "[none]", "install it"), Check("Python worker", None, "skipped")]
    monkeypatch.setattr(doctor, "examine", lambda state, starting: checks)
    out = tmp_path / "r.json"
    result = invoke("doctor", "--json", str(out))
    assert result.exit_code == 1
    for text in ("FAILED", "[none]", "install it", "skipped"):
        assert text in result.output
    assert json.loads(out.read_text())["ok"] is False


def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = ModuleType("skewless.lab.bench.join")

    def run(**options: object) -> None:
        raise bad_argument("workloads", ["x"], "names of [workloads]")

    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "skewless.lab.bench.join", module)
    monkeypatch.setattr(sys, "argv", ["skewless", "bench", "join", "--workload", "x"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "skewless: workloads: got ['x']; takes names of [workloads]\n"
