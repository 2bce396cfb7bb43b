"""The `skewless` command: thin wrappers that turn options into calls of the library."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from skewless.errors import SkewlessError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
bench = typer.Typer(help="Measure Skewless against Spark's own operators.", no_args_is_help=True)
app.add_typer(bench, name="bench")
reproduce = typer.Typer(
    help="Run the papers' experiments on a simulated cluster.", no_args_is_help=True
)
app.add_typer(reproduce, name="reproduce")


def _folder_exists(path: Path | None) -> Path | None:
    # Before the work, not after it: a benchmark that cannot save its result has run for nothing.
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.absolute().parent}")
    return path


JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        dir_okay=False,
        writable=True,
        callback=_folder_exists,
        help="Also write the result to this file, as JSON.",
    ),
]


SmallInputs = Annotated[
    bool, typer.Option("--quick", help="Small inputs, to see that everything runs.")
]
FewPoints = Annotated[
    bool, typer.Option("--quick", help="Few points and short runs; nothing is judged.")
]
FiguresFolder = Annotated[
    Path, typer.Option(metavar="DIR", file_okay=False, help="Where the figures go.")
]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same streams.")]
Names = list[str] | None


def only(kind: str, names: str) -> Any:
    """The option that names some of what a benchmark would otherwise run all of."""
    return typer.Option(metavar="NAME", help=f"Only this {kind}: {names}; may be repeated.")


def _fail_on_errors(result: dict[str, Any]) -> None:
    if result["errors"]:
        raise typer.Exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skewless {version('skewless')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """PySpark streaming that keeps its speed when the data is skewed."""


@app.command()
def doctor(
    state: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="The state directory to try, a path or a URI.",
            show_default="the folder for temporary files",
        ),
    ] = None,
    json_path: JsonFile = None,
) -> None:
    """Check Java, the Python packages, the state directory and the Python workers."""
    from skewless.doctor import examine, render

    console = Console()
    with console.status("") as status:
        checks = examine(
            state if state is not None else tempfile.gettempdir(),
            starting=lambda name: status.update(f"checking: {name}"),
        )
    console.print(render(checks))
    healthy = all(check.ok for check in checks)
    if json_path is not None:
        result = {"ok": healthy, "checks": [dataclasses.asdict(check) for check in checks]}
        json_path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if not healthy:
        raise typer.Exit(1)


@app.command()
def demo(
    seconds: Annotated[int, typer.Option(min=1, help="How long the city runs.")] = 60,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Where results and the figure or animation go.",
            show_default="a new temporary folder",
        ),
    ] = None,
    instances: Annotated[int, typer.Option(min=1, help="Tasks that share each query.")] = 8,
    seed: Annotated[int, typer.Option(help="Same seed, same city.")] = 7,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live view.")] = False,
    spatial: Annotated[
        bool,
        typer.Option(
            "--spatial",
            help="Instead, free drivers within 500 m of every order, and areas that people watch; "
            "leaves an animation.",
        ),
    ] = False,
    json_path: JsonFile = None,
) -> None:
    """Match orders with nearby drivers in a city: plain hashing and Skewless side by side, live."""
    if spatial:
        from skewless.lab.demo.spatial import run
    else:
        from skewless.lab.demo import run

    run(seconds=seconds, out=out, instances=instances, seed=seed, json_path=json_path, plain=plain)


@bench.command()
def join(
    workload: Annotated[
        Names, only("workload", "zipf0.8, zipf1.0, empty, window, memory or asof")
    ] = None,
    engine: Annotated[
        Names,
        only(
            "engine",
            "skewless, skewless-inner, spark-memory, spark-rocksdb2, spark-rocksdb4, floor, "
            "or flink and pathway where they are installed",
        ),
    ] = None,
    how: Annotated[
        str,
        typer.Option(metavar="TYPE", help="The type of the join: inner, left, right, full, semi."),
    ] = "inner",
    rounds: Annotated[
        int, typer.Option(min=1, metavar="N", help="How often the fast engines run, in turn.")
    ] = 1,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure the stream join: Skewless, Spark's own in each configuration, and the floor."""
    from skewless.lab.bench.join import run

    # typer gives an empty list where the option is absent.
    result = run(
        workloads=workload or None,
        engines=engine or None,
        json_path=json_path,
        quick=quick,
        how=how,
        rounds=rounds,
    )
    _fail_on_errors(result)


@bench.command()
def balance(
    scenario: Annotated[
        Names, only("scenario", "straggler, hotkey, zipf16, jump, overhead, planning or simulation")
    ] = None,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure the balancing policies: what they gain, what they cost, how fast they react."""
    from skewless.lab.bench.balance import run

    result = run(scenarios=scenario or None, json_path=json_path, quick=quick)
    _fail_on_errors(result)


@bench.command("map")
def bench_map(
    scenario: Annotated[Names, only("scenario", "classes, mentions, larger, burst or even")] = None,
    mentions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A parquet file with the columns author and mention.",
            show_default="mentions are drawn",
        ),
    ] = None,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure the map: rows dealt out by what they cost, and by Spark's own repartitioning."""
    from skewless.lab.bench.map import run

    result = run(scenarios=scenario or None, mentions=mentions, json_path=json_path, quick=quick)
    _fail_on_errors(result)


@bench.command()
def keyed(
    workload: Annotated[Names, only("workload", "words, count, selfjoin or planning")] = None,
    engine: Annotated[
        Names,
        only(
            "engine",
            "skewless, apply-memory, apply-rocksdb, transform-rocksdb, spark-memory, "
            "spark-rocksdb, hash or mixed",
        ),
    ] = None,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure state per key: functions, windowed counts, a self-join, and the key planners."""
    from skewless.lab.bench.keyed import run

    result = run(
        workloads=workload or None, engines=engine or None, json_path=json_path, quick=quick
    )
    _fail_on_errors(result)


@bench.command()
def overlap(
    part: Annotated[Names, only("part", "memory or spark")] = None,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure the join by common items: Skewless, a nested loop, and Spark's own means."""
    from skewless.lab.bench.choice import chosen
    from skewless.lab.bench.overlap import FULL, run

    parts = chosen("part", part or None, list(FULL))
    _fail_on_errors(run(parts=parts, json_path=json_path, quick=quick))


@bench.command()
def lookup(
    workload: Annotated[Names, only("workload", "large or equal")] = None,
    engine: Annotated[
        Names,
        only("engine", "skewless, hash, spark-adaptive, spark-plain, spark-hash or spark-cached"),
    ] = None,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure a skewed stream with a large table: Skewless, and Spark's own shuffled joins."""
    from skewless.lab.bench.lookup import run

    result = run(
        workloads=workload or None, engines=engine or None, json_path=json_path, quick=quick
    )
    _fail_on_errors(result)


@bench.command()
def shed(
    scenario: Annotated[Names, only("scenario", "overload, needless or comparisons")] = None,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure shedding: latency and results when the input is too fast, and its cost when not."""
    from skewless.lab.bench.shed import run

    result = run(scenarios=scenario or None, json_path=json_path, quick=quick)
    _fail_on_errors(result)


@bench.command()
def spatial(
    part: Annotated[
        Names, only("part", "subscriptions, kernel, distance, hotspot, adding or fixed")
    ] = None,
    quick: SmallInputs = False,
    json_path: JsonFile = None,
) -> None:
    """Measure subscriptions and joins by distance: Skewless, Spark's own means, STRtree."""
    from skewless.lab.bench.spatial import run

    _fail_on_errors(run(parts=part or None, json_path=json_path, quick=quick))


@bench.command()
def control(
    instances: Annotated[
        list[int] | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=65_536,
            help="So many instances, by default 16, 128 and 1,000; may be repeated.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Draw time by instances (PNG or SVG)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few instances, to see that everything runs.")
    ] = False,
    json_path: JsonFile = None,
) -> None:
    """Measure the driver's work per batch, by the number of instances; no Spark job runs."""
    from skewless.lab.bench.control import INSTANCES, run

    run(instances=instances or INSTANCES, quick=quick, plot=plot, json_path=json_path)


@reproduce.command("ls-stream")
def ls_stream(
    out: FiguresFolder = Path("reproduce-ls-stream"),
    quick: FewPoints = False,
    seed: Seed = 1,
    json_path: JsonFile = None,
) -> None:
    """The evaluation of Ls-Stream: imbalance, throughput and latency, beside the paper's."""
    from skewless.lab.reproduce.ls_stream import run

    run(out=out, json_path=json_path, quick=quick, seed=seed)


@reproduce.command("posg")
def posg(
    out: FiguresFolder = Path("reproduce-posg"),
    quick: FewPoints = False,
    seeds: Annotated[int, typer.Option(min=1, help="Streams drawn for every point.")] = 100,
    json_path: JsonFile = None,
) -> None:
    """The evaluation of POSG: completion times by skew, load, costs and instances."""
    from skewless.lab.reproduce.posg import run

    run(out=out, json_path=json_path, quick=quick, seeds=seeds)


@reproduce.command("shedding")
def shedding(
    out: FiguresFolder = Path("reproduce-shedding"),
    quick: FewPoints = False,
    seeds: Annotated[int, typer.Option(min=1, help="Streams drawn for every point.")] = 5,
    cashtags: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Also join real posts: a parquet file with the columns ts and symbol.",
        ),
    ] = None,
    json_path: JsonFile = None,
) -> None:
    """The evaluation of load shedding: what a join finds when it cannot keep up."""
    from skewless.lab.reproduce.shedding import run

    run(out=out, json_path=json_path, quick=quick, seeds=seeds, cashtags=cashtags)


@reproduce.command("swarm")
def swarm(
    out: FiguresFolder = Path("reproduce-swarm"),
    quick: FewPoints = False,
    seeds: Annotated[int, typer.Option(min=1, help="Maps drawn for every point.")] = 3,
    points: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Also real points: a parquet file with the columns ts, lat and lon; may be "
            "repeated.",
        ),
    ] = None,
    json_path: JsonFile = None,
) -> None:
    """The evaluation of SWARM: work and latency by subscriptions, and hotspots as timelines."""
    from skewless.lab.reproduce.swarm import run

    run(out=out, json_path=json_path, quick=quick, seeds=seeds, files=points or ())


@reproduce.command("rebalance")
def rebalance(
    out: FiguresFolder = Path("reproduce-rebalance"),
    quick: FewPoints = False,
    seed: Seed = 1,
    queries: Annotated[
        bool,
        typer.Option(
            "--queries",
            help="Instead, the paper's continuous queries on Spark: word count, self-join of "
            "trades, TPC-H Q5.",
        ),
    ] = False,
    instances: Annotated[
        int, typer.Option(min=2, help="With --queries: tasks that share every operator.")
    ] = 2,
    json_path: JsonFile = None,
) -> None:
    """The evaluation of Mixed and its family: skewness, planning time, migration and table size."""
    if queries:
        from skewless.lab.reproduce import rebalance_queries

        rebalance_queries.run(
            out=out, json_path=json_path, quick=quick, seed=seed, instances=instances
        )
        return
    from skewless.lab.reproduce.rebalance import run

    run(out=out, json_path=json_path, quick=quick, seed=seed)


def main() -> None:
    """Run the command line; what a user can put right is one line, not a traceback."""
    try:
        app()
    except SkewlessError as error:
        Console(stderr=True, soft_wrap=True).print(f"skewless: {error}", style="red", markup=False)
        raise SystemExit(1) from None
