"""Five architectures and six ablations of the Transformer, on Multi30k English to German.

Trains every system on the official tokenized files, translates val and test 2016 with beam 5, times
each architecture alone, and writes results.json, results.md and, with matplotlib, the plots.
Finished systems are skipped. An H200 needs about seven minutes with --jobs 14 (CUDA MPS on).

Run: python -m benchmarks.compare_architectures --corpus multi30k/tok [--jobs 4] [--out DIR]
Report and plot again: python -m benchmarks.compare_architectures --from results.json --out DIR
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest
from attendo.core.files import write_atomically
from attendo.core.hardware import inspect_system
from benchmarks.sheets import to_rich

from .findings import find_all
from .report import describe_run, make_sheets, to_markdown
from .speed import time_all
from .study import train_all, write_plan
from .systems import NUM_STEPS, SYSTEMS

OUT = Path("runs/compare_architectures")
NEEDED = ("machine", "num_steps", "chosen", "systems")


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    text, kind = __doc__ or "", argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=text, formatter_class=kind)
    parser.add_argument("--corpus", type=Path, help="the folder tok of Multi30k")
    parser.add_argument("--out", type=Path, default=OUT, help="folder (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=list(SYSTEMS), help="names of systems")
    parser.add_argument("--steps", type=int, default=NUM_STEPS, help="default: %(default)s")
    parser.add_argument("--vocab", type=int, default=10_000, help="pieces (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel training runs")
    parser.add_argument(
        "--speed-steps", type=int, default=250, help="0 skips the speed measurement"
    )
    parser.add_argument("--from", type=Path, dest="earlier", help="an earlier results.json")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Train, translate, time, and compute the scores."""
    unknown = [name for name in options.only if name not in SYSTEMS]
    if unknown:
        raise ConfigError(f"no system '{unknown[0]}'", hint=suggest(unknown[0], SYSTEMS))
    if options.corpus is None:
        hint = "give the folder tok of github.com/multi30k/dataset with --corpus"
        raise ConfigError("no corpus", hint=hint)
    write_plan(options.out, options.corpus, num_steps=options.steps, vocab_size=options.vocab)

    def log(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    failed = train_all(options.out, options.only, jobs=options.jobs, log=log)
    if len(failed) == len(options.only):
        raise InputError("no system could be trained", hint=f"see {options.out / 'logs'}")
    speeds = time_all(options.out, options.only, num_steps=options.speed_steps, log=log)
    machine = _describe_machine()
    found = find_all(options.out, options.corpus, speeds)
    return {"machine": machine, "num_steps": options.steps, "failed": failed, **found}


def _describe_machine() -> dict[str, Any]:
    has_gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if has_gpu else inspect_system().cpu
    return {"device": device, "torch": torch.__version__, "cores": inspect_system().cores}


def load(path: Path) -> dict[str, Any]:
    """Read the results of an earlier run."""
    hint = "give the results.json that this command wrote"
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint=hint) from error
    missing = [name for name in NEEDED if not isinstance(results, dict) or name not in results]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}", hint=hint)
    return dict(results)


def write(results: dict[str, Any], folder: Path) -> list[str]:
    """Write all files; return messages about them, and why there is no plot."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str | bytes] = {"results.json": json.dumps(results, indent=1) + "\n"}
    notes = []
    try:
        from .picture import plot

        files |= plot(results)
    except MissingExtraError as error:
        notes.append(f"no picture: {error.reason}; plot it elsewhere with --from results.json")
    files["results.md"] = to_markdown(results, sorted(files))
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [f"wrote {', '.join(sorted(files))} to {folder}", *notes]


def run(options: argparse.Namespace) -> None:
    """Measure or load the results, print and write them."""
    console = Console()
    results = load(options.earlier) if options.earlier else measure(options, console)
    notes = write(results, options.out)
    console.print(describe_run(results), highlight=False)
    for sheet in make_sheets(results):
        console.print(to_rich(sheet), "", highlight=False)
    for note in notes:
        console.print(note, highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command; print an `AttendoError` without a traceback."""
    try:
        run(read_options())
    except AttendoError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
