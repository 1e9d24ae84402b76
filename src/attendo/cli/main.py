"""`attendo`: finds the verb that was asked for, imports it, and says errors in plain words."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.localization import (
    LocalizedCommand,
    find_lang_option,
    language_or_default,
    localized,
    localized_errors,
)
from attendo.core.errors import AttendoError
from attendo.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERB_HELP = {
    "quickstart": "Train a translator on the built-in corpus, score it and try it, in two minutes.",
    "train": "Train a model on your own files, text or time series, up to a finished model folder.",
    "translate": "Translate words, a file or a pipe: beam search, n-best, glossary, confidence.",
    "evaluate": "Score a model on a test set: every BLEU by its name, chrF, TER, with a report.",
    "generate": "Let a language model go on with a text, or begin one.",
    "fill": "Fill the gaps (___) of a text with the words that fit best, seen from both sides.",
    "forecast": "Foretell the next steps of a series: labels with their chances, or numbers.",
    "look": "Look inside a translation: one offline page with every head, every step, every beam.",
    "serve": "Serve models: a web page and an API that LibreTranslate's clients speak.",
    "import": "Make a model folder of a Marian model of Hugging Face, or of a fairseq checkpoint.",
    "export": "Write a model for other engines: Hugging Face Marian, CTranslate2, ONNX.",
    "bench": "Measure the speed of training and decoding, beside peers where they are installed.",
    "lessons": "Learn the Transformer in fifteen lessons, down to the numbers and your own model.",
    "synthesize": "Write a corpus of our own making: dates, numbers, sentence pairs, a series.",
    "corpus": "List known public corpora, and fetch one from the net or a mirror.",
    "doctor": "Tell what this machine has, what is missing, and what to do about it.",
}
"""Each verb with the first line of its help: `attendo --help` shows them all and imports none."""

VERB_HELP_KO = {
    "quickstart": "내장 말뭉치로 번역기를 학습하고 점수를 매기고 써 봅니다. 2분쯤 걸립니다.",
    "train": "여러분의 글이나 숫자 파일로 시작해 모델 폴더까지 학습합니다.",
    "translate": "문장, 파일, 파이프를 번역합니다: 빔 탐색, n-best, 용어집, 확신도.",
    "evaluate": "시험 집합으로 점수를 매깁니다: 이름을 밝힌 BLEU들, chrF, TER, 보고서.",
    "generate": "언어 모델이 글을 이어 쓰거나 새로 쓰게 합니다.",
    "fill": "가려진 낱말을 맞히는 모델로 글의 빈칸을 채웁니다.",
    "forecast": "시계열의 다음 단계를 예측합니다: 확률이 붙은 레이블, 또는 숫자.",
    "look": "번역의 안을 들여다봅니다. 모든 헤드, 모든 단계, 모든 빔을 화면 하나에.",
    "serve": "모델을 서버로 엽니다. 웹 화면, 그리고 LibreTranslate 클라이언트가 그대로 쓰는 API.",
    "import": "Hugging Face의 Marian 모델이나 fairseq 체크포인트를 모델 폴더로 만듭니다.",
    "export": "다른 엔진용으로 씁니다: HF Marian, CTranslate2, ONNX.",
    "bench": "학습과 번역의 속도를, 설치된 다른 구현과 나란히 잽니다.",
    "lessons": "강의 열다섯 편: 트랜스포머를 숫자와 자기 모델로 배웁니다.",
    "synthesize": "직접 만든 말뭉치를 씁니다: 날짜, 숫자, 문장 쌍, 시계열.",
    "corpus": "알려진 공개 말뭉치를 보여 주고 하나를 받아 옵니다.",
    "doctor": "이 컴퓨터에 무엇이 있고 없는지, 어떻게 하면 되는지 알려 줍니다.",
}
"""The same for who reads Korean."""

MODULE_NAMES = {"import": "import_model"}
"""Functions that cannot be called as their verbs are: Python has the word."""

DESCRIPTION = (
    "The Transformer of 'Attention Is All You Need': train, translate, measure, look inside.\n\n"
    "논문 'Attention Is All You Need'의 트랜스포머: 학습, 번역, 평가, 들여다보기."
)


def build_app(invoked_verb: str | None) -> typer.Typer:
    """Make the command with `called` imported and every other verb known by its help alone."""
    app = typer.Typer(
        name="attendo",
        help=DESCRIPTION,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for verb, summary in VERB_HELP.items():
        command = load_verb(verb) if invoked_verb in (verb, "*") else _placeholder
        help_text = None if invoked_verb in (verb, "*") else localized(summary, VERB_HELP_KO[verb])
        app.command(verb, cls=LocalizedCommand, help=help_text)(command)
    return app


def load_verb(verb: str) -> Callable[..., Any]:
    """Import the function behind a verb: `attendo.cli.<verb>.<verb>`."""
    name = MODULE_NAMES.get(verb, verb)
    command: Callable[..., Any] = getattr(import_module(f"attendo.cli.{name}"), name)
    return command


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    _use_utf8()
    arguments_list = list(sys.argv[1:] if arguments is None else arguments)
    is_completing = "_ATTENDO_COMPLETE" in os.environ  # the shell asks for the options of any verb
    invoked_verb = (
        "*"
        if is_completing
        else next((word for word in arguments_list if not word.startswith("-")), None)
    )
    try:
        with localized_errors(language_or_default(find_lang_option(arguments_list))):
            build_app(invoked_verb)(arguments_list, prog_name="attendo")
    except AttendoError as error:
        is_error = error.exit_code == AttendoError.exit_code  # else the user asked for the end
        text, color = (f"error: {error}", typer.colors.RED) if is_error else (str(error), None)
        typer.secho(text, fg=color, err=True)
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        what = error.filename or "the output"
        text = f"error: {what} cannot be used: {error.strerror or error}"
        typer.secho(f"{text}\n  hint: check the place, its permissions and its room", err=True)
        raise SystemExit(AttendoError.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _use_utf8() -> None:
    """Write UTF-8 whatever the console's code page: Korean and ▁ must come through."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"attendo {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Print the version and leave.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Hold the options that stand before the verb."""


def _placeholder() -> None:
    """Stand for a verb that was not called."""
