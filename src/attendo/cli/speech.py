"""How a verb speaks to people: its help, its errors and its warnings in their language.

Help is built when a verb is imported, errors come when it runs; both follow `--lang`, else
ATTENDO_LANG, else the system. In English nothing passes through here.
"""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from attendo.core.errors import AttendoError, ConfigError
from attendo.core.logs import ROOT
from attendo.core.speech import Lang, choose_language, say, say_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Lang", "LangOption", "argument", "choose_language", "either", "option", "speaking"]

OPTION = "--lang"


def either(en: str, ko: str) -> str:
    """Give the text in the language of this command line."""
    return ko if guess_language(find_option(sys.argv[1:])) == "ko" else en


def find_option(words: Sequence[str]) -> str | None:
    """Give what a command line says of its language.

    >>> find_option(["lessons", "4", "--lang", "ko"]), find_option(["lessons", "--lang=en"])
    ('ko', 'en')
    >>> [find_option(words) for words in ([], ["lessons"], ["lessons", "--lang"])]
    [None, None, None]
    """
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == OPTION:
            return value if equals else next(iter(words[place + 1 :]), None)
    return None


def guess_language(given: str | None) -> Lang:
    """Choose as `choose_language` does; what is no language is no reason to say nothing."""
    try:
        return choose_language(given)
    except ConfigError:
        return choose_language()


def option(en: str, ko: str, *names: str) -> Any:
    """Make an option with a help in both languages."""
    return typer.Option(*names, help=either(en, ko))


def argument(en: str, ko: str) -> Any:
    """Make an argument with a help in both languages."""
    return typer.Argument(help=either(en, ko))


LangOption = Annotated[
    str | None,
    option(
        "What it speaks: ko or en; told by LANG when not given.",
        "말하는 언어(ko, en). 없으면 ATTENDO_LANG, LANG 순.",
    ),
]


def speaking(summary: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a verb with an option `lang` speak Korean, too; `summary` is its help in Korean."""

    def wrap(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def speak(*args: Any, lang: str | None = None, **options: Any) -> None:
            chosen = guess_language(lang)
            with warnings_in(chosen), errors_in(chosen):
                verb(*args, lang=lang, **options)

        speak.__doc__ = either(verb.__doc__ or "", summary)
        return speak

    return wrap


class SpokenCommand(TyperCommand):
    """A verb whose own `--help` is told in the language of the command line."""

    def get_help_option(self, ctx: Any) -> Any:
        """Give the option, in which typer speaks English."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.help = either(found.help or "", "이 도움말을 보이고 끝냅니다.")
        return found


@contextmanager
def errors_in(lang: Lang) -> Iterator[None]:
    """Say errors in a language; in English `attendo.cli.main` does it."""
    if lang == "en":
        yield
        return
    try:
        yield
    except AttendoError as error:
        is_fault = error.exit_code == AttendoError.exit_code  # else the user asked for the end
        text = say_error(error, lang)
        typer.secho(
            f"오류: {text}" if is_fault else text,
            fg=typer.colors.RED if is_fault else None,
            err=True,
        )
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        what = error.filename or say("the output", lang)
        text = say(f"{what} cannot be used: {error.strerror or error}", lang)
        remedy = say("check the place, its permissions and its room", lang)
        typer.secho(f"오류: {text}\n  해결 방법: {remedy}", err=True)
        raise SystemExit(AttendoError.exit_code) from None


class _Aloud(logging.Handler):
    """Says a warning as Python does where nobody has asked for a log, but in Korean."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(say(record.getMessage(), "ko"), err=True)


@contextmanager
def warnings_in(lang: Lang) -> Iterator[None]:
    """Say warnings in a language; in English Python does it."""
    if lang == "en":
        yield
        return
    log, aloud = logging.getLogger(ROOT), _Aloud(logging.WARNING)
    log.addHandler(aloud)
    try:
        yield
    finally:
        log.removeHandler(aloud)
