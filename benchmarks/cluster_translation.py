"""Files on a Ray cluster of this machine: workers of one core against one, and against no Ray.

Three ways translate the same file in turns: this program without Ray, a cluster with one worker,
and one with two. Each is measured once its model is loaded: lines per second of wall-clock time,
and lines per second of processor time, which other work on the machine disturbs less. The processor
time of a cluster includes the driver and Ray's own processes.

Run: python -m benchmarks.cluster_translation [--lines 4000] [--rounds 3] [--size small]
     python -m benchmarks.cluster_translation --reading 600000    # only how fast one process reads
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from attendo.bench.config import BenchConfig
from attendo.bench.random_translator import write_random_file, write_random_model
from attendo.cli.translation.cluster import OutputFormatter
from attendo.cluster import ClusterJob, ClusterTranslation
from attendo.cluster.formats import choose_format
from attendo.cluster.shards import cut_shards
from attendo.core.device import use_threads
from attendo.decoding.options import DecodingOptions
from attendo.translator import Translator

if TYPE_CHECKING:
    from attendo.cluster.job import JobProgress

WINDOW_ROWS, SHARD_ROWS = 128, 128
"""Small, so that a short measurement has many shards."""
MAX_LENGTH = 16
"""Tokens of an output: a model with random weights does not end by itself."""
OBJECT_STORE_BYTES = 300_000_000


class Speed(NamedTuple):
    """Lines per second."""

    wall: float
    cpu: float


def measure_alone(model: Path, source: Path, options: dict[str, Any]) -> Speed:
    """Translate a file in this process with the pipeline of `attendo translate`."""
    from attendo.translator.pipeline import Pipeline, group_lines

    translator = Translator.load(model, device="cpu")
    lines = source.read_text(encoding="utf-8").splitlines()
    begin, cpu_begin = time.perf_counter(), time.process_time()
    steps = translator.make_steps(**options, skip_failed=True)
    count = sum(len(one) for one in Pipeline(steps, group_lines(lines, WINDOW_ROWS)).run())
    return Speed(count / (time.perf_counter() - begin), count / (time.process_time() - cpu_begin))


def cpu_seconds() -> float:
    """Return the processor time of this process and all below it: Ray's and the workers."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def measure_cluster(
    model: Path, source: Path, options: dict[str, Any], num_workers: int, folder: Path
) -> Speed:
    """Translate a file on the cluster, from when all workers have written a shard."""
    job = ClusterJob(
        models=[model], source=str(source), output=str(folder), decoder={"device": "cpu"},
        options=options, formatter=OutputFormatter(), settings={}, threads=1,
        num_workers=num_workers, shard_rows=SHARD_ROWS,
    )  # fmt: skip
    marks: list[tuple[float, float, int]] = []
    active: set[int] = set()

    class Watched(ClusterTranslation):
        def _account(self, report: Any, output: Any) -> None:
            active.add(report.pid)
            super()._account(report, output)

    def on_progress(progress: JobProgress) -> None:
        if len(active) == num_workers:
            marks.append((time.perf_counter(), cpu_seconds(), progress.num_rows))

    Watched(job, "auto", on_progress=on_progress).run()
    # The last shards are left out: one worker has nothing to do while the other ends.
    (wall, cpu, rows), (wall_end, cpu_end, rows_end) = marks[0], marks[-num_workers]
    count = rows_end - rows
    return Speed(count / (wall_end - wall), count / (cpu_end - cpu))


def measure_reading(num_lines: int) -> dict[str, float]:
    """Return the lines per CPU second that the driver reads, cuts and packs."""
    speeds = {}
    with tempfile.TemporaryDirectory() as name:
        plain = Path(name) / "in.ko"
        write_random_file(plain, num_lines)
        packed = plain.with_suffix(".ko.gz")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        for path in (plain, packed):
            row_format = choose_format(str(path))
            begin = time.process_time()
            rows = row_format.read(str(path))
            shards = cut_shards(0, rows, row_format, window_rows=16_384, shard_rows=65_536)
            count = sum(shard.num_rows for shard in shards)
            speeds[path.name] = count / (time.process_time() - begin)
    return speeds


def main() -> None:
    """Measure in turns and print the medians of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", default="small")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--reading", type=int, metavar="LINES")
    arguments = parser.parse_args()
    if arguments.reading:
        for file_name, rate in measure_reading(arguments.reading).items():
            Console().print(f"{file_name}: {rate:,.0f} lines per CPU second")
        return
    import ray

    from attendo.translator import windows

    os.environ["OMP_NUM_THREADS"] = "1"
    use_threads(1)
    windows.MAX_WINDOW_LINES["cpu"] = WINDOW_ROWS
    search = DecodingOptions(beam_size=arguments.beam_size, max_length=MAX_LENGTH)
    options = {"options": search}
    names = ["no Ray", "1 worker", "2 workers"]
    speeds: dict[str, list[Speed]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, source = folder / "model", folder / "in.ko"
        write_random_model(BenchConfig(size=arguments.size), model)
        write_random_file(source, arguments.lines)
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            object_store_memory=OBJECT_STORE_BYTES,
        )
        for number in range(arguments.rounds):
            speeds["no Ray"].append(measure_alone(model, source, options))
            for count in (1, 2):
                out = folder / f"out{number}-{count}"
                speed = measure_cluster(model, source, options, count, out)
                speeds[names[count]].append(speed)
        ray.shutdown()
    print_speeds(speeds)


def print_speeds(speeds: dict[str, list[Speed]]) -> None:
    """Print the medians, and the medians of the ratios within a round."""
    table = Table(box=None)
    for heading in ("", "lines/s", "lines per CPU second", "speed ratio", "CPU ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    before: list[Speed] | None = None
    for name, found in speeds.items():
        cells = [name, *(f"{statistics.median(one):.1f}" for one in zip(*found, strict=True))]
        if before is not None:
            for index in range(2):
                ratios = [a[index] / b[index] for a, b in zip(found, before, strict=True)]
                cells.append(f"{statistics.median(ratios):.2f}")
        table.add_row(*cells)
        before = found
    Console().print(table)
    Console().print("ratios: to the row above, medians over the rounds", style="dim")


if __name__ == "__main__":
    main()
