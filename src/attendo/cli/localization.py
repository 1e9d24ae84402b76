"""Help, errors and warnings of the command line in the user's language.

Texts are English literals in the code. `locale/ko.po` translates them when they are shown: help
texts when `--help` is printed, errors and warnings when they occur.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from attendo.core.errors import AttendoError, ConfigError
from attendo.core.message import Message
from attendo.i18n.messages import Lang, choose_language, translate_error, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.text import Text

LANG_OPTION = "--lang"
LangOption = Annotated[
    str | None,
    typer.Option(help="Language of messages: ko or en; by default ATTENDO_LANG, then LANG."),
]


def command_language(arguments: Sequence[str]) -> Lang:
    """Return the language of a command line: `--lang`, else the environment's."""
    return language_or_default(find_lang_option(arguments))


def find_lang_option(arguments: Sequence[str]) -> str | None:
    """Return the value of `--lang` in a command line, or None.

    >>> find_lang_option(["lessons", "4", "--lang", "ko"]), find_lang_option(["--lang=en"])
    ('ko', 'en')
    >>> [find_lang_option(words) for words in ([], ["lessons"], ["lessons", "--lang"])]
    [None, None, None]
    """
    for index, text in enumerate(arguments):
        name, equals, value = text.partition("=")
        if name == LANG_OPTION:
            return value if equals else next(iter(arguments[index + 1 :]), None)
    return None


def language_or_default(requested: str | None) -> Lang:
    """Return the requested language, or the environment's if it is not a language of ours."""
    try:
        return choose_language(requested)
    except ConfigError:
        return choose_language()


HELP_TITLES = {
    "ARGUMENTS_PANEL_TITLE": "Arguments",
    "OPTIONS_PANEL_TITLE": "Options",
    "COMMANDS_PANEL_TITLE": "Commands",
    "ERRORS_PANEL_TITLE": "Error",
    "DEFAULT_STRING": "[default: {}]",
    "REQUIRED_LONG_STRING": "[required]",
    "RICH_HELP": "Try [blue]'{command_path} {help_option}'[/] for help.",
}
"""Texts of typer's own, by the name of the constant in `typer.rich_utils`."""


@contextmanager
def localized_titles(lang: Lang) -> Iterator[None]:
    """Show the titles of help, and what is wrong with options, in a language."""
    if lang == "en":
        yield
        return
    from rich.text import Text
    from typer import rich_utils

    replaced: dict[str, Any] = {
        name: translate_message(text, lang) for name, text in HELP_TITLES.items()
    }
    replaced["rich_format_error"] = partial(_print_usage_error, rich_utils.rich_format_error, lang)
    originals = {name: getattr(rich_utils, name) for name in replaced}
    strip = Text.rstrip_end
    for name, value in replaced.items():
        setattr(rich_utils, name, value)
    setattr(Text, "rstrip_end", _strip_end)  # noqa: B010 - mypy rejects an assignment
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(rich_utils, name, original)
        setattr(Text, "rstrip_end", strip)  # noqa: B010


def _print_usage_error(show: Callable[[Any], None], lang: Lang, error: Any) -> None:
    """Print an error about wrong options in a language, as typer does in English."""
    from attendo.cli.usage_errors import parse_usage_error

    text = translate_message(parse_usage_error(error.format_message()), lang)
    error.format_message = lambda: text
    show(error)


def _strip_end(text: Text, size: int) -> None:
    """Remove the spaces at the end of a text that are beyond a width in terminal cells.

    Rich counts characters. A Hangul syllable takes two cells, so that spaces stay at the end of a
    wrapped line, and the last word is replaced by an ellipsis (rich 15).
    """
    num_spaces = len(text.plain) - len(text.plain.rstrip())
    excess = text.cell_len - size
    if num_spaces and excess > 0:
        text.right_crop(min(num_spaces, excess))


class LocalizedCommand(TyperCommand):
    """A verb with translated help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        _translate_help(self, ctx)
        super().format_help(ctx, formatter)


class LocalizedGroup(TyperGroup):
    """The command `attendo` with translated help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        _translate_help(self, ctx)
        super().format_help(ctx, formatter)


def _translate_help(command: Any, ctx: Any) -> None:
    """Translate the texts of a command, its options and its subcommands; `ctx.obj` is the Lang."""
    lang: Lang = ctx.obj or "en"
    if lang == "en":
        return
    subcommands = getattr(command, "commands", {}).values()
    for item in (command, *command.get_params(ctx), *subcommands):
        if getattr(item, "help", None):
            item.help = translate_message(item.help, lang)


def print_error(error: AttendoError, lang: Lang) -> None:
    """Print an error with its hint to stderr; an interruption by the user is not an error."""
    text = translate_error(error, lang)
    with suppress(OSError):  # the terminal may be closed
        if error.exit_code == AttendoError.exit_code:
            label = translate_message("error", lang)
            typer.secho(f"{label}: {text}", fg=typer.colors.RED, err=True)
        else:
            typer.echo(text, err=True)


class _LocalizedLogHandler(logging.Handler):
    """Prints translated warnings to stderr, as Python prints them without a logging setup."""

    def __init__(self, lang: Lang) -> None:
        super().__init__(logging.WARNING)
        self.lang = lang

    def emit(self, record: logging.LogRecord) -> None:
        text = record.msg if isinstance(record.msg, Message) else record.getMessage()
        typer.echo(translate_message(text, self.lang), err=True)


@contextmanager
def localized_warnings(lang: Lang) -> Iterator[None]:
    """Print warnings in a language; in English Python prints them itself."""
    if lang == "en":
        yield
        return
    from attendo.core.logs import ROOT

    root_logger, handler = logging.getLogger(ROOT), _LocalizedLogHandler(lang)
    root_logger.addHandler(handler)
    try:
        yield
    finally:
        root_logger.removeHandler(handler)
