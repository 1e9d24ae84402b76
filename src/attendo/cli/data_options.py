"""Options that name training data: files, languages, columns, public corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attendo.core.errors import ConfigError
from attendo.core.message import message

ConfigArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="CONFIG",
        help="A TOML file with the settings of the run.",
        show_default=False,
    ),
]
SrcOption = Annotated[
    list[Path] | None, typer.Option(help="Source sentences, one per line (repeatable).")
]
TgtOption = Annotated[
    list[Path] | None, typer.Option(help="Their translations, in the same order.")
]
PathOption = Annotated[
    list[Path] | None,
    typer.Option(help="One file with both sides: TSV, CSV, JSON, Parquet, TMX, PO ..."),
]
TextOption = Annotated[
    list[Path] | None,
    typer.Option(help="Plain text, for --model encoder or --model decoder."),
]
DevSrcOption = Annotated[
    Path | None,
    typer.Option(help="Source side of the dev set; by default split off from the training data."),
]
DevTgtOption = Annotated[Path | None, typer.Option(help="Target side of the dev set.")]
DevPathOption = Annotated[
    Path | None, typer.Option(help="Dev set with both sides in one file, like --path.")
]
DevTextOption = Annotated[Path | None, typer.Option(help="Dev set of plain text.")]
SrcLangOption = Annotated[str | None, typer.Option(help="Language of the source, e.g. ko.")]
TgtLangOption = Annotated[str | None, typer.Option(help="Language of the target, e.g. en.")]
PathSrcLangOption = Annotated[
    str | None, typer.Option(help="Language of the source; chooses it in --path, e.g. en.")
]
PathTgtLangOption = Annotated[
    str | None, typer.Option(help="Language of the target; chooses it in --path.")
]
SrcFieldOption = Annotated[
    str | None, typer.Option(help="Column (name or number) or field of the source in --path.")
]
TgtFieldOption = Annotated[
    str | None, typer.Option(help="Column or field of the target in --path.")
]
CorpusOption = Annotated[
    str | None, typer.Option(help="A public corpus (see attendo corpus), with --pair.")
]
PairOption = Annotated[str | None, typer.Option(help="Language pair of the corpus, e.g. en-de.")]
MirrorOption = Annotated[
    str | None, typer.Option(help="A folder or an address to fetch the corpus from.")
]


def only_config(paths: list[Path] | None) -> Path | None:
    """Return the config file; raise if there are more, such as the two files of a corpus."""
    if paths is not None and len(paths) > 1:
        src, tgt = paths[:2]
        raise ConfigError(
            message(
                "{count} config files: {names}",
                count=len(paths),
                names=", ".join(map(str, paths)),
            ),
            hint=message(
                "give text files with --src and --tgt: --src {src} --tgt {tgt}", src=src, tgt=tgt
            ),
        )
    return paths[0] if paths else None
