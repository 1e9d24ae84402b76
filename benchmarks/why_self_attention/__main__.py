"""Why self-attention: section 4 and Table 1 of the paper, measured on this machine.

One layer of each kind (self-attention, LSTM, convolution, restricted self-attention) for n = 16,
32, ... 4096: seconds, bytes, operations, sequential steps and path lengths, compared with the
paper; how each grows, and where they cross. Writes results.json, results.md and, with matplotlib,
why_self_attention.png and .svg. On a busy machine, --threads 1 gives more stable times.

Run: python -m benchmarks.why_self_attention [--device cuda] [--max-n 1024] [--out DIR]
Plot again elsewhere: python -m benchmarks.why_self_attention --from results.json --out DIR
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.files import write_atomically
from benchmarks.sheets import to_rich

from .report import describe_run, make_sheets, to_markdown
from .study import Setting, run_study

OUT = Path("runs/why_self_attention")
SECONDS = {"cpu": 240.0, "cuda": 45.0}
NEEDED = ("setting", "machine", "seconds", "lengths", "layers", "growth", "crossings", "widths")


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    text, kind = __doc__ or "", argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=text, formatter_class=kind)
    parser.add_argument("--device", choices=tuple(SECONDS), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--d-model", type=int, default=512)
    parser.add_argument("--max-n", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, help="CPU threads (default: PyTorch's choice)")
    parser.add_argument("--budget", type=float, help="total seconds (default: 240, on a GPU 45)")
    parser.add_argument("--lang", choices=("en", "ko"), default="en", help="language of the plot")
    parser.add_argument("--out", type=Path, default=OUT, help="folder (default: %(default)s)")
    parser.add_argument("--from", type=Path, dest="earlier", help="plot an earlier results.json")
    parser.add_argument("--replace", action="store_true", help="replace an earlier results.json")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Run the study with a progress bar."""
    setting = Setting(
        device=options.device,
        dtype=options.dtype,
        d_model=options.d_model,
        max_n=options.max_n,
        batch=options.batch,
        threads=options.threads,
        budget=SECONDS[options.device] if options.budget is None else options.budget,
    )
    shown = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*shown, console=console, transient=True) as bar:
        task = bar.add_task("operations", total=None)
        return run_study(
            setting,
            lambda stage, done, total: bar.update(
                task, description=stage, completed=done, total=total
            ),
        )


def load(path: Path) -> dict[str, Any]:
    """Read the results of an earlier run."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror}"
        raise InputError(reason, hint="give the results.json of an earlier run") from error
    except ValueError as error:
        reason = f"{path} is not JSON: {error}"
        raise InputError(reason, hint="give the results.json of an earlier run") from error
    missing = [name for name in NEEDED if not isinstance(results, dict) or name not in results]
    if missing:
        reason = f"{path} lacks {', '.join(missing)}"
        raise InputError(reason, hint="give the results.json that this command wrote")
    return results  # type: ignore[no-any-return]


def write(results: dict[str, Any], options: argparse.Namespace) -> list[str]:
    """Write all files; return messages about them, and why there is no plot."""
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str | bytes] = {"results.md": to_markdown(results)}
    if options.earlier is None:
        files["results.json"] = json.dumps(results, indent=1) + "\n"
    notes = []
    try:
        from .picture import plot

        pictures = plot(results, options.lang)
        files |= {f"why_self_attention{suffix}": data for suffix, data in pictures.items()}
    except MissingExtraError as error:
        notes.append(f"no picture: {error.reason}; plot it elsewhere with --from results.json")
    for name, content in files.items():
        write_atomically(folder / name, content)
    return [f"wrote {', '.join(sorted(files))} to {folder}", *notes]


def run(options: argparse.Namespace) -> None:
    """Measure or load the results, print and write them."""
    console = Console()
    target: Path = options.out / "results.json"
    if options.earlier is None and target.exists() and not options.replace:
        hint = "give another --out, or --replace; --from plots it again"
        raise InputError(f"{target} already exists", hint=hint)
    results = load(options.earlier) if options.earlier else measure(options, console)
    notes = write(results, options)
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
