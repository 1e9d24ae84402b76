"""Structure of the source and of one translation: size, files, frames, imports, seconds.

Run: python -m benchmarks.structure runs/quickstart/ko-en. Without a model folder, a small model
with random weights is measured.
"""

from __future__ import annotations

import argparse
import inspect
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.sheets import Sheet, to_markdown_table

if TYPE_CHECKING:
    from types import FrameType

SOURCE = Path(__file__).parents[1] / "src" / "attendo"
TEXT = "나는 학생이다."
REPEATS = 7
CONFIG_FILES = ("config.py", "presets.py")


def count_source() -> list[list[str]]:
    """Return the rows about the files of the source."""
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    folders = Counter(path.parent for path in lines if path.name != "__init__.py")
    largest, num_files = folders.most_common(1)[0]
    model = {path.name: size for path, size in lines.items() if path.parent == SOURCE / "model"}
    config_lines = sum(model[name] for name in CONFIG_FILES)
    return [
        ["lines of `src`", f"{sum(lines.values()):,}"],
        ["files of `src`", str(len(lines))],
        ["largest folder", f"{num_files} files (`{largest.relative_to(SOURCE)}`)"],
        [
            f"lines of `model/*.py` (of these {' and '.join(f'`{n}`' for n in CONFIG_FILES)})",
            f"{sum(model.values()):,} ({config_lines})",
        ],
    ]


def trace_translation(model: str) -> None:
    """Translate once under a profiler; print the files, functions and frames as JSON."""
    import threading

    functions: set[tuple[str, str]] = set()
    start: set[tuple[str, str]] = set()
    num_frames = 0

    def is_ours(frame: FrameType) -> bool:
        """Return whether it is a function of ours: no module, class body or comprehension."""
        code = frame.f_code
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name[0] != "<"
        return is_function and code.co_filename.startswith(str(SOURCE))

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal num_frames
        if event != "call" or not is_ours(frame):
            return
        functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        if frame.f_code.co_qualname == "Encoder.forward" and not num_frames:
            start.update(functions)
            caller = frame.f_back
            while caller is not None and caller.f_code.co_qualname != "translate":
                num_frames += is_ours(caller)
                caller = caller.f_back

    threading.setprofile(profile)
    sys.setprofile(profile)
    translate(model)
    sys.setprofile(None)
    files = sorted({str(Path(name).relative_to(SOURCE)) for name, _ in functions})
    num_start_files = len({name for name, _ in start})
    counts = {"functions": len(functions), "frames": num_frames, "start_files": num_start_files}
    print(json.dumps({"files": files, **counts}))


def translate(model: str) -> None:
    """Run `attendo translate` in this process."""
    from attendo.cli.main import run

    try:
        run(["translate", model, TEXT])
    except SystemExit as error:
        if error.code:
            raise


def list_imports(model: str) -> None:
    """Translate once; print the modules of ours that were imported, as JSON."""
    translate(model)
    print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] == "attendo")))


def time_load(model: str) -> None:
    """Load the model; print the CPU seconds, with the imports of this package but not PyTorch's."""
    import time

    import torch  # noqa: F401 - takes most of the time, and is not ours

    begin = time.process_time()
    from attendo import Translator

    Translator.load(model)
    print(json.dumps(time.process_time() - begin))


def time_command(model: str) -> None:
    """Translate once; print the CPU seconds of the whole process."""
    import time

    translate(model)
    print(json.dumps(time.process_time()))


PROBES = {
    probe.__name__: probe for probe in (trace_translation, list_imports, time_load, time_command)
}


def probe_in_new_process(name: str, model: Path) -> Any:
    """Return what a probe prints on its last line, in an interpreter of its own."""
    command = [sys.executable, "-m", "benchmarks.structure", str(model), "--probe", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_translation(model: Path, *, is_verbose: bool) -> list[list[str]]:
    """Return the rows about one translation on the command line."""
    path = probe_in_new_process("trace_translation", model)
    modules = probe_in_new_process("list_imports", model)
    if is_verbose:
        print("\n".join(["files entered:", *path["files"], "", "imported:", *modules, ""]))
    seconds = {
        name: statistics.median(probe_in_new_process(name, model) for _ in range(REPEATS))
        for name in ("time_load", "time_command")
    }
    return [
        ["files entered by one translation", str(len(path["files"]))],
        ["of these, until the encoder runs", str(path["start_files"])],
        ["functions called", str(path["functions"])],
        ["frames between `cli.translate` and `Encoder.forward`", str(path["frames"])],
        ["modules imported by `attendo translate`", str(len(modules))],
        ["`Translator.load` without PyTorch's import, CPU seconds", f"{seconds['time_load']:.2f}"],
        ["`attendo translate`, one sentence, CPU seconds", f"{seconds['time_command']:.2f}"],
    ]


def save_random_model(directory: Path) -> Path:
    """Save a tiny Transformer with random weights and a tokenizer of a few sentences."""
    from attendo.bundle import build_model, save_bundle
    from attendo.data.tokenizer_training import train_tokenizer
    from attendo.text.tokenizer import TokenizerConfig

    corpus = directory / "corpus.txt"
    sentences = [f"{TEXT} 나는 책을 {i} 권, {j} 번 읽었다." for i in range(20) for j in range(20)]
    corpus.write_text("\n".join(sentences), encoding="utf-8")
    settings = TokenizerConfig(vocab_size=300)
    tokenizer = train_tokenizer(corpus, corpus, settings, num_pairs=len(sentences), seed=0)
    options = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 2}
    save_bundle(directory / "model", build_model("transformer", options, tokenizer), tokenizer)
    return directory / "model"


def main() -> None:
    """Print the figures as a Markdown table."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("model", nargs="?", type=Path, help="model folder or run folder")
    parser.add_argument("--verbose", action="store_true", help="list the files and modules")
    parser.add_argument("--probe", choices=PROBES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        PROBES[arguments.probe](str(arguments.model))
        return
    with tempfile.TemporaryDirectory() as directory:
        model = arguments.model or save_random_model(Path(directory))
        rows = count_source() + measure_translation(model, is_verbose=arguments.verbose)
    print(to_markdown_table(Sheet("structure", "", ["measure", "value"], rows)))


if __name__ == "__main__":
    main()
