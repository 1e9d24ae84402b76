"""`attendo`: finds the verb that was asked for, imports it, and says errors in plain words."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.core.errors import AttendoError
from attendo.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERBS = {
    "quickstart": "Train a translator on the embedded corpus, score it and try it: two minutes.",
    "train": "Train a model on your own text files, from tokenizer to finished model folder.",
    "translate": "Translate words, a file or a pipe: beam search, n-best, glossary, confidence.",
    "evaluate": "Score a model on a test set: every BLEU by its name, chrF, TER, with a report.",
    "look": "Look inside a translation: one offline page with every head, every step, every beam.",
    "serve": "Serve models: a web page and an API that LibreTranslate's clients speak.",
    "lessons": "Learn the Transformer in fifteen lessons, down to the numbers and your own model.",
    "corpus": "List known public corpora, and fetch one from the net or a mirror.",
    "doctor": "Tell what this machine has, what is missing, and what to do about it.",
}
"""Each verb with the first line of its help: `attendo --help` shows them all and imports none."""

PROMISE = (
    "The Transformer of 'Attention Is All You Need': train, translate, measure, look inside.\n\n"
    "논문 'Attention Is All You Need'의 트랜스포머: 학습, 번역, 평가, 들여다보기."
)


def build_app(called: str | None) -> typer.Typer:
    """Make the command with `called` imported and every other verb known by its help alone."""
    app = typer.Typer(
        name="attendo",
        help=PROMISE,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_attendo)
    for verb, summary in VERBS.items():
        command = load_verb(verb) if called in (verb, "*") else _not_loaded
        app.command(verb, help=None if called in (verb, "*") else summary)(command)
    return app


def load_verb(verb: str) -> Callable[..., Any]:
    """Import the function behind a verb: `attendo.cli.<verb>.<verb>`."""
    command: Callable[..., Any] = getattr(import_module(f"attendo.cli.{verb}"), verb)
    return command


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    _speak_utf8()
    words = list(sys.argv[1:] if arguments is None else arguments)
    completing = "_ATTENDO_COMPLETE" in os.environ  # the shell asks for the options of any verb
    called = "*" if completing else next((word for word in words if not word.startswith("-")), None)
    try:
        build_app(called)(words, prog_name="attendo")
    except AttendoError as error:
        is_fault = error.exit_code == AttendoError.exit_code  # else the user asked for the end
        text, colour = (f"error: {error}", typer.colors.RED) if is_fault else (str(error), None)
        typer.secho(text, fg=colour, err=True)
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        what = error.filename or "the output"
        text = f"error: {what} cannot be used: {error.strerror or error}"
        typer.secho(f"{text}\n  remedy: check the place, its permissions and its room", err=True)
        raise SystemExit(AttendoError.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _speak_utf8() -> None:
    """Write UTF-8 whatever the console's code page: Korean and ▁ must come through."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attendo {__version__}")
        raise typer.Exit


def _attendo(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Print the version and leave.",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Hold the options that stand before the verb."""


def _not_loaded() -> None:
    """Stand for a verb that was not called."""
