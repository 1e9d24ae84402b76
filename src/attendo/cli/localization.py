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
from attendo.core.message import message
from attendo.i18n.messages import Lang, choose_language, translate_error, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "Lang",
    "LangOption",
    "argument",
    "choose_language",
    "localized",
    "option",
    "localized_command",
]

LANG_OPTION = "--lang"


def localized(en: str, ko: str) -> str:
    """Give the text in the language of this command line."""
    return ko if language_or_default(find_lang_option(sys.argv[1:])) == "ko" else en


def find_lang_option(arguments: Sequence[str]) -> str | None:
    """Give what a command line says of its language.

    >>> find_option(["lessons", "4", "--lang", "ko"]), find_option(["lessons", "--lang=en"])
    ('ko', 'en')
    >>> [find_option(words) for words in ([], ["lessons"], ["lessons", "--lang"])]
    [None, None, None]
    """
    for index, argument_text in enumerate(arguments):
        name, equals, value = argument_text.partition("=")
        if name == LANG_OPTION:
            return value if equals else next(iter(arguments[index + 1 :]), None)
    return None


def language_or_default(requested: str | None) -> Lang:
    """Choose as `choose_language` does; what is no language is no reason to say nothing."""
    try:
        return choose_language(requested)
    except ConfigError:
        return choose_language()


def option(en: str, ko: str, *names: str) -> Any:
    """Make an option with a help in both languages."""
    return typer.Option(*names, help=localized(en, ko))


def argument(en: str, ko: str) -> Any:
    """Make an argument with a help in both languages."""
    return typer.Argument(help=localized(en, ko))


LangOption = Annotated[
    str | None,
    option(
        "What it speaks: ko or en; told by LANG when not given.",
        "말하는 언어(ko, en). 없으면 ATTENDO_LANG, LANG 순.",
    ),
]


def localized_command(summary: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a verb with an option `lang` speak Korean, too; `summary` is its help in Korean."""

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def run_localized(*args: Any, lang: str | None = None, **options: Any) -> None:
            output_lang = language_or_default(lang)
            with localized_warnings(output_lang), localized_errors(output_lang):
                verb(*args, lang=lang, **options)

        run_localized.__doc__ = localized(verb.__doc__ or "", summary)
        return run_localized

    return decorate


class LocalizedCommand(TyperCommand):
    """A verb whose own `--help` is told in the language of the command line."""

    def get_help_option(self, ctx: Any) -> Any:
        """Give the option, in which typer speaks English."""
        help_option = super().get_help_option(ctx)
        if help_option is not None:
            help_option.help = localized(help_option.help or "", "이 도움말을 보이고 끝냅니다.")
        return help_option


@contextmanager
def localized_errors(lang: Lang) -> Iterator[None]:
    """Say errors in a language; in English `attendo.cli.main` does it."""
    if lang == "en":
        yield
        return
    try:
        yield
    except AttendoError as error:
        is_error = error.exit_code == AttendoError.exit_code  # else the user asked for the end
        text = translate_error(error, lang)
        typer.secho(
            f"오류: {text}" if is_error else text,
            fg=typer.colors.RED if is_error else None,
            err=True,
        )
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        what = error.filename or translate_message("the output", lang)
        text = translate_message(
            message("{what} cannot be used: {detail}", what=what, detail=error.strerror or error),
            lang,
        )
        hint = translate_message("check the place, its permissions and its room", lang)
        typer.secho(f"오류: {text}\n  해결 방법: {hint}", err=True)
        raise SystemExit(AttendoError.exit_code) from None


class _LocalizedLogHandler(logging.Handler):
    """Says a warning as Python does where nobody has asked for a log, but in Korean."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(translate_message(record.getMessage(), "ko"), err=True)


@contextmanager
def localized_warnings(lang: Lang) -> Iterator[None]:
    """Say warnings in a language; in English Python does it."""
    if lang == "en":
        yield
        return
    root_logger, handler = logging.getLogger(ROOT), _LocalizedLogHandler(logging.WARNING)
    root_logger.addHandler(handler)
    try:
        yield
    finally:
        root_logger.removeHandler(handler)
