"""`attendo`: imports the requested verb, runs it, and prints errors without a traceback."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.localization import (
    LocalizedCommand,
    LocalizedGroup,
    command_language,
    localized_titles,
    localized_warnings,
    print_error,
)
from attendo.core.device import is_torch
from attendo.core.errors import AttendoError, MissingTorchError
from attendo.core.message import message
from attendo.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERB_HELP = {
    "quickstart": "Train a translator on the built-in corpus, score it and try it, in two minutes.",
    "check": "Check corpora before training: alignment, languages, duplicates, dev set, size.",
    "clean": "Clean corpora and monolingual text: rules, languages, duplicates, test sets, scores.",
    "train": "Train a model on your own files, text or time series, up to a finished model folder.",
    "build": "Build a small, fast translator: clean, back-translate, teacher, student, int8, "
    "report.",
    "finish": "End an interrupted run now: average its best checkpoints, write the model and the "
    "report.",
    "adapt": "Adapt a model to corrections: fine-tune, compare on dev, publish or refuse, roll "
    "back.",
    "runs": "List training runs: state, steps, scores, size; compare them, free disk space.",
    "translate": "Translate text, a file, a document or a pipe: beam search, n-best, glossary, "
    "confidence.",
    "evaluate": "Score a model on a test set: BLEU with signatures, chrF, TER, and a report.",
    "calibrate": "Calibrate the confidence of a model on a dev set, after an import or for "
    "other texts.",
    "score": "Score sentence pairs by cross-entropy, with one model or one per direction.",
    "generate": "Generate text with a language model.",
    "fill": "Fill the gaps (___) in a text with a masked language model.",
    "forecast": "Forecast a time series: class probabilities or values.",
    "look": "Inspect a translation on one offline page: every attention head, step and beam.",
    "serve": "Serve models: a web page and a LibreTranslate-compatible API.",
    "import": "Import a Hugging Face Marian model or a fairseq checkpoint.",
    "export": "Export a model to Hugging Face Marian, CTranslate2, ONNX or a web page.",
    "bench": "Measure the speed of training, decoding, a file or a server against other tools.",
    "lessons": "Learn the Transformer lesson by lesson, down to the numbers and your own model.",
    "synthesize": "Generate a synthetic corpus (dates, numbers, sentence pairs, a time series).",
    "corpus": "List known public corpora, and download one.",
    "doctor": "Check this machine, or a training run: what went wrong, and the next command.",
}
"""The help of each verb: `attendo --help` lists them without importing the verbs."""

MODULE_NAMES = {"import": "import_model"}
"""Verbs that are Python keywords, and the names of their modules and functions."""

DESCRIPTION = (
    "The Transformer of 'Attention Is All You Need': train, translate, evaluate and inspect."
)


def build_app(invoked_verb: str | None) -> typer.Typer:
    """Return the command with only the invoked verb imported ("*" imports all of them)."""
    app = typer.Typer(
        name="attendo",
        cls=LocalizedGroup,
        help=DESCRIPTION,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for verb, summary in VERB_HELP.items():
        command = load_verb(verb) if invoked_verb in (verb, "*") else _placeholder
        app.command(verb, cls=LocalizedCommand, help=summary)(command)
    return app


def load_verb(verb: str) -> Callable[..., Any]:
    """Import the function behind a verb: `attendo.cli.<verb>.<verb>`."""
    name = MODULE_NAMES.get(verb, verb)
    command: Callable[..., Any] = getattr(import_module(f"attendo.cli.{name}"), name)
    return command


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    _use_utf8()
    arguments_list = list(sys.argv[1:] if arguments is None else arguments)
    is_completing = "_ATTENDO_COMPLETE" in os.environ  # the shell may ask for any verb
    invoked_verb = (
        "*"
        if is_completing
        else next((word for word in arguments_list if not word.startswith("-")), None)
    )
    lang = command_language(arguments_list)
    try:
        with localized_titles(lang), localized_warnings(lang):
            build_app(invoked_verb)(arguments_list, prog_name="attendo", obj=lang)
    except AttendoError as error:
        print_error(error, lang)
        raise SystemExit(error.exit_code) from None
    except ModuleNotFoundError as error:
        if not is_torch(error.name):
            raise
        missing = MissingTorchError()
        print_error(missing, lang)
        raise SystemExit(missing.exit_code) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        print_error(_describe_os_error(error), lang)
        raise SystemExit(AttendoError.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _describe_os_error(error: OSError) -> AttendoError:
    return AttendoError(
        message(
            "{what} cannot be used: {detail}",
            what=error.filename or message("the output"),
            detail=error.strerror or str(error),
        ),
        hint="check the path, its permissions and the free disk space",
    )


def _use_utf8() -> None:
    """Write UTF-8 whatever the code page of the console: Korean and ▁ must be readable."""
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
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Define the options before the verb."""


def _placeholder() -> None:
    """Replace a verb that was not invoked."""
