"""The speed of translating a file: where the time goes, and CTranslate2 called directly.

The file is read, translated and written as `attendo translate -i` does it. With CTranslate2 as the
engine, each run is followed by `translate_iterable` on the same converted model, with SentencePiece
around it: with its default arguments, and with as many batches at the same time as there are
threads.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import torch

from attendo.bench.report import describe_hardware
from attendo.core.config import Config, Count
from attendo.core.message import message
from attendo.decoding.options import DecodingOptions
from attendo.text.lines import read_lines
from attendo.translator.backends.ctranslate2.loader import keep_num_threads
from attendo.translator.pipeline import Pipeline, group_lines
from attendo.translator.windows import max_window_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from attendo.translator import Translator

STAGES = ("read", "tokenize", "search", "detokenize", "write", "wait")
PEER_BATCH = 32
"""Sentences in a batch of `translate_iterable`: its default."""
WARMUP_LINES = 64


class FileBenchConfig(Config):
    """What is translated, and how often."""

    beam_sizes: tuple[Count, ...] = (4, 1)
    rounds: Count = 3
    num_lines: Count | None = None
    """The first lines of the file; by default all."""
    max_length: Count | None = None
    """Tokens per translation: random weights never end a sentence."""


@dataclass
class FileRun:
    """One translation of the file."""

    seconds: float
    cpu_seconds: float
    """Of all threads: other processes disturb it less."""
    steady_lines_per_second: float
    """Without the first window, and the time until it is translated."""
    stages: dict[str, float]


@dataclass
class Peer:
    """CTranslate2 called directly."""

    name: str
    translate: Callable[[], int]
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)


def benchmark_file(
    translator: Translator,
    source: Path,
    config: FileBenchConfig,
    *,
    log: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Translate a file several times; return all results as JSON."""
    count = sum(1 for _ in _read(source, config))
    with TemporaryDirectory(prefix="attendo-bench-") as folder:
        output = Path(folder) / "output"
        cases = [
            _time_case(translator, source, output, config, beam_size, log or (lambda _line: None))
            for beam_size in config.beam_sizes
        ]
    return {
        "kind": "attendo bench file",
        "machine": describe_hardware(translator.backend.device),
        "engine": translator.backend.name,
        "num_parameters": translator.backend.num_parameters,
        "num_lines": count,
        "num_characters": sum(map(len, _read(source, config))),
        "rounds": config.rounds,
        "cases": cases,
    }


def _read(source: Path, config: FileBenchConfig) -> Iterator[str]:
    return islice(read_lines(source), config.num_lines)


def _time_case(
    translator: Translator,
    source: Path,
    output: Path,
    config: FileBenchConfig,
    beam_size: int,
    log: Callable[[str], None],
) -> dict[str, Any]:
    """Time one beam size: Attendo and each peer in turn, after a warm-up."""
    options = DecodingOptions(beam_size=beam_size, max_length=config.max_length)
    peers = list(_make_peers(translator, source, output, config, options))
    list(translator.translate_lines(islice(_read(source, config), WARMUP_LINES), options=options))
    runs: list[FileRun] = []
    for _ in range(config.rounds):
        runs.append(_translate_file(translator, source, output, config, options))
        for peer in peers:
            begin, cpu_begin = perf_counter(), process_time()
            peer.translate()
            peer.seconds.append(perf_counter() - begin)
            peer.cpu_seconds.append(process_time() - cpu_begin)
    best = min(runs, key=lambda one: one.seconds)
    count = sum(1 for _ in _read(source, config))
    case = {
        "beam_size": beam_size,
        "seconds": statistics.median(one.seconds for one in runs),
        "lines_per_second": count / statistics.median(one.seconds for one in runs),
        "steady_lines_per_second": statistics.median(one.steady_lines_per_second for one in runs),
        "stages": best.stages,
        "peers": [
            {
                "name": peer.name,
                "seconds": statistics.median(peer.seconds),
                "attendo_is_times_as_fast": statistics.median(
                    theirs / ours.seconds for theirs, ours in zip(peer.seconds, runs, strict=True)
                ),
                "cpu_ratio": statistics.median(
                    theirs / ours.cpu_seconds
                    for theirs, ours in zip(peer.cpu_seconds, runs, strict=True)
                ),
            }
            for peer in peers
        ],
    }
    log(message("beam {size}: {seconds} s", size=beam_size, seconds=f"{case['seconds']:.1f}"))
    return case


def _translate_file(
    translator: Translator,
    source: Path,
    output: Path,
    config: FileBenchConfig,
    options: DecodingOptions,
) -> FileRun:
    """Translate the file as `attendo translate` does."""
    max_lines = max_window_lines(translator.backend.device_type)
    begin, cpu_begin = perf_counter(), process_time()
    write_seconds = first_end = 0.0
    num_done = num_first = 0
    windows = group_lines(_read(source, config), max_lines)
    pipeline = Pipeline(translator.make_steps(options=options), windows)
    with output.open("wb") as stream:
        for translations in pipeline.run():
            write_begin = perf_counter()
            stream.write("".join(f"{one}\n" for one in translations).encode())
            stream.flush()
            write_seconds += perf_counter() - write_begin
            num_done += len(translations)
            if not num_first:
                num_first, first_end = num_done, perf_counter()
    end = perf_counter()
    is_long = num_done > num_first
    steady = (num_done - num_first) / (end - first_end) if is_long else num_done / (end - begin)
    stages = {**pipeline.seconds, "write": write_seconds}
    cpu_seconds = process_time() - cpu_begin
    return FileRun(end - begin, cpu_seconds, steady, {name: stages[name] for name in STAGES})


def _make_peers(
    translator: Translator,
    source: Path,
    output: Path,
    config: FileBenchConfig,
    options: DecodingOptions,
) -> Iterator[Peer]:
    """Yield CTranslate2 with its default arguments, and with one thread per batch."""
    if translator.backend.name != "ctranslate2":
        return
    import ctranslate2  # type: ignore[import-untyped]

    backend: Any = translator.backend
    kind = "int8" if backend.translators.precision == "auto" else backend.translators.precision
    threads = torch.get_num_threads()
    settings = {"translate_iterable": {"intra_threads": threads}}
    if threads > 1:
        name = f"translate_iterable, inter_threads={threads}"
        settings[name] = {"inter_threads": threads, "intra_threads": 1}
    for name, arguments in settings.items():
        with keep_num_threads():
            runner = ctranslate2.Translator(str(backend.folder), compute_type=kind, **arguments)
        run = partial(_translate_directly, runner, translator, source, output, config, options)
        yield Peer(name, run)


def _translate_directly(
    runner: Any,
    translator: Translator,
    source: Path,
    output: Path,
    config: FileBenchConfig,
    options: DecodingOptions,
) -> int:
    """Translate the file with CTranslate2 and SentencePiece alone; return the number of lines."""
    tokenizer = translator.tokenizer
    rows = (
        tokenizer.src_pieces(tokenizer.encode_src([line])[0][:-1]) for line in _read(source, config)
    )
    arguments: dict[str, Any] = {"beam_size": options.beam_size, "max_batch_size": PEER_BATCH}
    if options.max_length is not None:
        arguments["max_decoding_length"] = options.max_length
    ids = {
        piece: index
        for index, piece in enumerate(tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)))
    }
    count = 0
    with output.open("w", encoding="utf-8") as stream:
        for result in runner.translate_iterable(rows, **arguments):
            (text,) = tokenizer.decode_tgt([[ids[piece] for piece in result.hypotheses[0]]])
            stream.write(f"{text}\n")
            count += 1
    return count


def table_headers() -> list[str]:
    """Return the headers of the table."""
    names = (
        message("reading"), message("tokenization"), message("search"), message("detokenizing"),
        message("writing"), message("waiting"),
    )  # fmt: skip
    return [
        message("beam"), message("seconds"), message("lines/s"), message("lines/s, steady"), *names
    ]  # fmt: skip


def table_rows(report: dict[str, Any]) -> list[list[str]]:
    """Return the cells of the table: one row per beam size, with the seconds of each stage."""
    return [
        [
            str(case["beam_size"]),
            f"{case['seconds']:.2f}",
            f"{case['lines_per_second']:,.0f}",
            f"{case['steady_lines_per_second']:,.0f}",
            *(f"{case['stages'][name]:.2f}" for name in STAGES),
        ]
        for case in report["cases"]
    ]


def describe_peers(report: dict[str, Any]) -> Sequence[str]:
    """Return the comparison with each peer, a line each."""
    return [
        message(
            "beam {size}: {seconds} s with {name}; Attendo is {ratio} times as fast "
            "({cpu} by CPU time)",
            size=case["beam_size"],
            seconds=f"{peer['seconds']:.2f}",
            name=peer["name"],
            ratio=f"{peer['attendo_is_times_as_fast']:.2f}",
            cpu=f"{peer['cpu_ratio']:.2f}",
        )
        for case in report["cases"]
        for peer in case["peers"]
    ]


def describe_setup(report: dict[str, Any]) -> str:
    """Return in one line what was measured."""
    machine = report["machine"]
    return message(
        "{lines} lines, {characters} characters; {parameters}M parameters, engine {engine}; "
        "{device}, {threads} threads, torch {torch}; {rounds} rounds, seconds of the stages in the "
        "fastest; stages run at the same time",
        lines=f"{report['num_lines']:,}",
        characters=f"{report['num_characters']:,}",
        parameters=f"{report['num_parameters'] / 1e6:.1f}",
        engine=report["engine"],
        device=machine["device"],
        threads=machine["threads"],
        torch=machine["torch"],
        rounds=report["rounds"],
    )
