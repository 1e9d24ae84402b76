"""Options that name training data: files, languages, columns, public corpora."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigArgument = Annotated[
    Path | None,
    typer.Argument(help="A TOML file with the settings of the run.", show_default=False),
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
