"""Errors with a reason and a hint.

Every error that Attendo raises on purpose is an `AttendoError`; the command line prints it without
a traceback. Errors about values are also `ValueError`s, for ordinary Python code.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import metadata
from typing import TYPE_CHECKING

from attendo.core.message import join_messages, message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


DISTRIBUTIONS = ("attendo", "attendo-light")
"""The names under which this code is installed: with PyTorch, and without (packaging/light)."""


class AttendoError(Exception):
    """An error that the user can fix.

    >>> raise AttendoError("the file is empty", hint="give a file with at least one line")
    Traceback (most recent call last):
    attendo.core.errors.AttendoError: the file is empty
      hint: give a file with at least one line
    """

    exit_code = 2
    """The exit code of the command line."""

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason if hint is None else f"{reason}\n  hint: {hint}")
        self.reason = reason
        self.hint = hint


class InputError(AttendoError, ValueError):
    """A tensor, a file or a text that cannot be used."""


class ConfigError(AttendoError, ValueError):
    """One or more settings that cannot be used; `reasons` lists all of them."""

    def __init__(
        self, reason: str, *, hint: str | None = None, reasons: Sequence[str] = ()
    ) -> None:
        super().__init__(reason, hint=hint)
        self.reasons = tuple(reasons) or (reason,)

    @classmethod
    def from_reasons(cls, subject: str, reasons: Sequence[str]) -> ConfigError:
        """Return one error about `subject` with all reasons."""
        count = len(reasons)
        settings = message("{count} settings", count=count) if count > 1 else message("1 setting")
        listing = join_messages("\n  - ", ["", *reasons])
        reason = message(
            "{subject}: {count} cannot be used{reasons}",
            subject=subject,
            count=settings,
            reasons=listing,
        )
        return cls(reason, reasons=reasons)


class MissingExtraError(AttendoError, ImportError):
    """An optional library is not installed; the hint names the extra that installs it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(
            message("{library} is not installed", library=library),
            hint=message(
                "install it with: pip install '{distribution}[{extra}]'",
                distribution=installed_distribution(),
                extra=extra,
            ),
        )


class MissingTorchError(MissingExtraError):
    """PyTorch is not installed; only translating and serving work without it."""

    def __init__(self) -> None:
        super().__init__("PyTorch", "train")


def installed_distribution() -> str:
    """Return the name under which this code was installed with pip."""
    for name in DISTRIBUTIONS:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return name
    return DISTRIBUTIONS[0]


def suggest(name: str, choices: Iterable[str]) -> str:
    """Return a hint for an unknown name: the nearest known one, and all of them.

    >>> suggest("bse", ["tiny", "small", "base", "big"])
    "did you mean 'base'? Known: tiny, small, base, big"
    """
    known = list(choices)
    by_folded = {choice.casefold(): choice for choice in known}
    near = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.5)
    listing = message("Known: {known}", known=", ".join(known))
    return (
        message("did you mean '{near}'? {detail}", near=by_folded[near[0]], detail=listing)
        if near
        else listing
    )
